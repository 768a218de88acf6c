import { isDeepStrictEqual } from "node:util";
import { isRecord } from "../base/text/record.ts";
import type { Secrets } from "../base/secrets/secrets.ts";
import type { SessionHooks } from "../hook/session-hooks.ts";
import { limitMetadata, sanitizeTitle } from "../plugin/module-tool.ts";
import type { CallName, Plugins } from "../plugin/plugins.ts";
import { describeInputProblem } from "../tool/invalid.ts";
import { addNotes, appendNotes, type Tool, type ToolContext, type ToolResult } from "../tool/tool.ts";
import type { ToolCallRecord } from "./tool-call-record.ts";

export interface CallHooksDeps {
  /** Plugins with hooks before and after calls. */
  plugins?: Plugins | undefined;
  /** The hooks of the session; undefined if there are none. */
  hooks?: SessionHooks | undefined;
  context: Pick<ToolContext, "sessionId" | "workspace">;
  /** Secrets to redact from results. */
  secrets: Secrets;
}

export type CallAfterHooks =
  | {
      readonly input: unknown;
      readonly advice?: "allow" | "ask" | undefined;
      readonly notes: readonly string[];
    }
  | { readonly refused: string; readonly endsTurn: boolean };

/** The input that plugins leave, or why one of them refused the call. */
type CallAfterPlugins = { readonly input: unknown } | { readonly refused: string };

/**
 * Runs the hooks before a call: those of plugins, then those of the configuration. Returns the input to permit and run,
 * or why a hook refused it.
 */
export async function runHooksBefore(
  deps: CallHooksDeps,
  record: ToolCallRecord,
  tool: Tool,
  input: unknown,
  signal: AbortSignal,
): Promise<CallAfterHooks> {
  const afterPlugins = await runPluginsBefore(deps, record, tool, input, signal);
  if ("refused" in afterPlugins) return { ...afterPlugins, endsTurn: false };
  return runConfiguredBefore(deps, record, tool, afterPlugins.input, signal);
}

/** Runs the hooks after a completed call: those of plugins, then those of the configuration, which add notes. */
export async function runHooksAfter(
  deps: CallHooksDeps,
  record: ToolCallRecord,
  tool: Tool,
  result: ToolResult,
  signal: AbortSignal,
): Promise<{ result: ToolResult; endsTurn: boolean }> {
  const afterPlugins = await runPluginsAfter(deps, record, result, signal);
  return runConfiguredAfter(deps, record, tool, afterPlugins, signal);
}

async function runPluginsBefore(
  { plugins, context }: CallHooksDeps,
  record: ToolCallRecord,
  tool: Tool,
  input: unknown,
  signal: AbortSignal,
): Promise<CallAfterPlugins> {
  if (!plugins?.has("tool.execute.before") || !isRecord(input)) return { input };
  const checked = await plugins.beforeCall(toCallName(record, context), input, signal);
  if ("refused" in checked) return checked;
  if (isDeepStrictEqual(checked.args, input)) return { input };
  return replaceInput(record, tool, checked.args, "plugin");
}

async function runConfiguredBefore(
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
  const replaced = replaceInput(record, tool, changed, "hook");
  return "refused" in replaced ? { ...replaced, endsTurn: false } : { ...replaced, advice, notes };
}

/** Stores the input to which a plugin or a hook changed the call's, if it is valid. */
function replaceInput(
  record: ToolCallRecord,
  tool: Tool,
  changed: unknown,
  by: "plugin" | "hook",
): CallAfterPlugins {
  const parsed = tool.input.safeParse(changed);
  if (!parsed.success)
    return {
      refused: `Not run. A ${by} changed the arguments to invalid ones. ${describeInputProblem(parsed.error)}`,
    };
  record.setInput(parsed.data);
  return { input: parsed.data };
}

/** Plugins see redacted output. */
async function runPluginsAfter(
  { plugins, context, secrets }: CallHooksDeps,
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

async function runConfiguredAfter(
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

function toCallName({ part }: ToolCallRecord, { sessionId }: CallHooksDeps["context"]): CallName {
  return { tool: part.tool, sessionID: sessionId, callID: part.callId };
}

function describeCall(
  { part }: ToolCallRecord,
  { name, server }: Tool,
  input: Record<string, unknown>,
  { workspace }: CallHooksDeps["context"],
) {
  return { tool: name, server, input, cwd: workspace.cwd, callId: part.callId };
}
