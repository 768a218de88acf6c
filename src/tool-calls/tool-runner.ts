import { errorFields } from "../base/error-fields.ts";
import { orAfter, orWhenAborted } from "../base/async.ts";
import { isAbort, messageOf, sentenceOf } from "../base/errors.ts";
import { type MessageId, newPartId } from "../message/ids.ts";
import type { CallDecision, FileChange, ProviderMetadata, ToolPart } from "../message/part.ts";
import { getToolPermission } from "../permission/parse-rules.ts";
import type { Decider, GateCall } from "../permission/gate.ts";
import type { Decision, PermissionRequest, Ruleset } from "../permission/rule.ts";
import {
  limitOutput,
  minShareBytes,
  outputLimitBytes,
  type OutputLimits,
  ResultBudget,
  type ResultLimits,
  type ResultShare,
} from "../tool/output-limit.ts";
import {
  type PreparedCall,
  prepareCall,
  type Tool,
  type ToolContext,
  ToolFailure,
  type ToolResult,
  addNotes,
  appendNotes,
} from "../tool/tool.ts";
import {
  abandonedText,
  ToolCallRecord,
  type ToolCallRecordDeps,
  type CallOutcome,
  type Refusal,
  refusalText,
} from "./tool-call-record.ts";
import { type CallHooksDeps, runHooksAfter, runHooksBefore } from "./call-hooks.ts";
import { CallSlots } from "./call-slots.ts";
import type { OpenCalls } from "./open-calls.ts";
import type { Diagnose } from "../conversation/project.ts";
import type { FormatChanges } from "../formatter/project-formatters.ts";
import { isDoomLoop, type CallFingerprint, fingerprintCall, fingerprintResult } from "./doom-loop.ts";
import {
  type CheckedCall,
  checkCall,
  findTool,
  type ModelCall,
  type RunnableCall,
  type ToolsByName,
} from "./repair/repair-call.ts";
import { callTool, isCallTool, unwrapCall } from "./on-demand/call-tool.ts";
import { isParallelName, splitParallelCall } from "./repair/parallel-call.ts";
import { addToolRules, isForbidden } from "./tool-set.ts";

/**
 * Time for a running call to end by itself after a cancel, before it is abandoned. The cancelled turn must be answered
 * within a second.
 */
const cancelGraceMs = 750;

/** Hint after a cut output, for agents that may delegate. */
const taskHint =
  "Delegate reading it to an exploring agent with the task tool, or read it in parts with read, or search it with grep.";

const noSpaceHint =
  "It does not fit into the context together with the other results of this step. Read a part of it with read, or search it with grep.";

/**
 * Takes each call of the model to exactly one terminal state: finds the tool, validates the input, asks for
 * permission, runs it and limits the output. One runner serves one turn.
 */
export class ToolRunner {
  readonly #deps: ToolRunnerDeps;
  #tools: ToolsByName = new Map();
  /** The offered tools, and those that are loaded on demand. */
  #known: ToolsByName = new Map();
  /** All tools that can be called. */
  #callable: ToolsByName = new Map();
  #rules: Ruleset;
  #within: readonly Ruleset[] | undefined;
  readonly #slots = new CallSlots();
  readonly #calls: CallFingerprint[] = [];
  /** Number of refused loops. The first refusal is a result for the model, the second ends the turn. */
  #refusedLoops = 0;
  #results = new ResultBudget(undefined);

  constructor(deps: ToolRunnerDeps) {
    this.#deps = deps;
    this.#rules = deps.rules;
  }

  /** Sets the tools of the next step and how much of the context window their results may use. */
  setTools({ tools, onDemand = [], unoffered = [] }: StepTools, results?: ResultLimits): void {
    this.#results = new ResultBudget(results);
    const { within } = this.#deps;
    const callable = [...unoffered, ...onDemand, ...tools];
    this.#rules = addToolRules(callable, this.#deps);
    this.#within = within?.map((rules) => addToolRules(callable, { rules }));
    this.#tools = indexByName(tools);
    this.#known = indexByName([...onDemand, ...tools]);
    this.#callable = indexByName(callable);
  }

