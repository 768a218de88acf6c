import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeOf } from "../base/errors.ts";
import type { ConfigSource, LoadedConfig } from "../config/load.ts";
import {
  isModuleFile,
  parsePackageName,
  type PluginEntry,
  parsePluginEntry,
  pluginFolderNames,
  resolvePluginPath,
  toolFolderNames,
} from "../config/files/module-files.ts";
import { isInside } from "../workspace/paths.ts";
import type { ProgramSandbox } from "../sandbox/project-sandbox.ts";
import type { ImportAllowlist, ModuleLocation } from "./protocol.ts";

/** Maximum number of modules per session; the rest is reported and ignored. */
const modulesLimit = 100;

export interface FoundModule extends ModuleLocation {
  /** Modules with equal settings share a process. */
  readonly sandbox: ProgramSandbox;
}

export interface FoundModules {
  /** In call order: modules of the configuration, then files of folders, lowest precedence first. */
  readonly modules: readonly FoundModule[];
  readonly problems: readonly string[];
  readonly cover: ImportAllowlist;
}

export interface ModuleSources {
  /** For an untrusted project without the withheld settings. */
  readonly loaded: Pick<LoadedConfig, "layers" | "folders">;
  /** Whether the project's modules are used. */
  readonly isTrusted: boolean;
  /** Real path of the worktree's root, or of the working directory. */
  readonly root: string;
  readonly home: string;
}

/** Finds plugins and tools without opening them. Never throws for invalid entries. */
export async function findModules(sources: ModuleSources): Promise<FoundModules> {
  const { loaded, isTrusted, root } = sources;
  const folders = loaded.folders.filter(({ scope }) => isTrusted || scope !== "project");
  const search = new ModuleSearch(sources, folders);
  for (const { source, scope, value } of loaded.layers)
    for (const entry of value.plugin ?? [])
      await search.addEntry(parsePluginEntry(entry), { path: source, scope });
  for (const folder of folders) {
    for (const name of pluginFolderNames) await search.addFolder("plugin", folder, name);
    for (const name of toolFolderNames) await search.addFolder("tools", folder, name);
  }
  const { modules, problems } = search;
  if (modules.length > modulesLimit)
    problems.push(`${modules.length} plugins and tool files found; only the first ${modulesLimit} are used`);
  const used = modules.slice(0, modulesLimit);
  const covered = await Promise.all(folders.map(({ path }) => realpath(path)));
  const files = used.filter(({ from }) => from === undefined).map(({ name }) => name);
  return { modules: used, problems, cover: { root, folders: covered, files } };
}

class ModuleSearch {
  readonly modules: FoundModule[] = [];
  readonly problems: string[] = [];
  readonly #sources: ModuleSources;
  readonly #folders: readonly ConfigSource[];

  constructor(sources: ModuleSources, folders: readonly ConfigSource[]) {
    this.#sources = sources;
    this.#folders = folders;
  }

  /** Adds an entry of the key `plugin`: a path, or the name of an installed package. */
  async addEntry(entry: PluginEntry | undefined, source: ConfigSource): Promise<void> {
    if (entry === undefined) {
      this.problems.push(`${source.path}: plugin: an entry in brackets must be ["name", { options }]`);
      return;
    }
    const { sandbox: setting, ...options } = entry.options ?? {};
    const sandbox = await parseSandbox(setting);
    if (sandbox === undefined) {
      this.problems.push(
        `${source.path}: plugin: ${entry.name} is not used: "sandbox" in its entry must be true, false or {"network": …}`,
      );
      return;
    }
    const plugin = { kind: "plugin", options, sandbox } as const;
    const path = resolvePluginPath(entry.name, source.path, this.#sources.home);
    if (path === undefined) return this.#addPackage(entry.name, plugin, source);
    const real = await findRealPath(path);
    if (real === undefined) this.problems.push(`${source.path}: plugin: file not found: ${path}`);
    else this.#add({ ...plugin, name: real });
  }

  async addFolder(kind: ModuleLocation["kind"], folder: ConfigSource, name: string): Promise<void> {
    const path = join(folder.path, name);
    for (const file of (await listNames(path)).filter(isModuleFile).sort()) {
      const real = await findRealPath(join(path, file));
      if (real === undefined) continue;
      if (folder.scope === "project" && !isInside(real, [this.#sources.root]))
        this.problems.push(`${join(path, file)} leads out of ${this.#sources.root} and is ignored`);
      else this.#add({ kind, name: real, sandbox: false });
    }
  }

  async #addPackage(entry: string, plugin: Omit<FoundModule, "name">, source: ConfigSource): Promise<void> {
    const name = parsePackageName(entry);
    if (name === undefined) {
      this.problems.push(`${source.path}: plugin: ${JSON.stringify(entry)} is neither a path nor a package`);
      return;
    }
    // Packages of the user's configuration are not resolved from the project.
    const folders = this.#folders.filter(({ scope }) => source.scope === "project" || scope !== "project");
    for (const { path } of folders.toReversed()) {
      if ((await findRealPath(join(path, "node_modules", name, "package.json"))) === undefined) continue;
      return this.#add({ ...plugin, name, from: await realpath(path) });
    }
    const folder = folders.findLast(({ scope }) => scope === source.scope)?.path ?? dirname(source.path);
    this.problems.push(
      `${source.path}: plugin: the package ${name} is not installed. Packages are not installed automatically: run npm install --prefix ${folder} ${entry}`,
    );
  }

  /** If a module has several entries, the first entry and the first sandbox setting count. */
  #add(module: FoundModule): void {
    const at = this.modules.findIndex(({ kind, name }) => kind === module.kind && name === module.name);
    const known = this.modules[at];
    if (known === undefined) this.modules.push(module);
    else this.modules[at] = { ...known, sandbox: known.sandbox || module.sandbox };
  }
}

/** Undefined if it is invalid. */
async function parseSandbox(value: unknown): Promise<ProgramSandbox | undefined> {
  if (value === undefined) return false;
  const { programSandboxSchema } = await import("../config/schema.ts");
  return programSandboxSchema.safeParse(value).data;
}

/** Undefined if the path does not exist or is not a regular file. */
async function findRealPath(path: string): Promise<string | undefined> {
  try {
    return (await stat(path)).isFile() ? await realpath(path) : undefined;
  } catch (thrown) {
    if (codeOf(thrown) === undefined) throw thrown;
    return undefined;
  }
}

async function listNames(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (thrown) {
    if (codeOf(thrown) === undefined) throw thrown;
    return [];
  }
}
