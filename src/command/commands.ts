import { join, relative } from "node:path";
import { toModelRef } from "../agent/agent-config.ts";
import { messageOf } from "../base/errors.ts";
import { describeIssue } from "../config/files/expectation.ts";
import { filesBelow, type Report } from "../config/files/folder-walk.ts";
import type { ConfigSource } from "../config/load.ts";
import { readMarkdownFile } from "../config/files/markdown-file.ts";
import { type CommandFrontMatter, commandFrontMatterSchema, type Config } from "../config/schema.ts";
import { withSlashes } from "../workspace/paths.ts";
import type { Command } from "./command.ts";
import { hasShell } from "./template.ts";

/** Commands of one session; further ones are reported and left out. */
const commandsLimit = 500;
const descriptionLimit = 200;

export interface CommandSources {
  readonly configured: NonNullable<Config["command"]>;
  /** Folders with `command` and `commands` in them, lowest first; all of them are stronger than `configured`. */
  readonly folders: readonly ConfigSource[];
  /** Whether commands that came with the project may run something. */
  readonly isTrusted: boolean;
  /** Those of `configured` that a project nobody has trusted yet has written. */
  readonly untrusted?: ReadonlySet<string>;
  /** Whether commands that nobody has trusted yet name no model either. */
  readonly withoutModels?: boolean;
  /** The worktree's root: links of the project's commands lead no further. */
  readonly root: string;
  /** Those that answer in a conversation. */
  readonly agents: ReadonlySet<string>;
  /** Names that mean something already. */
  readonly reserved: ReadonlySet<string>;
}

export interface CommandProblem {
  /** The file that is wrong; none where it is the configuration. */
  readonly path?: string;
  readonly message: string;
}

export interface LoadedCommands {
  /** By name. */
  readonly commands: readonly Command[];
  readonly problems: readonly CommandProblem[];
}

/** Reads the commands of the configuration and of files, the later the stronger. Never throws for what they hold. */
export async function loadCommands(sources: CommandSources): Promise<LoadedCommands> {
  const problems: CommandProblem[] = [];
  const report = (path: string | undefined, message: string) => {
    problems.push({ ...(path !== undefined && { path }), message });
  };
  const written = Object.entries(sources.configured).map(([name, { template, ...settings }]): Written => {
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
    report(undefined, `${sorted.length} commands were found; only the first ${commandsLimit} are used`);
  return { commands: sorted.slice(0, commandsLimit), problems };
}

/** What somebody wrote of a command. */
interface Written {
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
): Promise<Written[]> {
  const isProjects = folder.scope === "project";
  const written: Written[] = [];
  for (const name of ["command", "commands"]) {
    const place = join(folder.path, name);
    const wanted = (file: string) => file.endsWith(".md");
    const paths = await filesBelow(place, { wanted, report, ...(isProjects && { within: root }) });
    for (const path of paths.slice(0, commandsLimit)) {
      const command = await readCommand(place, path, report);
      if (command === undefined) continue;
      // It waits with the rest of what the project would run.
      if (isProjects && !isTrusted && hasShell(command.template)) continue;
      written.push({ ...command, isUntrusted: isProjects && !isTrusted });
    }
  }
  return written;
}

async function readCommand(
  place: string,
  path: string,
  report: Report,
): Promise<Omit<Written, "isUntrusted"> | undefined> {
  try {
    const { settings, body, note } = await readMarkdownFile(path);
    if (note !== undefined) report(path, note);
    const name = withSlashes(relative(place, path)).slice(0, -".md".length);
    return { name, path, template: body, settings: parseSettings(settings, path, report) };
  } catch (thrown) {
    report(path, messageOf(thrown));
    return undefined;
  }
}

/** A wrong setting is left out by itself; a key without a value is null and means the same as no key. */
function parseSettings(raw: Record<string, unknown>, path: string, report: Report): CommandFrontMatter {
  const settings = Object.fromEntries(
    Object.entries(raw)
      .filter(([, value]) => value !== null)
      .map(([key, value]) => [key, key === "argument-hint" ? hintOf(value) : value]),
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

/** `[file] [line]` without quotes is a list in YAML. */
function hintOf(value: unknown): unknown {
  return Array.isArray(value) ? `[${value.join(", ")}]` : value;
}

function toCommand(written: Written, sources: CommandSources, report: ReportCommand): Command | undefined {
  const { name, path, settings, template, isUntrusted } = written;
  const say = (message: string) => report(path, path === undefined ? `command.${name}: ${message}` : message);
  if (!/^\S+$/.test(name)) return refuse(say, "its name has a space in it, so it cannot be called");
  if (sources.reserved.has(name)) return refuse(say, `/${name} is a command of the program`);
  if (template.trim() === "") return refuse(say, "it has no text");
  return {
    name,
    description: shorten(settings.description ?? template),
    hint: settings["argument-hint"] ?? (/\$(?:ARGUMENTS|[1-9])/.test(template) ? "arguments" : undefined),
    agent: agentOf(settings, sources.agents, say),
    ...(isUntrusted && settings.agent !== undefined && { isUntrusted }),
    ...answererOf(isUntrusted && sources.withoutModels === true ? modelless(settings, say) : settings, say),
    subtask: settings.subtask,
    template,
  };
}

function refuse(say: (message: string) => void, reason: string): undefined {
  say(`${reason}; it is left out`);
}

function agentOf(
  { agent }: CommandFrontMatter,
  agents: ReadonlySet<string>,
  say: (message: string) => void,
): string | undefined {
  if (agent === undefined || agents.has(agent)) return agent;
  say(`there is no agent "${agent}"; the session's agent answers`);
  return undefined;
}

function modelless(
  { model, ...settings }: CommandFrontMatter,
  say: (message: string) => void,
): CommandFrontMatter {
  if (model !== undefined)
    say(
      "model: you limit costs (max_cost), so a project chooses no model until you trust it; the session's answers",
    );
  return settings;
}

/** A name without a provider is another program's (`sonnet`, `inherit`): the session's model is meant well enough. */
function answererOf(
  { model, variant }: CommandFrontMatter,
  say: (message: string) => void,
): Pick<Command, "model" | "variant"> {
  if (model !== undefined && /^[^/\s]+\/\S/.test(model)) return { model: toModelRef(model, variant) };
  if (model !== undefined && !/^[a-z]+$/.test(model))
    say(`model: "${model}" is not written as provider/model; the session's model answers`);
  return variant === undefined ? {} : { variant };
}

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length <= descriptionLimit ? line : `${line.slice(0, descriptionLimit)}…`;
}
