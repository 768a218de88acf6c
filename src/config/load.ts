import { basename, dirname, join, relative, resolve, isAbsolute } from "node:path";
import { isFolder } from "../base/files/file-stat.ts";
import {
  checkConfig,
  parseConfigFile,
  createProblemAtPath,
  listProblems,
  type ConfigProblem,
} from "./files/config-file.ts";
import { claudeSettingsNames } from "./files/claude-settings.ts";
import { mcpFileNames } from "./files/mcp-file.ts";
import { readConfigText } from "./files/config-text.ts";
import { mergeConfigs } from "./merge.ts";
import { configHome, managedFolder, userFolders, type Env } from "./paths.ts";
import type { Config } from "./schema.ts";
import type { WatchedPaths } from "./files/stamp.ts";
import { substitute } from "./substitution.ts";
import { restateDenials, restateLimits } from "./restate.ts";

/** Source of a configuration. Only `project` may have been written by somebody else. */
export type ConfigScope = "organization" | "global" | "home" | "project" | "env" | "managed";

export interface ConfigSource {
  readonly path: string;
  readonly scope: ConfigScope;
}

/** Configuration of one file before merging; for an untrusted project without the withheld settings. */
export interface ConfigLayer {
  readonly source: string;
  readonly scope: ConfigScope;
  readonly value: Config;
}

export interface LoadConfigOptions {
  readonly cwd: string;
  /** Root of the git worktree, if there is one. */
  readonly worktree?: string;
  readonly home: string;
  readonly env: Env;
  readonly platform: NodeJS.Platform;
  /** True if the user trusts this project: its configuration applies in full. */
  readonly trusted?: boolean;
  /** Folder of the administrator's files; the system default if not set. */
  readonly managed?: string;
}

export interface LoadedConfig {
  readonly config: Config;
  /** The configuration without the project's files. */
  readonly personal: Config;
  readonly problems: readonly ConfigProblem[];
  readonly notes: readonly string[];
  /** Existing files, lowest precedence first. */
  readonly sources: readonly ConfigSource[];
  readonly layers: readonly ConfigLayer[];
  /** Folders for agents, commands and skills, lowest precedence first. */
  readonly folders: readonly ConfigSource[];
  /** Folders of other programs (`.claude`, `.agents`), whose agents, commands and skills are used too. */
  readonly otherFolders: readonly ConfigSource[];
  /** Dotted names of project settings that need trust. */
  readonly withheld: readonly string[];
}

/** Stored configuration of an organization that the user joined. Reading it fetches nothing. */
export const organizationFile = (dataFolder: string): string => join(dataFolder, "organization.json");

/**
 * Variables that contain configuration: one has the highest precedence below the administrator, the other the
 * lowest.
 */
export const contentVariable = "FAIRLEAD_CONFIG_CONTENT";
export const defaultsVariable = "FAIRLEAD_CONFIG_DEFAULTS";

/** Later names take precedence. */
const names = ["opencode.json", "opencode.jsonc", "fairlead.json", "fairlead.jsonc"];
const folderNames = [".opencode", ".fairlead"];
const otherFolderNames = [".claude", ".agents"];

/**
 * Reads all configuration, lowest precedence first: `FAIRLEAD_CONFIG_DEFAULTS`, organization, global files,
 * the file named by `FAIRLEAD_CONFIG`, project files from the worktree's root down, configuration folders
 * (home, then outer to inner), `FAIRLEAD_CONFIG_CONTENT`, administrator.
 * Never rejects because of a file's content: problems are listed and the rest applies.
 */
export async function loadConfig(options: LoadConfigOptions): Promise<LoadedConfig> {
  const folders = filterExisting(listFolderCandidates(options));
  const texts = await readTexts(options, folders);
  const read = await withholdModelsIfCostLimited(
    await Promise.all(texts.map((text) => readLayer(text, options))),
    options,
  );
  const layers = read.map(({ layer }) => layer);
  return {
    config: mergeLayers(layers, options.trusted ?? false),
    personal: mergePersonal(layers),
    problems: read.flatMap(({ problems }) => problems),
    notes: [...new Set(read.flatMap(({ notes }) => notes))],
    sources: layers.map(({ source, scope }) => ({ path: source, scope })),
    layers,
    folders,
    otherFolders: filterExisting(listOtherFolderCandidates(options)),
    withheld: [...new Set(read.flatMap(({ withheld }) => withheld))],
  };
}

