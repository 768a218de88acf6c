import { z } from "zod";
import description from "../../../prompts/tools/call_tool.md";
import { isRecord } from "../../base/text/record.ts";
import { defineTool, ToolFailure } from "../../tool/tool.ts";
import { decodeText, parseTolerantJson } from "../repair/json-text.ts";
import { normalizeKey } from "../repair/keys.ts";
import { type ModelCall, stripName } from "../repair/repair-call.ts";

export const CALL_TOOL = "call_tool";

const nameKeys = ["name", "tool", "tool_name"];
const inputKeys = ["arguments", "args", "parameters", "params", "input"];

const inputSchema = z.object({ name: z.string(), arguments: z.looseObject({}).optional() });

/** Calls a tool that is loaded on demand. Never runs itself: {@link unwrapCall} returns the contained call. */
export const callTool = defineTool({
  name: CALL_TOOL,
  description,
  input: inputSchema,
  // Without an empty list of properties, which some providers reject.
  schema: {
    type: "object",
    properties: {
      name: { type: "string" },
      arguments: { type: "object", description: "The tool's own parameters.", additionalProperties: true },
    },
    required: ["name", "arguments"],
  },
  kind: "other",
  concurrency: "shared",
  prepare: () => Promise.reject(new ToolFailure(`${CALL_TOOL} needs the name of another tool.`)),
});

/** Whether the name is that of {@link callTool}, also with a prefix or in another case. */
export const isCallTool = (name: string): boolean =>
  normalizeKey(stripName(name)) === normalizeKey(CALL_TOOL);

/** Returns the call that a call of {@link callTool} contains; the call itself if it contains none. */
export function unwrapCall(call: ModelCall): ModelCall {
  const { malformed, problem, input } = call;
  if (problem !== undefined && malformed === undefined) return call;
  const given = malformed === undefined ? input : parseTolerantJson(malformed, { mayHaveProse: true })?.value;
  const record = decodeText(given);
  if (!isRecord(record)) return call;
  const nameKey = nameKeys.find((key) => typeof record[key] === "string" && record[key] !== "");
  if (nameKey === undefined) return call;
  const { [nameKey]: tool, ...rest } = record;
  if (typeof tool !== "string" || isCallTool(tool)) return call;
  const inputKey = inputKeys.find((key) => Object.hasOwn(rest, key));
  return {
    tool,
    input: inputKey === undefined ? rest : decodeText(rest[inputKey] ?? {}),
    through: CALL_TOOL,
  };
}
