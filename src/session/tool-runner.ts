import { isDeepStrictEqual } from "node:util";
import { orAfter, orWhenAborted } from "../base/async.ts";
import { isAbort, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Secrets } from "../base/secrets.ts";
import type { Emit } from "../message/event.ts";
import { type MessageId, newPartId } from "../message/ids.ts";
import type { CallDecision, FileChange, ToolPart, ToolState } from "../message/part.ts";
import type { Decider } from "../permission/gate.ts";
import { showInvisible } from "../permission/invisible.ts";
import type { Decision, PermissionRequest, Ruleset } from "../permission/rule.ts";
import type { Plugins } from "../plugin/plugins.ts";
import { describeInputProblem, unknownTool } from "../tool/invalid.ts";
import { limitOutput, type OutputLimits } from "../tool/output-limit.ts";
import {
  type PreparedCall,
  type Tool,
  type ToolContext,
  ToolFailure,
  type ToolResult,
} from "../tool/tool.ts";
import { CallSlots } from "./call-slots.ts";
import type { Decisions } from "./decisions.ts";
import type { OpenCalls } from "./open-calls.ts";
import type { Diagnose } from "./project.ts";
import { fingerprint, isDoomLoop } from "./doom-loop.ts";
import { rulesWith } from "./tool-set.ts";
import type { Transcript } from "./transcript.ts";

/** How long a running call may take to end by itself after a cancel before it is left behind. */
const cancelGraceMs = 500;

/** How the rest of a long output is got at by who may hand tasks to others. */
const taskHint =
  "Have a task of an agent that explores look through it, or read it in parts with read, or search it with grep.";

/** A call as the model wrote it. */
export interface ModelCall {
  tool: string;
  input: unknown;
  /** Why the arguments are not JSON, if they are not. */
  problem?: string;
}

export interface CallOutcome {
  /** What the person said that ends the turn: no to this call, or that the turn is cancelled. */
  stop?: "rejected" | "cancelled";
  changes: readonly FileChange[];
}

/**
 * Takes calls from what the model wrote to one terminal state each, whatever happens: finds the tool, checks the
 * input, asks for permission, runs, limits the output. One runner serves one turn.
 */
export class ToolRunner {
  readonly #deps: ToolRunnerDeps;
  #tools: ReadonlyMap<string, Tool> = new Map();
  #rules: Ruleset;
  #within: readonly Ruleset[] | undefined;
  readonly #slots = new CallSlots();
  readonly #fingerprints: string[] = [];

  constructor(deps: ToolRunnerDeps) {
    this.#deps = deps;
    this.#rules = deps.rules;
  }

  /** Says which tools the next step has. */
  offer(tools: readonly Tool[]): void {
    const { within } = this.#deps;
    this.#rules = rulesWith(tools, this.#deps);
    this.#within = within?.map((rules) => rulesWith(tools, { rules }));
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
  }

  /** Shows a call whose arguments the model still writes. */
  async announce(
    messageId: MessageId,
    tool: string,
    providerCallId: string,
    signature?: string,
  ): Promise<ToolPart> {
    const id = newPartId();
    const known = this.#find(tool);
    const part: ToolPart = {
      id,
      type: "tool",
      callId: id,
      providerCallId,
      ...(signature !== undefined && { signature }),
      tool: known?.name ?? tool,
      kind: known?.kind ?? "other",
      state: { status: "pending", input: undefined },
    };
    this.#deps.openCalls?.add(part.callId);
    await this.#deps.transcript.putPart(messageId, part);
    return part;
  }

  /** Runs an announced call. Rejects for bugs of the runner only. */
  async run(
    messageId: MessageId,
    announced: ToolPart,
    call: ModelCall,
    turn: AbortSignal,
  ): Promise<CallOutcome> {
    const { openCalls } = this.#deps;
    if (openCalls === undefined) return this.#run(messageId, announced, call, turn);
    const { result, isCancelled } = await openCalls.during(announced.callId, turn, (signal) =>
      this.#run(messageId, announced, call, signal),
    );
    // Without this call the turn goes on.
    return isCancelled && result.stop === "cancelled" ? { changes: result.changes } : result;
  }

