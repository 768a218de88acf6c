import type {
  SessionUpdate,
  ToolCall,
  ToolCallContent,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk/unstable";
import { isFinished, type FileChange, type ToolKind, type ToolPart } from "../../message/part.ts";
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
import { Serial, type Backpressure } from "../../base/async.ts";
import { OutputPacer } from "./output-pacer.ts";
import { formatTitle } from "./titles.ts";

/** Characters of live output sent to clients without terminals while a command runs. */
const tailLength = 2_000;
/** Characters of a finished call's output in its card; the model and the stored session get more. */
const cardLength = 60_000;

export interface ToolCallsDeps {
  client: ClientFeatures;
  cwd: string;
  loadSnapshot(hash: string): Promise<Buffer | undefined>;
  send(update: SessionUpdate): Backpressure;
}

/**
 * Sends tool parts as ACP tool calls, live and replayed: one `tool_call`, then only the changed fields, nothing after
 * the terminal status.
 */
export class ToolCalls {
  readonly #deps: ToolCallsDeps;
  readonly #open = new Map<string, OpenCall>();
  /** Newest part of each unfinished call, sent or about to be sent. */
  readonly #unended = new Map<string, ToolPart>();
  readonly #inOrder = new Serial();
  /** Calls that ended in this turn; a replay may send the end before the turn's own event arrives. */
  readonly #ended = new Set<string>();

  constructor(deps: ToolCallsDeps) {
    this.#deps = deps;
  }

  show(part: ToolPart): Promise<void> {
    if (!presentCall(part).hasCard) return Promise.resolve();
    if (isFinished(part.state)) this.#unended.delete(part.callId);
    else if (!this.#ended.has(part.callId)) this.#unended.set(part.callId, part);
    return this.#inOrder.run(() => this.#show(part));
  }

  /** Unfinished calls, oldest first. */
  get unended(): readonly ToolPart[] {
    return [...this.#unended.values()];
  }

  async #show(part: ToolPart): Promise<void> {
    if (this.#ended.has(part.callId)) return;
    const open = this.#open.get(part.callId);
    const finished = isFinished(part.state);
    const facts = presentCall(part);
    if (finished) this.#ended.add(part.callId);
    if (open === undefined) {
      const call = await this.#createCall(part, facts);
      if (!finished) this.#open.set(part.callId, new OpenCall(call, this.#pacer(part.callId, facts)));
      return this.#deps.send({ ...call, sessionUpdate: "tool_call" });
    }
    await open.pacer.end();
    const change = findChanges(open.sent, await this.#updatedCall(part, facts, open.sent));
    if (finished) this.#open.delete(part.callId);
    else open.sent = { ...open.sent, ...change };
    if (finished || Object.keys(change).length > 0) {
      await this.#deps.send({ sessionUpdate: "tool_call_update", toolCallId: part.callId, ...change });
    }
  }

  /** Clears all state before a replay, which sends every call again. */
  forget(): Promise<void> {
    return this.#inOrder.run(async () => {
      const open = [...this.#open.values()];
      this.#open.clear();
      this.#unended.clear();
      this.#ended.clear();
      await Promise.all(open.map(({ pacer }) => pacer.end()));
    });
  }

  /** Called after a turn, when no more events of its calls can arrive. */
  forgetEnded(): void {
    this.#ended.clear();
  }

  /** Adds live output of a running call. */
  async output(callId: string, delta: string): Promise<void> {
    await this.#open.get(callId)?.pacer.add(delta);
  }

  /** A permission request overwrites the tool call's card; forgets the sent content so that it is sent again afterwards. */
  resetCard(callId: string, title: string | undefined): void {
    const open = this.#open.get(callId);
    if (open === undefined) return;
    const { content: _, ...rest } = open.sent;
    open.sent = { ...rest, ...(title !== undefined && { title: this.#title(title, rest.kind ?? "other") }) };
  }

  async #createCall(part: ToolPart, facts: Presentation): Promise<ToolCall> {
    const call = await this.#call(part, facts);
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

  async #call(part: ToolPart, facts: Presentation): Promise<ToolCall> {
    const { state } = part;
    const { kind } = facts;
    return {
      toolCallId: part.callId,
      title: this.#title(facts.title, kind),
      kind,
      status: toWireStatus(state.status),
      ...(state.input !== undefined && { rawInput: limitInput(state.input) }),
      ...(part.locations && { locations: part.locations }),
      ...this.#endMeta(part, facts),
      content: limitContent(await this.#content(part, facts)),
      ...(state.status === "completed" && state.metadata && { rawOutput: state.metadata }),
    };
  }

  #title(title: string, kind: ToolKind): string {
    return formatTitle(title, kind, this.#deps.client);
  }

  /** Returns the current state of the call. Content of a question remains until there is other content or the call ends. */
  async #updatedCall(part: ToolPart, facts: Presentation, sent: ToolCallUpdate): Promise<ToolCallUpdate> {
    const call = await this.#call(part, facts);
    const { content, ...rest } = call;
    const showsQuestion = sent.content === undefined && content?.length === 0 && !isFinished(part.state);
    return showsQuestion ? rest : call;
  }

  /** Facts about a call's end that the protocol has no fields for. */
  #endMeta({ callId, state }: ToolPart, facts: Presentation): { _meta?: Record<string, unknown> } {
    const terminal = this.#terminal(facts);
    const isCancelled = state.status === "error" && state.reason === "cancelled";
    const meta = {
      ...(terminal && isFinished(state) && { terminal_exit: terminalExit(callId, terminal) }),
      ...(this.#deps.client.cancelledCalls && isCancelled && { cancelled: true }),
    };
    return Object.keys(meta).length === 0 ? {} : { _meta: meta };
  }

  async #content({ callId, state }: ToolPart, facts: Presentation): Promise<ToolCallContent[]> {
    const terminal: ToolCallContent[] = this.#terminal(facts)
      ? [{ type: "terminal", terminalId: callId }]
      : [];
    if (state.status === "pending" || state.status === "running") return terminal;
    const diffs = await this.#diffs(state.changes ?? []);
    const text = facts.result ? resultContent(facts.result) : [];
    if (state.status === "error") return [...diffs, ...terminal, ...text];
    const images = (state.attachments ?? []).flatMap(imageContent);
    if (facts.result?.type === "report") return [...diffs, ...text, ...images];
    if (diffs.length > 0) return [...diffs, ...images];
    return [...(terminal.length > 0 ? terminal : text), ...images];
  }

  async #diffs(changes: readonly FileChange[]): Promise<ToolCallContent[]> {
    return Promise.all(changes.map((change) => this.#diff(change)));
  }

  async #diff(change: FileChange): Promise<ToolCallContent> {
    const oldText = await this.#text(change.before);
    const newText = await this.#text(change.after);
    if (oldText === undefined || newText === undefined) {
      return textContent(`${change.path}: +${change.additions} -${change.deletions} (too large to show)`);
    }
    const kind = change.operation;
    return { type: "diff", path: change.path, oldText, newText: newText ?? "", _meta: { kind } };
  }

  /** Returns null if there was no file, undefined if its text was not stored. */
  async #text(hash: string | null | undefined): Promise<string | null | undefined> {
    if (hash === null || hash === undefined) return hash;
    return (await this.#deps.loadSnapshot(hash))?.toString("utf8");
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
    return new OutputPacer({ intervalMs: 250, keep: tailLength }, async (tail) => {
      const content = [textContent(fenced(tail))];
      const open = this.#open.get(callId);
      if (open !== undefined) open.sent = { ...open.sent, content };
      await this.#deps.send({ sessionUpdate: "tool_call_update", toolCallId: callId, content });
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

function toWireStatus(
  status: ToolPart["state"]["status"],
): "pending" | "in_progress" | "completed" | "failed" {
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
