import { codeOf, messageOf, UserError } from "../base/errors.ts";
import type { FileChange } from "../message/part.ts";
import { sha256, StaleFile } from "../workspace/files/files.ts";
import { resolvePath } from "../workspace/paths.ts";
import type { ResolvedPath } from "../workspace/paths.ts";
import type { Snapshots } from "../workspace/files/snapshot.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { compareTexts } from "./diff.ts";
import type { Comparison } from "./diff.ts";
import { ToolFailure } from "./tool.ts";
import type { SeenFiles, ToolContext } from "./tool.ts";

/** How text becomes bytes again without a change to what was not edited. */
export interface TextFormat {
  /** `latin1` stands for any bytes that are not UTF-8: each byte is one character, and comes back as it was. */
  readonly encoding: "utf8" | "utf16le" | "utf16be" | "latin1";
  readonly byteOrderMark: boolean;
  /** The line ending that most lines have. */
  readonly lineEnd: "\n" | "\r\n";
}

export interface TextFile {
  readonly path: string;
  readonly bytes: Buffer;
  /** SHA-256 of the bytes, hex. */
  readonly hash: string;
  /** Without the byte order mark, line endings as they are. */
  readonly text: string;
  readonly format: TextFormat;
}

export const newFileFormat: TextFormat = { encoding: "utf8", byteOrderMark: false, lineEnd: "\n" };

/** Files above it are neither edited nor overwritten: their whole text would have to be compared and shown. */
export const editLimitBytes = 10 * 1024 * 1024;
/** How much of a file is looked at to tell text from other bytes. */
export const sampleBytes = 4096;

/** Reads a file that is to be changed. Throws {@link ToolFailure} when it is no text or too large. */
export async function loadTextFile({ files }: Workspace, path: string): Promise<TextFile> {
  const { bytes, hash } = await explainFileErrors(path, () => files.read(path));
  if (bytes.byteLength > editLimitBytes) throw new ToolFailure(tooLarge(path, bytes.byteLength));
  const decoded = decodeText(bytes);
  if (decoded === undefined) throw new ToolFailure(`${path} is binary. Only text files can be changed.`);
  return { path, bytes, hash, ...decoded };
}

/** The text of the bytes, or undefined when they are no text. */
export function decodeText(bytes: Buffer): { text: string; format: TextFormat } | undefined {
  const mark = detectByteOrderMark(bytes);
  const decoded = mark === undefined ? decodeUnmarked(bytes) : decodeMarked(bytes, mark);
  if (decoded === undefined) return undefined;
  const { text, encoding } = decoded;
  return {
    text,
    format: {
      encoding,
      byteOrderMark: encoding !== "latin1" && mark !== undefined,
      lineEnd: detectLineEnd(text),
    },
  };
}

/** Throws {@link ToolFailure} for a character that the file's encoding does not have. */
export function encodeText(text: string, { encoding, byteOrderMark }: TextFormat): Buffer {
  const whole = byteOrderMark ? `\uFEFF${text}` : text;
  if (encoding === "latin1") return encodeLatin1(whole);
  if (encoding === "utf8") return Buffer.from(whole, "utf8");
  const units = Buffer.from(whole, "utf16le");
  return encoding === "utf16le" ? units : units.swap16();
}

/** Which encoding a byte order mark at the beginning names. */
export function detectByteOrderMark(bytes: Uint8Array): "utf8" | "utf16le" | "utf16be" | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf8";
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf16be";
  return undefined;
}

/** Other than tabs and line ends; what is above 127 are letters of other encodings. */
const control = /(?![\t\n\f\r\u{7f}-\u{9f}])\p{Cc}/gu;
/** Begins a color. */
const escape = "\u001b";

