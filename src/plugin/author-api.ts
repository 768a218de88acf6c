import { z } from "zod";
import type { DefineTool } from "./author.ts";

const define = <Definition>(definition: Definition): Definition => definition;

/** What authors' files import as `fairlead/plugin` and `@opencode-ai/plugin`. */
export const tool: DefineTool = Object.assign(define, { schema: z });

// Types are erased before a file runs, but the names of those that are imported without `type` are looked for.
const onlyAType = undefined;
export {
  onlyAType as Hooks,
  onlyAType as Plugin,
  onlyAType as PluginInput,
  onlyAType as PluginModule,
  onlyAType as ToolContext,
  onlyAType as ToolDefinition,
};
