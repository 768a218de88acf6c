import { errorFields } from "../../base/error-fields.ts";
import { lstat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { sha256 } from "../../base/text/hash.ts";
import { orAfter } from "../../base/async.ts";
import { codeOf, UserError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { type Files, StaleFile } from "./files.ts";
import { withFolder } from "./held-folder.ts";
import { isInside } from "../paths.ts";

/**
 * File access through the editor; only offered methods are called. Paths are absolute. Responses after an
 * abort are ignored.
 */
export interface EditorBuffers {
  /** The text in the editor, including unsaved changes. */
  readonly read?: ((path: string, signal: AbortSignal) => Promise<string>) | undefined;
  /** Writes the text to the editor and to the disk. Rejects on failure. */
  readonly write?: ((path: string, text: string, signal: AbortSignal) => Promise<void>) | undefined;
}

export interface EditorFilesDeps {
  disk: Files;
  /** The currently offered methods. */
  buffers: () => EditorBuffers;
  /** Real paths of the folders whose files the editor knows. */
  roots: readonly string[];
  log: Log;
  /** For tests; default {@link editorLimitMs}. */
  limitMs?: number;
}

/** Maximum wait for the editor's answer. */
const editorLimitMs = 2_000;
/** After this many timeouts the editor is no longer used. */
const timeoutsLimit = 3;
/** Larger files are read from and written to the disk only. */
const bufferLimitBytes = 5 * 1024 * 1024;

/** Hashes of disk and buffer when they were last seen; a disk that changed since is newer than the buffer. */
interface KnownHashes {
  readonly disk: string;
  /** The buffer's content when a change was written to the disk only. */
  readonly passed?: string;
}

/** A file on disk and in the editor. */
interface FileState {
  /** The content to use. */
  readonly content: Content;
  readonly disk: Content;
  /** Both sides changed: writing would overwrite the user's edits. */
  readonly isConflict: boolean;
}

/**
 * The disk overlaid with the editor's buffers. Unsaved text is read, and text changes go through the editor, so that
 * its review and undo see them. The disk is used for everything that the editor cannot do.
 */
export class EditorFiles implements Files {
  readonly #deps: EditorFilesDeps;
  readonly #bases = new Map<string, KnownHashes>();
  #timeouts = 0;

  constructor(deps: EditorFilesDeps) {
    this.#deps = deps;
  }

  async read(path: string): Promise<Content> {
    return (await this.#readState(path)).content;
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
    const before = await this.#readStateIfExists(path);
    if (before?.content.hash !== expected) throw new StaleFile(`${path} has changed in the meantime.`);
    if (before.isConflict) throw new UserError(conflictMessage(path));
    const text = decodeText(bytes);
    const { write } = this.#deps.buffers();
    if (text === undefined || write === undefined || decodeText(before.disk.bytes) === undefined)
      return this.#writeDisk(path, bytes, before);
    const problem = await this.#request((signal) => write(path, text, signal).then(() => "done" as const));
    return problem === "done" ? this.#afterWrite(path, bytes, before) : this.#writeDisk(path, bytes, before);
  }

  /** Creates a file with a given mode on the disk, because editors cannot set modes. */
  async #create(path: string, bytes: Uint8Array, newMode: number | undefined) {
    const { disk, log } = this.#deps;
    const text = decodeText(bytes);
    const { write } = this.#deps.buffers();
    if (text === undefined || write === undefined || newMode !== undefined)
      return disk.write(path, bytes, null, newMode);
    await assertFree(path);
    // Unsaved text of the user would be lost.
    if ((await this.#readText(path)) !== undefined) throw new UserError(unsavedMessage(path));
    const answer = await this.#request((signal) => write(path, text, signal).then(() => "done" as const));
    const made = await this.#readIfExists(path);
    if (made !== undefined && (answer === "done" || made.hash === sha256(bytes))) {
      this.#bases.set(path, { disk: made.hash });
      return made.hash === sha256(bytes) ? { hash: made.hash } : made;
    }
    if (answer === "done") log.warn("editor did not save a new file, written to disk", { path });
    return disk.write(path, bytes, null);
  }

  async remove(path: string, expected: string): Promise<void> {
    const { disk } = this.#deps;
    if (!this.#isReachable(path)) return disk.remove(path, expected);
    const before = await this.#readStateIfExists(path);
    if (before?.content.hash !== expected) throw new StaleFile(`${path} has changed in the meantime.`);
    await disk.remove(path, before.disk.hash);
    this.#bases.delete(path);
  }

  lock<T>(paths: readonly string[], task: () => Promise<T>): Promise<T> {
    return this.#deps.disk.lock(paths, task);
  }

  #readStateIfExists(path: string): Promise<FileState | undefined> {
    return undefinedIfMissing(() => this.#readState(path));
  }

  #readIfExists(path: string): Promise<Content | undefined> {
    return undefinedIfMissing(() => this.#deps.disk.read(path));
  }

  /** Reads both sides of a file and decides which one to use. */
  async #readState(path: string): Promise<FileState> {
    const disk = await this.#deps.disk.read(path);
    const buffer = await this.#readBuffer(path, disk);
    if (buffer === undefined) return { content: disk, disk, isConflict: false };
    const content = encodeLikeDisk(buffer, disk);
    const base = this.#bases.get(path);
    if (content.hash === disk.hash || base === undefined) {
      this.#bases.set(path, { disk: disk.hash });
      return { content, disk, isConflict: false };
    }
    if (content.hash === base.passed) return { content: disk, disk, isConflict: false };
    if (base.disk === disk.hash) return { content, disk, isConflict: false };
    return { content: disk, disk, isConflict: content.hash !== base.disk };
  }

  /** Returns the editor's text; undefined if only the disk is used. */
  async #readBuffer(path: string, disk: Content): Promise<string | undefined> {
    return decodeText(disk.bytes) === undefined ? undefined : this.#readText(path);
  }

  async #readText(path: string): Promise<string | undefined> {
    const { read } = this.#deps.buffers();
    if (read === undefined || !this.#isReachable(path)) return undefined;
    const text = await this.#request((signal) => read(path, signal));
    // Some clients return an empty text for an unknown file.
    if (text === "" || text === undefined || text.includes("\0")) return undefined;
    return Buffer.byteLength(text) > bufferLimitBytes ? undefined : text;
  }

  /**
   * Content after the editor's save, which may have formatted it. An unsaved buffer is written to disk for
   * commands.
   */
  async #afterWrite(path: string, bytes: Uint8Array, before: FileState) {
    const { disk } = this.#deps;
    const after = await disk.read(path);
    const wanted = sha256(bytes);
    if (after.hash === before.disk.hash && after.hash !== wanted) {
      this.#deps.log.warn("editor did not save a change, written to disk", { path });
      return this.#writeDisk(path, bytes, before);
    }
    this.#bases.set(path, { disk: after.hash });
    return after.hash === wanted ? { hash: after.hash } : after;
  }

  /** An editor that failed may still have written the file. */
  async #writeDisk(path: string, bytes: Uint8Array, before: FileState): Promise<{ hash: string }> {
    const { disk } = this.#deps;
    const now = await disk.read(path);
    const wanted = sha256(bytes);
    const { hash } = now.hash === wanted ? now : await disk.write(path, bytes, before.disk.hash);
    this.#bases.set(path, { disk: hash, passed: before.content.hash });
    return { hash };
  }

  /** Returns the editor's response; undefined on error or timeout. */
  async #request<T extends string>(question: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const { log, limitMs = editorLimitMs } = this.#deps;
    const late = new AbortController();
    try {
      const given = await orAfter<T, undefined>(question(late.signal), limitMs, undefined);
      if (given === undefined) {
        late.abort();
        this.#timeouts++;
        log.warn("editor file request timed out, using disk", { limitMs });
      } else this.#timeouts = 0;
      return given;
    } catch (error) {
      this.#timeouts = 0;
      log.info("editor refused a file, using disk", errorFields(error));
      return undefined;
    }
  }

  #isReachable(path: string): boolean {
    return this.#timeouts < timeoutsLimit && isInside(path, this.#deps.roots);
  }
}

