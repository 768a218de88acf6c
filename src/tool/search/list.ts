import { toSlashes } from "../../base/files/paths.ts";
import { titleOfPath } from "../../base/text/call-titles.ts";
import { z } from "zod";
import description from "../../../prompts/tools/list.md";
import type { PermissionRequest } from "../../permission/rule.ts";
import { isInside, formatPath, type ResolvedPath } from "../../workspace/paths.ts";
import { resolveSearchFolder } from "./folder.ts";
import { getOutsideAccess, titleOf } from "../paths.ts";
import { assertSameTarget } from "../text-file.ts";
import { defineTool, type Tool, type ToolContext } from "../tool.ts";

const ENTRY_LIMIT = 100;
/** Files read; the folders of further ones would be closed in the tree anyway. */
const FILE_LIMIT = 20_000;

const inputSchema = z.object({
  path: z.string().optional().describe("The folder to show; the working directory unless given."),
  ignore: z
    .array(z.string().min(1))
    .optional()
    .describe("Globs to leave out besides ignored files: dist/**, *.snap."),
});

export const listTool: Tool = defineTool<z.infer<typeof inputSchema>>({
  name: "list",
  otherNames: ["ls", "list_directory", "list_dir", "list_files", "dir", "listdir", "list_folder"],
  aliases: {
    path: ["dir", "directory", "folder", "dir_path", "relative_workspace_path", "target_directory"],
    ignore: ["exclude", "excludes"],
  },
  description,
  input: inputSchema,
  kind: "read",
  concurrency: "shared",
  access: ({ path }, context) =>
    getOutsideAccess(context, [path], { verb: "List", own: (resolved) => [listRequest(context, resolved)] }),
  prepare: async ({ path, ignore = [] }, context) => {
    const folder = await resolveSearchFolder(context, path);
    return {
      title: titleOfPath("List", folder.title),
      locations: [{ path: folder.path }],
      permissions: [listRequest(context, folder.resolved), ...folder.external],
      run: async ({ signal }) => {
        await assertSameTarget(context.workspace, folder.path);
        const globs = ignore.map((glob) => `!${glob}`);
        const query = { folder: folder.path, globs, limit: FILE_LIMIT, order: "path", signal } as const;
        const { paths, truncated } = await context.workspace.search.files(query);
        const { lines, closed } = renderTree(
          toTree(paths.map((found) => found.slice(folder.path.length + 1))),
        );
        const notes = createNotes(closed, truncated);
        return {
          status: "completed",
          notes: folder.note,
          output: [
            `${toSlashes(folder.path)}/`,
            ...(lines.length > 0 ? lines : ["  (no files)"]),
            ...notes,
          ].join("\n"),
          metadata: { count: lines.length, truncated: notes.length > 0 },
        };
      },
    };
  },
});

function listRequest(context: ToolContext, resolved: ResolvedPath): PermissionRequest {
  const { cwd, roots } = context.workspace;
  const named = isInside(resolved.path, roots) ? {} : { named: formatPath(cwd, resolved.unresolved) };
  const text = titleOf(context, resolved);
  return { permission: "list", subjects: [{ text, ...named }], always: ["*"] };
}

interface Folder {
  folders: Map<string, Folder>;
  files: string[];
  /** Files in it at any depth. */
  count: number;
}

const emptyFolder = (): Folder => ({ folders: new Map(), files: [], count: 0 });

function toTree(paths: readonly string[]): Folder {
  const top = emptyFolder();
  for (const path of paths) {
    const names = path.split(/[/\\]/);
    const name = names.pop() ?? "";
    let at = top;
    at.count++;
    for (const folderName of names) {
      at = childFolder(at, folderName);
      at.count++;
    }
    at.files.push(name);
  }
  return top;
}

function childFolder(parent: Folder, name: string): Folder {
  const child = parent.folders.get(name) ?? emptyFolder();
  parent.folders.set(name, child);
  return child;
}

/** Opens folders from the top as long as their entries fit. */
function renderTree(top: Folder): { lines: string[]; closed: boolean } {
  const opened = new Set([top]);
  let left = ENTRY_LIMIT - sizeOf(top);
  let closed = left < 0;
  const queue = [...top.folders.values()];
  for (const folder of queue) {
    if (sizeOf(folder) <= left) {
      opened.add(folder);
      left -= sizeOf(folder);
      queue.push(...folder.folders.values());
    } else closed = true;
  }
  return { lines: [...renderLines(top, opened, "  ")].slice(0, ENTRY_LIMIT), closed };
}

const sizeOf = (folder: Folder): number => folder.folders.size + folder.files.length;

function* renderLines(folder: Folder, opened: ReadonlySet<Folder>, indent: string): Generator<string> {
  for (const [name, child] of folder.folders) {
    yield opened.has(child) ? `${indent}${name}/` : `${indent}${name}/ (${child.count} files)`;
    if (opened.has(child)) yield* renderLines(child, opened, `${indent}  `);
  }
  for (const name of folder.files) yield `${indent}${name}`;
}

function createNotes(closed: boolean, truncated: boolean): string[] {
  const cut = truncated
    ? [`[There are more than ${FILE_LIMIT} files; only the first in the order of their paths count.]`]
    : [];
  const narrow = closed ? ["[Not all of it fits. List one of the folders, or use glob, to see more.]"] : [];
  return [...cut, ...narrow];
}
