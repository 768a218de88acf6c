import { basename, dirname, join, relative, resolve, isAbsolute } from "node:path";
import { isFolder } from "../base/files/file-stat.ts";
import {
  checkConfig,
  parseConfigFile,
  problemAtPath,
  problemsOf,
  type ConfigProblem,
} from "./files/config-file.ts";
import { readConfigText } from "./files/config-text.ts";
import { mergeConfigs } from "./merge.ts";
import { configHome, managedFolder, userFolders, type Env } from "./paths.ts";
import type { Config } from "./schema.ts";
import type { WatchedPlaces } from "./files/stamp.ts";
import { substitute } from "./substitution.ts";
import {
  restateDenials,
  restateLimits,
  withholdModels,
  withholdUntrusted,
  withoutPersonal,
} from "./withhold.ts";

/** Whose configuration it is. Only `project` comes with a folder that somebody else may have written. */
export type ConfigScope = "organization" | "global" | "home" | "project" | "env" | "managed";

export interface ConfigSource {
  readonly path: string;
  readonly scope: ConfigScope;
}

/** One file's own part, before merging; of an untrusted project already without what is withheld. */
export interface ConfigLayer {
  readonly source: string;
  readonly scope: ConfigScope;
  readonly value: Config;
}

export interface LoadConfigOptions {
  readonly cwd: string;
  /** The root of the repository, where there is one. */
  readonly worktree?: string;
  readonly home: string;
  readonly env: Env;
  readonly platform: NodeJS.Platform;
  /** The person trusts this project: its configuration counts in full. */
  readonly trusted?: boolean;
  /** Where the administrator's files are, if not in the system's usual place. */
  readonly managed?: string;
}

export interface LoadedConfig {
  readonly config: Config;
  /** The same without what the project's files say. */
  readonly personal: Config;
  readonly problems: readonly ConfigProblem[];
  readonly notes: readonly string[];
  /** The files that were there, lowest first. */
  readonly sources: readonly ConfigSource[];
  readonly layers: readonly ConfigLayer[];
  /** Folders that may hold agents, commands, skills and the like, lowest first. */
  readonly folders: readonly ConfigSource[];
  /** Folders of other programs (`.claude`, `.agents`), whose agents, commands and skills count too, lowest first. */
  readonly otherFolders: readonly ConfigSource[];
  /** Dotted names of what the project sets and may not without trust. */
  readonly withheld: readonly string[];
}

/** Where the configuration of an organisation is kept that the person joined. Nothing is fetched when it is read. */
export const organizationFile = (dataFolder: string): string => join(dataFolder, "organization.json");

/** Variables that hold configuration: stronger than the files, and weaker than all of them. */
export const contentVariable = "FAIRLEAD_CONFIG_CONTENT";
export const defaultsVariable = "FAIRLEAD_CONFIG_DEFAULTS";

/** Later names beat earlier ones. */
const names = ["opencode.json", "opencode.jsonc", "fairlead.json", "fairlead.jsonc"];
const folderNames = [".opencode", ".fairlead"];
const otherFolderNames = [".claude", ".agents"];

/**
 * Reads all configuration, lowest first: `FAIRLEAD_CONFIG_DEFAULTS`, an organisation's, global, the file in `FAIRLEAD_CONFIG`, project files from the worktree's
 * root down, configuration folders (home, then outer to inner), `FAIRLEAD_CONFIG_CONTENT`, the administrator's.
 * Never rejects for what stands in a file: problems are listed and the rest counts.
 */
export async function loadConfig(options: LoadConfigOptions): Promise<LoadedConfig> {
  const folders = existing(folderCandidates(options));
  const texts = await readTexts(options, folders);
  const read = withinCosts(await Promise.all(texts.map((text) => readLayer(text, options))), options);
  const layers = read.map(({ layer }) => layer);
  return {
    config: mergeLayers(layers, options.trusted ?? false),
    personal: personalOf(layers),
    problems: read.flatMap(({ problems }) => problems),
    notes: [...new Set(read.flatMap(({ notes }) => notes))],
    sources: layers.map(({ source, scope }) => ({ path: source, scope })),
    layers,
    folders,
    otherFolders: existing(otherFolderCandidates(options)),
    withheld: [...new Set(read.flatMap(({ withheld }) => withheld))],
  };
}

/** Where the person limits costs, a project that nobody has trusted chooses no models. */
function withinCosts(read: readonly ReadLayer[], { trusted }: LoadConfigOptions): readonly ReadLayer[] {
  if (trusted === true || !limitsCosts(personalOf(read.map(({ layer }) => layer)))) return read;
  return read.map((one) => {
    if (one.layer.scope !== "project") return one;
    const { config, withheld } = withholdModels(one.layer.value);
    return { ...one, layer: { ...one.layer, value: config }, withheld: [...one.withheld, ...withheld] };
  });
}

/** Whether the person has said what may be spent. */
export const limitsCosts = ({ max_cost: limits }: Config): boolean => limits !== undefined;

interface SourceText extends ConfigSource {
  readonly text: string;
  /** Set where the file is there and cannot be read. */
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
    readAll(fileCandidates(options, folders), options),
    readAll(managedCandidates(options), options),
  ]);
  return [...inVariable(defaultsVariable), ...below, ...inVariable(contentVariable), ...above];
}

