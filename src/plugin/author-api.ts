import { z } from "zod";
import type { DefineTool } from "./author.ts";

const define = <Definition>(definition: Definition): Definition => definition;

/** Exported to plugin files as `fairlead/plugin` and `@opencode-ai/plugin`. */
export const tool: DefineTool = Object.assign(define, { schema: z });

// Types are erased, but a name imported without `type` must still exist at run time.
const onlyAType = undefined;
export {
  onlyAType as Hooks,
  onlyAType as Plugin,
  onlyAType as PluginInput,
  onlyAType as PluginModule,
  onlyAType as ToolContext,
  onlyAType as ToolDefinition,
};