async function undefinedIfMissing<T>(task: () => Promise<T>): Promise<T | undefined> {
  try {
    return await task();
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    return undefined;
  }
}

/** Creates the folder of a new file, without following links, and checks that the file does not exist. */
async function assertFree(path: string): Promise<void> {
  await withFolder(dirname(path), { make: true }, async (folder) => {
    const found = await undefinedIfMissing(() => lstat(join(folder, basename(path))));
    if (found !== undefined) throw new StaleFile(`${path} exists already.`);
  });
}

function unsavedMessage(path: string): string {
  return `${path} is open in the editor and not saved. Ask the user to save or close it, then read it.`;
}

function conflictMessage(path: string): string {
  return `${path} has unsaved changes in the editor and has also changed on disk: writing would overwrite one of them. Ask the user to save or discard the changes in the editor.`;
}

interface Content {
  bytes: Buffer;
  hash: string;
}

/** Decodes UTF-8 without a byte order mark, which editors omit; undefined if it is not text. */
function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.byteLength > bufferLimitBytes || bytes.includes(0)) return undefined;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.startsWith("\uFEFF") ? undefined : text;
  } catch {
    // Invalid UTF-8.
    return undefined;
  }
}

/**
 * The buffer as it would be saved. Differences in line endings only do not count, because editors store them
 * separately.
 */
function encodeLikeDisk(buffer: string, disk: Content): Content {
  const saved = decodeText(disk.bytes) ?? "";
  if (normalizeNewlines(buffer) === normalizeNewlines(saved)) return disk;
  const text = saved.includes("\r\n") && !buffer.includes("\r") ? buffer.replaceAll("\n", "\r\n") : buffer;
  const bytes = Buffer.from(text, "utf8");
  return { bytes, hash: sha256(bytes) };
}

function normalizeNewlines(text: string): string {
  return text.replaceAll("\r\n", "\n");
}
