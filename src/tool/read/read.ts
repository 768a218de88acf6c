import { titleOfPath } from "../../base/text/call-titles.ts";
import type { FileHandle } from "node:fs/promises";
import { basename, extname } from "node:path";
import { z } from "zod";
import { createSha256 } from "../../base/text/hash.ts";
import description from "../../../prompts/tools/read.md";
import { fitInstructions } from "../../instruction/fit-instructions.ts";
import { loadNestedInstructions } from "../../instruction/instructions.ts";
import { withFileAt } from "../../workspace/files/files.ts";
import { listFolder } from "./folder-listing.ts";
import { describeWindow, LineWindow, windowLimits } from "./line-window.ts";
import type { Range } from "./line-window.ts";
import { fitMedium, detectMediaType } from "../image/media.ts";
import { type OutputLimits, outputLimitBytes } from "../output-limit.ts";
import { otherNamesOfPath, pathPermissions, resolvePathToRead, titleOf, getOutsideAccess } from "../paths.ts";
import {
  assertSameTarget,
  detectByteOrderMark,
  decodeText,
  explainFileErrors,
  isBinary,
  sampleBytes,
} from "../text-file.ts";
import { appendNotes, defineTool, ToolFailure } from "../tool.ts";
import type { ToolContext, ToolResult } from "../tool.ts";

const inputSchema = z.object({
  filePath: z
    .string()
    .describe("The file or folder to read: absolute, relative to the working directory, or with ~"),
  offset: z.number().int().nonnegative().optional().describe("The line to begin with, counted from 1"),
  limit: z.number().int().positive().optional().describe("How many lines to read; 2000 when left out"),
});
type Input = z.infer<typeof inputSchema>;

/** Larger files are read as a stream. */
const wholeLimitBytes = 10 * 1024 * 1024;
/** Larger files are read only as far as shown, so their lines are not counted and they cannot be edited. */
const countedLimitBytes = 50 * 1024 * 1024;

export const readTool = defineTool<Input>({
  name: "read",
  otherNames: [
    "read_file",
    "view",
    "view_file",
    "cat",
    "open_file",
    "open",
    "readfile",
    "get_file_contents",
    "read_text_file",
  ],
  aliases: {
    filePath: otherNamesOfPath,
    offset: ["start", "start_line", "line_start", "from_line", "startline", "begin_line"],
    limit: ["lines", "num_lines", "line_count", "max_lines", "count"],
  },
  description,
  input: inputSchema,
  kind: "read",
  concurrency: "shared",
  access: ({ filePath }, context) =>
    getOutsideAccess(context, [filePath], { verb: "Read", permission: "read" }),
  async prepare(input, context) {
    const { resolved, lines: named, note } = await resolvePathToRead(context, input.filePath);
    const first = Math.max(1, input.offset ?? named?.first ?? 1);
    const wanted = input.limit ?? (input.offset === undefined ? named?.count : undefined);
    const part = describePart(first, wanted);
    return {
      title: titleOfPath(resolved.kind === "directory" ? "List" : "Read", titleOf(context, resolved), part),
      locations: [{ path: resolved.path, line: first }],
      permissions: pathPermissions(context, resolved, "read"),
      run: async ({ signal, limits }) => {
        const { lines, bytes } = windowLimits(limits);
        const range = { first, count: Math.min(wanted ?? lines, lines), bytes };
        const result = await readPath(context, resolved.path, { ...range, limits }, signal);
        return note === undefined ? result : { ...result, notes: appendNotes(note, result.notes) };
      },
    };
  },
});

/** Describes which lines are read; empty for the whole file. */
function describePart(first: number, count: number | undefined): string {
  if (count === 1) return `line ${first}`;
  if (count !== undefined) return `lines ${first}-${first + count - 1}`;
  return first > 1 ? `from line ${first}` : "";
}

function readPath(
  context: ToolContext,
  path: string,
  { limits, ...range }: Range & { limits: OutputLimits },
  signal: AbortSignal,
) {
  return explainFileErrors(path, async () => {
    const { kind, size } = await assertSameTarget(context.workspace, path);
    if (kind === "directory") return listFolder(path, range, signal);
    const read = size > wholeLimitBytes ? readLargeFile : readWholeFile;
    return withInstructions(context, path, await read(context, path, range, signal), limits);
  });
}

