import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeOf } from "../base/errors.ts";
import type { ConfigSource, LoadedConfig } from "../config/load.ts";
import {
  isModuleFile,
  packageName,
  type PluginEntry,
  pluginEntry,
  pluginFolderNames,
  pluginPath,
  toolFolderNames,
} from "../config/files/module-files.ts";
import { isInside } from "../workspace/paths.ts";
import type { ImportAllowlist, ModulePlace } from "./protocol.ts";

/** Modules of one session; further ones are reported and left out. */
const modulesLimit = 100;

export interface FoundModules {
  /** In the order in which they are called: what the configuration lists, then files of folders, lowest first. */
  readonly modules: readonly ModulePlace[];
  readonly problems: readonly string[];
  readonly cover: ImportAllowlist;
}

export interface ModuleSources {
  /** Of an untrusted project already without what it may not set. */
  readonly loaded: Pick<LoadedConfig, "layers" | "folders">;
  /** Whether modules of the project count. */
  readonly isTrusted: boolean;
  /** The worktree's root, or the working directory where there is none. A real path. */
  readonly root: string;
  readonly home: string;
}

/** Finds plugins and tools by their names; opens none of them. Never throws for what it finds. */
export async function findModules(sources: ModuleSources): Promise<FoundModules> {
  const { loaded, isTrusted, root } = sources;
  const folders = loaded.folders.filter(({ scope }) => isTrusted || scope !== "project");
  const search = new Search(sources, folders);
  for (const { source, scope, value } of loaded.layers)
    for (const entry of value.plugin ?? [])
      await search.addEntry(pluginEntry(entry), { path: source, scope });
  for (const folder of folders) {
    for (const name of pluginFolderNames) await search.addFolder("plugin", folder, name);
    for (const name of toolFolderNames) await search.addFolder("tools", folder, name);
  }
  const { modules, problems } = search;
  if (modules.length > modulesLimit)
    problems.push(
      `${modules.length} plugins and tool files were found; only the first ${modulesLimit} are used`,
    );
  const kept = modules.slice(0, modulesLimit);
  const covered = await Promise.all(folders.map(({ path }) => realpath(path)));
  const files = kept.filter(({ from }) => from === undefined).map(({ name }) => name);
  return { modules: kept, problems, cover: { root, folders: covered, files } };
}

class Search {
  readonly modules: ModulePlace[] = [];
  readonly problems: string[] = [];
  readonly #sources: ModuleSources;
  readonly #folders: readonly ConfigSource[];

  constructor(sources: ModuleSources, folders: readonly ConfigSource[]) {
    this.#sources = sources;
    this.#folders = folders;
  }

  /** One entry of the key `plugin`: a path, or the name of a package that is installed. */
  async addEntry(entry: PluginEntry | undefined, source: ConfigSource): Promise<void> {
    if (entry === undefined) {
      this.problems.push(`${source.path}: plugin: an entry in brackets must be ["name", { options }]`);
      return;
    }
    const path = pluginPath(entry.name, source.path, this.#sources.home);
    if (path === undefined) return this.#addPackage(entry, source);
    const real = await realPathOf(path);
    if (real === undefined) this.problems.push(`${source.path}: plugin: there is no file ${path}`);
    else this.#add({ kind: "plugin", ...entry, name: real });
  }

  async addFolder(kind: ModulePlace["kind"], folder: ConfigSource, name: string): Promise<void> {
    const path = join(folder.path, name);
    for (const file of (await namesIn(path)).filter(isModuleFile).sort()) {
      const real = await realPathOf(join(path, file));
      if (real === undefined) continue;
      if (folder.scope === "project" && !isInside(real, [this.#sources.root]))
        this.problems.push(`${join(path, file)} leads out of ${this.#sources.root} and is left out`);
      else this.#add({ kind, name: real });
    }
  }

  async #addPackage(entry: PluginEntry, source: ConfigSource): Promise<void> {
    const name = packageName(entry.name);
    if (name === undefined) {
      this.problems.push(
        `${source.path}: plugin: ${JSON.stringify(entry.name)} is neither a path nor a package`,
      );
      return;
    }
    // What a person names for everything is not taken from a project.
    const folders = this.#folders.filter(({ scope }) => source.scope === "project" || scope !== "project");
    for (const { path } of folders.toReversed()) {
      if ((await realPathOf(join(path, "node_modules", name, "package.json"))) === undefined) continue;
      return this.#add({ kind: "plugin", ...entry, name, from: await realpath(path) });
    }
    const folder = folders.findLast(({ scope }) => scope === source.scope)?.path ?? dirname(source.path);
    this.problems.push(
      `${source.path}: plugin: the package ${name} is not installed. Nothing is downloaded by itself: run npm install --prefix ${folder} ${entry.name}`,
    );
  }

  #add(module: ModulePlace): void {
    if (!this.modules.some(({ kind, name }) => kind === module.kind && name === module.name))
      this.modules.push(module);
  }
}

/** Undefined where it is not there, or no file. */
async function realPathOf(path: string): Promise<string | undefined> {
  try {
    return (await stat(path)).isFile() ? await realpath(path) : undefined;
  } catch (thrown) {
    if (codeOf(thrown) === undefined) throw thrown;
    return undefined;
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (thrown) {
    if (codeOf(thrown) === undefined) throw thrown;
    return [];
  }
}
