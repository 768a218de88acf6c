import { join, relative } from "node:path";
import { toModelRef } from "../agent/agent-config.ts";
import { messageOf } from "../base/errors.ts";
import { describeIssue } from "../config/files/expectation.ts";
import { findFiles, type Report } from "../config/files/folder-walk.ts";
import type { ConfigSource } from "../config/load.ts";
import { readMarkdownFile } from "../config/files/markdown-file.ts";
import { type CommandFrontMatter, commandFrontMatterSchema, type Config } from "../config/schema.ts";
import { toSlashes } from "../base/files/paths.ts";
import type { Command } from "./command.ts";
import { hasShell } from "./template.ts";

/** Maximum number of commands per session; the rest is reported and ignored. */
const commandsLimit = 500;
const descriptionLimit = 200;

export interface CommandSources {
  readonly configured: NonNullable<Config["command"]>;
  /** Folders with `command` and `commands` folders, lowest precedence first. All override `configured`. */
  readonly folders: readonly ConfigSource[];
  /** Whether the project's commands may run shell commands. */
  readonly isTrusted: boolean;
  /** Names of `configured` commands that come from an untrusted project. */
  readonly untrusted?: ReadonlySet<string>;
  /** Whether untrusted commands may not choose a model. */
  readonly withoutModels?: boolean;
  /** Root of the worktree; links of the project's commands must stay inside. */
  readonly root: string;
  /** Names of agents that can answer. */
  readonly agents: ReadonlySet<string>;
  /** Names that are already taken. */
  readonly reserved: ReadonlySet<string>;
}

export interface CommandProblem {
  /** Path of the invalid file; none for the configuration. */
  readonly path?: string;
  readonly message: string;
}

export interface LoadedCommands {
  /** Sorted by name. */
  readonly commands: readonly Command[];
  readonly problems: readonly CommandProblem[];
}

/**
 * Loads commands from the configuration and from files; later ones override. Never throws for invalid
 * content.
 */
export async function loadCommands(sources: CommandSources): Promise<LoadedCommands> {
  const problems: CommandProblem[] = [];
  const report = (path: string | undefined, message: string) => {
    problems.push({ ...(path !== undefined && { path }), message });
  };
  const written = Object.entries(sources.configured).map(([name, { template, ...settings }]): RawCommand => {
    return { name, template, settings, isUntrusted: sources.untrusted?.has(name) === true };
  });
  for (const folder of sources.folders) written.push(...(await readFolder(folder, sources, report)));
  const commands = new Map<string, Command>();
  for (const one of written) {
    const command = toCommand(one, sources, report);
    if (command !== undefined) commands.set(command.name, command);
  }
  const sorted = [...commands.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  if (sorted.length > commandsLimit)
    report(undefined, `${sorted.length} commands found; only the first ${commandsLimit} are used`);
  return { commands: sorted.slice(0, commandsLimit), problems };
}

/** A command as written, not yet checked. */
interface RawCommand {
  readonly name: string;
  readonly path?: string;
  readonly template: string;
  readonly settings: CommandFrontMatter;
  readonly isUntrusted: boolean;
}

type ReportCommand = (path: string | undefined, message: string) => void;

async function readFolder(
  folder: ConfigSource,
  { root, isTrusted }: CommandSources,
  report: Report,
): Promise<RawCommand[]> {
  const isProjects = folder.scope === "project";
  const written: RawCommand[] = [];
  for (const name of ["command", "commands"]) {
    const commandsFolder = join(folder.path, name);
    const wanted = (file: string) => file.endsWith(".md");
    const paths = await findFiles(commandsFolder, { wanted, report, ...(isProjects && { within: root }) });
    for (const path of paths.slice(0, commandsLimit)) {
      const command = await readCommand(commandsFolder, path, report);
      if (command === undefined) continue;
      // Withheld until the project is trusted.
      if (isProjects && !isTrusted && hasShell(command.template)) continue;
      written.push({ ...command, isUntrusted: isProjects && !isTrusted });
    }
  }
  return written;
}

async function readCommand(
  commandsFolder: string,
  path: string,
  report: Report,
): Promise<Omit<RawCommand, "isUntrusted"> | undefined> {
  try {
    const { settings, body, note } = await readMarkdownFile(path);
    if (note !== undefined) report(path, note);
    const name = toSlashes(relative(commandsFolder, path)).slice(0, -".md".length);
    return { name, path, template: body, settings: parseSettings(settings, path, report) };
  } catch (thrown) {
    report(path, messageOf(thrown));
    return undefined;
  }
}

/** Ignores invalid settings one by one. A key without a value is null and counts as absent. */
function parseSettings(raw: Record<string, unknown>, path: string, report: Report): CommandFrontMatter {
  const settings = Object.fromEntries(
    Object.entries(raw)
      .filter(([, value]) => value !== null)
      .map(([key, value]) => [key, key === "argument-hint" ? parseHint(value) : value]),
  );
  const parsed = commandFrontMatterSchema.safeParse(settings);
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) {
    const { field, message } = describeIssue(issue, settings);
    report(path, `${field}: ${message}`);
  }
  const wrong = new Set(parsed.error.issues.map(({ path: field }) => String(field[0])));
  const right = Object.entries(settings).filter(([key]) => !wrong.has(key));
  return commandFrontMatterSchema.parse(Object.fromEntries(right));
}