/** Adds the instructions of the file's folder, once per session and within the limit of one result. */
async function withInstructions(
  context: ToolContext,
  path: string,
  result: ToolResult,
  { maxBytes = outputLimitBytes }: OutputLimits,
): Promise<ToolResult> {
  if (result.status === "failed") return result;
  const { cwd, roots, worktree, home } = context.workspace;
  const folders = { cwd, roots, worktree, home };
  const { instructions } = await loadNestedInstructions(path, { ...folders, already: context.instructed });
  const texts = fitInstructions(instructions, maxBytes).map(
    (file) => `Instructions for this folder, from ${file.path}:\n\n${file.text.trim()}`,
  );
  const notes = [...(result.notes === undefined ? [] : [result.notes]), ...texts].join("\n\n");
  const metadata = { ...result.metadata, instructions: instructions.map((file) => file.path) };
  return texts.length === 0 ? result : { ...result, notes, metadata };
}

async function readWholeFile(
  context: ToolContext,
  path: string,
  range: Range,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { bytes, hash } = await context.workspace.files.read(path);
  const head = bytes.subarray(0, sampleBytes);
  const mime = detectMediaType(head);
  if (mime !== undefined) return attach(context, { path, bytes, hash, mime }, signal);
  assertText(path, head);
  const decoded = decodeText(bytes);
  if (decoded === undefined) throw new ToolFailure(binaryMessage(path));
  context.seen.set(path, hash);
  const window = new LineWindow(range);
  window.add(decoded.text);
  window.end();
  return { status: "completed", ...describeWindow(window, range, true) };
}

/** Reads a text as a stream; only the shown lines are held in memory. */
async function readLargeFile(
  context: ToolContext,
  path: string,
  range: Range,
  signal: AbortSignal,
): Promise<ToolResult> {
  const head = await readHead(path);
  const mime = detectMediaType(head);
  if (mime !== undefined)
    return attach(context, { path, mime, ...(await context.workspace.files.read(path)) }, signal);
  assertText(path, head);
  return withFileAt(path, (file) => readPieces(context, { path, file, head }, range, signal));
}

async function readPieces(
  context: ToolContext,
  { path, file, head }: { path: string; file: FileHandle; head: Buffer },
  range: Range,
  signal: AbortSignal,
): Promise<ToolResult> {
  const toItsEnd = (await file.stat()).size <= countedLimitBytes;
  const window = new LineWindow(range);
  const hash = createSha256();
  const decoder = new TextDecoder(detectEncoding(head));
  const chunks: AsyncIterable<Buffer> = file.createReadStream({ signal, autoClose: false });
  for await (const chunk of chunks) {
    hash.update(chunk);
    window.add(decoder.decode(chunk, { stream: true }));
    if (window.full && !toItsEnd) return { status: "completed", ...describeWindow(window, range, false) };
  }
  window.add(decoder.decode());
  window.end();
  if (toItsEnd) context.seen.set(path, hash.digest("hex"));
  return { status: "completed", ...describeWindow(window, range, true) };
}

async function attach(
  { seen }: ToolContext,
  { path, bytes, hash, mime }: { path: string; bytes: Buffer; hash: string; mime: string },
  signal: AbortSignal,
): Promise<ToolResult> {
  const name = basename(path);
  seen.set(path, hash);
  const fitted = await fitMedium({ bytes, mime, name }, signal);
  if (fitted.outcome === "unfit")
    throw new ToolFailure(`${name} cannot be shown: ${fitted.reason} ${otherWays}`);
  const note = fitted.note && `, ${fitted.note}`;
  return {
    status: "completed",
    output: `${name} (${mime}, ${bytes.byteLength} bytes${note}) is attached.`,
    attachments: [fitted.attachment],
  };
}

const otherWays =
  "Make a smaller or another copy with a command, or extract the part that matters, and read that.";

function readHead(path: string): Promise<Buffer> {
  return withFileAt(path, async (file) => {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(sampleBytes), 0, sampleBytes, 0);
    return buffer.subarray(0, bytesRead);
  });
}

function assertText(path: string, head: Buffer): void {
  if (binaryExtensions.has(extname(path).toLowerCase())) throw new ToolFailure(binaryMessage(path));
  const mark = detectByteOrderMark(head);
  const isUtf16 = mark === "utf16le" || mark === "utf16be";
  if (!isUtf16 && isBinary(head)) throw new ToolFailure(binaryMessage(path));
}

function detectEncoding(head: Buffer): string {
  const mark = detectByteOrderMark(head);
  if (mark === "utf16le") return "utf-16le";
  return mark === "utf16be" ? "utf-16be" : "utf-8";
}

function binaryMessage(path: string): string {
  return `${path} is binary and cannot be shown as text. Look into it with a command made for its format.`;
}

/** Formats whose first bytes may look like text. */
const binaryExtensions: ReadonlySet<string> = new Set(
  "zip gz tgz bz2 xz zst 7z rar tar jar war class exe dll so dylib o a lib pyc pyo wasm doc docx xls xlsx ppt pptx odt ods odp sqlite"
    .split(" ")
    .map((name) => `.${name}`),
);
