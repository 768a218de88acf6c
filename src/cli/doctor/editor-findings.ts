import { existsSync, realpathSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readRegularFile } from "../../base/files/regular-file.ts";
import { isRecord } from "../../base/text/record.ts";
import { configHome, type Home } from "../../config/paths.ts";
import { parseConfigFile } from "../../config/files/config-file.ts";
import { editors } from "../setup/editors.ts";
import type { Finding } from "./finding.ts";
import { listProgramPaths } from "../../workspace/process/find-program.ts";

/** Reports for each installed editor whether its settings start this program. */
export async function editorFindings(home: Home): Promise<Finding[]> {
  const [json, others] = await Promise.all([jsonEditors(home), textEditors(home)]);
  return [...json, ...others].map((finding) => ({ what: "Editor", ...finding }));
}

type Described = Omit<Finding, "what">;

/** Editors with a list of agents in JSON. */
async function jsonEditors(home: Home): Promise<Described[]> {
  const found = editors.map(async ({ id, name, settings }): Promise<Described[]> => {
    if (settings === undefined) return [];
    const path = settings.file(home);
    const text = await readText(path);
    if (text === undefined) return [];
    const { value, problems } = parseConfigFile(path, text);
    const [problem] = problems;
    // Zed itself accepts more than this reader does.
    if (problem !== undefined)
      return [{ found: `${name}: ${path} cannot be read`, note: `Line ${problem.line}: ${problem.message}` }];
    const servers = isRecord(value) && isRecord(value["agent_servers"]) ? value["agent_servers"] : {};
    const ours = Object.entries(servers).flatMap(([server, start]) => {
      const command = readCommand(start);
      return command !== undefined && /fairlead/i.test([server, ...command].join(" "))
        ? [{ server, command }]
        : [];
    });
    const advice = `fairlead setup --editor ${id} shows the settings.`;
    if (ours.length === 0) return [{ found: `${name}: not connected`, note: advice }];
    return ours.map(({ server, command }) => judge(`${name}: ${server}`, command, home, advice));
  });
  return (await Promise.all(found)).flat();
}

function readCommand(start: unknown): string[] | undefined {
  if (!isRecord(start) || typeof start["command"] !== "string") return undefined;
  const args = Array.isArray(start["args"]) ? start["args"].filter((arg) => typeof arg === "string") : [];
  return [start["command"], ...args];
}

function judge(who: string, command: readonly string[], home: Home, advice: string): Described {
  const [program = "", ...args] = command;
  const shown = command.join(" ");
  const path = findProgram(program, home);
  if (path === undefined)
    return { found: `${who} starts ${shown}`, todo: `${program} does not exist. ${advice}` };
  const script = args.find((arg) => isAbsolute(arg) && arg.endsWith(".js"));
  if (script !== undefined && !existsSync(script))
    return { found: `${who} starts ${shown}`, todo: `${script} does not exist. ${advice}` };
  if (!args.includes("acp"))
    return { found: `${who} starts ${shown}`, todo: `The argument acp is missing. ${advice}` };
  const own = fileURLToPath(new URL("../bin/fairlead.js", import.meta.url));
  return isSame(script ?? path, own)
    ? { found: `${who} starts this program` }
    : { found: `${who} starts another Fairlead`, note: `${script ?? path} is not ${own}.` };
}

/** Finds a command as a shell would; editors started from a desktop may have another PATH. */
function findProgram(program: string, { env, platform }: Home): string | undefined {
  if (isAbsolute(program)) return existsSync(program) ? program : undefined;
  return listProgramPaths(program, env, platform).find((path) => existsSync(path));
}

function isSame(one: string, other: string): boolean {
  return existsSync(one) && existsSync(other) && realpathSync.native(one) === realpathSync.native(other);
}

/** Settings of Neovim and Emacs searched per editor, and their size in bytes. */
const filesLimit = 300;
const sizeLimit = 500_000;

/** Editors that are configured by programs, which only mention the agent. */
async function textEditors(home: Home): Promise<Described[]> {
  const config = configHome(home);
  const places = [
    { name: "Neovim", folders: [join(config, "nvim")], ends: [".lua", ".vim"], page: "neovim" },
    {
      name: "Emacs",
      folders: [join(config, "emacs"), join(home.home, ".emacs.d")],
      ends: [".el", ".org"],
      page: "emacs",
    },
  ];
  const found = places.map(async ({ name, folders, ends, page }): Promise<Described[]> => {
    const folder = folders.find((one) => existsSync(one));
    if (folder === undefined) return [];
    const file = await findMention(folder, ends);
    return file === undefined
      ? [{ found: `${name}: not connected`, note: `See docs/editors/${page}.md.` }]
      : [{ found: `${name}: ${file} names Fairlead` }];
  });
  return (await Promise.all(found)).flat();
}

/** Finds a file of settings that names the program; installed packages are not searched. */
async function findMention(folder: string, ends: readonly string[]): Promise<string | undefined> {
  const entries = await readdir(folder, { recursive: true }).catch(() => []);
  const names = entries.filter(
    (name) =>
      ends.some((end) => name.endsWith(end)) &&
      !/(?:^|[/\\])(?:elpa|straight|pack|eln-cache)[/\\]/.test(name),
  );
  for (const name of names.slice(0, filesLimit)) {
    const path = join(folder, name);
    if (/fairlead/i.test((await readText(path)) ?? "")) return path;
  }
  return undefined;
}

/** Returns undefined for files that are missing, large or not regular. */
async function readText(path: string): Promise<string | undefined> {
  try {
    const bytes = await readRegularFile(path);
    return bytes.length > sizeLimit ? undefined : bytes.toString("utf8");
  } catch {
    return undefined;
  }
}