/** YAML parses `[file] [line]` without quotes as a list. */
function parseHint(value: unknown): unknown {
  return Array.isArray(value) ? `[${value.join(", ")}]` : value;
}

function toCommand(written: RawCommand, sources: CommandSources, report: ReportCommand): Command | undefined {
  const { name, path, settings, template, isUntrusted } = written;
  const say = (message: string) => report(path, path === undefined ? `command.${name}: ${message}` : message);
  if (!/^\S+$/.test(name)) return refuse(say, "the name contains a space");
  if (sources.reserved.has(name)) return refuse(say, `/${name} is a built-in command`);
  if (template.trim() === "") return refuse(say, "it has no text");
  return {
    name,
    description: shorten(settings.description ?? template),
    hint: settings["argument-hint"] ?? (/\$(?:ARGUMENTS|[1-9])/.test(template) ? "arguments" : undefined),
    agent: findAgent(settings, sources.agents, say),
    ...(isUntrusted && settings.agent !== undefined && { isUntrusted }),
    ...parseModel(isUntrusted && sources.withoutModels === true ? omitModel(settings, say) : settings, say),
    subtask: settings.subtask,
    template,
  };
}

function refuse(say: (message: string) => void, reason: string): undefined {
  say(`${reason}; ignored`);
}

function findAgent(
  { agent }: CommandFrontMatter,
  agents: ReadonlySet<string>,
  say: (message: string) => void,
): string | undefined {
  if (agent === undefined || agents.has(agent)) return agent;
  say(`agent not found: "${agent}"; the session's agent is used`);
  return undefined;
}

function omitModel(
  { model, ...settings }: CommandFrontMatter,
  say: (message: string) => void,
): CommandFrontMatter {
  if (model !== undefined)
    say(
      "model: you limit costs (max_cost), so an untrusted project cannot choose a model; the session's model is used",
    );
  return settings;
}

/** Ignores a model name without a provider (`sonnet`, `inherit`): it is written for another program. */
function parseModel(
  { model, variant }: CommandFrontMatter,
  say: (message: string) => void,
): Pick<Command, "model" | "variant"> {
  if (model !== undefined && /^[^/\s]+\/\S/.test(model)) return { model: toModelRef(model, variant) };
  if (model !== undefined && !/^[a-z]+$/.test(model))
    say(`model: "${model}" is not of the form provider/model; the session's model is used`);
  return variant === undefined ? {} : { variant };
}

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length <= descriptionLimit ? line : `${line.slice(0, descriptionLimit)}…`;
}
