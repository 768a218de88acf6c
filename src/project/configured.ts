import { errorFields } from "../base/error-fields.ts";
import { sha256 } from "../base/text/hash.ts";
import type { Formatter, FormatterSources } from "../formatter/choose-formatters.ts";
import { isCallable } from "../agent/agent.ts";
import { type LoadedAgents, loadAgents } from "../agent/agents.ts";
import type { Log } from "../base/log.ts";
import { type LoadedCommands, loadCommands } from "../command/commands.ts";
import { readConsentContent } from "../config/consent.ts";
import {
  type ConfigSource,
  type LoadConfigOptions,
  hasCostLimit,
  type LoadedConfig,
  loadConfig,
} from "../config/load.ts";
import type { Trust } from "../permission/trust.ts";
import { reservedNames } from "../slash-commands/commands.ts";
import type { PendingConsent } from "../conversation/project.ts";
import type { BundledSkills } from "../skill/bundled-skills.ts";
import type { StoredSkill } from "../skill/skill.ts";
import { type LoadedSkills, loadSkills } from "../skill/skills.ts";
import { isInside } from "../workspace/paths.ts";
import type { Workspace } from "../workspace/workspace.ts";

/** The configuration, agents, skills and commands of a folder. */
export interface Configured {
  readonly loaded: LoadedConfig;
  readonly agents: LoadedAgents;
  readonly skills: LoadedSkills;
  readonly commands: LoadedCommands;
  readonly formatters: readonly Formatter[];
  readonly formatterProblems: readonly string[];
  /** Known formatters that run only in a trusted project. */
  readonly waitingFormatters: readonly string[];
  /** Whether the project's own configuration applies in full. */
  readonly isTrusted: boolean;
  readonly consent?: PendingConsent;
  /** Why the project's configuration cannot be trusted. */
  readonly problem?: string;
}

export interface ConfiguredDeps {
  readonly trust: Pick<Trust, "check" | "add">;
  readonly bundledSkills: BundledSkills;
  readonly workspace: Pick<Workspace, "outputFolder">;
  readonly log: Log;
}

/**
 * Loads configuration, agents, skills and commands; in full only if the user trusts their current content.
 * `roots` are the folders of the session, absolute real paths.
 */
export async function loadConfigured(
  options: LoadConfigOptions,
  roots: readonly string[],
  deps: ConfiguredDeps,
): Promise<Configured> {
  const root = options.worktree ?? options.cwd;
  const given = await loadAll(options, roots, deps);
  const { hash, wants } = await readConsent(root, given, options.home);
  // Nothing needs consent, so there is no code to load either.
  if (wants.length === 0) return given;
  if (hash === undefined) return { ...given, problem: describeOversized(root) };
  const known = await checkTrust(root, hash, deps);
  if (known === "trusted") {
    const full = await loadAll({ ...options, trusted: true }, roots, deps);
    // The files may have changed while they were read: then the trust does not cover them.
    const after = await readConsent(root, given, options.home);
    if (after.hash === hash) return full;
  }
  const accept = () => deps.trust.add(root, hash);
  return { ...given, consent: { folder: root, wants, hasChanged: known !== "new", accept } };
}

/** Describes the problems of the files to the user, one line each. */
export function getProblems({ loaded, agents, skills, commands, formatterProblems }: Configured): string[] {
  const others: { path?: string; message: string }[] = [
    ...agents.problems,
    ...skills.problems,
    ...commands.problems,
  ];
  return [
    ...loaded.problems.map(({ path, line, column, message }) => `${path}:${line}:${column}: ${message}`),
    ...groupProblems(others),
    ...formatterProblems,
  ];
}

/** Paths listed per problem that several files have. */
const namedFiles = 3;

/** Merges problems that differ only in names and numbers into one line, which names the first files. */
function groupProblems(problems: readonly { path?: string; message: string }[]): string[] {
  const kinds = new Map<string, { message: string; paths: string[] }>();
  const single: string[] = [];
  for (const { path, message } of problems) {
    if (path === undefined) {
      single.push(message);
      continue;
    }
    const kind = message.replaceAll(/"[^"]*"|\S*[/\\]\S*|\d+/g, "…");
    const known = kinds.get(kind) ?? { message, paths: [] };
    known.paths.push(path);
    kinds.set(kind, known);
  }
  return [...single, ...[...kinds.values()].map(describeKind)];
}

function describeKind({ message, paths }: { message: string; paths: readonly string[] }): string {
  const [first = "", ...others] = paths;
  if (others.length === 0) return `${first}: ${message}`;
  const rest = paths.length - namedFiles;
  const named = others.slice(0, namedFiles - 1).join(", ");
  const more = rest > 0 ? `${named} and ${rest} more` : named;
  return `${first}: ${message} (also in ${more})`;
}

