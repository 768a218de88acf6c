import { shortenTitle } from "../../base/text/call-titles.ts";
import { z } from "zod";
import description from "../../../prompts/tools/rename_symbol.md";
import type { LanguageQueries } from "../../lsp/language-queries.ts";
import { formatPath } from "../../workspace/paths.ts";
import { type PlanResult, preparePlans } from "../patch/file-plan.ts";
import {
  getOutsideAccess,
  missingPathMessage,
  otherNamesOfPath,
  resolveToolPath,
  titleOf,
} from "../paths.ts";
import { defineTool, type Tool, type ToolContext, ToolFailure } from "../tool.ts";
import { findInFile, nameAt } from "./code-place.ts";
import { createQueryContext, explainServerErrors } from "./code-reader.ts";
import { placeAliases } from "./lsp.ts";
import { planWorkspaceEdit } from "./workspace-edit.ts";

const nameLimit = 500;
/** Files named in a result. */
const namedFiles = 50;

const inputSchema = z.object({
  filePath: z.string().describe("A file that uses the symbol"),
  symbol: z.string().min(1).max(nameLimit).describe("Its name now"),
  newName: z.string().min(1).max(nameLimit),
  line: z.number().int().positive().optional().describe("From 1"),
});
type Input = z.infer<typeof inputSchema>;

/** Renames a symbol by a language server, as one edit of all files. */
export function renameSymbolTool(queries: LanguageQueries): Tool {
  return defineTool<Input>({
    name: "rename_symbol",
    otherNames: ["rename", "lsp_rename", "rename_refactoring"],
    aliases: {
      filePath: otherNamesOfPath,
      symbol: placeAliases.symbol,
      line: placeAliases.line,
      newName: ["new_symbol_name", "to", "replacement", "rename_to"],
    },
    description,
    input: inputSchema,
    kind: "edit",
    concurrency: "exclusive",
    access: ({ filePath }, context) =>
      getOutsideAccess(context, [filePath], { verb: "Rename a symbol in", permission: "edit" }),
    prepare: (input, context) => explainServerErrors(() => prepareRename(queries, input, context)),
  });
}

async function prepareRename(queries: LanguageQueries, input: Input, context: ToolContext) {
  const { filePath, symbol, newName } = input;
  const resolved = await resolveToolPath(context, filePath);
  if (!resolved.exists) throw new ToolFailure(await missingPathMessage(context, resolved, filePath));
  if (resolved.kind !== "file") throw new ToolFailure(`${filePath} is a folder. Give the path of a file.`);
  const { path } = resolved;
  const title = titleOf(context, resolved);
  const query = createQueryContext(context, { signal: context.signal, output: () => {} });
  const text = await query.read(path);
  if (text === undefined) throw new ToolFailure(`${title} is not text, or too long for a language server.`);
  const place = await findInFile({ path, title, text }, { ...input, isUnique: true }, queries, query);
  const { line, character } = place.position;
  const oldName = nameAt(text, line + 1, character + 1) || symbol;
  if (oldName === newName) throw new ToolFailure(`${oldName} has this name already. Nothing was changed.`);
  const { value: steps, note } = await queries.rename(path, place.position, newName, query);
  const plans = await planWorkspaceEdit(context, steps);
  if (plans.length === 0)
    throw new ToolFailure(
      `The language server changes nothing to rename ${oldName}. Check the place with read, or use edit.`,
    );
  const places = steps.reduce((sum, step) => sum + (step.type === "edit" ? step.edits.length : 0), 0);
  return preparePlans(context, plans, {
    title: shortenTitle(`Rename \`${oldName}\` to \`${newName}\``),
    describe: (results) => {
      const head = `Renamed ${oldName} to ${newName}: ${places} places in ${results.length} ${results.length === 1 ? "file" : "files"}.`;
      const notes = [place.note, note].filter((one) => one !== "");
      return [[head, ...notes].join(" "), describeFiles(results, context)].join("\n\n");
    },
  });
}

function describeFiles(results: readonly PlanResult[], { workspace: { cwd } }: ToolContext): string {
  const lines = results
    .slice(0, namedFiles)
    .map(({ change: { path, fromPath, additions, deletions }, isFormatted }) => {
      const name = formatPath(cwd, path);
      const from = fromPath === undefined ? "" : `${formatPath(cwd, fromPath)} → `;
      const note = isFormatted ? ", changed further by the editor when it saved it" : "";
      return `${from}${name} (+${additions} -${deletions}${note})`;
    });
  const more = results.length - lines.length;
  return [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
}
