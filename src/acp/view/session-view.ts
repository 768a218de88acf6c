import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { deferred, type Backpressure } from "../../base/async.ts";
import { removeControls } from "../../base/text/controls.ts";
import type { Log } from "../../base/log.ts";
import type { SessionEvent } from "../../message/event.ts";
import { type MessageId, newPartId, type PartId, type SessionId } from "../../message/ids.ts";
import type { Message, MessageInfo } from "../../message/message.ts";
import { isFinished, type Part, type ToolPart } from "../../message/part.ts";
import type { Session } from "../../session/session.ts";
import { presentCall } from "../../tool/presentation.ts";
import type { ClientFeatures } from "../client-capabilities.ts";
import type { ClientPaths } from "../client-paths.ts";
import { Compactions } from "./compactions.ts";
import { createClientOptions } from "./config-options.ts";
import { toUserUpdates } from "./content.ts";
import { UpdateQueue } from "./update-queue.ts";
import { createPlanUpdates } from "./plan-documents.ts";
import { StreamedText } from "./streamed-text.ts";
import { Subagents } from "./subagents.ts";
import { toCancelledPart, ToolCalls } from "./tool-calls.ts";
import { listCommands, planUpdate, retryUpdate, textChunk, titleUpdate, usageUpdate } from "./updates.ts";

/** Sends one session's updates in the client's protocol version. */
export interface Channel {
  /** `under` is the id of the session or of one of its child sessions. */
  send(update: SessionUpdate, under: SessionId): Backpressure;
  /** Called before the conversation is replayed from its beginning. */
  beginReplay(): void;
  /** Called when a user message was stored; a steering message belongs to a running turn. */
  userMessage(id: MessageId, isSteering: boolean): void;
}

/**
 * One session as the client sees it. Converts session events to protocol updates; live events and stored messages
 * use the same conversion.
 */
export class SessionView {
  readonly session: Session;
  readonly updates = new UpdateQueue();
  /** Maps real paths to the paths that the client uses. */
  paths: ClientPaths;
  readonly #channel: Channel;
  readonly #client: ClientFeatures;
  readonly #calls: ToolCalls;
  readonly #subagents: Subagents;
  readonly #compactions: Compactions;
  /** Text parts of the running turn. */
  readonly #streamed = new StreamedText();
  /** Notices that wait for the next turn, for clients that cannot show them outside of turns. */
  readonly #pendingNotices = new Set<string>();
  /** Unanswered turns, in the order of their messages. The first one is running. */
  readonly #turns = new Set<symbol>();
  #replaying = false;
  /** Events of the turn that arrived during a replay; sent after it. */
  #eventsDuringReplay: SessionEvent[] | undefined;
  #replayed: Promise<void> = Promise.resolve();