/** Judged by the first bytes: a NUL, or more than 30 % control characters, is no text. */
export function isBinary(bytes: Uint8Array): boolean {
  const sample = bytes.subarray(0, sampleBytes);
  if (sample.includes(0)) return true;
  // An expression looks at them four times as fast as a loop whose code is not compiled yet.
  const controls = Buffer.from(sample).toString("latin1").match(control) ?? [];
  return controls.filter((sign) => sign !== escape).length > sample.length * 0.3;
}

/** Throws {@link ToolFailure} unless this session knows the file's present content. */
export function requireSeen(seen: SeenFiles, { path, hash }: TextFile): void {
  const known = seen.get(path);
  if (known === undefined) throw new ToolFailure(`${path} was not read in this session. Read it first.`);
  if (known !== hash) throw new ToolFailure(staleMessage(path));
}

export function staleMessage(path: string): string {
  return `${path} was changed since it was read. Read it again, then repeat the change on what is there now.`;
}

export interface TextChange {
  readonly path: string;
  /** What is replaced; undefined when the file is new. */
  readonly before: TextFile | undefined;
  readonly text: string;
  readonly comparison?: Comparison;
}

export interface SavedText {
  readonly change: FileChange;
  /** What the model must know of a text that the editor changed while it saved it; otherwise empty. */
  readonly note: string;
}

/**
 * Writes the text in the file's own encoding, keeps both contents as snapshots and remembers what was written.
 * Call it under the file's lock. Throws {@link ToolFailure} when the disk no longer holds `before`.
 */
export async function saveText(context: ToolContext, change: TextChange): Promise<SavedText> {
  const { path, before, text } = change;
  const { files, snapshots } = context.workspace;
  const bytes = encodeText(text, before?.format ?? newFileFormat);
  // Kept before the write: what cannot be undone because the disk is full is not done.
  const kept = {
    before: before ? await saveSnapshot(snapshots, path, before.bytes) : null,
    after: await saveSnapshot(snapshots, path, bytes),
  };
  const written = await explainFileErrors(path, async () => {
    await assertSamePlace(context.workspace, path);
    return files.write(path, bytes, before?.hash ?? null);
  });
  context.seen.set(path, written.hash);
  const operation = before ? "update" : "add";
  if (written.bytes === undefined) {
    const { additions, deletions } = change.comparison ?? compareTexts(before?.text ?? null, text);
    return { change: { path, operation, ...kept, additions, deletions }, note: "" };
  }
  const formatted = decodeText(written.bytes)?.text ?? text;
  const { additions, deletions } = compareTexts(before?.text ?? null, formatted);
  const { after, note } = await saveFormatted(snapshots, written.bytes);
  return { change: { path, operation, ...kept, after, additions, deletions }, note };
}

/** It is written by now: what cannot be kept of it cannot be shown or undone, and that is said. */
async function saveFormatted(snapshots: Snapshots, bytes: Buffer) {
  try {
    return { after: await snapshots.save(bytes), note: formattedNote };
  } catch (error) {
    const problem = storeProblems.get(codeOf(error) ?? "") ?? messageOf(error);
    const lost = `The file as it stands now could not be kept (${problem}), so that this change can be neither shown nor undone: tell the person.`;
    return { after: undefined, note: `${formattedNote} ${lost}` };
  }
}

const formattedNote =
  "The editor changed the text when it saved it, as its formatter does: read the file before you edit it again.";

/** Keeps what a change can be undone with. A failure of the disk becomes a {@link ToolFailure}. */
export async function saveSnapshot(
  snapshots: Snapshots,
  path: string,
  bytes: Uint8Array,
): Promise<string | undefined> {
  try {
    return await snapshots.save(bytes);
  } catch (error) {
    const problem = storeProblems.get(codeOf(error) ?? "") ?? messageOf(error);
    throw new ToolFailure(
      `${path} was not changed, because what undo needs of it cannot be kept: ${problem}. Ask the person to see to the folder where sessions are stored.`,
      { cause: error },
    );
  }
}

