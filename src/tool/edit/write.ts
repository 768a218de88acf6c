import { titleOfPath } from "../../base/text/call-titles.ts";
import { z } from "zod";
import description from "../../../prompts/tools/write.md";
import type { ResolvedPath } from "../../workspace/paths.ts";
import { compareTexts } from "../diff.ts";
import {
  otherNamesOfPath,
  requirePlainPath,
  pathPermissions,
  resolveToolPath,
  titleOf,
  getOutsideAccess,
} from "../paths.ts";
import {
  assertNotDeleted,
  editLimitBytes,
  isSameContent,
  loadTextFile,
  lockFiles,
  requireSeen,
  saveText,
} from "../text-file.ts";
import type { TextChange, TextFile } from "../text-file.ts";
import { defineTool, ToolFailure } from "../tool.ts";
import type { PreparedCall, RunContext, ToolContext, ToolResult } from "../tool.ts";

const inputSchema = z.object({
  filePath: z.string().describe("The file to write: absolute, relative to the working directory, or with ~"),
  content: z.string().describe("The whole text of the file"),
});
type Input = z.infer<typeof inputSchema>;

export const writeTool = defineTool<Input>({
  name: "write",
  otherNames: ["write_file", "create_file", "write_to_file", "save_file", "create", "file_write"],
  aliases: {
    filePath: otherNamesOfPath,
    content: ["text", "contents", "file_text", "file_content", "body", "data", "code"],
  },
  description,
  input: inputSchema,
  kind: "edit",
  concurrency: "exclusive",
  access: ({ filePath }, context) =>
    getOutsideAccess(context, [filePath], { verb: "Write", permission: "edit" }),
  async prepare(input, context) {
    const resolved = await resolveToolPath(context, input.filePath);
    if (resolved.kind === "directory")
      throw new ToolFailure(`${input.filePath} is a folder. Give the path of a file.`);
    if (!resolved.exists) {
      await requirePlainPath(context, input.filePath);
      await assertNotDeleted(context, resolved.path);
    }
    assertWritable(input.content);
    const before = resolved.exists ? await loadTextFile(context.workspace, resolved.path) : undefined;
    const text = before ? convertLineEnds(before, input.content) : input.content;
    if (before && isSameContent(before, text)) return prepareUnchanged(context, resolved, before);
    if (before) await requireSeen(context, before);
    return prepareReplacement(context, resolved, { path: resolved.path, before, text });
  },
});

function assertWritable(content: string): void {
  if (Buffer.byteLength(content) <= editLimitBytes) return;
  throw new ToolFailure(
    `The content is larger than ${editLimitBytes} bytes. Write it in parts or make it with a command.`,
  );
}

/** Converts to the file's line endings and removes the byte order mark, which is stored separately. */
function convertLineEnds({ format }: TextFile, content: string): string {
  const text = content.startsWith("\uFEFF") ? content.slice(1) : content;
  return format.lineEnd === "\r\n" ? text.replaceAll(/\r?\n/g, "\r\n") : text;
}

function prepareUnchanged(
  context: ToolContext,
  resolved: ResolvedPath,
  { path, hash }: TextFile,
): PreparedCall {
  return {
    title: titleOfPath("Write", titleOf(context, resolved)),
    locations: [{ path }],
    permissions: pathPermissions(context, resolved, "read"),
    run: async () => {
      context.seen.set(path, hash);
      return {
        status: "completed",
        output: `${titleOf(context, resolved)} has this content already. Nothing was changed.`,
      };
    },
  };
}

function prepareReplacement(context: ToolContext, resolved: ResolvedPath, change: TextChange): PreparedCall {
  const { path, before, text } = change;
  const comparison = compareTexts(before?.text ?? null, text);
  return {
    title: titleOfPath("Write", titleOf(context, resolved), before === undefined ? "new" : ""),
    locations: [{ path, line: comparison.firstLine }],
    preview: { diffs: [{ path, oldText: before?.text ?? null, newText: text }] },
    permissions: pathPermissions(context, resolved, "edit"),
    run: (run) => writeFile(context, resolved, { ...change, comparison }, run),
  };
}

async function writeFile(
  context: ToolContext,
  resolved: ResolvedPath,
  change: TextChange,
  { signal }: RunContext,
): Promise<ToolResult> {
  const { change: saved, note } = await lockFiles(context, [change.path], async () => {
    signal.throwIfAborted();
    return saveText(context, change);
  });
  const title = titleOf(context, resolved);
  const counts = `+${saved.additions} -${saved.deletions} lines`;
  const output = `${saved.operation === "add" ? "Created" : "Wrote"} ${title} (${counts}).${note && ` ${note}`}`;
  return { status: "completed", output, changes: [saved] };
}