  constructor(deps: {
    session: Session;
    paths: ClientPaths;
    channel: Channel;
    client: ClientFeatures;
    log: Log;
    /** Messages of a child session, oldest first. */
    history(child: SessionId): AsyncIterable<Message>;
  }) {
    this.session = deps.session;
    this.paths = deps.paths;
    this.#channel = deps.channel;
    this.#client = deps.client;
    const { workspace } = deps.session.project;
    const shown = {
      client: deps.client,
      cwd: workspace.cwd,
      loadSnapshot: (hash: string) => workspace.snapshots.load(hash),
      send: (update: SessionUpdate) => this.#sendTurnUpdate(update),
    };
    this.#compactions = new Compactions({ ...shown, log: deps.log });
    this.#calls = new ToolCalls(shown);
    this.#subagents = new Subagents({
      ...shown,
      sendFrom: (child, update) => this.#sendTurnUpdate(update, child),
      history: (child) => deps.history(child),
    });
  }

  /** Holds back all updates after a cancelled turn, unless the next turn is already waiting. */
  endCancelled(): void {
    if (this.#turns.size === 0) this.updates.hold();
  }

  /** Runs a turn. Updates of a turn are dropped when no turn runs, even if its work continues in the background. */
  async runTurn<T>(turn: () => Promise<T>): Promise<T> {
    const id = Symbol("turn");
    this.#turns.add(id);
    const noticesSent = this.sendPendingNotices();
    try {
      return await turn();
    } finally {
      // Collect the open items before waiting: the next turn may start new ones. A turn that never ran has none.
      const [running] = this.#turns;
      const openItems = running === id ? this.#openItems : noItems;
      await noticesSent;
      await this.#whenReplayed();
      await this.#endItems(openItems);
      await this.updates.releaseTurnUpdates();
      this.#turns.delete(id);
      if (this.#turns.size === 0) this.#forgetTurn();
    }
  }

  /** Ends the open calls and compactions of the running turn; used when the process must exit. */
  async abortTurn(): Promise<void> {
    await this.#endItems(this.#openItems);
    await this.updates.releaseTurnUpdates();
  }

  /** Calls and compactions that the client has seen begin but not end. */
  get #openItems(): OpenItems {
    return { calls: this.#calls.unended, compactions: this.#compactions.open };
  }

  async #endItems({ calls, compactions }: OpenItems): Promise<void> {
    for (const part of calls) await this.#call(toCancelledPart(part, turnEnded));
    await this.#compactions.cancel(compactions);
  }

  receive(event: SessionEvent): Backpressure {
    if (this.#eventsDuringReplay === undefined || !turnEvents.has(event.type)) return this.#show(event);
    this.#eventsDuringReplay.push(event);
    return undefined;
  }

  #show(event: SessionEvent): Backpressure {
    switch (event.type) {
      case "message":
        return this.#message(event.info);
      case "part":
        return this.#part(event.part, this.session.transcript.find(event.messageId)?.info);
      case "delta":
        return this.#sendText(event.kind, event.partId, this.#streamed.add(event.partId, event.delta));
      case "summary":
        return this.#compactions.add(event.messageId, event.delta);
      case "tool-output":
        return this.#calls.output(event.callId, event.delta);
      case "todos":
        return this.#sendTurnUpdate(planUpdate(event.todos));
      case "child":
        return this.#subagents.receive(event.callId, event.child, event.event);
      case "usage":
        return this.sendUsage();
      case "title":
        return this.#send(titleUpdate(event.title, event.updatedAt));
      case "agent":
        return this.#agent(event.agent);
      case "model":
      case "approval":
      case "options":
        return this.#sendOptions();
      case "commands":
        return this.sendCommands();
      case "notice":
        return this.notice(event.severity, event.text);
    }
  }

  async #agent(name: string): Promise<void> {
    await this.#send({ sessionUpdate: "current_mode_update", currentModeId: name });
    await this.#sendOptions();
  }

  /** Sends the tool call before the client receives a question about it. `title` is the question's title. */
  async announce(callId: string, title?: string): Promise<void> {
    await this.#whenReplayed();
    await this.#subagents.announce(callId);
    await this.updates.releaseTurnUpdates();
    this.#calls.resetCard(callId, title);
    this.#subagents.resetCard(callId, title);
  }

  /** Resolves when no replay is running; loops because a new replay may start when one ends. */
  async #whenReplayed(): Promise<void> {
    for (let last: Promise<void> | undefined; last !== this.#replayed; await last) last = this.#replayed;
  }

  /** Replays the conversation, each call in its final state, then sends the events that a running turn emitted meanwhile. */
  async replay(messages: AsyncIterable<Message>, signal: AbortSignal): Promise<void> {
    const done = deferred<void>();
    this.#replayed = done.promise;
    this.#eventsDuringReplay = [];
    try {
      await this.#replay(messages, signal);
    } finally {
      // Another request may have paused the queue meanwhile, but a replay is sent before the response and later updates.
      this.updates.release();
      await this.#catchUp();
      done.resolve();
    }
    if (this.session.todos.length > 0) await this.#send(planUpdate(this.session.todos));
  }

  async #replay(messages: AsyncIterable<Message>, signal: AbortSignal): Promise<void> {
    this.#replaying = true;
    this.#channel.beginReplay();
    await this.#calls.forget();
    this.#subagents.forget();
    this.#compactions.forget();
    this.#streamed.clear();
    try {
      for await (const message of messages) {
        signal.throwIfAborted();
        await this.#replayMessage(message);
      }
      const { open } = this.#compactions;
      // The newest compaction may still be running in the current turn.
      await this.#compactions.cancel(this.#turns.size > 0 ? open.slice(0, -1) : open);
      await this.#compactions.showUnended();
    } finally {
      this.#replaying = false;
    }
  }

  async #catchUp(): Promise<void> {
    const events = this.#eventsDuringReplay ?? [];
    while (events.length > 0) for (const event of events.splice(0)) await this.#showAfterReplay(event);
    this.#eventsDuringReplay = undefined;
    if (this.#turns.size === 0) this.#forgetTurn();
  }

  /** Sends the current state of a part, because the replay may already have sent this event or later ones. */
  async #showAfterReplay(event: SessionEvent): Promise<void> {
    if (event.type !== "part" && event.type !== "delta") return this.#show(event);
    const id = event.type === "part" ? event.part.id : event.partId;
    const message = this.session.transcript.find(event.messageId);
    const part = message?.parts.find((known) => known.id === id);
    if (part !== undefined) await this.#part(part, message?.info);
  }

  /** Sends title and usage to a client that just opened the session. */
  async sendSessionInfo(): Promise<void> {
    await this.sendUsage();
    const { title, time } = this.session.info;
    if (title !== undefined) await this.#send(titleUpdate(title, time.updated));
  }

  async sendCommands(): Promise<void> {
    const availableCommands = listCommands(this.session);
    await this.#send({ sessionUpdate: "available_commands_update", availableCommands });
  }

  async sendUsage(): Promise<void> {
    const { usage } = this.session;
    if (usage?.size !== undefined) await this.#send(usageUpdate(usage.used, usage.size, usage.cost));
  }

  /** Sends a notice. Clients without notices get a thought, sent with the next turn if none is running. */
  async notice(severity: "info" | "warning" | "error", text: string): Promise<void> {
    if (this.#client.notices) return this.#send({ sessionUpdate: "notice", severity, title: text });
    this.#pendingNotices.add(removeControls(text));
    if (this.#turns.size > 0) await this.sendPendingNotices();
  }

  async sendPendingNotices(): Promise<void> {
    const texts = [...this.#pendingNotices];
    this.#pendingNotices.clear();
    const pending = texts.map((text) => this.#send(textChunk("reasoning", newPartId(), `${text}\n\n`)));
    for (const backpressure of pending) await backpressure;
  }

  async #replayMessage(message: Message): Promise<void> {
    if (message.info.role === "user") {
      for (const update of toUserUpdates(message)) await this.#send(update);
    }
    for (const part of message.parts) await this.#part(part, message.info);
    await this.#message(message.info, message.parts);
  }

  async #message(info: MessageInfo, replayed?: readonly Part[]): Promise<void> {
    if (info.role === "user" && !this.#replaying) this.#channel.userMessage(info.id, info.steering === true);
    if (info.role !== "assistant" || info.summary !== true || info.time.completed === undefined) return;
    const parts = replayed ?? this.session.transcript.find(info.id)?.parts ?? [];
    await this.#compactions.end(info.parentId, info.error, plainText(parts));
  }

  async #part(part: Part, info: MessageInfo | undefined): Promise<void> {
    if (part.type === "compaction" && info !== undefined) return this.#compaction(info.id);
    if (info?.role === "user" || info?.summary === true) return;
    if (part.type === "tool") return this.#call(part);
    if (part.type === "text" || part.type === "reasoning") return this.#text(part);
    if (part.type === "retry") return this.#sendTurnUpdate(retryUpdate(part));
  }

  async #compaction(id: string): Promise<void> {
    if (this.#replaying) this.#compactions.beginReplayed(id);
    else await this.#compactions.begin(id);
  }

  /** Ends a task's child view before the task's call ends; in a replay the child's work follows the finished call. */
  async #call(part: ToolPart): Promise<void> {
    if (this.#turns.size === 0 && !this.#replaying) return;
    if (isFinished(part.state) && !this.#replaying) await this.#subagents.end(part.callId);
    await this.#calls.show(part);
    const { child } = presentCall(part);
    if (isFinished(part.state) && child && this.#replaying) await this.#subagents.replay(part, child);
    if (!this.#client.planDocuments) return;
    for (const update of createPlanUpdates(part, this.session.project.workspace.cwd))
      await this.#send(update);
  }

  async #text(part: Part & { type: "text" | "reasoning" }): Promise<void> {
    if (part.type === "text" && part.synthetic === true) return;
    const streamed = this.#turns.size > 0 ? this.#streamed : new StreamedText();
    await this.#sendText(part.type, part.id, streamed.complete(part.id, part.text));
  }

  #sendText(kind: "text" | "reasoning", partId: PartId, text: string): Backpressure {
    return text === "" ? undefined : this.#sendTurnUpdate(textChunk(kind, partId, text));
  }

  async #sendOptions(): Promise<void> {
    await this.#send({
      sessionUpdate: "config_option_update",
      configOptions: createClientOptions(this.session, this.#client),
    });
  }

  #forgetTurn(): void {
    this.#streamed.clear();
    this.#calls.forgetEnded();
  }

  #sendTurnUpdate(update: SessionUpdate, under: SessionId = this.session.id): Backpressure {
    if (this.#turns.size === 0 && !this.#replaying) return undefined;
    return this.updates.sendWhenReleased(
      () => this.#channel.send(this.paths.mapUpdate(update), under),
      this.#isLive,
    );
  }

  /** False during a replay, so that replayed updates keep their order even if a turn ends meanwhile. */
  get #isLive(): boolean {
    return this.#turns.size > 0 && !this.#replaying;
  }

  #send(update: SessionUpdate): Backpressure {
    return this.updates.sendWhenReleased(() =>
      this.#channel.send(this.paths.mapUpdate(update), this.session.id),
    );
  }
}

interface OpenItems {
  readonly calls: readonly ToolPart[];
  /** Ids of the open compactions. */
  readonly compactions: readonly string[];
}

const turnEnded = "The turn ended before it was known how this call did.";

const noItems: OpenItems = { calls: [], compactions: [] };

/** Event types that belong to a turn. */
const turnEvents: ReadonlySet<SessionEvent["type"]> = new Set([
  "message",
  "part",
  "delta",
  "summary",
  "todos",
  "tool-output",
  "child",
]);

function plainText(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
}