  /** Shows a call while the model still writes its arguments. */
  announce(
    messageId: MessageId,
    tool: string,
    providerCallId: string,
    { metadata: providerMetadata, markup, through }: CallOrigin = {},
  ): ToolPart {
    const id = newPartId();
    const known = this.#find(tool);
    const part: ToolPart = {
      id,
      type: "tool",
      callId: id,
      providerCallId,
      ...(providerMetadata !== undefined && { providerMetadata }),
      ...(markup !== undefined && { markup }),
      ...(through !== undefined && { through }),
      tool: known?.name ?? tool,
      kind: known?.kind ?? "other",
      state: { status: "pending", input: undefined },
    };
    this.#deps.openCalls?.add(part.callId);
    this.#deps.transcript.putPart(messageId, part);
    return part;
  }

  /** Whether the name is that of a call that contains other calls, as in `multi_tool_use.parallel` or `call_tool`. */
  isWrapper(tool: string): boolean {
    return this.#isOf(tool, isParallelName) || this.#isOf(tool, isCallTool);
  }

  /** Returns the calls that a call contains, at least one. */
  unwrap(call: ModelCall): readonly ModelCall[] {
    if (this.#isOf(call.tool, isCallTool)) return [unwrapCall(call)];
    return splitParallelCall(call).map((contained) =>
      this.#isOf(contained.tool, isCallTool) ? unwrapCall(contained) : contained,
    );
  }

  /** Whether the name is that of a wrapper and not that of another tool. */
  #isOf(name: string, isNameOfWrapper: (name: string) => boolean): boolean {
    const tool = this.#find(name);
    return (tool === undefined || tool === callTool) && isNameOfWrapper(name);
  }

  /** Runs an announced call. Rejects only for bugs in the runner. */
  async run(
    messageId: MessageId,
    announced: ToolPart,
    call: ModelCall,
    turn: AbortSignal,
  ): Promise<CallOutcome> {
    const { openCalls } = this.#deps;
    if (openCalls === undefined) return this.#run(messageId, announced, call, turn);
    const { result, isCancelled } = await openCalls.run(announced.callId, turn, (signal) =>
      this.#run(messageId, announced, call, signal),
    );
    // Only this call was cancelled: the turn continues.
    return isCancelled && result.stop === "cancelled" ? { changes: result.changes } : result;
  }

