import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { v7 as uuidv7 } from "uuid";
import { messageOf } from "../base/errors.ts";
import { makeFolder } from "../base/files/make-folder.ts";

export interface OutputLimits {
  readonly maxLines?: number;
  /** Of UTF-8. */
  readonly maxBytes?: number | undefined;
  /** Where the whole is kept when it is cut. */
  readonly folder: string;
  /** How to get at the rest; read and grep when left out. */
  readonly hint?: string;
  /** Which end stays: commands say what matters last, all others first. */
  readonly keep?: "head" | "tail";
}

export interface LimitedOutput {
  readonly text: string;
  readonly truncated: boolean;
  /** The file with the whole, if it was cut and could be kept. */
  readonly path?: string;
}

export const outputLimitLines = 2_000;
export const outputLimitBytes = 50 * 1024;
export const defaultHint = "Read it in parts with read, or search it with grep.";

/** Cuts what is too long for the model at whole characters, keeps the whole in a file and says how to get at it. */
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

/** The first or last part of the text that has at most so many lines and bytes of UTF-8. */
export function cutText(text: string, maxLines: number, maxBytes: number, keep: "head" | "tail"): string {
  if (keep === "head") return headBytes(headLines(text, maxLines), maxBytes);
  return tailBytes(tailLines(text, maxLines), maxBytes);
}

/** The first part of the text, at most so many UTF-16 units long, never half a character. */
export function takeHead(text: string, maxLength: number): string {
  return text.slice(0, isInsidePair(text, maxLength) ? maxLength - 1 : maxLength);
}

/** The beginning and the end of a longer text, with a note between them of how much is missing. */
export function cutMiddle(text: string, length: number, headShare = 0.5): string {
  if (text.length <= length) return text;
  const head = Math.round(length * headShare);
  const note = `[… ${text.length - length} characters left out …]`;
  const end = text.slice(text.length - (length - head));
  return `${takeHead(text, head)}\n${note}\n${end}`.toWellFormed();
}

/** A size as people read it. */
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

/** The work is done by now: that its output cannot be kept is said, and does not make it fail. */
async function saveWhole(folder: string, text: string): Promise<SaveResult> {
  const path = join(folder, `tool_${uuidv7().replaceAll("-", "")}`);
  try {
    await makeFolder(folder, 0o700);
    await writeFile(path, text, { mode: 0o600, flag: "wx" });
    return { path };
  } catch (error) {
    // A part of it would take the room that is left on a full disk.
    await rm(path, { force: true }).catch(() => {});
    return { problem: messageOf(error) };
  }
}

function createNotice(text: string, kept: string, saved: SaveResult, hint: string): string {
  const lines = countLines(text) - countLines(kept);
  const bytes = Buffer.byteLength(text) - Buffer.byteLength(kept);
  const missing = `${lines > 0 ? `${formatCount(lines, "line")}, ` : ""}${formatCount(bytes, "byte")}`;
  if (saved.path === undefined)
    return `[Cut: ${missing} are missing, and the whole could not be kept: ${saved.problem}]`;
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

/** Whether the byte goes on with a character rather than beginning one. */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

function isInsidePair(text: string, at: number): boolean {
  return isHighSurrogate(text.charCodeAt(at - 1)) && isLowSurrogate(text.charCodeAt(at));
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;
