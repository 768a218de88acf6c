import { isRecord } from "../base/text/record.ts";
import type { SessionHooks } from "../hook/session-hooks.ts";
import { describeInputProblem } from "../tool/invalid.ts";
import { appendNotes, type Tool, type ToolContext, type ToolResult } from "../tool/tool.ts";
import type { CallPluginsDeps } from "./call-plugins.ts";
import type { ToolCallRecord } from "./tool-call-record.ts";

export interface CallHooksDeps {
  /** The hooks of the session; undefined if there are none. */
  hooks?: SessionHooks | undefined;
  context: Pick<ToolContext, "workspace">;
  secrets: CallPluginsDeps["secrets"];
}

export type CallAfterHooks =
  | {
      readonly input: unknown;
      readonly advice?: "allow" | "ask" | undefined;
      readonly notes: readonly string[];
    }
  | { readonly refused: string; readonly endsTurn: boolean };

/** Runs the hooks before a call. Returns the input to permit and run, or why a hook refused it. */
export async function runHooksBefore(
  { hooks, context }: CallHooksDeps,
  record: ToolCallRecord,
  tool: Tool,
  input: unknown,
  signal: AbortSignal,
): Promise<CallAfterHooks> {
  if (!hooks?.has("PreToolUse") || !isRecord(input)) return { input, notes: [] };
  const answer = await hooks.beforeCall(describeCall(record, tool, input, context), signal);
  if (answer.kind === "refused")
    return { refused: `Not run. A hook refused this call: ${answer.reason}`, endsTurn: answer.endsTurn };
  const { input: changed, advice, notes } = answer;
  if (changed === undefined) return { input, advice, notes };
  const parsed = tool.input.safeParse(changed);
  if (!parsed.success)
    return {
      refused: `Not run. A hook changed the arguments to invalid ones. ${describeInputProblem(parsed.error)}`,
      endsTurn: false,
    };
  record.setInput(parsed.data);
  return { input: parsed.data, advice, notes };
}

/** Runs the hooks after a completed call. Adds their notes for the model. */
export async function runHooksAfter(
  { hooks, context, secrets }: CallHooksDeps,
  record: ToolCallRecord,
  tool: Tool,
  result: ToolResult,
  signal: AbortSignal,
): Promise<{ result: ToolResult; endsTurn: boolean }> {
  const { input } = record.part.state;
  if (!hooks?.has("PostToolUse") || result.status !== "completed" || !isRecord(input))
    return { result, endsTurn: false };
  const output = secrets.redact(appendNotes(result.output, result.notes));
  const call = describeCall(record, tool, input, context);
  const { notes, endsTurn } = await hooks.afterCall(call, output, signal);
  return { result: addNotes(result, notes), endsTurn };
}

/** Adds notes for the model to a result. */
export function addNotes(result: ToolResult, notes: readonly string[]): ToolResult {
  if (notes.length === 0) return result;
  return { ...result, notes: [...(result.notes ? [result.notes] : []), ...notes].join("\n\n") };
}

function describeCall(
  { part }: ToolCallRecord,
  { name, server }: Tool,
  input: Record<string, unknown>,
  { workspace }: CallHooksDeps["context"],
) {
  return { tool: name, server, input, cwd: workspace.cwd, callId: part.callId };
}
