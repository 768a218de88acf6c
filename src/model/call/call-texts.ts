import type { ToolPart } from "../../message/part.ts";

/** Begins the result of a call. Generation stops there, so that a model does not invent results. */
export const responseTag = "<tool_response";

/** Returns a call as text: as the model wrote it, or in the format of `prompts/written-calls.md`. */
export function formatCall({ markup, tool, sent, state }: ToolPart): string {
  if (markup !== undefined) return markup;
  const call = { name: tool, arguments: sent?.input ?? state.input ?? {} };
  return `\n<tool_call>\n${JSON.stringify(call)}\n</tool_call>`;
}

/** Returns the result of a call as text. */
export const formatResult = (tool: string, output: string): string =>
  `${responseTag} name="${tool}">\n${output}\n</tool_response>\n`;
