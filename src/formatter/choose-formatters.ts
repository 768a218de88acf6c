import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { statOrUndefined } from "../base/files/file-stat.ts";
import type { Config, FormatterConfig } from "../config/schema.ts";
import { knownFormatters } from "./known-formatters.ts";

/** A configuration file that is larger is not searched. */
const markerLimitBytes = 1024 * 1024;

/** A formatter that applies in a project. */
export interface Formatter {
  readonly name: string;
  readonly extensions: readonly string[];
  /** The program and its arguments; `$FILE` is the file. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Of several known ones for a file, only the first runs. */
  readonly isKnown: boolean;
  readonly changesOthers: boolean;
}

export interface FormatterChoice {
  readonly formatters: readonly Formatter[];
  /** Names of known formatters that wait for the user's consent. */
  readonly waiting: readonly string[];
  readonly problems: readonly string[];
}

export interface FormatterSources {
  readonly config: Config["formatter"];
  /** The project's folders, in which known formatters are configured. */
  readonly folders: readonly string[];
  /** A known formatter runs code of the project, so that it needs the user's consent. */
  readonly isTrusted: boolean;
}

/** Returns the known formatters that the project configures, then those with a configured command. */
export async function chooseFormatters(sources: FormatterSources): Promise<FormatterChoice> {
  const { config = false, folders, isTrusted } = sources;
  if (config === false) return { formatters: [], waiting: [], problems: [] };
  const entries = config === true ? {} : config;
  const known: Formatter[] = [];
  for (const [name, formatter] of knownFormatters) {
    const entry = entries[name] ?? {};
    if (entry.disabled === true || entry.command !== undefined) continue;
    if (!(await isConfigured(formatter.markers, folders))) continue;
    const changesOthers = formatter.changesOthers === true;
    known.push({
      environment: {},
      ...formatter,
      ...entry,
      name,
      command: formatter.command,
      isKnown: true,
      changesOthers,
    });
  }
  const own = Object.entries(entries).flatMap(([name, entry]) => toOwn(name, entry));
  const problems = Object.entries(entries).flatMap(([name, entry]) => findProblem(name, entry));
  return isTrusted
    ? { formatters: [...known, ...own], waiting: [], problems }
    : { formatters: own, waiting: known.map(({ name }) => name), problems };
}

function toOwn(
  name: string,
  { command, disabled, environment = {}, ...entry }: FormatterConfig,
): Formatter[] {
  const extensions = entry.extensions ?? knownFormatters.get(name)?.extensions;
  if (disabled === true || command === undefined || extensions === undefined) return [];
  return [{ name, extensions, command, environment, isKnown: false, changesOthers: true }];
}

function findProblem(name: string, { command, extensions, disabled }: FormatterConfig): string[] {
  if (disabled === true || knownFormatters.has(name)) return [];
  const missing = [...(command ? [] : ["command"]), ...(extensions ? [] : ["extensions"])];
  if (missing.length === 0) return [];
  const known = [...knownFormatters.keys()].join(", ");
  return [
    `formatter.${name} is not used: it needs ${missing.map((key) => `"${key}"`).join(" and ")}. Only these are known without: ${known}.`,
  ];
}

async function isConfigured(
  markers: readonly { readonly file: string; readonly text?: RegExp }[],
  folders: readonly string[],
): Promise<boolean> {
  for (const folder of folders)
    for (const { file, text } of markers) if (await hasMarker(join(folder, file), text)) return true;
  return false;
}

/** A file that cannot be read configures nothing. */
async function hasMarker(path: string, text: RegExp | undefined): Promise<boolean> {
  try {
    const found = statOrUndefined(path);
    if (found?.isFile() !== true) return false;
    if (text === undefined) return true;
    return found.size <= markerLimitBytes && text.test(await readFile(path, "utf8"));
  } catch {
    return false;
  }
}
