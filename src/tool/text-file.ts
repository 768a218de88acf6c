import { sha256 } from "../base/text/hash.ts";
import { codeOf, messageOf, UserError } from "../base/errors.ts";
import type { FileChange } from "../message/part.ts";
import { StaleFile } from "../workspace/files/files.ts";
import { resolvePath } from "../workspace/paths.ts";
import type { ResolvedPath } from "../workspace/paths.ts";
import type { Snapshots } from "../workspace/files/snapshot.ts";
import type { RecentChange } from "../workspace/recent/recent-changes.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { compareTexts } from "./diff.ts";
import type { Comparison } from "./diff.ts";
import { describeOther } from "./parallel/others.ts";
import { ToolFailure } from "./tool.ts";
import type { ToolContext } from "./tool.ts";

/** The encoding with which unedited text becomes the same bytes again. */
export interface TextFormat {
  /** `latin1` is used for bytes that are not UTF-8: each byte is one character and is preserved. */
  readonly encoding: "utf8" | "utf16le" | "utf16be" | "latin1";
  readonly byteOrderMark: boolean;
  /** The most frequent line ending. */
  readonly lineEnd: "\n" | "\r\n";
}

export interface TextFile {
  readonly path: string;
  readonly bytes: Buffer;
  /** SHA-256 of the bytes, hex. */
  readonly hash: string;
  /** Without the byte order mark; line endings unchanged. */
  readonly text: string;
  readonly format: TextFormat;
}

export const newFileFormat: TextFormat = { encoding: "utf8", byteOrderMark: false, lineEnd: "\n" };

/** Larger files are neither edited nor overwritten, because the whole text is compared and shown. */
export const editLimitBytes = 10 * 1024 * 1024;
/** Bytes examined to distinguish text from binary files. */
export const sampleBytes = 4096;

/** Reads a file before a change. Throws {@link ToolFailure} if it is binary or too large. */
export async function loadTextFile({ files }: Workspace, path: string): Promise<TextFile> {
  const { bytes, hash } = await explainFileErrors(path, () => files.read(path));
  if (bytes.byteLength > editLimitBytes) throw new ToolFailure(tooLarge(path, bytes.byteLength));
  const decoded = decodeText(bytes);
  if (decoded === undefined)
    throw new ToolFailure(`${path} is binary. Only text files can be changed: use a command for this one.`);
  return { path, bytes, hash, ...decoded };
}

/** Decodes the bytes; undefined if they are not text. */
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

/** Throws {@link ToolFailure} for a character that the encoding lacks. */
export function encodeText(text: string, { encoding, byteOrderMark }: TextFormat): Buffer {
  const whole = byteOrderMark ? `\uFEFF${text}` : text;
  if (encoding === "latin1") return encodeLatin1(whole);
  if (encoding === "utf8") return Buffer.from(whole, "utf8");
  const units = Buffer.from(whole, "utf16le");
  return encoding === "utf16le" ? units : units.swap16();
}

/** Detects the encoding by a byte order mark. */
export function detectByteOrderMark(bytes: Uint8Array): "utf8" | "utf16le" | "utf16be" | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf8";
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf16be";
  return undefined;
}

/** Control characters except tabs and line ends; bytes above 127 are letters in other encodings. */
const control = /(?![\t\n\f\r\u{7f}-\u{9f}])\p{Cc}/gu;
/** Starts an ANSI color sequence. */
const escape = "\u001b";

/** Whether the first bytes contain a NUL or more than 30 % control characters. */
export function isBinary(bytes: Uint8Array): boolean {
  const sample = bytes.subarray(0, sampleBytes);
  if (sample.includes(0)) return true;
  // A regular expression is four times as fast as a loop that is not yet compiled.
  const controls = Buffer.from(sample).toString("latin1").match(control) ?? [];
  return controls.filter((sign) => sign !== escape).length > sample.length * 0.3;
}

/**
 * Throws {@link ToolFailure} unless the model knows the file's current content, so that it may replace all of it. The
 * message begins with `why`.
 */