function fileCandidates(options: LoadConfigOptions, folders: readonly ConfigSource[]): ConfigSource[] {
  const { env } = options;
  return [
    { path: organizationFile(userFolders(options).data), scope: "organization" },
    ...inFolder(join(configHome(options), "opencode"), "global", [
      "config.json",
      "opencode.json",
      "opencode.jsonc",
    ]),
    ...inFolder(userFolders(options).config, "global", ["config.json", "fairlead.json", "fairlead.jsonc"]),
    ...(env.FAIRLEAD_CONFIG
      ? [{ path: resolve(options.cwd, env.FAIRLEAD_CONFIG), scope: "env" as const }]
      : []),
    ...downTo(options).flatMap((folder) => inFolder(folder, "project", names)),
    ...folders
      .filter(({ scope }) => scope !== "global")
      .flatMap(({ path, scope }) => inFolder(path, scope, names)),
  ];
}

function managedCandidates(options: LoadConfigOptions): ConfigSource[] {
  return inFolder(options.managed ?? managedFolder(options), "managed", ["fairlead.json", "fairlead.jsonc"]);
}

/** Every file that is looked for and every folder that may hold some, whether they are there or not. */
export function placesOf(options: LoadConfigOptions): WatchedPlaces {
  const folders = folderCandidates(options);
  const files = [...fileCandidates(options, folders), ...managedCandidates(options)];
  const holders = [...folders, ...otherFolderCandidates(options)];
  return { files: files.map(({ path }) => path), holders: holders.map(({ path }) => path) };
}

async function readAll(sources: ConfigSource[], { env, cwd }: LoadConfigOptions): Promise<SourceText[]> {
  const asked = env.FAIRLEAD_CONFIG ? resolve(cwd, env.FAIRLEAD_CONFIG) : undefined;
  const texts = await Promise.all(sources.map((source) => readText(source, source.path === asked)));
  return texts.filter((text) => text !== undefined);
}

async function readText(source: ConfigSource, required: boolean): Promise<SourceText | undefined> {
  const read = await readConfigText(source.path);
  if (read.outcome === "read") return { ...source, text: read.text };
  if (read.outcome === "refused") return { ...source, text: "", problem: read.problem };
  return required ? { ...source, text: "", problem: missingProblem } : undefined;
}

const missingProblem = "there is no such file, but FAIRLEAD_CONFIG names it";

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
  const own = source.scope === "project" ? withoutPersonal(checked.config) : { ...checked, leftOut: [] };
  const { config, withheld } = untrusted ? withholdUntrusted(own.config) : { ...own, withheld: [] };
  return {
    layer: { source: source.path, scope: source.scope, value: config },
    problems: [
      ...(source.problem === undefined ? [] : [problemAtPath(file, [], source.problem)]),
      ...problemsOf(file),
      ...substituted.failures.map(({ path, message }) => problemAtPath(file, path, message)),
      ...checked.problems,
    ],
    notes: [...checked.notes, ...own.leftOut.map((key) => personalNote(source.path, key))],
    withheld: [...withheld, ...substituted.refused.map((path) => path.join("."))],
  };
}

function personalNote(path: string, key: string): string {
  return `${basename(path)}: "${key}" counts in your own configuration only, not in a project's.`;
}

function mergeLayers(layers: readonly ConfigLayer[], trusted: boolean): Config {
  const merged = layers.map(({ value }) => value).reduce(mergeConfigs, {});
  if (trusted || !layers.some(({ scope }) => scope === "project")) return merged;
  const own = personalOf(layers);
  const tightened = layers.some(({ scope, value }) => scope === "project" && value.permission !== undefined);
  const limited = restateLimits(own, merged);
  if (!tightened || limited.permission === undefined) return limited;
  return { ...limited, permission: restateDenials(own, limited.permission) };
}

function personalOf(layers: readonly ConfigLayer[]): Config {
  return layers
    .filter(({ scope }) => scope !== "project")
    .map(({ value }) => value)
    .reduce(mergeConfigs, {});
}

function existing(candidates: readonly ConfigSource[]): ConfigSource[] {
  return candidates.filter(({ path }) => isFolder(path));
}

function folderCandidates(options: LoadConfigOptions): ConfigSource[] {
  return [
    { path: join(configHome(options), "opencode"), scope: "global" },
    { path: userFolders(options).config, scope: "global" },
    ...homeThenProject(options, folderNames),
  ];
}

function otherFolderCandidates(options: LoadConfigOptions): ConfigSource[] {
  return homeThenProject(options, otherFolderNames);
}

function homeThenProject(options: LoadConfigOptions, folders: readonly string[]): ConfigSource[] {
  const around = downTo(options).filter((folder) => folder !== options.home);
  return [
    ...folders.map((name) => ({ path: join(options.home, name), scope: "home" as const })),
    ...around.flatMap((folder) =>
      folders.map((name) => ({ path: join(folder, name), scope: "project" as const })),
    ),
  ];
}

/** The folders from the worktree's root down to the working directory. */
export function downTo({ cwd, worktree }: Pick<LoadConfigOptions, "cwd" | "worktree">): string[] {
  const inner = resolve(cwd);
  const outer = resolve(worktree ?? cwd);
  const way = relative(outer, inner);
  if (way.startsWith("..") || isAbsolute(way)) return [inner];
  const folders = [inner];
  for (let folder = inner; folder !== outer; folder = dirname(folder)) folders.unshift(dirname(folder));
  return folders;
}

const inFolder = (folder: string, scope: ConfigScope, files: readonly string[]): ConfigSource[] =>
  files.map((name) => ({ path: join(folder, name), scope }));
