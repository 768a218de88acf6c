import type { SessionUpdate, SubagentUpdate, ToolCallContent } from "@agentclientprotocol/sdk/unstable";
import type { Child, SessionEvent } from "../../message/event.ts";
import type { MessageId, SessionId } from "../../message/ids.ts";
import type { Message } from "../../message/message.ts";
import {
  isFinished,
  type Part,
  type ReasoningPart,
  type TextPart,
  type ToolPart,
} from "../../message/part.ts";
import type { ChildFacts } from "../../tool/presentation.ts";
import type { ClientFeatures } from "../client-capabilities.ts";
import { formatTitle } from "./titles.ts";
import { toCancelledPart, ToolCalls, type ToolCallsDeps } from "./tool-calls.ts";

export interface SubagentsDeps extends Omit<ToolCallsDeps, "send"> {
  client: ClientFeatures;
  /** Sends an update under the session that the client opened. `callId` is the call of that session. */
  send(callId: string, update: SessionUpdate): void;
  /** Sends an update under a child session, for clients that know them. */
  sendFrom(callId: string, child: SessionId, update: SessionUpdate): void;
  /** As {@link sendFrom}, for text of the child's model. */
  sendText(
    callId: string,
    child: SessionId,
    text: Pick<TextPart | ReasoningPart, "type" | "id" | "text">,
  ): void;
  /** Messages of a child session, oldest first. */
  history(child: SessionId): AsyncIterable<Message>;
  /** Resolves when the client can receive more. */
  waitUntilReady(): Promise<void>;
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

  /** Shows an event of a child session. `diffs` belong to a finished call in the event. */
  receive(callId: string, child: Child, event: SessionEvent, diffs: readonly ToolCallContent[]): void {
    this.#receive(callId, { callId, child, event }, diffs);
  }

