import type { Config, FormatterConfig } from "../config/schema.ts";
import { findConfiguredFolders } from "./find-configured-folders.ts";
import { knownFormatters } from "./known-formatters.ts";

/** A formatter that applies in a project. */
export interface Formatter {
  readonly name: string;
  readonly extensions: readonly string[];
  /** The program and its arguments; `$FILE` is the file. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /**
   * The folders in which a known formatter is configured. Of several known ones for a file, only the one that is
   * configured nearest to it runs, and of those in one folder the first.
   */
  readonly configuredIn?: readonly string[];
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
  /** The project's root, in and below which known formatters are configured. */
  readonly root: string;
  readonly cwd: string;
  /** A known formatter runs code of the project, so that it needs the user's consent. */
  readonly isTrusted: boolean;
}

/** Returns the known formatters that the project configures, then those with a configured command. */
export async function chooseFormatters(sources: FormatterSources): Promise<FormatterChoice> {
  const { config = false, root, cwd, isTrusted } = sources;
  if (config === false) return { formatters: [], waiting: [], problems: [] };
  const entries = config === true ? {} : config;
  const known: Formatter[] = [];
  const configured = await findConfiguredFolders(root, cwd);
  for (const [name, formatter] of knownFormatters) {
    const entry = entries[name] ?? {};
    if (entry.disabled === true || entry.command !== undefined) continue;
    const configuredIn = configured.get(name);
    if (configuredIn === undefined) continue;
    const changesOthers = formatter.changesOthers === true;
    known.push({
      environment: {},
      ...formatter,
      ...entry,
      name,
      command: formatter.command,
      configuredIn,
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
  return [{ name, extensions, command, environment, changesOthers: true }];
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