export async function requireSeen(context: ToolContext, file: TextFile, why = ""): Promise<void> {
  const unseen = await findUnseen(context, file);
  if (unseen !== undefined) throw new ToolFailure(why + unseen.problem);
  if (context.seen.isWhole(file.path)) return;
  throw new ToolFailure(
    `${why}Only a part of ${file.path} was shown in this session. Read it first, or change that part with an edit.`,
  );
}

/** Why the model may not know a file's current content. */
export interface Unseen {
  readonly hasChanged: boolean;
  /** Another session changed it in the last minutes: also exact text is no proof that the model knows the file. */
  readonly isChangedByOther: boolean;
  readonly problem: string;
}

/** Returns why the model may not know the file's current content; undefined if it has seen at least a part of it. */
export async function findUnseen(
  { seen, recent }: ToolContext,
  { path, hash }: TextFile,
): Promise<Unseen | undefined> {
  const known = seen.get(path);
  if (known === hash) return undefined;
  const other = await recent.find(path);
  const isChangedByOther = other !== undefined;
  if (known !== undefined) return { hasChanged: true, isChangedByOther, problem: staleMessage(path, other) };
  const why = other === undefined ? "" : `, and ${describeOther(other)}`;
  const problem = `${path} was not read in this session${why}. Read it first.`;
  return { hasChanged: false, isChangedByOther, problem };
}

/** Throws {@link ToolFailure} if the model saw the file and another session deleted it in the last minutes. */
export async function assertNotDeleted({ seen, recent }: ToolContext, path: string): Promise<void> {
  if (seen.get(path) === undefined) return;
  const other = await recent.find(path);
  if (other?.after !== null) return;
  throw new ToolFailure(
    `${path} no longer exists: ${describeOther(other)}. Read its path once more before you create it again.`,
  );
}

/** Runs the task under the files' locks. The error of a file that changed meanwhile names the session that did it. */
export async function lockFiles<T>(
  { workspace: { files }, recent }: ToolContext,
  paths: readonly string[],
  task: () => Promise<T>,
): Promise<T> {
  try {
    return await files.lock(paths, task);
  } catch (error) {
    if (!(error instanceof StaleFailure)) throw error;
    const other = await recent.find(error.path);
    throw other === undefined ? error : new StaleFailure(error.path, other, { cause: error });
  }
}

/** Follows the result of a change that did not need a file to be read again. */
export const changedNote =
  "The file had changed since it was read; of its new text you know only these lines. Read it before larger changes.";

/** Whether exact, unique text of a file proves that the model knows the lines that it changes. */
export function isProof(text: string): boolean {
  return /[\p{L}\p{N}]/u.test(text);
}

function staleMessage(path: string, other?: RecentChange): string {
  const who = other === undefined ? "" : `: ${describeOther(other)}`;
  return `${path} was changed since it was read${who}. Read it again, then repeat the change on what is there now.`;
}

/** The failure of a call whose file was changed since the model read it. */
export class StaleFailure extends ToolFailure {
  readonly path: string;

  constructor(path: string, other?: RecentChange, options?: ErrorOptions) {
    super(staleMessage(path, other), options);
    this.path = path;
  }
}

export interface TextChange {
  readonly path: string;
  /** The replaced file; undefined if the file is new. */
  readonly before: TextFile | undefined;
  readonly text: string;
  readonly comparison?: Comparison;
}

export interface SavedText {
  readonly change: FileChange;
  /** Tells the model that the editor changed the text while saving; otherwise empty. */
  readonly note: string;
}

/**
 * Writes the text in the file's encoding, stores both contents as snapshots and marks the file as seen.
 *
 * - The caller must hold the file's lock.
 * - Throws {@link ToolFailure} if the file no longer has the content `before`.
 */
