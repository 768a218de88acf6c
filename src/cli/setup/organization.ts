import { rm } from "node:fs/promises";
import { messageOf, UserError } from "../../base/errors.ts";
import { isRecord } from "../../base/text/record.ts";
import { checkConfig, parseConfigFile } from "../../config/files/config-file.ts";
import { setInFile } from "../../config/edit.ts";
import { organizationFile } from "../../config/load.ts";
import type { App } from "../../app.ts";
import { lockFolderOf } from "../../storage/json/lock.ts";
import { type Questions, QuestionsCancelledError } from "../terminal/questions.ts";
import { UsageError } from "../command-line/usage.ts";

/** Paths of the configuration on an organization's server; the first one found is used. */
const wellKnownPaths = ["/.well-known/fairlead", "/.well-known/opencode"];

const timeoutMs = 15_000;
const limitBytes = 1_000_000;

/** Fetches an organization's configuration, shows it, and stores it as the lowest layer. Never fetched automatically. */
export async function joinOrganization(address: string, app: App, questions: Questions): Promise<void> {
  if (!/^https?:\/\/./.test(address) || !URL.canParse(address))
    throw new UsageError("--organization takes an address such as https://ai.example.com", "setup");
  const { from, text } = await questions.wait(`Asking ${address}`, fetchConfig(address));
  const config = parseOrganizationConfig(from, text);
  questions.show(`${from} says:`, JSON.stringify(config, undefined, 2));
  if (!(await questions.confirm("Use this as the base of your own configuration?", false)))
    throw new QuestionsCancelledError("nothing was stored");
  const path = organizationFile(app.folders.data);
  await rm(path, { force: true });
  await setInFile(
    path,
    Object.entries(config).map(([key, value]) => ({ path: [key], value })),
    lockFolderOf(app.folders.data),
  );
  questions.say(
    `Stored in ${path}. Run this again when it changes; fairlead logout --organization removes it.`,
  );
}

async function fetchConfig(address: string): Promise<{ from: string; text: string }> {
  const problems: string[] = [];
  for (const path of wellKnownPaths) {
    const from = new URL(path, address).href;
    try {
      const response = await fetch(from, { signal: AbortSignal.timeout(timeoutMs), redirect: "error" });
      if (response.ok) return { from, text: await readLimitedText(response) };
      problems.push(`${from}: ${response.status}`);
    } catch (error) {
      problems.push(`${from}: ${messageOf(error)}`);
    }
  }
  throw new UserError(`No configuration was found. ${problems.join("; ")}.`);
}

async function readLimitedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > limitBytes) throw new Error(`more than ${limitBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Parses the object under `config`, or the whole file. Omits invalid settings. */
function parseOrganizationConfig(from: string, text: string): Record<string, unknown> {
  const { value, problems } = parseConfigFile(from, text);
  if (!isRecord(value) || problems.length > 0) throw new UserError(`${from} is not a JSON object.`);
  const written = isRecord(value["config"]) ? value["config"] : value;
  const whole = parseConfigFile(from, JSON.stringify(written));
  return checkConfig(whole, whole.value).config;
}