/** Withholds the models of an untrusted project if the user limits costs. */
async function withholdModelsIfCostLimited(
  read: readonly ReadLayer[],
  { trusted }: LoadConfigOptions,
): Promise<readonly ReadLayer[]> {
  if (trusted === true || !hasCostLimit(mergePersonal(read.map(({ layer }) => layer)))) return read;
  if (!read.some(({ layer }) => layer.scope === "project")) return read;
  const { withholdModels } = await import("./withhold.ts");
  return read.map((one) => {
    if (one.layer.scope !== "project") return one;
    const { config, withheld } = withholdModels(one.layer.value);
    return { ...one, layer: { ...one.layer, value: config }, withheld: [...one.withheld, ...withheld] };
  });
}

export const hasCostLimit = ({ max_cost: limits }: Config): boolean => limits !== undefined;

interface SourceText extends ConfigSource {
  readonly text: string;
  /** Set if the file exists but cannot be read. */
  readonly problem?: string;
}

interface ReadLayer {
  readonly layer: ConfigLayer;
  readonly problems: readonly ConfigProblem[];
  readonly notes: readonly string[];
  readonly withheld: readonly string[];
}

async function readTexts(
  options: LoadConfigOptions,
  folders: readonly ConfigSource[],
): Promise<SourceText[]> {
  const inVariable = (path: string): SourceText[] => {
    const text = options.env[path];
    return text ? [{ path, scope: "env", text }] : [];
  };
  const [below, above] = await Promise.all([
    readAll(listFileCandidates(options, folders), options),
    readAll(listManagedCandidates(options), options),
  ]);
  return [...inVariable(defaultsVariable), ...below, ...inVariable(contentVariable), ...above];
}

function listFileCandidates(options: LoadConfigOptions, folders: readonly ConfigSource[]): ConfigSource[] {
  const { env } = options;
  return [
    { path: organizationFile(userFolders(options).data), scope: "organization" },
    ...createSources(join(configHome(options), "opencode"), "global", [
      "config.json",
      "opencode.json",
      "opencode.jsonc",
    ]),
    ...createSources(userFolders(options).config, "global", [
      "config.json",
      "fairlead.json",
      "fairlead.jsonc",
    ]),
    ...(env.FAIRLEAD_CONFIG
      ? [{ path: resolve(options.cwd, env.FAIRLEAD_CONFIG), scope: "env" as const }]
      : []),
    ...createSources(join(options.home, ".claude"), "home", claudeSettingsNames),
    ...listFoldersFromRoot(options).flatMap((folder) => [
      ...createSources(folder, "project", mcpFileNames),
      ...(folder === options.home
        ? []
        : createSources(join(folder, ".claude"), "project", claudeSettingsNames)),
      ...createSources(folder, "project", names),
    ]),
    ...folders
      .filter(({ scope }) => scope !== "global")
      .flatMap(({ path, scope }) => createSources(path, scope, names)),
  ];
}

function listManagedCandidates(options: LoadConfigOptions): ConfigSource[] {
  return createSources(options.managed ?? managedFolder(options), "managed", [
    "fairlead.json",
    "fairlead.jsonc",
  ]);
}

/** Every file and folder that could contain configuration, whether it exists or not. */
export function listWatchedPaths(options: LoadConfigOptions): WatchedPaths {
  const folders = listFolderCandidates(options);
  const files = [...listFileCandidates(options, folders), ...listManagedCandidates(options)];
  const holders = [...folders, ...listOtherFolderCandidates(options)];
  return { files: files.map(({ path }) => path), configFolders: holders.map(({ path }) => path) };
}

async function readAll(sources: ConfigSource[], { env, cwd }: LoadConfigOptions): Promise<SourceText[]> {
  const requested = env.FAIRLEAD_CONFIG ? resolve(cwd, env.FAIRLEAD_CONFIG) : undefined;
  const texts = await Promise.all(sources.map((source) => readText(source, source.path === requested)));
  return texts.filter((text) => text !== undefined);
}

async function readText(source: ConfigSource, required: boolean): Promise<SourceText | undefined> {
  const read = await readConfigText(source.path);
  if (read.outcome === "read") return { ...source, text: read.text };
  if (read.outcome === "refused") return { ...source, text: "", problem: read.problem };
  return required ? { ...source, text: "", problem: missingProblem } : undefined;
}

