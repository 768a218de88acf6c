import type { SessionUpdate, SubagentUpdate } from "@agentclientprotocol/sdk/unstable";
import type { Backpressure } from "../../base/async.ts";
import type { Child, SessionEvent } from "../../message/event.ts";
import type { MessageId, SessionId } from "../../message/ids.ts";
import type { Message } from "../../message/message.ts";
import { isFinished, type Part, type ToolPart } from "../../message/part.ts";
import type { ChildFacts } from "../../tool/presentation.ts";
import type { ClientFeatures } from "../client-capabilities.ts";
import { StreamedText } from "./streamed-text.ts";
import { formatTitle } from "./titles.ts";
import { toCancelledPart, ToolCalls, type ToolCallsDeps } from "./tool-calls.ts";
import { textChunk } from "./updates.ts";

export interface SubagentsDeps extends Omit<ToolCallsDeps, "send"> {
  client: ClientFeatures;
  /** Sends an update under the session that the client opened. */
  send(update: SessionUpdate): Backpressure;
  /** Sends an update under a child session, for clients that know them. */
  sendFrom(child: SessionId, update: SessionUpdate): Backpressure;
  /** Messages of a child session, oldest first. */
  history(child: SessionId): AsyncIterable<Message>;
}

/**
 * Shows the work of tasks in their child sessions. Each client sees one line per step on the task's card, written by
 * the engine. In addition:
 * - clients with child sessions get updates of the child session;
 * - clients with nested calls get the child's calls in the parent session;
 * - other clients get only the calls that the user was asked about.
 */
export class Subagents {
  readonly #deps: SubagentsDeps;
  readonly #tasks = new Map<string, ChildSessionView>();

  constructor(deps: SubagentsDeps) {
    this.#deps = deps;
  }

