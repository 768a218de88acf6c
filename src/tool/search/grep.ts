import { titleOfSearch } from "../../base/text/call-titles.ts";
import { z } from "zod";
import description from "../../../prompts/tools/grep.md";
import { isAbort, sentenceOf } from "../../base/errors.ts";
import { formatPath } from "../../workspace/paths.ts";
import { MAX_FILE_BYTES } from "../../workspace/search/search-engine.ts";
import type { LineMatch, LinesQuery, Search } from "../../workspace/search/queries.ts";
import { nameOf, resolveSearchTarget } from "./folder.ts";
import { explainExpression, explainGlob } from "./pattern-hints.ts";
import { hasNoNul } from "../invalid.ts";
import { getOutsideAccess, readRequest, searchRequest } from "../paths.ts";
import { noteFoundLines } from "../shown-files.ts";
import { assertSameTarget } from "../text-file.ts";
import { defineTool, ToolFailure, type Tool } from "../tool.ts";

const RESULT_LIMIT = 100;
/** Per line; 100 such lines fit into one result. */
const LINE_LIMIT_CHARACTERS = 400;

/** Names of skipped large files in a result. */
const NAMED_LARGE_FILES = 5;

/** Close to the limit of systems for a program's arguments. */
const PATTERN_LIMIT_CHARACTERS = 20_000;

const nulRefusal = "Text files contain no NUL characters: leave it out";

const inputSchema = z.object({
  pattern: z
    .string()
    .min(1)
    .max(PATTERN_LIMIT_CHARACTERS)
    .refine(hasNoNul, nulRefusal)
    .describe("The regular expression that lines have to match."),
  path: z.string().optional().describe("The folder or file to look in; the working directory unless given."),
  include: z
    .string()
    .min(1)
    .refine(hasNoNul, nulRefusal)
    .optional()
    .describe("A glob that files have to match: *.ts, *.{ts,tsx}, src/**/*.py."),
});

export const grepTool: Tool = defineTool<z.infer<typeof inputSchema>>({
  name: "grep",
  otherNames: [
    "search_file_content",
    "grep_search",
    "search_files",
    "search",
    "ripgrep",
    "rg",
    "search_in_files",
    "search_text",
    "grep_files",
  ],
  aliases: {
    pattern: ["query", "regex", "search", "search_term", "regexp", "search_pattern", "text"],
    path: ["dir", "directory", "folder", "dir_path", "search_path", "paths"],
    include: ["glob", "include_pattern", "file_pattern", "includes", "file_glob"],
  },
  description,
  input: inputSchema,
  kind: "search",
  concurrency: "shared",
  access: ({ pattern, path }, context) =>
    getOutsideAccess(context, [path], {
      title: titleOfSearch("Search", `"${pattern}"`, path?.trim() || "."),
      permission: "read",
      own: (found) => [searchRequest(context, "grep", pattern, found.path)],
    }),
  prepare: async ({ pattern, path, include }, context) => {
    const target = await resolveSearchTarget(context, path);
    const { cwd, search } = context.workspace;
    return {
      title: titleOfSearch("Search", `"${pattern}"`, target.title),
      locations: [{ path: target.path }],
      permissions: [
        searchRequest(context, "grep", pattern, target.path),
        // Outside, a folder needs the same as a file: a difference would reveal which of them it is.
        ...(target.kind === "file" || target.external.length > 0 ? target.reading : []),
      ],
      run: async (run) => {
        const { signal } = run;
        await assertSameTarget(context.workspace, target.path);
        const onProgress = (files: number) => run.output(`${files} files so far …\n`);
        // Matches in such files are not even counted: many patterns would reveal the text.
        const isShown = (found: string) =>
          found === target.path || run.isAllowed([readRequest(context, found)]);
        const query = {
          folder: target.path,
          pattern,
          include,
          limit: RESULT_LIMIT,
          isShown,
          onProgress,
          signal,
        };
        const { matches, truncated, large } = await findLines(search, query);
        await noteFoundLines(context.seen, matches);
        const where = `${nameOf(target)}${include === undefined ? "" : ` (${include})`}`;
        const none =
          matches.length > 0 ? "" : `No lines match in ${where}.${await explainNone(search, query)}`;
        return {
          status: "completed",
          notes: target.note,
          output: [
            matches.length === 0 ? none : showByFile(matches, cwd),
            ...more(truncated),
            ...notSearched(large, cwd),
          ].join("\n\n"),
          metadata: {
            count: matches.length,
            truncated,
            ...(large.length > 0 && { notSearchedNote: large.length }),
          },
        };
      },
    };
  },
});

/** Returns why nothing matched, after a blank: the pattern cannot match, or only upper and lower case differ. */
async function explainNone(search: Search, query: LinesQuery): Promise<string> {
  const { pattern, include, folder } = query;
  const reason =
    explainExpression(pattern) ?? (include === undefined ? undefined : explainGlob(include, folder));
  if (reason !== undefined) return ` ${reason}`;
  if (pattern.toLowerCase() === pattern.toUpperCase() || /\(\?[a-z]*i/.test(pattern)) return "";
  const { matches, truncated } = await findLines(search, { ...query, pattern: `(?i)${pattern}` });
  if (matches.length === 0) return "";
  const count = truncated
    ? `more than ${matches.length} lines match`
    : matches.length === 1
      ? "1 line matches"
      : `${matches.length} lines match`;
  return ` Without regard to upper and lower case ${count}: put (?i) before the pattern to see them.`;
}

async function findLines(search: Search, query: LinesQuery): ReturnType<Search["lines"]> {
  try {
    return await search.lines(query);
  } catch (error) {
    if (query.signal.aborted || isAbort(error)) throw error;
    throw new ToolFailure(`${sentenceOf(error)} Fix the call, or search with a simpler pattern.`, {
      cause: error,
    });
  }
}

function showByFile(matches: readonly LineMatch[], cwd: string): string {
  const files = Map.groupBy(matches, ({ path }) => path);
  return [...files]
    .map(([path, lines]) => [`${formatPath(cwd, path)}:`, ...lines.map(showLine)].join("\n"))
    .join("\n\n");
}

function showLine({ line, text }: LineMatch): string {
  const isLong = text.length > LINE_LIMIT_CHARACTERS;
  return `  ${line}: ${isLong ? `${text.slice(0, LINE_LIMIT_CHARACTERS)} [… line cut]` : text}`;
}

function notSearched(large: readonly string[], cwd: string): string[] {
  if (large.length === 0) return [];
  const names = large.slice(0, NAMED_LARGE_FILES).map((path) => formatPath(cwd, path));
  const rest = large.length - names.length;
  const files = large.length === 1 ? "1 file" : `${large.length} files`;
  const truncationNote = rest > 0 ? ` and ${rest} more` : "";
  return [
    `[${files} of more than ${MAX_FILE_BYTES} bytes not searched: ${names.join(", ")}${truncationNote}. Search them with a command.]`,
  ];
}

function more(truncated: boolean): string[] {
  if (!truncated) return [];
  return [
    `[Only ${RESULT_LIMIT} lines are shown, from the files changed last. Narrow the pattern, or give include or path, to see others.]`,
  ];
}
