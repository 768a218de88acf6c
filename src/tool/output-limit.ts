import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { v7 as uuidv7 } from "uuid";
import { messageOf } from "../base/errors.ts";
import { makeFolder } from "../base/files/make-folder.ts";

export interface OutputLimits {
  readonly maxLines?: number;
  /** In UTF-8. */
  readonly maxBytes?: number | undefined;
  /** Folder in which the whole output is stored if it is cut. */
  readonly folder: string;
  /** Says how to get the rest; read and grep by default. */
  readonly hint?: string;
  /** The end that is kept: `tail` for commands, which print the important part last. */
  readonly keep?: "head" | "tail";
}

export interface LimitedOutput {
  readonly text: string;
  readonly truncated: boolean;
  /** The file with the whole output, if it was cut and could be saved. */
  readonly path?: string;
}

export const outputLimitLines = 2_000;
export const outputLimitBytes = 50 * 1024;
export const defaultHint = "Read it in parts with read, or search it with grep.";

/** Cuts output that is too long for the model, stores the whole in a file, and adds a note on how to read it. */
export async function limitOutput(text: string, limits: OutputLimits): Promise<LimitedOutput> {
  const {
    maxLines = outputLimitLines,
    maxBytes = outputLimitBytes,
    keep = "head",
    hint = defaultHint,
  } = limits;
  if (fits(text, maxLines, maxBytes)) return { text, truncated: false };
  const kept = cutText(text, maxLines, maxBytes, keep);
  const saved = await saveWhole(limits.folder, text);
  const notice = createNotice(text, kept, saved, hint);
  const shown = keep === "head" ? `${kept}\n\n${notice}` : `${notice}\n\n${kept}`;
  return { text: shown, truncated: true, path: saved.path };
}

/** Returns the first or last part of the text within the limits, cut between characters. */
export function cutText(text: string, maxLines: number, maxBytes: number, keep: "head" | "tail"): string {
  if (keep === "head") return headBytes(headLines(text, maxLines), maxBytes);
  return tailBytes(tailLines(text, maxLines), maxBytes);
}

/** Returns the first part of the text, in UTF-16 units, without splitting a character. */
export function takeHead(text: string, maxLength: number): string {
  return text.slice(0, isInsidePair(text, maxLength) ? maxLength - 1 : maxLength);
}

/** Cuts the middle of a longer text and says how much is missing. */
export function cutMiddle(text: string, length: number, headShare = 0.5): string {
  if (text.length <= length) return text;
  const head = Math.round(length * headShare);
  const note = `[… ${text.length - length} characters left out …]`;
  const end = text.slice(text.length - (length - head));
  return `${takeHead(text, head)}\n${note}\n${end}`.toWellFormed();
}

export function formatBytes(bytes: number): string {
  if (bytes < 1_024) return `${bytes} bytes`;
  return bytes < 1_024 * 1_024
    ? `${Math.round(bytes / 1_024)} KB`
    : `${(bytes / 1_024 / 1_024).toFixed(1)} MB`;
}

export function countLines(text: string): number {
  let lines = text === "" || text.endsWith("\n") ? 0 : 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

function fits(text: string, maxLines: number, maxBytes: number): boolean {
  return text.length <= maxBytes && countLines(text) <= maxLines && Buffer.byteLength(text) <= maxBytes;
}

type SaveResult = { path: string; problem?: undefined } | { path?: undefined; problem: string };

/** Must not throw: the work is done, so a failed save is only reported. */
async function saveWhole(folder: string, text: string): Promise<SaveResult> {
  const path = join(folder, `tool_${uuidv7().replaceAll("-", "")}`);
  try {
    await makeFolder(folder, 0o700);
    await writeFile(path, text, { mode: 0o600, flag: "wx" });
    return { path };
  } catch (error) {
    // A partial file would take the remaining space of a full disk.
    await rm(path, { force: true }).catch(() => {});
    return { problem: messageOf(error) };
  }
}

function createNotice(text: string, kept: string, saved: SaveResult, hint: string): string {
  const lines = countLines(text) - countLines(kept);
  const bytes = Buffer.byteLength(text) - Buffer.byteLength(kept);
  const missing = `${lines > 0 ? `${formatCount(lines, "line")}, ` : ""}${formatCount(bytes, "byte")}`;
  if (saved.path === undefined)
    return `[Cut: ${missing} are missing, and the whole could not be saved: ${saved.problem}]`;
  return `[Cut: ${missing} are missing here. The whole is in ${saved.path}. ${hint}]`;
}

const formatCount = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

function headLines(text: string, maxLines: number): string {
  let end = 0;
  for (let line = 0; line < maxLines; line++) {
    const next = text.indexOf("\n", end);
    if (next === -1) return text;
    end = next + 1;
  }
  return end === text.length ? text : text.slice(0, Math.max(0, end - 1));
}

function tailLines(text: string, maxLines: number): string {
  if (maxLines === 0) return "";
  // A newline at the very end closes the last line and begins none.
  let start = text.endsWith("\n") ? text.length - 1 : text.length;
  for (let line = 0; line < maxLines; line++) {
    const before = start === 0 ? -1 : text.lastIndexOf("\n", start - 1);
    if (before === -1) return text;
    start = before;
  }
  return text.slice(start + 1);
}

function headBytes(text: string, maxBytes: number): string {
  // UTF-8 takes up to three bytes per UTF-16 unit, and never less than one.
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text.slice(0, maxBytes + 1));
  if (bytes.length <= maxBytes && text.length <= maxBytes) return text;
  let end = Math.min(maxBytes, bytes.length);
  while (end > 0 && isContinuation(bytes[end])) end--;
  return takeHead(text, bytes.toString("utf8", 0, end).length);
}

function tailBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text.slice(Math.max(0, text.length - maxBytes - 1)));
  if (bytes.length <= maxBytes && text.length <= maxBytes) return text;
  let start = Math.max(0, bytes.length - maxBytes);
  while (start < bytes.length && isContinuation(bytes[start])) start++;
  const from = text.length - bytes.toString("utf8", start).length;
  return text.slice(isInsidePair(text, from) ? from + 1 : from);
}

/** Whether the byte continues a UTF-8 character. */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

function isInsidePair(text: string, at: number): boolean {
  return isHighSurrogate(text.charCodeAt(at - 1)) && isLowSurrogate(text.charCodeAt(at));
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

/** Byte limits for the results of a step of the model. */
export interface ResultLimits {
  readonly each: number;
  /** Limit for all results together. */
  readonly step: number;
}

/** Minimum bytes of a result, so that errors stay readable. */
export const minShareBytes = 256;

/** The share of one result. */
export interface ResultShare {
  readonly bytes: number;
  /** Records the final size. */
  use(text: string): void;
  /** Returns unused bytes to the budget. */
  settle(): void;
}

/** Divides a step's byte budget among its calls, as they start. */
export class ResultBudget {
  readonly #each: number;
  #left: number;

  constructor(limits: ResultLimits | undefined) {
    this.#each = limits?.each ?? Number.MAX_SAFE_INTEGER;
    this.#left = limits?.step ?? Number.MAX_SAFE_INTEGER;
  }

  take(): ResultShare {
    const bytes = Math.max(minShareBytes, Math.min(this.#each, this.#left));
    let used = 0;
    this.#left -= bytes;
    return {
      bytes,
      use: (text) => {
        used = Buffer.byteLength(text);
      },
      settle: () => {
        this.#left += bytes - used;
      },
    };
  }
}