  async #run(
    messageId: MessageId,
    announced: ToolPart,
    call: ModelCall,
    signal: AbortSignal,
  ): Promise<CallOutcome> {
    const card = new CallCard(this.#deps, messageId, {
      ...announced,
      state: { status: "pending", input: call.input },
    });
    const tool = this.#find(call.tool);
    const checked = check(call, tool, [...this.#tools.keys()]);
    if ("problem" in checked) {
      const looping = this.#isLooping(call.tool, call.input ?? call.problem);
      return this.#answerInvalid(card, checked.problem, looping, signal);
    }
    const { input } = checked;
    const looping = this.#isLooping(checked.tool.name, input);
    const turn = this.#slots.run(checked.tool.concurrency, () =>
      this.#take(card, checked.tool, input, looping, signal),
    );
    return (await orWhenAborted(turn, signal, undefined)) ?? this.#afterAbort(card, turn);
  }

  /** Settles a call that never became whole. */
  async abandon(
    messageId: MessageId,
    announced: ToolPart,
    reason: "cancelled" | "interrupted",
  ): Promise<void> {
    this.#deps.openCalls?.remove(announced.callId);
    await new CallCard(this.#deps, messageId, announced).fail(reason, abandonedText(reason));
  }

  #find(name: string): Tool | undefined {
    return this.#tools.get(name) ?? this.#tools.get(name.toLowerCase());
  }

  /** Calls that cannot be run count too: a model may make them for ever. */
  #isLooping(tool: string, input: unknown): boolean {
    this.#fingerprints.push(fingerprint(tool, input));
    return isDoomLoop(this.#fingerprints);
  }

  async #answerInvalid(
    card: CallCard,
    problem: string,
    looping: boolean,
    signal: AbortSignal,
  ): Promise<CallOutcome> {
    const asked = { title: card.part.tool, locations: [], permissions: [] };
    const decision = await this.#decide(card, asked, looping, signal);
    return decision.outcome === "allowed" ? card.fail("invalid", problem) : card.refuse(decision);
  }

  async #afterAbort(card: CallCard, turn: Promise<CallOutcome>): Promise<CallOutcome> {
    const settled = await orAfter(turn, cancelGraceMs, undefined);
    if (settled !== undefined) return settled;
    void this.#recordLate(card, turn);
    return card.fail("cancelled", abandonedText("cancelled"));
  }

  /** What a call changed after nobody waited for it any more: undo has to know of it, and so has the model. */
  async #recordLate(card: CallCard, turn: Promise<CallOutcome>): Promise<void> {
    try {
      await card.amend((await turn).changes);
    } catch (error) {
      const fields = { tool: card.part.tool, error: messageOf(error) };
      this.#deps.log.error("what a call changed after its cancel is not stored", fields);
    }
  }

  async #take(
    card: CallCard,
    tool: Tool,
    input: unknown,
    looping: boolean,
    signal: AbortSignal,
  ): Promise<CallOutcome> {
    if (signal.aborted) return card.fail("cancelled", abandonedText("cancelled"));
    try {
      const looked = await this.#beforeCall(card, tool, input, signal);
      if ("refused" in looked) return await card.fail("denied", looked.refused);
      const prepared = await tool.prepare(looked.input, this.#deps.context);
      await card.describe(prepared);
      const decision = await this.#decide(card, prepared, looping, signal);
      if (decision.outcome !== "allowed") return await card.refuse(decision);
      await card.begin();
      const result = await prepared.run({
        callId: card.part.callId,
        signal,
        output: (delta) => card.output(delta),
      });
      return await this.#finish(card, await this.#afterCall(card, result, signal), signal);
    } catch (error) {
      return this.#failed(card, tool, error, signal);
    }
  }

  /** The input as plugins leave it, which is what is permitted and run. */
  async #beforeCall(
    card: CallCard,
    tool: Tool,
    input: unknown,
    signal: AbortSignal,
  ): Promise<{ input: unknown } | { refused: string }> {
    const { plugins } = this.#deps;
    if (!plugins?.has("tool.execute.before") || !isRecord(input)) return { input };
    const looked = await plugins.beforeCall(this.#callName(card), input, signal);
    if ("refused" in looked || isDeepStrictEqual(looked.args, input))
      return "refused" in looked ? looked : { input };
    const parsed = tool.input.safeParse(looked.args);
    if (!parsed.success)
      return {
        refused: `Not run. A plugin changed the arguments to some that do not fit. ${describeInputProblem(parsed.error)}`,
      };
    card.changeInput(parsed.data);
    return { input: parsed.data };
  }

  async #afterCall(card: CallCard, result: ToolResult, signal: AbortSignal): Promise<ToolResult> {
    const { plugins, secrets } = this.#deps;
    if (result.status !== "completed" || !plugins?.has("tool.execute.after")) return result;
    const { input } = card.part.state;
    const call = { ...this.#callName(card), args: isRecord(input) ? input : {} };
    const title = result.title ?? card.part.title ?? card.part.tool;
    const before = { title, output: secrets.redact(result.output), metadata: result.metadata ?? {} };
    const after = await plugins.afterCall(call, before, signal);
    return {
      ...result,
      output: after.output,
      ...(after.title !== title && { title: showInvisible(after.title) }),
      ...(!isDeepStrictEqual(after.metadata, before.metadata) && { metadata: after.metadata }),
    };
  }

  #callName({ part }: CallCard) {
    return { tool: part.tool, sessionID: this.#deps.context.sessionId, callID: part.callId };
  }

  async #decide(card: CallCard, asked: Asked, looping: boolean, signal: AbortSignal): Promise<Decision> {
    const { part } = card;
    const permissions = looping ? [...asked.permissions, doomLoopRequest(part.tool)] : asked.permissions;
    const call = {
      sessionId: this.#deps.context.sessionId,
      callId: part.callId,
      agent: this.#deps.context.agent,
      tool: part.tool,
      title: asked.title,
      kind: part.kind ?? "other",
      locations: asked.locations,
      preview: looping ? { ...asked.preview, text: loopText } : asked.preview,
      input: part.state.input,
      permissions,
      limits: this.#deps.limitingRules,
      within: this.#within,
    };
    const askedAt = Date.now();
    const decision = await this.#deps.gate.decide(call, this.#rules, signal);
    const taken = this.#deps.decisions.take(part.callId);
    card.decided(taken?.by === "person" ? { ...taken, waitedMs: Date.now() - askedAt } : taken);
    return decision;
  }

  async #finish(card: CallCard, result: ToolResult, signal: AbortSignal): Promise<CallOutcome> {
    const changes = result.changes ?? [];
    const found = await this.#diagnose(changes, signal);
    if (result.status === "failed") {
      const reason = signal.aborted ? "cancelled" : result.isRejected ? "rejected" : "failed";
      return card.fail(reason, await this.#limit(result.error + found), {
        changes,
        metadata: result.metadata,
      });
    }
    if (signal.aborted) {
      const text = `${abandonedText("cancelled")}\n${result.output}${found}`;
      return card.fail("cancelled", await this.#limit(text), { changes, metadata: result.metadata });
    }
    return card.complete(result, await this.#limit(result.output + found));
  }

  async #failed(card: CallCard, tool: Tool, error: unknown, signal: AbortSignal): Promise<CallOutcome> {
    if (signal.aborted || isAbort(error)) return card.fail("cancelled", abandonedText("cancelled"));
    if (!(error instanceof ToolFailure)) {
      this.#deps.log.error("a tool threw", { tool: tool.name, error: messageOf(error) });
    }
    return card.fail("failed", this.#deps.secrets.redact(messageOf(error)));
  }

  /** The errors that the changes brought, as a paragraph of the result. */
  async #diagnose(changes: readonly FileChange[], signal: AbortSignal): Promise<string> {
    const { diagnose } = this.#deps;
    if (diagnose === undefined || changes.length === 0 || signal.aborted) return "";
    const found = await diagnose(changes, signal);
    return found === "" ? "" : `\n\n${found}`;
  }

  async #limit(text: string): Promise<string> {
    const limits = { ...this.#deps.limits, ...(this.#tools.has("task") && { hint: taskHint }) };
    return (await limitOutput(this.#deps.secrets.redact(text), limits)).text;
  }
}

export interface ToolRunnerDeps {
  transcript: Pick<Transcript, "putPart" | "amendPart">;
  gate: Decider;
  rules: Ruleset;
  /** Rules that must allow a call beside `rules`. */
  limitingRules?: readonly Ruleset[] | undefined;
  /** Rules of those for whom the agent works. */
  within?: readonly Ruleset[] | undefined;
  /** They look at calls before and after. */
  plugins?: Plugins | undefined;
  decisions: Decisions;
  /** Where the calls can be cancelled one by one. */
  openCalls?: OpenCalls | undefined;
  context: ToolContext;
  emit: Emit;
  /** Taken out of whatever a tool returns. */
  secrets: Secrets;
  limits: OutputLimits;
  diagnose?: Diagnose | undefined;
  log: Log;
}

/** One call's part while it runs; the first terminal state counts, what comes after it is dropped. */
class CallCard {
  part: ToolPart;
  readonly #deps: ToolRunnerDeps;
  readonly #messageId: MessageId;
  #settled = false;
  #start: number | undefined;

  constructor(deps: ToolRunnerDeps, messageId: MessageId, part: ToolPart) {
    this.#deps = deps;
    this.#messageId = messageId;
    this.part = part;
  }

  async describe(prepared: PreparedCall): Promise<void> {
    const { title, locations } = prepared;
    await this.#put({ ...this.part, title, locations: [...locations] });
  }

  /** Stored with the call's next state. */
  changeInput(input: unknown): void {
    this.part = { ...this.part, state: { ...this.part.state, input } };
  }

  /** Stored with the call's next state. */
  decided(decision: CallDecision | undefined): void {
    if (decision !== undefined) this.part = { ...this.part, decision };
  }

  async begin(): Promise<void> {
    this.#start = Date.now();
    const state = { status: "running", input: this.part.state.input, time: { start: this.#start } } as const;
    await this.#put({ ...this.part, state });
  }

  async output(delta: string): Promise<void> {
    if (this.#settled || delta === "") return;
    const { callId, id: partId } = this.part;
    const { sessionId } = this.#deps.context;
    await this.#deps.emit({
      sessionId,
      type: "tool-output",
      messageId: this.#messageId,
      partId,
      callId,
      delta,
    });
  }

  async complete(result: ToolResult & { status: "completed" }, output: string): Promise<CallOutcome> {
    const { attachments, changes, metadata, title, locations } = result;
    const part = {
      ...this.part,
      title: title ?? this.part.title,
      locations: locations === undefined ? this.part.locations : [...locations],
    };
    await this.#settle(part, {
      status: "completed",
      input: part.state.input,
      output,
      ...(attachments && { attachments: [...attachments] }),
      ...(changes && { changes: [...changes] }),
      ...(metadata && { metadata }),
      time: this.#span(),
    });
    return { changes: changes ?? [] };
  }

  async fail(
    reason: (ToolState & { status: "error" })["reason"],
    error: string,
    more: { changes?: readonly FileChange[]; metadata?: Record<string, unknown> } = {},
  ): Promise<CallOutcome> {
    const changes = more.changes ?? [];
    await this.#settle(this.part, {
      status: "error",
      input: this.part.state.input,
      error,
      reason,
      ...(changes.length > 0 && { changes: [...changes] }),
      ...(more.metadata && { metadata: more.metadata }),
      time: this.#span(),
    });
    return { ...((reason === "rejected" || reason === "cancelled") && { stop: reason }), changes };
  }

  /** Adds what the call changed after it was settled. */
  async amend(changes: readonly FileChange[]): Promise<void> {
    const { state } = this.part;
    if (changes.length === 0 || state.status !== "error") return;
    const paths = changes.map(({ path }) => path).join(", ");
    const error = `${state.error} It could not be stopped before it changed ${paths}.`;
    this.part = { ...this.part, state: { ...state, error, changes: [...changes] } };
    await this.#deps.transcript.amendPart(this.#messageId, this.part);
  }

  refuse(decision: Exclude<Decision, { outcome: "allowed" }>): Promise<CallOutcome> {
    return this.fail(decision.outcome, refusalText(decision));
  }

  #span() {
    const end = Date.now();
    return { start: this.#start ?? end, end };
  }

  async #settle(part: ToolPart, state: ToolState): Promise<void> {
    if (this.#settled) return;
    this.#settled = true;
    this.part = { ...part, state };
    this.#log(state);
    await this.#deps.transcript.putPart(this.#messageId, this.part);
  }

  #log(state: ToolState): void {
    const { tool, callId } = this.part;
    const ms = this.#start === undefined ? undefined : Date.now() - this.#start;
    const end = state.status === "error" ? state.reason : state.status;
    this.#deps.log.info("a call ended", { tool, callId, ms, end });
  }

  async #put(part: ToolPart): Promise<void> {
    if (this.#settled) return;
    this.part = part;
    await this.#deps.transcript.putPart(this.#messageId, part);
  }
}

