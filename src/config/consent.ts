import { createHash, type Hash } from "node:crypto";
import { readdir, realpath, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { codeOf } from "../base/errors.ts";
import { isRecord } from "../base/text/record.ts";
import { readRegularFile } from "../base/files/regular-file.ts";
import { parseConfigFile } from "./files/config-file.ts";
import type { LoadedConfig } from "./load.ts";
import {
  isModuleFile,
  packageName,
  pluginEntry,
  pluginFolderNames,
  pluginPath,
  toolFolderNames,
} from "./files/module-files.ts";

/** What the consent to a project's own configuration covers, as it is on disk now. */
export interface ConsentContent {
  /** SHA-256, hex, of the names and contents of all files of it; undefined where they are too many or too large. */
  readonly hash: string | undefined;
  /** What waits, one line each: settings with their values, modules to load, commands with shell text. */
  readonly wants: readonly string[];
}

/** Files, and bytes of all of them, up to which a project can be trusted: what nobody can look at is not trusted. */
const filesLimit = 2_000;
const bytesLimit = 32 * 1024 * 1024;
const depthLimit = 12;

/** Characters shown of a value. */
const valueLimit = 2_000;
/** Of a longer one its end is shown too. */
const endLimit = 200;

/** Not covered: what package managers and git put there. */
const leftOut = new Set(["node_modules", ".git"]);

const moduleFolders = new Set([...pluginFolderNames, ...toolFolderNames]);
const commandFolders = new Set(["command", "commands"]);
const otherKinds = ["agents", "commands"];

/**
 * Reads the project's own configuration files, its configuration folders and the plugin files that they name.
 * `loaded` is the configuration without trust, which says what is withheld.
 */
export async function readConsentContent(
  root: string,
  loaded: Pick<LoadedConfig, "sources" | "folders" | "otherFolders" | "withheld">,
  home: string,
): Promise<ConsentContent> {
  const files = loaded.sources.filter(({ scope }) => scope === "project").map(({ path }) => path);
  const folders = loaded.folders.filter(({ scope }) => scope === "project").map(({ path }) => path);
  const others = loaded.otherFolders.filter(({ scope }) => scope === "project").map(({ path }) => path);
  if (files.length === 0 && folders.length === 0 && others.length === 0)
    return { hash: undefined, wants: [] };
  const covered = new Covered(root);
  for (const path of files) await covered.addFile(path);
  for (const folder of folders) await covered.addFolder(folder, [folder]);
  // Whatever else other programs keep there means nothing here.
  for (const folder of others) {
    for (const name of otherKinds) await covered.addFolder(join(folder, name), [folder]);
  }
  const values = files.map((path) => parseConfigFile(path, covered.text(path) ?? "{}").value);
  for (const [index, path] of files.entries()) {
    for (const plugin of pluginFiles(values[index], path, home)) await covered.addFile(plugin);
    for (const name of pluginPackages(values[index])) {
      for (const folder of folders) await covered.addFolder(join(folder, "node_modules", name), [folder]);
    }
  }
  const settings = loaded.withheld.map((name) => describeSetting(name, values));
  return { hash: covered.hash(), wants: [...settings, ...covered.loads] };
}

/** The files that consent covers, each once. */
class Covered {
  /** What files of the folders would run or load. */
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
    const hash = createHash("sha256");
    for (const [path, content] of [...this.#contents].sort(([one], [other]) => (one < other ? -1 : 1))) {
      addPiece(hash, relative(this.#root, path));
      addPiece(hash, content);
    }
    return hash.digest("hex");
  }

  /** Asked before it is opened: a pipe would wait for its writer, a device never end. */
  async addFile(path: string): Promise<void> {
    if (this.#contents.has(path) || this.#isTooMuch) return;
    const found = await orMissing(stat(path));
    const isFile = found?.isFile() === true;
    this.#bytes += isFile ? found.size : 0;
    if (this.#contents.size >= filesLimit || this.#bytes > bytesLimit) {
      this.#isTooMuch = true;
      return;
    }
    this.#contents.set(path, isFile ? ((await orMissing(readRegularFile(path))) ?? "unreadable") : "no file");
  }

  /** `way` holds the real folders on the way, so that a link to one of them does not go round for ever. */
  async addFolder(folder: string, way: readonly string[]): Promise<void> {
    const entries = (await orMissing(readdir(folder))) ?? [];
    for (const name of entries.filter((entry) => !leftOut.has(entry)).sort()) {
      if (this.#isTooMuch) return;
      const path = join(folder, name);
      if (isPlan(relative(way[0] ?? folder, path))) continue;
      const found = await orMissing(stat(path));
      if (found?.isDirectory() !== true) {
        await this.addFile(path);
        this.#noteLoad(path, way[0] ?? folder);
        continue;
      }
      const real = (await orMissing(realpath(path))) ?? path;
      if (way.length > depthLimit) this.#isTooMuch = true;
      else if (!way.includes(real)) await this.addFolder(path, [...way, real]);
    }
  }

  #noteLoad(path: string, configFolder: string): void {
    const shown = relative(this.#root, path);
    const kind = relative(configFolder, path).split(sep).at(0) ?? "";
    if (moduleFolders.has(kind) && isModuleFile(path)) this.loads.push(`load the module ${shown}`);
    if (commandFolders.has(kind) && this.text(path)?.includes("!`"))
      this.loads.push(`run shell text in the command ${shown}`);
  }
}

/** Plans are data: the agent writes them itself. Code beside them is none. */
function isPlan(path: string): boolean {
  const [folder, name, ...below] = path.split(sep);
  return folder === "plans" && name?.endsWith(".md") === true && below.length === 0;
}

function addPiece(hash: Hash, piece: Buffer | string): void {
  const bytes = Buffer.from(piece);
  hash.update(`${bytes.length}:`).update(bytes);
}

/** The files among the plugins that a configuration names. */
function pluginFiles(value: unknown, source: string, home: string): string[] {
  return pluginEntries(value)
    .map((entry) => pluginPath(entry, source, home))
    .filter((path) => path !== undefined);
}

/** The packages among them, by their names. What these need in turn is not covered. */
function pluginPackages(value: unknown): string[] {
  return pluginEntries(value)
    .filter((entry) => pluginPath(entry, "", "") === undefined)
    .flatMap((entry) => packageName(entry) ?? []);
}

function pluginEntries(value: unknown): string[] {
  if (!isRecord(value) || !Array.isArray(value["plugin"])) return [];
  return value["plugin"].map(pluginEntry).flatMap((entry) => entry?.name ?? []);
}

/** The setting as it is written, before anything is filled in, so that no value of the environment is shown. */
function describeSetting(name: string, values: readonly unknown[]): string {
  const value = values.map((one) => valueOf(one, name)).findLast((found) => found !== undefined);
  if (value === undefined) return name;
  const text = JSON.stringify(value);
  if (text.length <= valueLimit) return `${name}: ${text}`;
  const hidden = text.length - valueLimit;
  return `${name}: ${text.slice(0, valueLimit - endLimit)} … ${hidden} more characters … ${text.slice(-endLimit)}`;
}

/** Keys may have dots in them themselves. */
function valueOf(value: unknown, name: string): unknown {
  if (!isRecord(value)) return undefined;
  if (Object.hasOwn(value, name)) return value[name];
  for (const [key, inner] of Object.entries(value)) {
    const found = name.startsWith(`${key}.`) ? valueOf(inner, name.slice(key.length + 1)) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What is not there, or closed to us, counts as missing, here and when it is loaded. */
async function orMissing<T>(looking: Promise<T>): Promise<T | undefined> {
  try {
    return await looking;
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return undefined;
  }
}
