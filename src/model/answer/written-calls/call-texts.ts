import writtenCalls from "../../../../prompts/written-calls.md";
import type { ToolPart } from "../../../message/part.ts";
import type { ToolSpec } from "../../model.ts";

/** Describes the tools, and how to call them, for a model that writes its calls as text. */
export function formatTools(tools: readonly ToolSpec[]): string {
  const described = tools.map(({ name, description, schema }) =>
    JSON.stringify({ name, description, parameters: schema }),
  );
  return `${writtenCalls.trim()}\n\n${described.join("\n")}`;
}

/** Begins the result of a call. Generation stops there, so that a model does not invent results. */
export const responseTag = "<tool_response";

/** Returns a call as text: as the model wrote it, or in the format of `prompts/written-calls.md`. */
export function formatCall(part: ToolPart): string {
  const { markup, sent, state } = part;
  if (markup !== undefined) return markup;
  const call = {
    name: calledName(part),
    arguments: calledInput(part, sent?.input ?? state.input ?? {}),
  };
  return `\n<tool_call>\n${JSON.stringify(call)}\n</tool_call>`;
}

/** Returns the name of the tool that the model called. */
export const calledName = ({ through, tool }: ToolPart): string => through ?? tool;

/** Returns the arguments with which the model called that tool, from those of the tool that was run. */
export const calledInput = ({ through, tool }: ToolPart, input: unknown): unknown =>
  through === undefined ? input : { name: tool, arguments: input ?? {} };

/** Returns the result of a call as text. */
export const formatResult = (tool: string, output: string): string =>
  `${responseTag} name="${tool}">\n${output}\n</tool_response>\n`;