/** What the gate needs to know of a call. */
type Asked = Pick<PreparedCall, "title" | "locations" | "preview" | "permissions">;

/** The tool with the input as it takes it, or what the model is told instead. */
function check(
  call: ModelCall,
  tool: Tool | undefined,
  available: readonly string[],
): { tool: Tool; input: unknown } | { problem: string } {
  if (tool === undefined) return { problem: unknownTool(call.tool, available) };
  if (call.problem !== undefined) {
    return { problem: `The arguments of ${tool.name} are not valid JSON: ${call.problem}. Call it again.` };
  }
  const parsed = tool.input.safeParse(call.input);
  return parsed.success ? { tool, input: parsed.data } : { problem: describeInputProblem(parsed.error) };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What the person should know of a call that closes a circle. */
const loopText = "The model has made the same calls three times over. Rejecting this one is told to it.";

function doomLoopRequest(tool: string): PermissionRequest {
  return { permission: "doom_loop", subjects: [{ text: tool }], always: [] };
}

function abandonedText(reason: "cancelled" | "interrupted"): string {
  return reason === "cancelled"
    ? "The person cancelled this call before it finished."
    : "This call was cut off before its arguments were complete; it was not run.";
}

/** What the model is told of a call that may not run. */
function refusalText(decision: Exclude<Decision, { outcome: "allowed" }>): string {
  switch (decision.outcome) {
    case "denied": {
      const { rule, subject, permission, plugin } = decision;
      if (plugin !== undefined)
        return `Not run. The plugin ${plugin} forbids ${permission} for "${subject}". Find a way that does not need it, or tell the person what you would need.`;
      const source = `${rule.permission}: "${rule.pattern}" is set to ${rule.action}`;
      return `Not run. A rule forbids ${permission} for "${subject}" (${source}). Find a way that does not need it, or tell the person what you would need.`;
    }
    case "rejected":
      return decision.feedback === undefined
        ? "Not run. The person said no to this call. Do not try it again in another form."
        : `Not run. The person said no to this call and wrote: ${decision.feedback}`;
    case "cancelled":
      return abandonedText("cancelled");
  }
}