async function loadAll(
  options: LoadConfigOptions,
  roots: readonly string[],
  { bundledSkills, workspace }: ConfiguredDeps,
): Promise<Configured> {
  const loaded = await loadConfig(options);
  const { config, folders, otherFolders } = loaded;
  const { cwd, home, trusted = false } = options;
  const root = options.worktree ?? cwd;
  const paths = config.skills?.paths;
  const withoutModels = !trusted && hasCostLimit(loaded.personal);
  const skills = await loadSkills({ bundled: bundledSkills, otherFolders, folders, paths, cwd, root, home });
  const agents = await loadAgents({
    config,
    folders: folders.map(({ path }) => path),
    otherFolders: otherFolders.map(({ path }) => path),
    untrusted: trusted ? [] : selectProjectFolders(folders),
    withoutModels,
    ...(!trusted && hasProjectAgents(loaded) && { personal: selectPersonalSources(loaded) }),
    confined: { folders: selectProjectFolders([...folders, ...otherFolders]), root },
    outputFolder: workspace.outputFolder,
    skillFolders: selectFoldersOutside([...roots, bundledSkills.folder], skills.skills),
    home,
  });
  const commands = await loadCommands({
    configured: config.command ?? {},
    folders: [...otherFolders, ...folders],
    isTrusted: trusted,
    withoutModels,
    ...(!trusted && { untrusted: getProjectCommands(loaded) }),
    root,
    agents: new Set([...agents.agents.values()].filter(isCallable).map(({ name }) => name)),
    reserved: reservedNames,
  });
  const formatters = await loadFormatters({
    config: config.formatter,
    root,
    cwd,
    isTrusted: trusted,
  });
  return { loaded, skills, agents, commands, ...formatters, isTrusted: trusted };
}

/** Loads nothing in projects without formatters. */
async function loadFormatters(sources: FormatterSources) {
  if (sources.config === undefined || sources.config === false)
    return { formatters: [], formatterProblems: [], waitingFormatters: [] };
  const { chooseFormatters } = await import("../formatter/choose-formatters.ts");
  const { formatters, problems, waiting } = await chooseFormatters(sources);
  return { formatters, formatterProblems: problems, waitingFormatters: waiting };
}

function getProjectCommands({ layers }: LoadedConfig): ReadonlySet<string> {
  const values = layers.filter(({ scope }) => scope === "project").map(({ value }) => value);
  return new Set(values.flatMap(({ command = {} }) => Object.keys(command)));
}

function hasProjectAgents({ layers, folders, otherFolders }: LoadedConfig): boolean {
  const isConfigured = layers.some(({ scope, value }) => scope === "project" && (value.agent ?? value.mode));
  return isConfigured || selectProjectFolders([...folders, ...otherFolders]).length > 0;
}

function selectPersonalSources({ personal, folders, otherFolders }: LoadedConfig) {
  const own = (sources: readonly ConfigSource[]) =>
    sources.filter(({ scope }) => scope !== "project").map(({ path }) => path);
  return { config: personal, folders: own(folders), otherFolders: own(otherFolders) };
}

/** Lists settings that wait for the user's consent, one line each. The hash is undefined when they are too large. */
async function readConsent(root: string, { loaded, agents, waitingFormatters }: Configured, home: string) {
  const { hash, wants } = await readConsentContent(root, loaded, home);
  const waiting = agents.waiting.map(({ path, message }) => `${path ?? "an agent"}: ${message}`);
  const formatters = waitingFormatters.map((name) => `run the formatter of this project: ${name}`);
  return {
    hash: hash === undefined || formatters.length === 0 ? hash : sha256([hash, ...formatters].join("\n")),
    wants: [...wants, ...waiting, ...formatters],
  };
}

/** Treats the folder as new when its trust record cannot be read. */
async function checkTrust(root: string, hash: string, { trust, log }: ConfiguredDeps) {
  try {
    return await trust.check(root, hash);
  } catch (error) {
    log.warn("trust record not readable", errorFields(error));
    return "new";
  }
}

/** StoredSkill folders outside the roots, which agents may read without asking. Skips names with wildcards: as a rule they would match other folders too. */
function selectFoldersOutside(roots: readonly string[], skills: readonly StoredSkill[]): string[] {
  const folders = skills.map(({ folder }) => folder);
  return folders.filter((folder) => !isInside(folder, roots) && !/[*?]/.test(folder));
}

function selectProjectFolders(folders: readonly ConfigSource[]): string[] {
  return folders.filter(({ scope }) => scope === "project").map(({ path }) => path);
}

function describeOversized(root: string): string {
  return `The configuration in ${root} is too large to review and trust. Settings that run, load, redirect or allow something are not used.`;
}
