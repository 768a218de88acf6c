import type { Hash } from "node:crypto";
import { readdir, realpath, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { createSha256 } from "../base/text/hash.ts";
import { codeOf } from "../base/errors.ts";
import { toSlashes } from "../base/files/paths.ts";
import { isRecord } from "../base/text/record.ts";
import { readRegularFile } from "../base/files/regular-file.ts";
import { parseConfigFile } from "./files/config-file.ts";
import type { LoadedConfig } from "./load.ts";
import {
  isModuleFile,
  parsePackageName,
  parsePluginEntry,
  pluginFolderNames,
  resolvePluginPath,
  toolFolderNames,
} from "./files/module-files.ts";

/** Content of a project's configuration that the user's consent covers. */
export interface ConsentContent {
  /** SHA-256 (hex) of the names and contents of all covered files; undefined if they exceed the limits. */
  readonly hash: string | undefined;
  /** Settings, modules and shell commands that need consent, one line each. */
  readonly wants: readonly string[];
}

/** Limits per project. A larger project cannot be trusted, because nobody could review it. */
const filesLimit = 2_000;
const bytesLimit = 32 * 1024 * 1024;
const depthLimit = 12;

/** Characters shown per value. */
const valueLimit = 2_000;
/** Characters shown of the end of a longer value. */
const endLimit = 200;

/** Folders of package managers and git are not covered. */
const skippedNames = new Set(["node_modules", ".git"]);

const moduleFolders = new Set([...pluginFolderNames, ...toolFolderNames]);
const commandFolders = new Set(["command", "commands"]);
const otherFolderNames = ["agents", "commands", "hooks"];

/**
 * Reads the project's configuration files, configuration folders and referenced plugins.
 * `loaded` is the configuration loaded without trust; it lists the withheld settings.
 */
export async function readConsentContent(
  root: string,
  loaded: Pick<LoadedConfig, "sources" | "folders" | "otherFolders" | "withheld">,
  home: string,
): Promise<ConsentContent> {
  const files = loaded.sources.filter(({ scope }) => scope === "project").map(({ path }) => path);
  const folders = loaded.folders.filter(({ scope }) => scope === "project").map(({ path }) => path);
  const others = loaded.otherFolders.filter(({ scope }) => scope === "project").map(({ path }) => path);
  const covered = new CoveredFiles(root);
  for (const path of files) await covered.addFile(path);
  for (const folder of folders) await covered.addFolder(folder, [folder]);
  // Other files in these folders are not used.
  for (const folder of others) {
    for (const name of otherFolderNames) await covered.addFolder(join(folder, name), [folder]);
  }
  const values = files.map((path) => parseConfigFile(path, covered.text(path) ?? "{}").value);
  for (const [index, path] of files.entries()) {
    for (const plugin of listPluginFiles(values[index], path, home)) await covered.addFile(plugin);
    for (const name of listPluginPackages(values[index])) {
      for (const folder of folders) await covered.addFolder(join(folder, "node_modules", name), [folder]);
    }
  }
  const settings = loaded.withheld.map((name) => describeSetting(name, values));
  return { hash: covered.hash(), wants: [...settings, ...covered.loads] };
}

/** The files that the consent covers. */
class CoveredFiles {
  /** Modules and shell commands in the folders, as lines for the user. */
  readonly loads: string[] = [];
  readonly #root: string;
  readonly #contents = new Map<string, Buffer | string>();
  #bytes = 0;
  #isTooMuch = false;

  constructor(root: string) {
    this.#root = root;
  }

  text(path: string): string | undefined {
    return this.#contents.get(path)?.toString("utf8");
  }

  hash(): string | undefined {
    if (this.#isTooMuch) return undefined;
    const hash = createSha256();
    for (const [path, content] of [...this.#contents].sort(([one], [other]) => (one < other ? -1 : 1))) {
      updateHash(hash, relative(this.#root, path));
      updateHash(hash, content);
    }
    return hash.digest("hex");
  }

  /** Adds a file to the hash. Checks the type first, because opening a pipe would block. */
  async addFile(path: string): Promise<void> {
    if (this.#contents.has(path) || this.#isTooMuch) return;
    const found = await undefinedIfMissing(stat(path));
    const isFile = found?.isFile() === true;
    this.#bytes += isFile ? found.size : 0;
    if (this.#contents.size >= filesLimit || this.#bytes > bytesLimit) {
      this.#isTooMuch = true;
      return;
    }
    this.#contents.set(
      path,
      isFile ? ((await undefinedIfMissing(readRegularFile(path))) ?? "unreadable") : "no file",
    );
  }

  /** `way` contains the real paths of the parent folders, to stop at link cycles. */
  async addFolder(folder: string, ancestors: readonly string[]): Promise<void> {
    const entries = (await undefinedIfMissing(readdir(folder))) ?? [];
    for (const name of entries.filter((entry) => !skippedNames.has(entry)).sort()) {
      if (this.#isTooMuch) return;
      const path = join(folder, name);
      if (isPlan(relative(ancestors[0] ?? folder, path))) continue;
      const found = await undefinedIfMissing(stat(path));
      if (found?.isDirectory() !== true) {
        await this.addFile(path);
        this.#noteLoad(path, ancestors[0] ?? folder);
        continue;
      }
      const real = (await undefinedIfMissing(realpath(path))) ?? path;
      if (ancestors.length > depthLimit) this.#isTooMuch = true;
      else if (!ancestors.includes(real)) await this.addFolder(path, [...ancestors, real]);
    }
  }

  #noteLoad(path: string, configFolder: string): void {
    const shown = toSlashes(relative(this.#root, path));
    const kind = relative(configFolder, path).split(sep).at(0) ?? "";
    if (moduleFolders.has(kind) && isModuleFile(path)) this.loads.push(`load the module ${shown}`);
    if (commandFolders.has(kind) && this.text(path)?.includes("!`"))
      this.loads.push(`run shell text in the command ${shown}`);
  }
}

/** Plan files are data that the agent itself writes, not code. */
function isPlan(path: string): boolean {
  const [folder, name, ...below] = path.split(sep);
  return folder === "plans" && name?.endsWith(".md") === true && below.length === 0;
}

function updateHash(hash: Hash, chunk: Buffer | string): void {
  const bytes = Buffer.from(chunk);
  hash.update(`${bytes.length}:`).update(bytes);
}

/** Paths of the plugin files that a configuration names. */
function listPluginFiles(value: unknown, source: string, home: string): string[] {
  return listPluginEntries(value)
    .map((entry) => resolvePluginPath(entry, source, home))
    .filter((path) => path !== undefined);
}

/** Names of the plugin packages that a configuration names. Their dependencies are not covered. */
function listPluginPackages(value: unknown): string[] {
  return listPluginEntries(value)
    .filter((entry) => resolvePluginPath(entry, "", "") === undefined)
    .flatMap((entry) => parsePackageName(entry) ?? []);
}

function listPluginEntries(value: unknown): string[] {
  if (!isRecord(value) || !Array.isArray(value["plugin"])) return [];
  return value["plugin"].map(parsePluginEntry).flatMap((entry) => entry?.name ?? []);
}

/** Describes a setting by its source text before substitution, so that no secret is shown. */
function describeSetting(name: string, values: readonly unknown[]): string {
  const found = values.map((one) => getValueByDottedName(one, name)).filter((one) => one !== undefined);
  // The hooks of all files run.
  const value = name.startsWith("hooks.") ? found.flat() : found.at(-1);
  if (value === undefined) return name;
  const text = JSON.stringify(value);
  if (text.length <= valueLimit) return `${name}: ${text}`;
  const hidden = text.length - valueLimit;
  return `${name}: ${text.slice(0, valueLimit - endLimit)} … ${hidden} more characters … ${text.slice(-endLimit)}`;
}

/** Value at a dotted name, whose keys may contain dots too. */
function getValueByDottedName(value: unknown, name: string): unknown {
  if (!isRecord(value)) return undefined;
  if (Object.hasOwn(value, name)) return value[name];
  for (const [key, inner] of Object.entries(value)) {
    const found = name.startsWith(`${key}.`)
      ? getValueByDottedName(inner, name.slice(key.length + 1))
      : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Treats unreadable files as missing, as the loader does. */
async function undefinedIfMissing<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return undefined;
  }
}
