import { basename, dirname } from "node:path";
import type { Config, LanguageServerConfig } from "../../config/schema.ts";
import type { FoundFiles } from "./find-files.ts";
import { type KnownServer, knownServers } from "./known-servers.ts";
import { servesFile } from "./languages.ts";

/** The user's answers for a project, by server name. */
export interface ServerAnswers {
  readonly agreed: readonly string[];
  readonly declined: readonly string[];
}

/** A server of the configuration, or one that is installed and serves the project's languages. */
export interface ServerChoice {
  readonly name: string;
  /**
   * - `usable`: configured, or agreed to.
   * - `open`: installed; the user was not asked yet.
   * - `declined`: installed; the user does not want it in this project.
   * - `missing`: configured without a command; its program was not found.
   * - `off`: configured as disabled.
   */
  readonly state: "usable" | "open" | "declined" | "missing" | "off";
  readonly config: LanguageServerConfig;
  /** A file of the project that it serves. */
  readonly sample: string | undefined;
}

export interface SelectionInput {
  readonly config: Config["lsp"];
  /** Files of the project, below its root folder. */
  readonly files: FoundFiles;
  readonly root: string;
  readonly answers: ServerAnswers;
  /** Returns the path of a program on the PATH that is not part of the project. */
  readonly findProgram: (name: string) => Promise<string | undefined>;
}

/**
 * Returns the servers of the configuration, then the installed servers for the other languages of the project: one for
 * each language.
 */
export async function selectServers(input: SelectionInput): Promise<readonly ServerChoice[]> {
  if (input.config === false) return [];
  const entries = typeof input.config === "object" ? Object.entries(input.config) : [];
  const configured = await Promise.all(
    entries.map(([name, config]) => chooseConfigured(input, name, config)),
  );
  const choices = [...configured];
  for (const [name, known] of knownServers) {
    const choice = await chooseInstalled(input, name, known, choices);
    if (choice !== undefined) choices.push(choice);
  }
  return choices;
}

async function chooseConfigured(
  input: SelectionInput,
  name: string,
  config: LanguageServerConfig,
): Promise<ServerChoice> {
  const sample = input.files.paths.find((path) => servesFile(name, config.extensions, path));
  if (config.disabled === true) return { name, state: "off", config, sample };
  if (config.command !== undefined) return { name, state: "usable", config, sample };
  const command = await findCommand(input, knownServers.get(name));
  if (command === undefined) return { name, state: "missing", config, sample };
  return { name, state: "usable", config: { ...config, command }, sample };
}

async function chooseInstalled(
  input: SelectionInput,
  name: string,
  known: KnownServer,
  chosen: readonly ServerChoice[],
): Promise<ServerChoice | undefined> {
  if (known.isOptIn === true || chosen.some((choice) => choice.name === name)) return undefined;
  const { paths } = input.files;
  const sample = paths.find((path) => servesFile(name, undefined, path));
  if (sample === undefined || isServed(sample, chosen) || !hasMarker(input, known)) return undefined;
  const command = await findCommand(input, known);
  if (command === undefined) return undefined;
  return { name, state: stateOf(input, name), config: { command }, sample };
}

/** Whether a server of the project serves the file. Those that check a language only besides another do not count. */
function isServed(path: string, chosen: readonly ServerChoice[]): boolean {
  return chosen.some(
    ({ name, state, config }) =>
      state !== "missing" &&
      knownServers.get(name)?.isOptIn !== true &&
      servesFile(name, config.extensions, path),
  );
}

function hasMarker({ files, root }: SelectionInput, { markers }: KnownServer): boolean {
  return (
    markers === undefined ||
    files.paths.some((path) => dirname(path) === root && markers.includes(basename(path)))
  );
}

function stateOf({ config, answers }: SelectionInput, name: string): ServerChoice["state"] {
  if (config === true || answers.agreed.includes(name)) return "usable";
  return answers.declined.includes(name) ? "declined" : "open";
}

async function findCommand(
  { findProgram }: SelectionInput,
  known: KnownServer | undefined,
): Promise<string[] | undefined> {
  for (const [program = "", ...args] of known?.commands ?? []) {
    const path = await findProgram(program);
    if (path !== undefined) return [path, ...args];
  }
  return undefined;
}