  async receive(callId: string, child: Child, event: SessionEvent): Promise<void> {
    if (event.type === "child") return this.receive(event.callId, event.child, event.event);
    await (await this.#task(callId, child)).receive(event);
  }

  /** Sends a child's call before the client receives a question about it. */
  async announce(callId: string): Promise<void> {
    for (const task of this.#tasks.values()) await task.announce(callId);
  }

  /** Resends a call's content after a question with this title. */
  resetCard(callId: string, title: string | undefined): void {
    for (const task of this.#tasks.values()) task.resetCard(callId, title);
  }

  /** Called when the task's call has ended; later work of the child is not shown. */
  async end(callId: string): Promise<void> {
    const task = this.#tasks.get(callId);
    this.#tasks.delete(callId);
    await task?.end();
  }

  /** Replays a finished task like it was shown live. */
  async replay({ callId, title }: ToolPart, { sessionId: id, agent }: ChildFacts): Promise<void> {
    const task = await this.#task(callId, { id, agent, title: title ?? agent });
    for await (const message of this.#deps.history(id)) await task.replay(message);
    await this.end(callId);
  }

  forget(): void {
    this.#tasks.clear();
  }

  async #task(callId: string, child: Child): Promise<ChildSessionView> {
    const known = this.#tasks.get(callId);
    if (known !== undefined) return known;
    const task = new ChildSessionView(this.#deps, callId, child);
    this.#tasks.set(callId, task);
    await task.begin();
    return task;
  }
}

/** Shows one child session to the client. */
class ChildSessionView {
  readonly #deps: SubagentsDeps;
  readonly #child: Child;
  readonly #calls: ToolCalls;
  /** Newest part of each unfinished call. */
  readonly #open = new Map<string, ToolPart>();
  readonly #shown = new Set<string>();
  readonly #streamed = new StreamedText();
  /** User messages of the child: its prompt, which the task's card shows. */
  readonly #promptIds = new Set<MessageId>();
  #hasEnded = false;

  constructor(deps: SubagentsDeps, callId: string, child: Child) {
    this.#deps = deps;
    this.#child = child;
    this.#calls = new ToolCalls({
      ...deps,
      send: (update) =>
        this.#isOwnSession ? deps.sendFrom(child.id, update) : deps.send(addParentCall(callId, update)),
    });
  }

  get #isOwnSession(): boolean {
    return this.#deps.client.childWork === "sessions";
  }

  async begin(): Promise<void> {
    if (!this.#isOwnSession) return;
    const { id: sessionId, title, agent } = this.#child;
    await this.#sendState({
      sessionId,
      title: formatTitle(title, "think", this.#deps.client),
      description: agent,
      capabilities: { cancel: {} },
      state: { state: "running" },
    });
  }

  async receive(event: SessionEvent): Promise<void> {
    if (this.#hasEnded) return;
    if (event.type === "message" && event.info.role === "user") this.#promptIds.add(event.info.id);
    if (event.type === "part" && !this.#promptIds.has(event.messageId)) await this.#part(event.part);
    if (event.type === "delta") await this.#delta(event.kind, event.partId, event.delta);
    if (event.type === "tool-output" && this.#shown.has(event.callId))
      await this.#calls.output(event.callId, event.delta);
  }

  async announce(callId: string): Promise<void> {
    const part = this.#open.get(callId);
    if (part === undefined || this.#shown.has(callId)) return;
    await this.#show(part);
  }

  resetCard(callId: string, title: string | undefined): void {
    this.#calls.resetCard(callId, title);
  }

  async end(): Promise<void> {
    this.#hasEnded = true;
    for (const part of this.#open.values())
      if (this.#shown.has(part.callId)) await this.#calls.show(toCancelledPart(part, taskEnded));
    if (this.#isOwnSession) await this.#sendState({ sessionId: this.#child.id, state: { state: "idle" } });
  }

  async replay({ info, parts }: Message): Promise<void> {
    for (const part of parts) {
      if (part.type === "tool" && (this.#isShownAlways || part.decision?.by === "person"))
        await this.#show(part);
      if (info.role === "assistant" && (part.type === "text" || part.type === "reasoning"))
        await this.#text(part);
    }
  }

  get #isShownAlways(): boolean {
    return this.#deps.client.childWork !== "card";
  }

  async #part(part: Part): Promise<void> {
    if (part.type === "tool") await this.#call(part);
    if (part.type === "text" || part.type === "reasoning") await this.#text(part);
  }

  async #call(part: ToolPart): Promise<void> {
    if (isFinished(part.state)) this.#open.delete(part.callId);
    else this.#open.set(part.callId, part);
    if (this.#isShownAlways || this.#shown.has(part.callId)) await this.#show(part);
  }

  async #show(part: ToolPart): Promise<void> {
    this.#shown.add(part.callId);
    await this.#calls.show(
      this.#isShownAlways ? part : { ...part, title: `@${this.#child.agent}: ${part.title ?? part.tool}` },
    );
  }

  async #delta(kind: "text" | "reasoning", partId: string, delta: string): Promise<void> {
    if (this.#isOwnSession) await this.#sendText(kind, partId, this.#streamed.add(partId, delta));
  }

  async #text(part: Part & { type: "text" | "reasoning" }): Promise<void> {
    if (!this.#isOwnSession || "synthetic" in part) return;
    await this.#sendText(part.type, part.id, this.#streamed.complete(part.id, part.text));
  }

  async #sendText(kind: "text" | "reasoning", partId: string, text: string): Promise<void> {
    if (text !== "") await this.#deps.sendFrom(this.#child.id, textChunk(kind, partId, text));
  }

  /** Sends an unstable update, for clients that announced child sessions. */
  async #sendState(update: SubagentUpdate): Promise<void> {
    await this.#deps.send({ sessionUpdate: "subagent_update", ...update });
  }
}

const taskEnded = "The task ended before this call did.";

/** Sets the id of the parent call, which clients with nested calls read. */
function addParentCall(callId: string, update: SessionUpdate): SessionUpdate {
  const meta = { ...update._meta, claudeCode: { parentToolUseId: callId } };
  return { ...update, _meta: meta };
}
