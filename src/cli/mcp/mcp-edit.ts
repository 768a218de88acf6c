import { codeOf, UserError } from "../../base/errors.ts";
import { readRegularFile } from "../../base/files/regular-file.ts";
import { isKnownToken } from "../../base/secrets/secret-forms.ts";
import { isRecord } from "../../base/text/record.ts";
import { showInvisible } from "../../base/text/invisible.ts";
import { type Setting, setInFile } from "../../config/edit.ts";
import { parseConfigFile } from "../../config/files/config-file.ts";
import { lockFolderOf } from "../../storage/json/lock.ts";
import type { Call } from "../command-line/command.ts";
import { UsageError } from "../command-line/usage.ts";
import { openApp } from "../local-app.ts";
import { print } from "../terminal/output.ts";
import { findUserConfigFile } from "../user-config-file.ts";

/** Adds a server to the user's configuration file. */
export async function addMcp(call: Call): Promise<number> {
  const from = call.text("from");
  if (from !== undefined) return addFrom(from, call);
  const [name = "", target = "", ...args] = call.operands;
  if (target === "") throw new UsageError("mcp add needs NAME URL, NAME -- COMMAND… or --from", call.name);
  if (!/^[\w.-]+$/.test(name))
    throw new UsageError(
      `"${name}" is not a valid server name; use letters, digits, "-", "_" and "."`,
      call.name,
    );
  const server = isWebAddress(target)
    ? createRemote(target, args, call)
    : createLocal([target, ...args], call);
  const file = findFile();
  if ((await readServers(file))[name] !== undefined)
    throw new UserError(`"${name}" is already in ${file}. Remove it first: fairlead mcp remove ${name}`);
  await setInFile(file, [{ path: ["mcp", name], value: server }], lockFolder());
  await print(showInvisible(`Added "${name}" to ${file}. To check it: fairlead mcp test ${name}`));
  return 0;
}

/** Adds servers of another program's settings: the named ones, or all that the configuration lacks. */
async function addFrom(id: string, call: Call): Promise<number> {
  if (call.texts("env").length > 0 || call.texts("header").length > 0)
    throw new UsageError("--from takes no --env and no --header", call.name);
  const { otherPrograms, readServersOf } = await import("./other-programs.ts");
  const program = otherPrograms.find((one) => one.id === id);
  if (program === undefined) throw new UsageError(`--from does not know "${id}"`, call.name);
  const home = { home: openApp().home, env: process.env, platform: process.platform };
  const found = await readServersOf(program, home);
  const place = program.file(home);
  if (found === undefined) throw new UserError(`${program.name} has no settings at ${place}.`);
  const missing = call.operands.filter((name) => !found.some((one) => one.name === name));
  if (missing.length > 0) {
    const names = found.map(({ name }) => name).join(", ") || "none";
    throw new UserError(`${missing.join(", ")} not found in ${place}, which has: ${names}.`);
  }
  const file = findFile();
  const known = await readServers(file);
  const wanted = found.filter(({ name }) => call.operands.length === 0 || call.operands.includes(name));
  const lines: string[] = [];
  const settings: Setting[] = [];
  for (const one of wanted) {
    if (known[one.name] !== undefined) lines.push(`Not added: "${one.name}" is already in ${file}.`);
    else if ("problem" in one) lines.push(`Not added: "${one.name}", because ${one.problem}.`);
    else {
      settings.push({ path: ["mcp", one.name], value: one.server });
      lines.push(`Added "${one.name}" to ${file}. To check it: fairlead mcp test ${one.name}`);
      if (one.variables.length > 0)
        lines.push(`  Its keys were not copied. Set these variables: ${one.variables.join(", ")}`);
    }
  }
  if (settings.length > 0) await setInFile(file, settings, lockFolder());
  await print(showInvisible(lines.length === 0 ? `${place} has no MCP servers.` : lines.join("\n")));
  return wanted.length > 0 && settings.length === 0 ? 1 : 0;
}

/** Removes a server from the user's configuration file. */
export async function removeMcp({ operands: [name = ""] }: Call): Promise<number> {
  const file = findFile();
  const servers = await readServers(file);
  const server = servers[name];
  if (server === undefined) {
    const names = Object.keys(servers).join(", ") || "none";
    throw new UserError(
      `"${name}" is not in ${file}, which has: ${names}. Other files: fairlead config show mcp`,
    );
  }
  await setInFile(file, [{ path: ["mcp", name], value: undefined }], lockFolder());
  const url = isRecord(server) ? server["url"] : undefined;
  const more = typeof url === "string" ? ` Its authorization, if any, stays: fairlead mcp logout ${url}` : "";
  await print(showInvisible(`Removed "${name}" from ${file}.${more}`));
  return 0;
}

function createRemote(url: string, args: readonly string[], call: Call): Record<string, unknown> {
  if (args.length > 0)
    throw new UsageError(`an address takes no arguments; unexpected: ${args.join(" ")}`, call.name);
  if (call.texts("env").length > 0)
    throw new UsageError("--env is for programs; use --header for an address", call.name);
  const headers = parsePairs(call, "header");
  return { type: "remote", url, ...(headers && { headers }) };
}

function createLocal(command: readonly string[], call: Call): Record<string, unknown> {
  if (call.texts("header").length > 0)
    throw new UsageError("--header is for addresses; use --env for a program", call.name);
  const environment = parsePairs(call, "env");
  for (const word of command) refuseKey(word);
  return { type: "local", command, ...(environment && { environment }) };
}

/** Parses the `NAME=VALUE` of a flag. Returns undefined if it was not given. */
function parsePairs(call: Call, flag: string): Record<string, string> | undefined {
  const pairs = call.texts(flag).map((text) => {
    const [, name = "", value = ""] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (name === "") throw new UsageError(`--${flag} takes NAME=VALUE, not "${text}"`, call.name);
    refuseKey(value.replace(/^(?:Bearer|Basic) /i, ""));
    return [name, value] as const;
  });
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs);
}

function refuseKey(text: string): void {
  if (isKnownToken(text))
    throw new UserError(
      "That looks like a key, which does not belong in the configuration. Put it into a variable and write {env:NAME}.",
    );
}

function isWebAddress(text: string): boolean {
  return /^https?:\/\//i.test(text) && URL.canParse(text);
}

function findFile(): string {
  return findUserConfigFile(openApp().folders.config);
}

function lockFolder(): string {
  return lockFolderOf(openApp().folders.data);
}

/** Returns the servers that the file has, as they are written. */
async function readServers(file: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const { value } = parseConfigFile(file, (await readRegularFile(file)).toString("utf8"));
    const mcp = isRecord(value) ? value["mcp"] : undefined;
    return isRecord(mcp) ? mcp : {};
  } catch (error) {
    if (codeOf(error) === "ENOENT") return {};
    throw error;
  }
}
