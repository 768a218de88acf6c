import type { Config } from "../config/schema.ts";
import { applyPatchTool } from "./patch/apply-patch.ts";
import { bashTool, type BashToolOptions } from "./bash/bash.ts";
import { shellAnalysis } from "./command-analysis.ts";
import { editTool } from "./edit/edit.ts";
import { jobTool } from "./job/job.ts";
import { globTool } from "./search/glob.ts";
import { grepTool } from "./search/grep.ts";
import { listTool } from "./search/list.ts";
import { lspTool } from "./lsp/lsp.ts";
import { renameSymbolTool } from "./lsp/rename-symbol.ts";
import type { LanguageQueries } from "../lsp/language-queries.ts";
import { multieditTool } from "./edit/multiedit.ts";
import { planEnterTool, planExitTool } from "./plan-mode.ts";
import { questionTool } from "./question.ts";
import { readTool } from "./read/read.ts";
import { skillTool } from "./skill.ts";
import { todoreadTool } from "./todo/todoread.ts";
import { todowriteTool } from "./todo/todowrite.ts";
import type { Skill } from "../skill/skill.ts";
import type { Tool } from "./tool.ts";
import { webfetchTool } from "./web/webfetch.ts";
import { searchTools } from "./web/websearch.ts";
import { writeTool } from "./edit/write.ts";

/** Creates the built-in tools. */
export function builtInTools(
  deps: {
    skills: readonly Skill[];
    search: Config["search"];
    /** Undefined if no language server may run. */
    languages?: LanguageQueries | undefined;
  } & BashToolOptions,
): Tool[] {
  const { languages } = deps;
  return [
    applyPatchTool,
    bashTool(shellAnalysis, deps),
    editTool,
    globTool,
    grepTool,
    jobTool,
    listTool,
    ...(languages === undefined ? [] : [lspTool(languages), renameSymbolTool(languages)]),
    multieditTool,
    planEnterTool,
    planExitTool,
    questionTool,
    readTool,
    skillTool(deps),
    todoreadTool,
    todowriteTool,
    ...searchTools(deps.search),
    webfetchTool(),
    writeTool,
  ];
}
