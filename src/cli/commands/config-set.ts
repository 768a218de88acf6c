import { UserError } from "../../base/errors.ts";
import { isKnownToken } from "../../base/secrets/secret-forms.ts";
import { isRecord } from "../../base/text/record.ts";
import { setInFile } from "../../config/edit.ts";
import { checkConfig, parseConfigFile } from "../../config/files/config-file.ts";
import { lockFolderOf } from "../../storage/json/lock.ts";
import { UsageError } from "../command-line/usage.ts";
import type { Call } from "../command-line/command.ts";
import { openApp } from "../local-app.ts";
import { print, writeNotice } from "../terminal/output.ts";
import { findUserConfigFile } from "../user-config-file.ts";

/** Sets one value in the user's configuration file. */
export async function setConfig({ operands: [setting = "", text = ""] }: Call): Promise<number> {
  const path = parsePath(setting);
  if (isKnownToken(text))
    throw new UserError("That looks like a key. Store keys with fairlead setup, not in the configuration.");
  const value = parseValue(text);
  const nested = path.reduceRight((inner: unknown, key) => ({ [key]: inner }), value);
  const file = parseConfigFile(setting, JSON.stringify(nested));
  const { problems } = checkConfig(file, file.value);
  const [problem] = problems;
  if (problem !== undefined) throw new UserError(`${setting} cannot be set to ${text}: ${problem.message}`);
  const target = await store(path, value);
  await print(`${setting} is ${JSON.stringify(value)} in ${target}.`);
  await warnIfOverridden(setting, path, value);
  return 0;
}

/** Removes one value from the user's configuration file. */
export async function unsetConfig({ operands: [setting = ""] }: Call): Promise<number> {
  const path = parsePath(setting);
  const target = await store(path, undefined);
  await print(`${setting} is not set in ${target}.`);
  await warnIfOverridden(setting, path, undefined);
  return 0;
}

/** Splits a setting at its dots; a key with dots is quoted: `provider.openai.models."gpt-5.5"`. */
function parsePath(setting: string): string[] {
  const keys = [...setting.matchAll(/"([^"]*)"|([^."]+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
  if (keys.length === 0) throw new UsageError(`"${setting}" is not the name of a setting`, "config set");
  return keys;
}

/** Reads a value as JSON, else as text. */
function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function store(path: readonly string[], value: unknown): Promise<string> {
  const { folders } = openApp();
  const target = findUserConfigFile(folders.config);
  await setInFile(target, [{ path, value }], lockFolderOf(folders.data));
  return target;
}

async function warnIfOverridden(setting: string, path: readonly string[], value: unknown): Promise<void> {
  const { loaded } = await openApp().projects.readConfiguration(process.cwd());
  const now = path.reduce((inner: unknown, key) => (isRecord(inner) ? inner[key] : undefined), loaded.config);
  if (JSON.stringify(now) !== JSON.stringify(value))
    writeNotice(`another file sets it here: see fairlead config show ${setting}`);
}