  async #run(
    messageId: MessageId,
    announced: ToolPart,
    call: ModelCall,
    signal: AbortSignal,
  ): Promise<CallOutcome> {
    const tool = this.#find(call.tool);
    const isUnseen = tool !== undefined && tool.server !== undefined && !this.#tools.has(tool.name);
    const checked = checkCall(call, tool, this.#known, isUnseen);
    const record = new ToolCallRecord(this.#deps, messageId, toPart(announced, call, checked));
    if ("problem" in checked) {
      const tracked = this.#trackCall(call.tool, call.input ?? call.problem);
      return this.#answerInvalid(record, checked.problem, tracked, signal);
    }
    this.#logRepairs(record, checked);
    const tracked = this.#trackCall(checked.tool.name, checked.input);
    const running = this.#slots.run(checked.tool.concurrency, () =>
      this.#execute(record, checked, tracked, signal),
    );
    return (await orWhenAborted(running, signal, undefined)) ?? this.#afterAbort(record, running);
  }

  /** Settles a call whose arguments never became complete. */
  async abandon(
    messageId: MessageId,
    announced: ToolPart,
    reason: "cancelled" | "interrupted",
  ): Promise<void> {
    this.#deps.openCalls?.remove(announced.callId);
    await new ToolCallRecord(this.#deps, messageId, announced).abandon(reason);
  }

  #find(name: string): Tool | undefined {
    return findTool(name, this.#tools) ?? findTool(name, this.#callable);
  }

  #logRepairs({ part }: ToolCallRecord, { tool, repairs }: RunnableCall): void {
    if (repairs.isEmpty) return;
    this.#deps.log.debug("tool call repaired", {
      tool: tool.name,
      callId: part.callId,
      steps: repairs.steps.join(),
    });
  }

  /** Tracks a call for loop detection; invalid calls count too. */
  #trackCall(tool: string, input: unknown): TrackedCall {
    const fingerprint = fingerprintCall(tool, input);
    this.#calls.push(fingerprint);
    return { fingerprint, isLoop: isDoomLoop(this.#calls) };
  }

  /** Refuses a call. The turn continues, except after a second refused loop. */
  async #refuse(
    record: ToolCallRecord,
    decision: Refusal,
    { fingerprint, isLoop }: TrackedCall,
  ): Promise<CallOutcome> {
    const isLoopRefused = isLoop && (decision.outcome === "unasked" || decision.outcome === "denied");
    if (!isLoopRefused) {
      const outcome = await record.refuse(decision);
      fingerprint.result = fingerprintResult({
        status: "refused",
        error: refusalText(decision, this.#deps.context.agent),
      });
      return outcome;
    }
    this.#refusedLoops++;
    const outcome = await record.fail(decision.outcome === "denied" ? "denied" : "failed", refusedLoopText);
    return this.#refusedLoops > 1 ? { ...outcome, stop: "looping" } : outcome;
  }

  async #answerInvalid(
    record: ToolCallRecord,
    problem: string,
    tracked: TrackedCall,
    signal: AbortSignal,
  ): Promise<CallOutcome> {
    const description = { title: record.part.tool, locations: [], permissions: [] };
    const decision = await this.#decide(record, description, tracked.isLoop, signal);
    if (decision.outcome !== "allowed") return this.#refuse(record, decision, tracked);
    tracked.fingerprint.result = fingerprintResult({ status: "refused", error: problem });
    const share = this.#results.take();
    const shown = await this.#prepareForModel(problem, share);
    share.settle();
    return record.fail("invalid", shown);
  }

  async #afterAbort(record: ToolCallRecord, running: Promise<CallOutcome>): Promise<CallOutcome> {
    const settled = await orAfter(running, cancelGraceMs, undefined);
    if (settled !== undefined) return settled;
    void this.#recordLate(record, running);
    return record.abandon("cancelled");
  }

  /** Stores changes made after the call was abandoned, for undo and for the model. */
  async #recordLate(record: ToolCallRecord, running: Promise<CallOutcome>): Promise<void> {
    try {
      await record.addLateChanges((await running).changes);
    } catch (error) {
      const fields = { tool: record.part.tool, error: messageOf(error) };
      this.#deps.log.error("changes of cancelled tool call not stored", fields);
    }
  }

  async #execute(
    record: ToolCallRecord,
    { tool, input, repairs }: RunnableCall,
    tracked: TrackedCall,
    signal: AbortSignal,
  ): Promise<CallOutcome> {
    const { fingerprint } = tracked;
    const note = repairs.describe();
    if (signal.aborted) return record.abandon("cancelled");
    const forbidden = await this.#forbid(record, tool, tracked, signal);
    if (forbidden !== undefined) return forbidden;
    const share = this.#results.take();
    try {
      const hooked = this.#hasHooks
        ? await runHooksBefore(this.#deps, record, tool, input, signal)
        : { input, notes: [] };
      if ("refused" in hooked)
        return await record.fail(hooked.endsTurn ? "rejected" : "denied", hooked.refused);
      const prepared = await prepareCall(tool, hooked.input, this.#deps.context);
      record.describe(prepared);
      const described = { ...prepared, advice: hooked.advice };
      const decision = await this.#decide(record, described, tracked.isLoop, signal);
      if (decision.outcome !== "allowed") return await this.#refuse(record, decision, tracked);
      record.begin();
      const isSandboxed = decision.isSandboxed === true;
      const written = await prepared.run({
        callId: record.part.callId,
        signal,
        isAllowed: (permissions) => this.#isAllowed(permissions),
        isSandboxed,
        isOther: decision.isOther === true,
        rules: () => this.#allRules,
        request: (permissions, text) =>
          this.#decide(
            record,
            { ...prepared, permissions, preview: { text }, answers: undefined },
            false,
            signal,
          ),
        output: (delta) => record.output(this.#deps.secrets.redact(delta)),
        waitUntilReady: () => this.#deps.waitUntilReady(),
        limits: this.#limits(share),
      });
      const result = await this.#format(tool, written, isSandboxed, signal);
      fingerprint.result = fingerprintResult(result);
      const noted = addNotes(result, hooked.notes);
      const { result: final, endsTurn } = this.#hasHooks
        ? await runHooksAfter(this.#deps, record, tool, noted, signal)
        : { result: noted, endsTurn: false };
      const outcome = await this.#finish(record, addNote(final, note), share, signal);
      return endsTurn && outcome.stop === undefined ? { ...outcome, stop: "rejected" } : outcome;
    } catch (error) {
      fingerprint.result ??= fingerprintResult({ status: "failed", error: messageOf(error) });
      return await this.#failed(record, { tool, note }, error, share, signal);
    } finally {
      share.settle();
    }
  }

  /**
   * Refuses a call of a tool that is offered only because of another mode, before the call reads anything.
   * The rules deny everything that it could need.
   */
  async #forbid(
    record: ToolCallRecord,
    { name }: Tool,
    tracked: TrackedCall,
    signal: AbortSignal,
  ): Promise<CallOutcome | undefined> {
    const { limitingRules = [], within = [] } = this.#deps;
    if (!isForbidden(name, [this.#rules, ...limitingRules, ...within])) return undefined;
    const permissions = [{ permission: getToolPermission(name), subjects: [{ text: "*" }], always: [] }];
    const description = { title: name, locations: [], permissions };
    const decision = await this.#decide(record, description, tracked.isLoop, signal);
    return decision.outcome === "allowed" ? undefined : this.#refuse(record, decision, tracked);
  }

  async #decide(
    record: ToolCallRecord,
    description: CallDescription,
    looping: boolean,
    signal: AbortSignal,
  ): Promise<Decision> {
    const { part } = record;
    const permissions = looping
      ? [...description.permissions, doomLoopRequest(part.tool)]
      : description.permissions;
    const askedAt = Date.now();
    const call = {
      sessionId: this.#deps.context.sessionId,
      callId: part.callId,
      step: record.messageId,
      agent: this.#deps.context.agent,
      tool: part.tool,
      title: description.title,
      kind: part.kind ?? "other",
      locations: description.locations,
      preview: looping ? { ...description.preview, text: loopText } : description.preview,
      input: part.state.input,
      permissions,
      answers: looping ? undefined : description.answers,
      advice: description.advice,
      limits: this.#deps.limitingRules,
      within: this.#within,
      onDecided: (decision: CallDecision) => record.setDecision(decision, askedAt),
    };
    return this.#deps.gate.decide(call, this.#rules, signal);
  }

  #isAllowed(permissions: readonly PermissionRequest[]): boolean {
    const { gate, limitingRules: limits } = this.#deps;
    return gate.isAllowed({ permissions, limits, within: this.#within }, this.#rules);
  }

  async #finish(
    record: ToolCallRecord,
    result: ToolResult,
    share: ResultShare,
    signal: AbortSignal,
  ): Promise<CallOutcome> {
    const changes = result.changes ?? [];
    // Commands report their own errors; they may change many files.
    const found = record.part.kind === "execute" ? "" : await this.#diagnose(changes, signal);
    if (result.status === "failed") {
      const reason = signal.aborted ? "cancelled" : (result.stop ?? "failed");
      return record.fail(reason, await this.#prepareForModel(result.error + found, share, result.notes), {
        changes,
        metadata: result.metadata,
      });
    }
    if (signal.aborted) {
      result.job?.discard();
      const text = `${abandonedText("cancelled")}\n${result.output}${found}`;
      const shown = await this.#prepareForModel(text, share, result.notes);
      return record.fail("cancelled", shown, { changes, metadata: result.metadata });
    }
    return record.complete(result, await this.#prepareForModel(result.output + found, share, result.notes));
  }

  async #failed(
    record: ToolCallRecord,
    { tool, note }: { tool: Tool; note: string | undefined },
    error: unknown,
    share: ResultShare,
    signal: AbortSignal,
  ): Promise<CallOutcome> {
    if (signal.aborted || isAbort(error)) return record.abandon("cancelled");
    if (!(error instanceof ToolFailure)) {
      this.#deps.log.error("tool threw an error", { tool: tool.name, ...errorFields(error) });
    }
    return record.fail("failed", await this.#prepareForModel(messageOf(error), share, note));
  }

  /** Formats the files that a tool wrote. Commands are not followed by formatters: they may be formatters themselves. */
  async #format(
    { kind }: Tool,
    result: ToolResult,
    isSandboxed: boolean,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    const { format, context } = this.#deps;
    if (format === undefined || kind === "execute" || result.status === "failed" || !result.changes?.length)
      return result;
    const call = { seen: context.seen, rules: this.#allRules, isSandboxed, signal };
    const { changes, notes } = await format(result.changes, call);
    // Formatters write the files past the workspace.
    if (changes.some((change) => !result.changes?.includes(change))) await context.recent.note(changes);
    return addNotes({ ...result, changes }, notes);
  }

  get #hasHooks(): boolean {
    return this.#deps.plugins !== undefined || this.#deps.hooks !== undefined;
  }

  get #allRules(): readonly Ruleset[] {
    return [this.#rules, ...(this.#deps.limitingRules ?? []), ...(this.#within ?? [])];
  }

  /** Returns diagnostics of the changed files as a paragraph of the result. */
  async #diagnose(changes: readonly FileChange[], signal: AbortSignal): Promise<string> {
    const { diagnose } = this.#deps;
    if (diagnose === undefined || changes.length === 0 || signal.aborted) return "";
    try {
      const found = await diagnose(changes, signal);
      return found === "" ? "" : `\n\n${found}`;
    } catch (error) {
      // The edit succeeded: failing diagnostics must not fail it.
      this.#deps.log.error("diagnostics failed", errorFields(error));
      return `\n\nDiagnostics are not available: ${sentenceOf(error)}`;
    }
  }

  /** Redacts and limits a result for the model. */
  async #prepareForModel(output: string, share: ResultShare, notes = ""): Promise<string> {
    const { secrets } = this.#deps;
    const { text } = await limitOutput(secrets.redact(output), this.#limits(share));
    const shown = appendNotes(text, secrets.redact(notes));
    share.use(shown);
    return shown;
  }

  #limits({ bytes }: ResultShare): OutputLimits {
    const { limits } = this.#deps;
    const maxBytes = Math.min(limits.maxBytes ?? outputLimitBytes, bytes);
    const hint = bytes <= minShareBytes ? noSpaceHint : this.#tools.has("task") ? taskHint : undefined;
    return { ...limits, maxBytes, ...(hint !== undefined && { hint }) };
  }
}