const storeProblems: ReadonlyMap<string, string> = new Map([
  ["ENOSPC", "the disk is full"],
  ["EDQUOT", "the disk quota is used up"],
  ["EFBIG", "the file may not grow any further"],
  ["EROFS", "the disk is read-only"],
  ["EACCES", "permission was denied"],
  ["EPERM", "permission was denied"],
  ["ENOTDIR", "a file stands where a folder should be"],
  ["EEXIST", "a file stands where a folder should be"],
]);

/** Whether writing the text would leave the file as it is. */
export function isSameContent(file: TextFile, text: string): boolean {
  return sha256(encodeText(text, file.format)) === file.hash;
}

/** Runs a task on a file; what the model can mend about a failure becomes a {@link ToolFailure}. */
export async function explainFileErrors<T>(path: string, task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    if (error instanceof StaleFile) throw new ToolFailure(staleMessage(path), { cause: error });
    if (error instanceof UserError) throw new ToolFailure(messageOf(error), { cause: error });
    const problem = fileProblems.get(codeOf(error) ?? "");
    if (problem === undefined) throw error;
    throw new ToolFailure(`${path}: ${problem}`, { cause: error });
  }
}

const fileProblems: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "no such file or folder."],
  ["EACCES", "this user has no right to do that. Ask the person to change the rights, or use another file."],
  ["EPERM", "the system does not let this user do that."],
  ["EROFS", "the file system is read-only."],
  ["ENOSPC", "the disk is full. Nothing was changed."],
  ["EDQUOT", "the disk quota is used up. Nothing was changed."],
  ["EISDIR", "is a folder, not a file."],
  ["ENOTDIR", "a file stands where a folder would have to be."],
  ["EEXIST", "a file stands where a folder would have to be."],
  ["ENAMETOOLONG", "the name is longer than the file system allows."],
]);

/** A link put on the way after the question would lead to a place that nobody was asked about. */
export async function assertSamePlace(workspace: Workspace, path: string): Promise<ResolvedPath> {
  const now = await resolvePath(path, workspace);
  if (now.path !== path) throw new ToolFailure(`${path} now leads to ${now.path}. Use that path instead.`);
  return now;
}

function decodeMarked(bytes: Buffer, encoding: "utf8" | "utf16le" | "utf16be") {
  if (encoding === "utf8") return decodeUtf8(bytes.subarray(3)) ?? decodeLatin1(bytes);
  // A lone last byte would be lost on the way back.
  if (bytes.length % 2 !== 0) return undefined;
  const body = bytes.subarray(2);
  const ordered = encoding === "utf16le" ? body : Buffer.from(body).swap16();
  return { text: ordered.toString("utf16le"), encoding };
}

function decodeUnmarked(bytes: Buffer) {
  if (isBinary(bytes)) return undefined;
  return decodeUtf8(bytes) ?? decodeLatin1(bytes);
}

function decodeUtf8(bytes: Buffer) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return { text, encoding: "utf8" as const };
  } catch {
    // The decoder's only way to say that the bytes are no UTF-8.
    return undefined;
  }
}

function decodeLatin1(bytes: Buffer) {
  return { text: bytes.toString("latin1"), encoding: "latin1" as const };
}

function encodeLatin1(text: string): Buffer {
  const foreign = /[\u{100}-\u{10ffff}]/u.exec(text);
  if (foreign === null) return Buffer.from(text, "latin1");
  throw new ToolFailure(
    `The file is not UTF-8 and its encoding may not have ${JSON.stringify(foreign[0])}. Use characters that it has already.`,
  );
}

function detectLineEnd(text: string): "\n" | "\r\n" {
  let windows = 0;
  let all = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) {
    all++;
    if (text[at - 1] === "\r") windows++;
  }
  return windows * 2 > all ? "\r\n" : "\n";
}

/** Tab, newline, form feed, return and escape stand in many texts. */
function tooLarge(path: string, bytes: number): string {
  return `${path} has ${bytes} bytes; files of up to ${editLimitBytes} bytes can be changed. Use a command (sed, a script) instead.`;
}