  /** `rootId` is the call of the session that the client opened. */
  #receive(rootId: string, { callId, child, event }: ChildEvent, diffs: readonly ToolCallContent[]): void {
    if (event.type === "child") return this.#receive(rootId, event, diffs);
    this.#task(rootId, callId, child).receive(event, diffs);
  }

  /** Sends a child's call before the client receives a question about it. */
  announce(callId: string): void {
    for (const task of this.#tasks.values()) task.announce(callId);
  }

  /** Resends a call's content after a question with this title. */
  resetCard(callId: string, title: string | undefined): void {
    for (const task of this.#tasks.values()) task.resetCard(callId, title);
  }

  /** Called when the task's call has ended; later work of the child is not shown. */
  end(callId: string): void {
    const task = this.#tasks.get(callId);
    this.#tasks.delete(callId);
    task?.end();
  }

  /** Replays a finished task as it was shown live. */
  async replay({ callId, title }: ToolPart, { sessionId: id, agent }: ChildFacts): Promise<void> {
    const task = this.#task(callId, callId, { id, agent, title: title ?? agent });
    for await (const message of this.#deps.history(id)) await task.replay(message);
    this.end(callId);
  }

  /** Whether the client sees this call of a child. */
  shows(callId: string): boolean {
    return [...this.#tasks.values()].some((task) => task.shows(callId));
  }

  forget(): void {
    this.#tasks.clear();
  }

  #task(rootId: string, callId: string, child: Child): ChildSessionView {
    const known = this.#tasks.get(callId);
    if (known !== undefined) return known;
    const task = new ChildSessionView(this.#deps, { rootId, callId }, child);
    this.#tasks.set(callId, task);
    task.begin();
    return task;
  }
}

type ChildEvent = Pick<SessionEvent & { type: "child" }, "callId" | "child" | "event">;

/** Shows one child session to the client. */
class ChildSessionView {
  readonly #deps: SubagentsDeps;
  readonly #rootId: string;
  readonly #child: Child;
  readonly #calls: ToolCalls;
  /** Newest part of each unfinished call. */
  readonly #open = new Map<string, ToolPart>();
  readonly #shown = new Set<string>();
  /** User messages of the child: its prompt, which the task's card shows. */
  readonly #promptIds = new Set<MessageId>();
  #hasEnded = false;

  constructor(deps: SubagentsDeps, { rootId, callId }: { rootId: string; callId: string }, child: Child) {
    this.#deps = deps;
    this.#rootId = rootId;
    this.#child = child;
    this.#calls = new ToolCalls({
      client: deps.client,
      cwd: deps.cwd,
      loadSnapshot: (hash) => deps.loadSnapshot(hash),
      send: (update) =>
        this.#isOwnSession
          ? deps.sendFrom(rootId, child.id, update)
          : deps.send(rootId, addParentCall(callId, update)),
    });
  }

  get #isOwnSession(): boolean {
    return this.#deps.client.childWork === "sessions";
  }

  begin(): void {
    if (!this.#isOwnSession) return;
    const { id: sessionId, title, agent } = this.#child;
    this.#sendState({
      sessionId,
      title: formatTitle(title, "think", this.#deps.client),
      description: agent,
      capabilities: { cancel: {} },
      state: { state: "running" },
    });
  }

  receive(event: SessionEvent, diffs: readonly ToolCallContent[]): void {
    if (this.#hasEnded) return;
    if (event.type === "message" && event.info.role === "user") this.#promptIds.add(event.info.id);
    if (event.type === "part" && event.part.type === "tool") this.#call(event.part, diffs);
    else if (event.type === "part" && event.isNew === true && !this.#promptIds.has(event.messageId))
      this.#text(event.part);
    if (event.type === "delta" && this.#isOwnSession) {
      const { kind: type, partId: id, delta: text } = event;
      this.#deps.sendText(this.#rootId, this.#child.id, { type, id, text });
    }
    if ((event.type === "tool-output" || event.type === "job-output") && this.#shown.has(event.callId))
      this.#calls.output(event.callId, event.delta);
    if (event.type === "job-ended" && this.shows(event.part.callId)) this.#show(event.part, diffs);
  }

  shows(callId: string): boolean {
    return this.#isShownAlways || this.#shown.has(callId);
  }

  announce(callId: string): void {
    const part = this.#open.get(callId);
    if (part === undefined || this.#shown.has(callId)) return;
    this.#show(part);
  }

  resetCard(callId: string, title: string | undefined): void {
    this.#calls.resetCard(callId, title);
  }

  end(): void {
    this.#hasEnded = true;
    for (const part of this.#open.values())
      if (this.#shown.has(part.callId)) this.#calls.show(toCancelledPart(part, taskEnded));
    if (this.#isOwnSession) this.#sendState({ sessionId: this.#child.id, state: { state: "idle" } });
  }

  async replay({ info, parts }: Message): Promise<void> {
    for (const part of parts) {
      if (part.type === "tool" && (this.#isShownAlways || part.decision?.by === "person"))
        this.#show(part, await this.#calls.loadDiffs(part));
      if (info.role === "assistant") this.#text(part);
    }
    await this.#deps.waitUntilReady();
  }

  get #isShownAlways(): boolean {
    return this.#deps.client.childWork !== "card";
  }

  #call(part: ToolPart, diffs: readonly ToolCallContent[]): void {
    if (isFinished(part.state)) this.#open.delete(part.callId);
    else this.#open.set(part.callId, part);
    if (this.shows(part.callId)) this.#show(part, diffs);
  }

  #show(part: ToolPart, diffs: readonly ToolCallContent[] = []): void {
    this.#shown.add(part.callId);
    this.#calls.show(
      this.#isShownAlways ? part : { ...part, title: `@${this.#child.agent}: ${part.title ?? part.tool}` },
      diffs,
    );
  }

  #text(part: Part): void {
    if ((part.type !== "text" && part.type !== "reasoning") || "synthetic" in part) return;
    if (this.#isOwnSession && part.text.trim() !== "")
      this.#deps.sendText(this.#rootId, this.#child.id, part);
  }

  /** Sends an unstable update, for clients that announced child sessions. */
  #sendState(update: SubagentUpdate): void {
    this.#deps.send(this.#rootId, { sessionUpdate: "subagent_update", ...update });
  }
}

const taskEnded = "The task ended before this call did.";

/** Sets the id of the parent call, which clients with nested calls read. */
function addParentCall(callId: string, update: SessionUpdate): SessionUpdate {
  const meta = { ...update._meta, claudeCode: { parentToolUseId: callId } };
  return { ...update, _meta: meta };
}
