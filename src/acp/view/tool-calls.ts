import type {
  SessionUpdate,
  ToolCall,
  ToolCallContent,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk/unstable";
import {
  hasRunningJob,
  isFinished,
  type FileChange,
  type ToolKind,
  type ToolPart,
} from "../../message/part.ts";
import type { ClientFeatures } from "../client-capabilities.ts";
import { cut, limitContent, limitInput, limitName } from "./card-limits.ts";
import { removeControls } from "../../base/text/controls.ts";
import {
  presentCall,
  type CommandFacts,
  type Presentation,
  type ResultText,
} from "../../tool/presentation.ts";
import { fenced } from "../../base/text/fence.ts";
import { OutputPacer } from "./output-pacer.ts";
import { formatTitle } from "./titles.ts";

/** Characters of live output sent to clients without terminals while a command runs. */
const tailLength = 2_000;
/** Characters of a finished call's output in its card; the model and the stored session get more. */
const cardLength = 60_000;
/** Files of one call whose changes are shown. */
const diffsLimit = 100;

export interface ToolCallsDeps {
  client: ClientFeatures;
  cwd: string;
  loadSnapshot(hash: string): Promise<Buffer | undefined>;
  send(update: SessionUpdate): void;
}

/**
 * Sends tool parts as ACP tool calls, live and replayed: one `tool_call`, then only the changed fields, nothing after
 * the terminal status. A call with a running job stays in progress.
 */
export class ToolCalls {
  readonly #deps: ToolCallsDeps;
  readonly #open = new Map<string, OpenCall>();
  /** Newest part of each unfinished call. */
  readonly #unended = new Map<string, ToolPart>();
  /** Newest part of each call with a running job. */
  readonly #jobs = new Map<string, ToolPart>();
  /** Calls that ended in this turn; a replay may send the end before the turn's own event arrives. */
  readonly #ended = new Set<string>();

  constructor(deps: ToolCallsDeps) {
    this.#deps = deps;
  }

  /** Reads the diffs of a finished call from the disk. */
  async loadDiffs({ state }: ToolPart): Promise<ToolCallContent[]> {
    const changes = changesOf(state);
    const diffs = await Promise.all(changes.slice(0, diffsLimit).map((change) => this.#loadDiff(change)));
    const more = changes.length - diffs.length;
    return more > 0 ? [...diffs, textContent(`${more} more files changed.`)] : diffs;
  }

  /** Shows the new state of a call. `diffs` are those of {@link loadDiffs}. */
  show(part: ToolPart, diffs: readonly ToolCallContent[] = []): void {
    const facts = presentCall(part);
    if (!facts.hasCard || this.#ended.has(part.callId)) return;
    const isEnd = hasEnded(part);
    this.#note(part);
    const open = this.#open.get(part.callId);
    if (open === undefined) {
      const call = this.#createCall(part, facts, diffs);
      if (!isEnd) this.#open.set(part.callId, new OpenCall(call, this.#pacer(part.callId, facts)));
      return this.#deps.send({ ...call, sessionUpdate: "tool_call" });
    }
    open.pacer.end();
    const change = findChanges(open.sent, this.#updatedCall(part, facts, open.sent, diffs));
    if (isEnd) this.#open.delete(part.callId);
    else open.sent = { ...open.sent, ...change };
    if (isEnd || Object.keys(change).length > 0)
      this.#deps.send({ sessionUpdate: "tool_call_update", toolCallId: part.callId, ...change });
  }

  /** Calls with a running job, oldest first. */
  get jobs(): readonly ToolPart[] {
    return [...this.#jobs.values()];
  }

  #note(part: ToolPart): void {
    const { callId, state } = part;
    this.#unended.delete(callId);
    this.#jobs.delete(callId);
    if (hasRunningJob(state)) this.#jobs.set(callId, part);
    else if (isFinished(state)) this.#ended.add(callId);
    else this.#unended.set(callId, part);
  }

  /** Unfinished calls, oldest first. */
  get unended(): readonly ToolPart[] {
    return [...this.#unended.values()];
  }

  /** Clears all state before a replay, which sends every call again. */
  forget(): void {
    const open = [...this.#open.values()];
    this.#open.clear();
    this.#unended.clear();
    this.#jobs.clear();
    this.#ended.clear();
    for (const { pacer } of open) pacer.end();
  }

  /** Called after a turn, when no more events of its calls can arrive. */
  forgetEnded(): void {
    this.#ended.clear();
  }

  /** Adds live output of a running call. */
  output(callId: string, delta: string): void {
    this.#open.get(callId)?.pacer.add(delta);
  }

  /** A permission request overwrites the tool call's card; forgets the sent content so that it is sent again afterwards. */
  resetCard(callId: string, title: string | undefined): void {
    const open = this.#open.get(callId);
    if (open === undefined) return;
    const { content: _, ...rest } = open.sent;
    open.sent = { ...rest, ...(title !== undefined && { title: this.#title(title, rest.kind ?? "other") }) };
  }

  #createCall(part: ToolPart, facts: Presentation, diffs: readonly ToolCallContent[]): ToolCall {
    const call = this.#call(part, facts, diffs);
    const name = limitName(part.tool);
    const terminal = this.#terminal(facts);
    const meta: Record<string, unknown> = { tool_name: name };
    if (terminal) {
      meta["terminal_info"] = { terminal_id: part.callId, cwd: this.#deps.cwd };
      const data = terminalText(terminal.printed ?? "");
      if (data !== "") meta["terminal_output"] = { terminal_id: part.callId, data };
    }
    return { ...call, name, _meta: { ...meta, ...call._meta } };
  }

  #call(part: ToolPart, facts: Presentation, diffs: readonly ToolCallContent[]): ToolCall {
    const { state } = part;
    const { kind } = facts;
    return {
      toolCallId: part.callId,
      title: this.#title(facts.title, kind),
      kind,
      status: facts.hasFailed === true ? "failed" : toWireStatus(state),
      ...(state.input !== undefined && { rawInput: limitInput(state.input) }),
      ...(part.locations && { locations: part.locations }),
      ...this.#endMeta(part, facts),
      content: limitContent(this.#content(part, facts, diffs)),
      ...toRawOutput(state),
    };
  }

  #title(title: string, kind: ToolKind): string {
    return formatTitle(title, kind, this.#deps.client);
  }

  /** Returns the current state of the call. Content of a question remains until there is other content or the call ends. */
  #updatedCall(
    part: ToolPart,
    facts: Presentation,
    sent: ToolCallUpdate,
    diffs: readonly ToolCallContent[],
  ): ToolCallUpdate {
    const call = this.#call(part, facts, diffs);
    const { content, ...rest } = call;
    const showsQuestion = sent.content === undefined && content?.length === 0 && !isFinished(part.state);
    return showsQuestion ? rest : call;
  }

  /** Facts about a call's end that the protocol has no fields for. */
  #endMeta(part: ToolPart, facts: Presentation): { _meta?: Record<string, unknown> } {
    const { callId, state } = part;
    const terminal = this.#terminal(facts);
    const isCancelled = state.status === "error" && state.reason === "cancelled";
    const meta = {
      ...(hasRunningJob(state) && { background: { job: facts.job } }),
      ...(terminal && hasEnded(part) && { terminal_exit: terminalExit(callId, terminal) }),
      ...(this.#deps.client.cancelledCalls && isCancelled && { cancelled: true }),
    };
    return Object.keys(meta).length === 0 ? {} : { _meta: meta };
  }

  #content(
    { callId, state }: ToolPart,
    facts: Presentation,
    diffs: readonly ToolCallContent[],
  ): ToolCallContent[] {
    const terminal: ToolCallContent[] = this.#terminal(facts)
      ? [{ type: "terminal", terminalId: callId }]
      : [];
    if (state.status === "pending" || state.status === "running") return terminal;
    const text = facts.result ? resultContent(facts.result) : [];
    if (state.status === "error") return [...diffs, ...terminal, ...text];
    const images = (state.attachments ?? []).flatMap(imageContent);
    if (facts.result?.type === "report") return [...diffs, ...text, ...images];
    const printed = terminal.length > 0 ? terminal : text;
    if (facts.command !== undefined) return [...printed, ...diffs, ...images];
    return [...(diffs.length > 0 ? diffs : printed), ...images];
  }

  async #loadDiff(change: FileChange): Promise<ToolCallContent> {
    const { path, fromPath, before, after, mode, newMode, operation: kind } = change;
    if (before !== undefined && before === after && newMode !== undefined)
      return textContent(`${path}: mode changed from ${formatMode(mode)} to ${formatMode(newMode)}`);
    const [old, fresh] = [await this.#load(before), await this.#load(after)];
    if (old === undefined || fresh === undefined)
      return textContent(`${path}: +${change.additions} -${change.deletions} (too large to show)`);
    if (isBinary(old) || isBinary(fresh)) return textContent(`${path}: ${describeBinary(old, fresh)}`);
    const [oldText, newText] = [old?.toString("utf8") ?? null, fresh?.toString("utf8") ?? ""];
    return {
      type: "diff",
      path,
      oldText,
      newText,
      ...(kind === "delete" && this.#deps.client.deletedDiffs && { deleted: true }),
      _meta: { kind, ...(fromPath !== undefined && { fromPath }) },
    };
  }

  /** Returns null if there was no file, undefined if its content was not stored. */
  async #load(hash: string | null | undefined): Promise<Buffer | null | undefined> {
    return hash === null || hash === undefined ? hash : this.#deps.loadSnapshot(hash);
  }

  /** Returns the command that the client shows in a terminal. */
  #terminal({ command }: Presentation): CommandFacts | undefined {
    return this.#deps.client.terminalOutput ? command : undefined;
  }

  #pacer(callId: string, facts: Presentation): OutputPacer {
    if (this.#terminal(facts)) {
      return new OutputPacer({ intervalMs: 100, keep: "all" }, (data) =>
        this.#deps.send({
          sessionUpdate: "tool_call_update",
          toolCallId: callId,
          _meta: { terminal_output: { terminal_id: callId, data: terminalText(data) } },
        }),
      );
    }
    return new OutputPacer({ intervalMs: 250, keep: tailLength }, (tail) => {
      const content = [textContent(fenced(tail))];
      const open = this.#open.get(callId);
      if (open !== undefined) open.sent = { ...open.sent, content };
      this.#deps.send({ sessionUpdate: "tool_call_update", toolCallId: callId, content });
    });
  }
}

class OpenCall {
  sent: ToolCallUpdate;
  readonly pacer: OutputPacer;

  constructor(sent: ToolCallUpdate, pacer: OutputPacer) {
    this.sent = sent;
    this.pacer = pacer;
  }
}

/** UTF-16 counts as binary too: clients get UTF-8. */
function isBinary(bytes: Buffer | null): boolean {
  return bytes?.includes(0) === true;
}

function describeBinary(old: Buffer | null, fresh: Buffer | null): string {
  if (old === null) return `binary file created (${fresh?.length ?? 0} bytes)`;
  if (fresh === null) return `binary file deleted (${old.length} bytes)`;
  return `binary file changed (${old.length} to ${fresh.length} bytes)`;
}

function formatMode(mode = 0o644): string {
  return mode.toString(8);
}

/** Whether the card of this call needs files from the disk. */
export function needsDiffs({ state }: ToolPart): boolean {
  return changesOf(state).length > 0;
}

function changesOf(state: ToolPart["state"]): readonly FileChange[] {
  return "changes" in state ? (state.changes ?? []) : [];
}

/** Returns the call as cancelled with this error text. */
export function toCancelledPart(part: ToolPart, error: string): ToolPart {
  return { ...part, state: { status: "error", input: part.state.input, error, reason: "cancelled" } };
}

export function textContent(text: string): ToolCallContent {
  return { type: "content", content: { type: "text", text } };
}

/** Fences printed output, which is not Markdown. */
function resultContent({ type, text }: ResultText): ToolCallContent[] {
  switch (type) {
    case "output":
      return text === "" ? [] : [textContent(fenced(cut(text, cardLength)))];
    case "report":
      return [textContent(cut(text, cardLength))];
    case "message":
      return [textContent(removeControls(text))];
  }
}

function imageContent({ mime, url }: { mime: string; url: string }): ToolCallContent[] {
  const data = /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1];
  if (data === undefined || !mime.startsWith("image/")) return [];
  return [{ type: "content", content: { type: "image", mimeType: mime, data } }];
}

/** Returns the metadata for which the protocol has no field, without values such as false and exit code 0. */
function toRawOutput(state: ToolPart["state"]): Pick<ToolCall, "rawOutput"> {
  if (state.status !== "completed") return {};
  const entries = Object.entries(state.metadata ?? {}).filter(
    ([name, value]) => (value ?? false) !== false && !(name === "exitCode" && value === 0),
  );
  return entries.length === 0 ? {} : { rawOutput: Object.fromEntries(entries) };
}

/** Whether a call and its job have ended. */
const hasEnded = ({ state }: ToolPart): boolean => isFinished(state) && !hasRunningJob(state);

function toWireStatus(state: ToolPart["state"]): "pending" | "in_progress" | "completed" | "failed" {
  if (hasRunningJob(state)) return "in_progress";
  if (state.status === "completed" && state.job?.end?.state === "failed") return "failed";
  const { status } = state;
  switch (status) {
    case "running":
      return "in_progress";
    case "error":
      return "failed";
    case "pending":
    case "completed":
      return status;
  }
}

function terminalExit(callId: string, { exitCode, signal }: CommandFacts): unknown {
  return { terminal_id: callId, exit_code: exitCode, signal };
}

/** Converts line ends to CRLF: a terminal moves to the first column at a carriage return only. */
function terminalText(text: string): string {
  return text.replace(/\r?\n/g, "\r\n");
}

/** Returns the fields of `next` that differ from the last sent state. */
function findChanges(sent: ToolCallUpdate, next: ToolCallUpdate): Partial<ToolCallUpdate> {
  const before = new Map<string, unknown>(Object.entries(sent));
  const entries = Object.entries(next).filter(
    ([key, value]) => key !== "toolCallId" && JSON.stringify(value) !== JSON.stringify(before.get(key)),
  );
  return Object.fromEntries(entries);
}
