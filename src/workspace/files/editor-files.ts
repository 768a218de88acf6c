import { errorFields } from "../../base/error-fields.ts";
import { lstat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { orAfter } from "../../base/async.ts";
import { codeOf, UserError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { type Files, sha256, StaleFile } from "./files.ts";
import { withFolder } from "./held-folder.ts";
import { isInside } from "../paths.ts";

/**
 * File access offered by the editor; only offered methods are called. Paths are absolute. After an abort the answer is
 * ignored.
 */
export interface EditorBuffers {
  /** The text in the editor, including unsaved changes. */
  readonly read?: ((path: string, signal: AbortSignal) => Promise<string>) | undefined;
  /** Writes the text to the editor and to the disk. Rejects on failure. */
  readonly write?: ((path: string, text: string, signal: AbortSignal) => Promise<void>) | undefined;
}

export interface EditorFilesDeps {
  disk: Files;
  /** What is offered now. */
  buffers: () => EditorBuffers;
  /** Real paths of the folders whose files the editor knows. */
  roots: readonly string[];
  log: Log;
  /** For tests; {@link editorLimitMs} unless given. */
  limitMs?: number;
}

/** Maximum wait for the editor's answer. */
const editorLimitMs = 2_000;
/** After this many timeouts the editor is no longer used. */
const silenceLimit = 3;
/** Larger files are read from and written to the disk only. */
const bufferLimitBytes = 5 * 1024 * 1024;

/** Hashes of disk and buffer when they were last seen; a disk that changed since is newer than the buffer. */
interface Base {
  readonly disk: string;
  /** The buffer's content when a change was written to the disk only. */
  readonly passed?: string;
}

/** A file on disk and in the editor. */
interface Look {
  /** The content to use. */
  readonly content: Content;
  readonly disk: Content;
  /** Both sides changed: writing would overwrite the user's edits. */
  readonly isTorn: boolean;
}

/**
 * The disk overlaid with the editor's buffers. Unsaved text is read, and text changes go through the editor, so that
 * its review and undo see them. The disk is used for everything that the editor cannot do.
 */
export class EditorFiles implements Files {
  readonly #deps: EditorFilesDeps;
  readonly #bases = new Map<string, Base>();
  #silences = 0;

  constructor(deps: EditorFilesDeps) {
    this.#deps = deps;
  }

  async read(path: string): Promise<Content> {
    return (await this.#look(path)).content;
  }

  async write(
    path: string,
    bytes: Uint8Array,
    expected: string | null,
    newMode?: number,
  ): Promise<{ hash: string; bytes?: Buffer }> {
    const { disk } = this.#deps;
    if (!this.#isReachable(path)) return disk.write(path, bytes, expected, newMode);
    if (expected === null) return this.#create(path, bytes, newMode);
    const before = await this.#lookIfThere(path);
    if (before?.content.hash !== expected) throw new StaleFile(`${path} was changed meanwhile.`);
    if (before.isTorn) throw new UserError(tornMessage(path));
    const text = textOf(bytes);
    const { write } = this.#deps.buffers();
    if (text === undefined || write === undefined || textOf(before.disk.bytes) === undefined)
      return this.#writeDisk(path, bytes, before);
    const problem = await this.#ask((signal) => write(path, text, signal).then(() => "done" as const));
    return problem === "done" ? this.#afterWrite(path, bytes, before) : this.#writeDisk(path, bytes, before);
  }

  /** A new file with rights of its own is made on the disk, for the editor knows no rights. */
  async #create(path: string, bytes: Uint8Array, newMode: number | undefined) {
    const { disk, log } = this.#deps;
    const text = textOf(bytes);
    const { write } = this.#deps.buffers();
    if (text === undefined || write === undefined || newMode !== undefined)
      return disk.write(path, bytes, null, newMode);
    await assertFree(path);
    // A text that the user has not saved yet would be lost.
    if ((await this.#readText(path)) !== undefined) throw new UserError(unsavedMessage(path));
    const answer = await this.#ask((signal) => write(path, text, signal).then(() => "done" as const));
    const made = await this.#readIfThere(path);
    if (made !== undefined && (answer === "done" || made.hash === sha256(bytes))) {
      this.#bases.set(path, { disk: made.hash });
      return made.hash === sha256(bytes) ? { hash: made.hash } : made;
    }
    if (answer === "done")
      log.warn("the editor did not save a new file, it was written to the disk", { path });
    return disk.write(path, bytes, null);
  }

  async remove(path: string, expected: string): Promise<void> {
    const { disk } = this.#deps;
    if (!this.#isReachable(path)) return disk.remove(path, expected);
    const before = await this.#lookIfThere(path);
    if (before?.content.hash !== expected) throw new StaleFile(`${path} was changed meanwhile.`);
    await disk.remove(path, before.disk.hash);
    this.#bases.delete(path);
  }

  lock<T>(paths: readonly string[], task: () => Promise<T>): Promise<T> {
    return this.#deps.disk.lock(paths, task);
  }

  #lookIfThere(path: string): Promise<Look | undefined> {
    return ifThere(() => this.#look(path));
  }

  #readIfThere(path: string): Promise<Content | undefined> {
    return ifThere(() => this.#deps.disk.read(path));
  }

  /** Reads both sides of a file and decides which one to use. */
  async #look(path: string): Promise<Look> {
    const disk = await this.#deps.disk.read(path);
    const buffer = await this.#readBuffer(path, disk);
    if (buffer === undefined) return { content: disk, disk, isTorn: false };
    const content = asOnDisk(buffer, disk);
    const base = this.#bases.get(path);
    if (content.hash === disk.hash || base === undefined) {
      this.#bases.set(path, { disk: disk.hash });
      return { content, disk, isTorn: false };
    }
    if (content.hash === base.passed) return { content: disk, disk, isTorn: false };
    if (base.disk === disk.hash) return { content, disk, isTorn: false };
    return { content: disk, disk, isTorn: content.hash !== base.disk };
  }

  /** Returns the editor's text; undefined if only the disk is used. */
  async #readBuffer(path: string, disk: Content): Promise<string | undefined> {
    return textOf(disk.bytes) === undefined ? undefined : this.#readText(path);
  }

  async #readText(path: string): Promise<string | undefined> {
    const { read } = this.#deps.buffers();
    if (read === undefined || !this.#isReachable(path)) return undefined;
    const text = await this.#ask((signal) => read(path, signal));
    // Some clients return this for an unknown file.
    if (text === "" || text === undefined || text.includes("\0")) return undefined;
    return Buffer.byteLength(text) > bufferLimitBytes ? undefined : text;
  }

  /** What stands there after the editor has saved, perhaps formatted. A buffer that was not saved is, for commands. */
  async #afterWrite(path: string, bytes: Uint8Array, before: Look) {
    const { disk } = this.#deps;
    const after = await disk.read(path);
    const wanted = sha256(bytes);
    if (after.hash === before.disk.hash && after.hash !== wanted) {
      this.#deps.log.warn("the editor did not save a change, it was written to the disk instead", { path });
      return this.#writeDisk(path, bytes, before);
    }
    this.#bases.set(path, { disk: after.hash });
    return after.hash === wanted ? { hash: after.hash } : after;
  }

  /** An editor that failed may have written all the same. */
  async #writeDisk(path: string, bytes: Uint8Array, before: Look): Promise<{ hash: string }> {
    const { disk } = this.#deps;
    const now = await disk.read(path);
    const wanted = sha256(bytes);
    const { hash } = now.hash === wanted ? now : await disk.write(path, bytes, before.disk.hash);
    this.#bases.set(path, { disk: hash, passed: before.content.hash });
    return { hash };
  }

  /** Returns the editor's answer; undefined on error or timeout. */
  async #ask<T extends string>(question: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const { log, limitMs = editorLimitMs } = this.#deps;
    const late = new AbortController();
    try {
      const given = await orAfter<T, undefined>(question(late.signal), limitMs, undefined);
      if (given === undefined) {
        late.abort();
        this.#silences++;
        log.warn("the editor did not answer about a file, the disk is used", { limitMs });
      } else this.#silences = 0;
      return given;
    } catch (error) {
      this.#silences = 0;
      log.info("the editor refused a file, the disk is used", errorFields(error));
      return undefined;
    }
  }

  #isReachable(path: string): boolean {
    return this.#silences < silenceLimit && isInside(path, this.#deps.roots);
  }
}