/** The tools of a step. */
export interface StepTools {
  /** Offered to the model. */
  readonly tools: readonly Tool[];
  /** Only named to the model, which may call them. */
  readonly onDemand?: readonly Tool[];
  /** Not named to the model, but run if it calls them. */
  readonly unoffered?: readonly Tool[];
}

/** Stored facts about the origin of a call. */
export interface CallOrigin {
  /** The provider's data, to be sent back with the call. */
  readonly metadata?: ProviderMetadata | undefined;
  /** The part of the answer that contains the call, if the model wrote it as text. */
  readonly markup?: string | undefined;
  /** The tool through which the model called this one. */
  readonly through?: string | undefined;
}

export interface ToolRunnerDeps extends ToolCallRecordDeps, CallHooksDeps {
  gate: Decider;
  rules: Ruleset;
  /** Additional rules that must allow a call. */
  limitingRules?: readonly Ruleset[] | undefined;
  /** Rules of the parent agents. */
  within?: readonly Ruleset[] | undefined;
  /** Registry for cancelling single calls. */
  openCalls?: OpenCalls | undefined;
  context: ToolContext;
  /** Resolves when the client can receive more. */
  waitUntilReady(): Promise<void>;
  limits: OutputLimits;
  diagnose?: Diagnose | undefined;
  format?: FormatChanges | undefined;
}

