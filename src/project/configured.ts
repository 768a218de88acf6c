import { errorFields } from "../base/error-fields.ts";
import { isCallable } from "../agent/agent.ts";
import { type LoadedAgents, loadAgents } from "../agent/agents.ts";
import type { Log } from "../base/log.ts";
import { type LoadedCommands, loadCommands } from "../command/commands.ts";
import { readConsentContent } from "../config/consent.ts";
import {
  type ConfigSource,
  type LoadConfigOptions,
  limitsCosts,
  type LoadedConfig,
  loadConfig,
} from "../config/load.ts";
import type { Trust } from "../permission/trust.ts";
import { reservedNames } from "../slash-commands/commands.ts";
import type { PendingConsent } from "../conversation/project.ts";
import type { BundledSkills } from "../skill/bundled-skills.ts";
import type { Skill } from "../skill/skill.ts";
import { type LoadedSkills, loadSkills } from "../skill/skills.ts";
import { isInside } from "../workspace/paths.ts";
import type { Workspace } from "../workspace/workspace.ts";

/** What was read for a folder. */
export interface Configured {
  readonly loaded: LoadedConfig;
  readonly agents: LoadedAgents;
  readonly skills: LoadedSkills;
  readonly commands: LoadedCommands;
  /** Whether the project's own configuration counts in full. */
  readonly isTrusted: boolean;
  readonly consent?: PendingConsent;
  /** Why it cannot be trusted at all. */
  readonly problem?: string;
}

export interface ConfiguredDeps {
  readonly trust: Trust;
  readonly bundledSkills: BundledSkills;
  readonly workspace: Pick<Workspace, "outputFolder">;
  readonly log: Log;
}

/**
 * Configuration and what stands in files beside it, in full where the person agreed to just what they are now.
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
  // Where nothing waits there is no code either.
  if (wants.length === 0) return given;
  if (hash === undefined) return { ...given, problem: tooMuchToTrust(root) };
  const known = await checkTrust(root, hash, deps);
  if (known === "trusted") {
    const full = await loadAll({ ...options, trusted: true }, roots, deps);
    // What was changed while it was read is not what was agreed to.
    const after = await readConsentContent(root, given.loaded, options.home);
    if (after.hash === hash) return full;
  }
  const accept = () => deps.trust.add(root, hash);
  return { ...given, consent: { folder: root, wants, hasChanged: known !== "new", accept } };
}

/** What is wrong in its files, one line each, for the person. */
export function problemsOf({ loaded, agents, skills, commands }: Configured): string[] {
  const others: { path?: string; message: string }[] = [
    ...agents.problems,
    ...skills.problems,
    ...commands.problems,
  ];
  return [
    ...loaded.problems.map(({ path, line, column, message }) => `${path}:${line}:${column}: ${message}`),
    ...onePerKind(others),
  ];
}

/** Files that are named with a problem that several have. */
const namedFiles = 3;

/** Problems that differ only in names and numbers are one line, which names the first files. */
function onePerKind(problems: readonly { path?: string; message: string }[]): string[] {
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
  return `${first}: ${message} (the like in ${more})`;
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
  const withoutModels = !trusted && limitsCosts(loaded.personal);
  const skills = await loadSkills({ bundled: bundledSkills, otherFolders, folders, paths, cwd, root, home });
  const agents = await loadAgents({
    config,
    folders: folders.map(({ path }) => path),
    otherFolders: otherFolders.map(({ path }) => path),
    untrusted: trusted ? [] : projectFolders(folders),
    withoutModels,
    ...(!trusted && hasProjectAgents(loaded) && { personal: personalSources(loaded) }),
    confined: { folders: projectFolders([...folders, ...otherFolders]), root },
    outputFolder: workspace.outputFolder,
    skillFolders: foldersOutside([...roots, bundledSkills.folder], skills.skills),
    home,
  });
  const commands = await loadCommands({
    configured: config.command ?? {},
    folders: [...otherFolders, ...folders],
    isTrusted: trusted,
    withoutModels,
    ...(!trusted && { untrusted: projectCommands(loaded) }),
    root,
    agents: new Set([...agents.agents.values()].filter(isCallable).map(({ name }) => name)),
    reserved: reservedNames,
  });
  return { loaded, skills, agents, commands, isTrusted: trusted };
}

function projectCommands({ layers }: LoadedConfig): ReadonlySet<string> {
  const values = layers.filter(({ scope }) => scope === "project").map(({ value }) => value);
  return new Set(values.flatMap(({ command = {} }) => Object.keys(command)));
}

function hasProjectAgents({ layers, folders, otherFolders }: LoadedConfig): boolean {
  const isSaid = layers.some(({ scope, value }) => scope === "project" && (value.agent ?? value.mode));
  return isSaid || projectFolders([...folders, ...otherFolders]).length > 0;
}

function personalSources({ personal, folders, otherFolders }: LoadedConfig) {
  const own = (sources: readonly ConfigSource[]) =>
    sources.filter(({ scope }) => scope !== "project").map(({ path }) => path);
  return { config: personal, folders: own(folders), otherFolders: own(otherFolders) };
}

/** What waits for the person's consent, one line each, and the hash of its content unless that is too large. */
async function readConsent(root: string, { loaded, agents }: Configured, home: string) {
  const content = await readConsentContent(root, loaded, home);
  const waiting = agents.waiting.map(({ path, message }) => `${path ?? "an agent"}: ${message}`);
  return { hash: content.hash, wants: [...content.wants, ...waiting] };
}

/** Without a readable record nothing is trusted. */
async function checkTrust(root: string, hash: string, { trust, log }: ConfiguredDeps) {
  try {
    return await trust.check(root, hash);
  } catch (error) {
    log.warn("what is trusted could not be read", errorFields(error));
    return "new";
  }
}

/** Folders of skills that could not be read without asking; there is nothing in the program's own. A name with signs of patterns would open others too. */
function foldersOutside(roots: readonly string[], skills: readonly Skill[]): string[] {
  const folders = skills.map(({ folder }) => folder);
  return folders.filter((folder) => !isInside(folder, roots) && !/[*?]/.test(folder));
}

function projectFolders(folders: readonly ConfigSource[]): string[] {
  return folders.filter(({ scope }) => scope === "project").map(({ path }) => path);
}

function tooMuchToTrust(root: string): string {
  return `The configuration in ${root} is too large to be looked at and trusted. What it would run, load, redirect or allow is not used.`;
}