async function ifThere<T>(task: () => Promise<T>): Promise<T | undefined> {
  try {
    return await task();
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    return undefined;
  }
}

/** Makes the folder of a new file, in which no link can lead elsewhere, and checks that the file is not there. */
async function assertFree(path: string): Promise<void> {
  await withFolder(dirname(path), { make: true }, async (folder) => {
    const found = await ifThere(() => lstat(join(folder, basename(path))));
    if (found !== undefined) throw new StaleFile(`${path} exists already.`);
  });
}

function unsavedMessage(path: string): string {
  return `${path} is open in the editor with a text that is not saved. Ask the user to save or close it, then read it.`;
}

function tornMessage(path: string): string {
  return `${path} has unsaved changes in the editor and was also changed on the disk: writing would overwrite one of the two. Ask the user to save or to discard their changes in the editor.`;
}

interface Content {
  bytes: Buffer;
  hash: string;
}

/** The text of UTF-8 without a byte order mark, which editors leave out; undefined for anything else. */
function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.byteLength > bufferLimitBytes || bytes.includes(0)) return undefined;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.startsWith("\uFEFF") ? undefined : text;
  } catch {
    // Invalid UTF-8.
    return undefined;
  }
}

/** The buffer as it would be saved. Editors keep line ends apart from the text: where only these differ, nothing does. */
function asOnDisk(buffer: string, disk: Content): Content {
  const saved = textOf(disk.bytes) ?? "";
  if (withNewlines(buffer) === withNewlines(saved)) return disk;
  const text = saved.includes("\r\n") && !buffer.includes("\r") ? buffer.replaceAll("\n", "\r\n") : buffer;
  const bytes = Buffer.from(text, "utf8");
  return { bytes, hash: sha256(bytes) };
}

function withNewlines(text: string): string {
  return text.replaceAll("\r\n", "\n");
}