/** The properties of a call that the gate uses to decide. */
type CallDescription = Pick<PreparedCall, "title" | "locations" | "preview" | "permissions" | "answers"> &
  Pick<GateCall, "advice">;

/** Returns the message part of a call, with the model's own arguments if they were repaired. */
function toPart(announced: ToolPart, call: ModelCall, checked: CheckedCall): ToolPart {
  const wrapper = call.wrapper && { wrapper: call.wrapper.name };
  const sent = { tool: call.tool, input: call.malformed ?? call.input, ...wrapper };
  if ("problem" in checked)
    return {
      ...announced,
      ...((call.malformed !== undefined || call.wrapper !== undefined) && { sent }),
      state: { status: "pending", input: call.input },
    };
  const { tool, shown, repairs } = checked;
  return {
    ...announced,
    tool: tool.name,
    kind: tool.kind,
    ...(!repairs.isEmpty && { sent }),
    state: { status: "pending", input: shown },
  };
}

const indexByName = (tools: readonly Tool[]): ToolsByName => new Map(tools.map((tool) => [tool.name, tool]));

function addNote(result: ToolResult, note: string | undefined): ToolResult {
  return note === undefined ? result : { ...result, notes: appendNotes(note, result.notes) };
}

/** A call of the turn, and whether it completes a loop. */
interface TrackedCall {
  readonly fingerprint: CallFingerprint;
  readonly isLoop: boolean;
}

/** Shown to the user when a call completes a loop. */
const loopText =
  "The model has made the same calls three times, with the same results. If you reject this one, the model is informed.";

const refusedLoopText =
  "Not run. You have made the same calls three times with the same results, and another round was not allowed. Do something else, or finish: report what you have found and what blocks you. The turn is stopped if you repeat yourself again.";

function doomLoopRequest(tool: string): PermissionRequest {
  return { permission: "doom_loop", subjects: [{ text: tool }], always: [] };
}