export async function saveText(context: ToolContext, change: TextChange): Promise<SavedText> {
  const { path, before, text } = change;
  const { files, snapshots } = context.workspace;
  const bytes = encodeText(text, before?.format ?? newFileFormat);
  // Stored before the write: if the disk is full, nothing is changed that could not be undone.
  const hashes = {
    before: before ? await saveSnapshot(snapshots, path, before.bytes) : null,
    after: await saveSnapshot(snapshots, path, bytes),
  };
  const written = await explainFileErrors(path, async () => {
    await assertSameTarget(context.workspace, path);
    return files.write(path, bytes, before?.hash ?? null);
  });
  context.seen.setChanged(path, written.hash, before);
  const operation = before ? "update" : "add";
  if (written.bytes === undefined) {
    const { additions, deletions } = change.comparison ?? compareTexts(before?.text ?? null, text);
    return { change: { path, operation, ...hashes, additions, deletions }, note: "" };
  }
  const formatted = decodeText(written.bytes)?.text ?? text;
  const { additions, deletions } = compareTexts(before?.text ?? null, formatted);
  const { after, note } = await saveFormatted(snapshots, written.bytes);
  return { change: { path, operation, ...hashes, after, additions, deletions }, note };
}

/** Must not throw: the file is already written, so a failed snapshot is only reported. */
async function saveFormatted(snapshots: Snapshots, bytes: Buffer) {
  try {
    return { after: await snapshots.save(bytes), note: formattedNote };
  } catch (error) {
    const problem = storeProblems.get(codeOf(error) ?? "") ?? messageOf(error);
    const lost = `The new file content could not be saved (${problem}), so this change can be neither shown nor undone: tell the user.`;
    return { after: undefined, note: `${formattedNote} ${lost}` };
  }
}

const formattedNote =
  "The editor changed the text when it saved it, as its formatter does: read the file before you edit it again.";

/** Stores a content so that a change can be undone. Throws {@link ToolFailure} if the disk fails. */
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
      `${path} was not changed, because its content cannot be saved for undo: ${problem}. Ask the user to check the folder where sessions are stored.`,
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
  ["ENOTDIR", "a file is in the place of a folder"],
  ["EEXIST", "a file is in the place of a folder"],
]);

/** Whether writing the text would not change the file. */
export function isSameContent(file: TextFile, text: string): boolean {
  return sha256(encodeText(text, file.format)) === file.hash;
}

/** Runs a task on a file. Turns errors that the model can fix into a {@link ToolFailure}. */
export async function explainFileErrors<T>(path: string, task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    if (error instanceof StaleFile) throw new StaleFailure(path, undefined, { cause: error });
    if (error instanceof UserError) throw new ToolFailure(messageOf(error), { cause: error });
    const problem = fileProblems.get(codeOf(error) ?? "");
    if (problem === undefined) throw error;
    throw new ToolFailure(`${path}: ${problem}`, { cause: error });
  }
}

const fileProblems: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "no such file or folder. Find the right path with glob."],
  [
    "EACCES",
    "this user has no right to do that. Ask the user to change the permissions, or use another file.",
  ],
  ["EPERM", "the system does not let this user do that. Use another file, or ask the user."],
  ["EROFS", "the file system is read-only. Use another folder, or ask the user."],
  ["ENOSPC", "the disk is full. Nothing was changed. Ask the user to free space."],
  ["EDQUOT", "the disk quota is used up. Nothing was changed. Ask the user to free space."],
  ["EISDIR", "is a folder, not a file. Give the path of a file."],
  ["ENOTDIR", "a file is in the place of a folder. Use another path."],
  ["EEXIST", "a file is in the place of a folder. Use another path."],
  ["ENAMETOOLONG", "the name is longer than the file system allows. Use a shorter one."],
]);

/** Throws {@link ToolFailure} if a link no longer leads to the approved path. */
export async function assertSameTarget(workspace: Workspace, path: string): Promise<ResolvedPath> {
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

function tooLarge(path: string, bytes: number): string {
  return `${path} has ${bytes} bytes; files of up to ${editLimitBytes} bytes can be changed. Use a command (sed, a script) instead.`;
}
