import { bashTool, type AnalyzeCommand } from "./bash.ts";
import { editTool } from "./edit.ts";
import { globTool } from "./glob.ts";
import { grepTool } from "./grep.ts";
import { listTool } from "./list.ts";
import { multieditTool } from "./multiedit.ts";
import { readTool } from "./read.ts";
import { todoreadTool } from "./todoread.ts";
import { todowriteTool } from "./todowrite.ts";
import type { Tool } from "./tool.ts";
import { writeTool } from "./write.ts";

/** The tools that come with the program. */
export function builtInTools(deps: { analyze: AnalyzeCommand }): Tool[] {
  return [
    bashTool(deps),
    editTool,
    globTool,
    grepTool,
    listTool,
    multieditTool,
    readTool,
    todoreadTool,
    todowriteTool,
    writeTool,
  ];
}
