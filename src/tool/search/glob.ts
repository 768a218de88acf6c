import { titleOfSearch } from "../../base/text/call-titles.ts";
import { z } from "zod";
import description from "../../../prompts/tools/glob.md";
import { formatPath } from "../../workspace/paths.ts";
import { nameOf, resolveSearchFolder, type SearchTarget } from "./folder.ts";
import { explainGlob } from "./pattern-hints.ts";
import { getOutsideAccess, searchRequest } from "../paths.ts";
import { assertSameTarget } from "../text-file.ts";
import { defineTool, type Tool } from "../tool.ts";

const RESULT_LIMIT = 100;

const inputSchema = z.object({
  pattern: z.string().min(1).describe("The glob that paths have to match."),
  path: z.string().optional().describe("The folder to look in; the working directory unless given."),
});

export const globTool: Tool = defineTool<z.infer<typeof inputSchema>>({
  name: "glob",
  otherNames: [
    "find_files",
    "file_search",
    "glob_search",
    "find",
    "search_files_by_name",
    "find_file",
    "glob_files",
  ],
  aliases: {
    pattern: ["query", "glob", "glob_pattern", "file_pattern", "name"],
    path: ["dir", "directory", "folder", "cwd", "dir_path"],
  },
  description,
  input: inputSchema,
  kind: "search",
  concurrency: "shared",
  access: ({ pattern, path }, context) =>
    getOutsideAccess(context, [path], {
      title: titleOfSearch("Find", pattern, path?.trim() || "."),
      own: (found) => [searchRequest(context, "glob", pattern, found.path)],
    }),
  prepare: async ({ pattern, path }, context) => {
    const folder = await resolveSearchFolder(context, path);
    const { cwd, search } = context.workspace;
    return {
      title: titleOfSearch("Find", pattern, folder.title),
      locations: [{ path: folder.path }],
      permissions: [searchRequest(context, "glob", pattern, folder.path), ...folder.external],
      run: async (run) => {
        const { signal } = run;
        await assertSameTarget(context.workspace, folder.path);
        const onProgress = (files: number) => run.output(`${files} files so far …\n`);
        const query = {
          folder: folder.path,
          globs: [pattern],
          limit: RESULT_LIMIT,
          order: "newest",
          onProgress,
          signal,
        } as const;
        const { paths, truncated } = await search.files(query);
        const lines = paths.map((found) => formatPath(cwd, found));
        return {
          status: "completed",
          notes: folder.note,
          output: [
            ...(lines.length > 0 ? lines : [explainNone(pattern, folder)]),
            ...truncationNote(truncated),
          ].join("\n"),
          metadata: { count: paths.length, truncated },
        };
      },
    };
  },
});

function explainNone(pattern: string, folder: SearchTarget): string {
  const reason = explainGlob(pattern, folder.path);
  return `No files match in ${nameOf(folder)}.${reason === undefined ? "" : ` ${reason}`}`;
}

function truncationNote(truncated: boolean): string[] {
  if (!truncated) return [];
  return [
    "",
    `[Only the ${RESULT_LIMIT} files changed last are shown. Narrow the pattern or give a path to see others.]`,
  ];
}