const missingProblem = "file not found, but FAIRLEAD_CONFIG names it";

async function readLayer(source: SourceText, options: LoadConfigOptions): Promise<ReadLayer> {
  const file = parseConfigFile(source.path, source.problem === undefined ? source.text : "{}");
  const untrusted = source.scope === "project" && options.trusted !== true;
  const root = options.worktree ?? options.cwd;
  const substituted = await substitute(file.value, {
    env: options.env,
    home: options.home,
    path: isAbsolute(source.path) ? source.path : join(options.cwd, source.path),
    ...(untrusted && { within: root }),
  });
  const checked = checkConfig(file, substituted.value, substituted.failures);
  // Most projects have no configuration, and need no code for it.
  const restrict = source.scope === "project" ? await import("./withhold.ts") : undefined;
  const own = restrict?.omitPersonalSettings(checked.config) ?? { ...checked, leftOut: [] };
  const { config, withheld } =
    untrusted && restrict !== undefined ? restrict.withholdUntrusted(own.config) : { ...own, withheld: [] };
  return {
    layer: { source: source.path, scope: source.scope, value: config },
    problems: [
      ...(source.problem === undefined ? [] : [createProblemAtPath(file, [], source.problem)]),
      ...listProblems(file),
      ...substituted.failures.map(({ path, message }) => createProblemAtPath(file, path, message)),
      ...checked.problems,
    ],
    notes: [...checked.notes, ...own.leftOut.map((key) => personalNote(source.path, key))],
    withheld: [...withheld, ...substituted.refused.map((path) => path.join("."))],
  };
}

function personalNote(path: string, key: string): string {
  return `${basename(path)}: "${key}" is used in your own configuration only, not in a project's.`;
}

function mergeLayers(layers: readonly ConfigLayer[], trusted: boolean): Config {
  const merged = layers.map(({ value }) => value).reduce(mergeConfigs, {});
  if (trusted || !layers.some(({ scope }) => scope === "project")) return merged;
  const own = mergePersonal(layers);
  const tightened = layers.some(({ scope, value }) => scope === "project" && value.permission !== undefined);
  const limited = restateLimits(own, merged);
  if (!tightened || limited.permission === undefined) return limited;
  return { ...limited, permission: restateDenials(own, limited.permission) };
}

function mergePersonal(layers: readonly ConfigLayer[]): Config {
  return layers
    .filter(({ scope }) => scope !== "project")
    .map(({ value }) => value)
    .reduce(mergeConfigs, {});
}

function filterExisting(candidates: readonly ConfigSource[]): ConfigSource[] {
  return candidates.filter(({ path }) => isFolder(path));
}

function listFolderCandidates(options: LoadConfigOptions): ConfigSource[] {
  return [
    { path: join(configHome(options), "opencode"), scope: "global" },
    { path: userFolders(options).config, scope: "global" },
    ...homeThenProject(options, folderNames),
  ];
}

function listOtherFolderCandidates(options: LoadConfigOptions): ConfigSource[] {
  return homeThenProject(options, otherFolderNames);
}

function homeThenProject(options: LoadConfigOptions, folders: readonly string[]): ConfigSource[] {
  const around = listFoldersFromRoot(options).filter((folder) => folder !== options.home);
  return [
    ...folders.map((name) => ({ path: join(options.home, name), scope: "home" as const })),
    ...around.flatMap((folder) =>
      folders.map((name) => ({ path: join(folder, name), scope: "project" as const })),
    ),
  ];
}

/** Folders from the worktree's root down to the working directory. */
export function listFoldersFromRoot({
  cwd,
  worktree,
}: Pick<LoadConfigOptions, "cwd" | "worktree">): string[] {
  const inner = resolve(cwd);
  const outer = resolve(worktree ?? cwd);
  const relativePath = relative(outer, inner);
  if (relativePath.startsWith("..") || isAbsolute(relativePath)) return [inner];
  const folders = [inner];
  for (let folder = inner; folder !== outer; folder = dirname(folder)) folders.unshift(dirname(folder));
  return folders;
}

const createSources = (folder: string, scope: ConfigScope, files: readonly string[]): ConfigSource[] =>
  files.map((name) => ({ path: join(folder, name), scope }));
