import { isDeepStrictEqual } from "node:util";
import { isRecord } from "../base/text/record.ts";
import type { Secrets } from "../base/secrets/secrets.ts";
import { limitMetadata, sanitizeTitle } from "../plugin/module-tool.ts";
import type { CallName, Plugins } from "../plugin/plugins.ts";
import { describeInputProblem } from "../tool/invalid.ts";
import { type Tool, type ToolContext, type ToolResult, appendNotes } from "../tool/tool.ts";
import type { ToolCallRecord } from "./tool-call-record.ts";

export interface CallPluginsDeps {
  /** Plugins with hooks before and after calls. */
  plugins?: Plugins | undefined;
  context: Pick<ToolContext, "sessionId">;
  /** Secrets to redact from results. */
  secrets: Secrets;
}

/** Applies the plugins' hooks before a call. Returns the input to permit and run, or why a plugin refused it. */
export async function applyBeforeHooks(
  { plugins, context }: CallPluginsDeps,
  record: ToolCallRecord,
  tool: Tool,
  input: unknown,
  signal: AbortSignal,
): Promise<{ input: unknown } | { refused: string }> {
  if (!plugins?.has("tool.execute.before") || !isRecord(input)) return { input };
  const checked = await plugins.beforeCall(toCallName(record, context), input, signal);
  if ("refused" in checked) return checked;
  if (isDeepStrictEqual(checked.args, input)) return { input };
  const parsed = tool.input.safeParse(checked.args);
  if (!parsed.success)
    return {
      refused: `Not run. A plugin changed the arguments to invalid ones. ${describeInputProblem(parsed.error)}`,
    };
  record.setInput(parsed.data);
  return { input: parsed.data };
}

/** Applies the plugins' hooks after a call. Plugins see redacted output. */
export async function applyAfterHooks(
  { plugins, context, secrets }: CallPluginsDeps,
  record: ToolCallRecord,
  result: ToolResult,
  signal: AbortSignal,
): Promise<ToolResult> {
  if (result.status !== "completed" || !plugins?.has("tool.execute.after")) return result;
  const { input } = record.part.state;
  const call = { ...toCallName(record, context), args: isRecord(input) ? input : {} };
  const title = result.title ?? record.part.title ?? record.part.tool;
  const before = {
    title,
    output: secrets.redact(appendNotes(result.output, result.notes)),
    metadata: result.metadata ?? {},
  };
  const after = await plugins.afterCall(call, before, signal);
  return {
    ...result,
    ...(after.output !== before.output && { output: after.output, notes: undefined }),
    ...(after.title !== title && { title: sanitizeTitle(after.title) }),
    ...(!isDeepStrictEqual(after.metadata, before.metadata) && { metadata: limitMetadata(after.metadata) }),
  };
}

function toCallName({ part }: ToolCallRecord, { sessionId }: CallPluginsDeps["context"]): CallName {
  return { tool: part.tool, sessionID: sessionId, callID: part.callId };
}
