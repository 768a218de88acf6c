import type { SessionUpdate, ToolCallContent } from "@agentclientprotocol/sdk/unstable";
import { Serial } from "../../base/async.ts";
import { errorFields } from "../../base/error-fields.ts";
import { removeControls } from "../../base/text/controls.ts";
import type { Log } from "../../base/log.ts";
import { describeFailure } from "../../conversation/turn-result.ts";
import { compactionOf } from "../../conversation/visible-messages.ts";
import type { SessionEvent } from "../../message/event.ts";
import { type MessageId, newPartId, type PartId, type SessionId } from "../../message/ids.ts";
import { clientIdOf, type Message, type MessageInfo } from "../../message/message.ts";
import {
  type CallDecision,
  hasRunningJob,
  isFinished,
  type Part,
  type ReasoningPart,
  type TextPart,
  type ToolPart,
} from "../../message/part.ts";
import type { Session } from "../../session/session.ts";
import type { SessionViewer } from "../../session-state/session-events.ts";
import { presentCall } from "../../tool/presentation.ts";
import { toChangesCall } from "../../undo/changes-call.ts";
import type { ClientFeatures } from "../client-capabilities.ts";
import type { ClientPaths } from "../client-paths.ts";
import { createClientOptions } from "./config-options.ts";
import { toUserUpdates } from "./content.ts";
import { createPlanUpdates } from "./plan-documents.ts";
import { Compactions, Retries } from "./program-cards.ts";
import { Subagents } from "./subagents.ts";
import { needsDiffs, toCancelledPart, ToolCalls } from "./tool-calls.ts";
import { evidenceUpdate, listCommands, planUpdate, titleUpdate, usageUpdate } from "./updates.ts";
import { type UpdateKind, ViewState } from "./view-state.ts";

/** Sends one session's updates in the client's protocol version. */
export interface Channel {
  /** `sessionId` is the id of the session or of one of its child sessions. */
  update(sessionId: SessionId, update: SessionUpdate): void;
  /** Called before the conversation is replayed from its beginning. */
  beginReplay?(): void;
  /** Called when a user message was stored; a steering message belongs to a running turn. */
  userMessage?(id: MessageId, isSteering: boolean): void;
  /** Called when a job was announced, and after its end was sent. */
  backgroundChanged?(): void;
}

/** A call whose job runs. */
export interface BackgroundCall {
  readonly callId: string;
  /** Whether the client shows it as a terminal. */
  readonly isTerminal: boolean;
}

/**
 * One session as the client sees it. Converts session events to protocol updates; live events and stored messages
 * use the same conversion. Updates are sent in the order of their events: an event whose card needs files from the disk
 * makes later ones wait.
 */
export class SessionView implements SessionViewer {
  readonly session: Session;
  readonly state = new ViewState();
  /** Resolves when the client can receive more. */
  readonly waitUntilReady: () => Promise<void>;
  /** Maps real paths to the paths that the client uses. */
  paths: ClientPaths;
  readonly #channel: Channel;
  readonly #client: ClientFeatures;
  readonly #calls: ToolCalls;
  readonly #subagents: Subagents;
  readonly #compactions: Compactions;
  readonly #retries: Retries;
  /** Length of the text that was sent, for each part of the running replay. */
  readonly #replayed = new Map<PartId, number>();
  /** Calls whose jobs run. */
  readonly #background = new Set<string>();
  /** Notices that wait for the next turn, for clients that cannot show them outside of turns. */
  readonly #pendingNotices = new Set<string>();
  /** Tasks that wait for the disk, and what must be shown after them. */
  readonly #tasks = new Serial();
  readonly #log: Log;
  /** Events of the turn during a replay; shown after it. */
  readonly #afterReplay: (() => void | Promise<void>)[] = [];

  constructor(deps: {
    session: Session;
    paths: ClientPaths;
    channel: Channel;
    client: ClientFeatures;
    log: Log;
    /** Messages of a child session, oldest first. */
    history(child: SessionId): AsyncIterable<Message>;
    waitUntilReady(): Promise<void>;
  }) {
    this.session = deps.session;
    this.paths = deps.paths;
    this.#channel = deps.channel;
    this.#client = deps.client;
    this.waitUntilReady = () => deps.waitUntilReady();
    this.#log = deps.log;
    const { workspace } = deps.session.project;
    const { client, log } = deps;
    const { cwd } = workspace;
    const loadSnapshot = (hash: string) => workspace.snapshots.load(hash);
    const send = (update: SessionUpdate) => this.#sendTurnUpdate(update);
    this.#compactions = new Compactions({ client, log, send });
    this.#retries = new Retries(client, send);
    this.#calls = new ToolCalls({
      client,
      cwd,
      loadSnapshot,
      send: (update) => this.#sendCallUpdate(update),
    });
    this.#subagents = new Subagents({
      client,
      cwd,
      loadSnapshot,
      send: (callId, update) => this.#sendOfCall(callId, update),
      sendFrom: (callId, child, update) => this.#sendOfCall(callId, update, child),
      sendText: (callId, child, { type, id, text }) =>
        this.#sendOfCall(callId, textChunk(type, id, text), child),
      history: (child) => deps.history(child),
      waitUntilReady: this.waitUntilReady,
    });
  }

  /** Holds back all updates after a cancelled turn, unless the next turn is already waiting. */
  endCancelled(): void {
    if (!this.state.hasTurn) this.state.pause();
  }

  /** Runs a turn. Updates of a turn are dropped when no turn runs, even if its work continues in the background. */
  async runTurn<T>(turn: () => Promise<T>): Promise<T> {
    const token = this.state.beginTurn();
    this.sendPendingNotices();
    try {
      return await turn();
    } finally {
      // A turn that never ran has no open items.
      if (this.state.isRunning(token)) await this.#runInOrder(() => this.#endItems());
      else await this.#runInOrder(() => {});
      this.state.releaseTurn();
      this.state.endTurn(token);
      if (!this.state.hasTurn) this.#calls.forgetEnded();
    }
  }

  /** Ends the open calls and compactions of the running turn; used when the process must exit. */
  async abortTurn(): Promise<void> {
    await this.#runInOrder(() => this.#endItems());
    this.state.releaseTurn();
  }

  /** Ends the calls and compactions that the client has seen begin but not end. */
  #endItems(): void {
    for (const part of this.#calls.unended) this.#call(toCancelledPart(part, turnEnded), noDiffs);
    this.#compactions.cancel(this.#compactions.open);
    this.#retries.end();
  }

  /** Runs a task after all earlier events were shown, and after a running replay. */
  #runInOrder(task: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const run = () => {
        try {
          resolve(task());
        } catch (error) {
          reject(error);
        }
      };
      if (this.state.isReplaying) this.#afterReplay.push(run);
      else if (this.#tasks.isIdle) run();
      else this.#enqueue(async () => run());
    });
  }

  /** A failed task is logged. */
  #enqueue(task: () => Promise<void>): void {
    this.#tasks.run(task).catch((error) => this.#log.error("update failed", errorFields(error)));
  }

  /** Calls whose jobs run, as the client knows them. */
  get background(): readonly BackgroundCall[] {
    return this.#calls.jobs.map((part) => ({
      callId: part.callId,
      isTerminal: this.#client.terminalOutput && presentCall(part).command !== undefined,
    }));
  }

  receive(event: SessionEvent): void {
    const isOfJob = this.#isOfJob(event);
    const isOfTurn = turnEvents.has(event.type) && !isOfJob;
    const treatment = this.state.treatmentOf(isOfTurn ? "turn" : isOfJob ? "background" : "session");
    if (treatment === "drop") return;
    // Output of background work would fill the memory while a client makes no request. The final update
    // contains it.
    if (treatment === "hold" && isBackgroundOutput(event)) return;
    if (this.state.isReplaying && isOfTurn) {
      this.#afterReplay.push(() => this.#showAfterReplay(event));
      return;
    }
    if (this.#tasks.isIdle && this.#findCallWithDiffs(event) === undefined) this.#show(event, noDiffs);
    else this.#enqueue(async () => this.#show(event, await this.#loadDiffs(event)));
  }

  /** Whether the event is about work that may continue after the turn that started it. */
  #isOfJob(event: SessionEvent): boolean {
    if (event.type === "notice") return event.isOfJob === true;
    if (event.type === "child") return this.#background.has(event.callId);
    return event.type === "job-output" || event.type === "job-ended";
  }

  /** Returns the call of an event whose card needs files from the disk. */
  #findCallWithDiffs(event: SessionEvent): ToolPart | undefined {
    if (event.type === "child") {
      const call = findCall(event.event);
      return call !== undefined && needsDiffs(call) && this.#subagents.shows(call.callId) ? call : undefined;
    }
    const call = findCall(event);
    return call !== undefined && needsDiffs(call) ? call : undefined;
  }

  #show(event: SessionEvent, diffs: Diffs): void {
    if (turnEvents.has(event.type)) this.#retries.end();
    switch (event.type) {
      case "message":
        return this.#message(event.info);
      case "part":
        // The text of a part that is not new was sent as deltas.
        if (isText(event.part) && event.isNew !== true) return;
        return this.#part(event.part, this.session.transcript.find(event.messageId)?.info, diffs);
      case "delta":
        return this.#sendTurnUpdate(textChunk(event.kind, event.partId, event.delta));
      case "summary":
        return this.#compactions.add(event.messageId, event.delta);
      case "compacted":
        return this.#compactions.measured(event.messageId, event);
      case "tool-output":
        return this.#calls.output(event.callId, event.delta);
      case "job-output":
        return this.#calls.output(event.callId, event.delta);
      case "job-ended":
        return this.#call(event.part, diffs);
      case "todos":
        return this.#sendTurnUpdate(planUpdate(event.todos));
      case "child":
        return this.#subagents.receive(event.callId, event.child, event.event, diffs);
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
      case "decision":
        return this.#decision(event.callId, event.decision);
      case "notice":
        return this.notice(event.severity, event.text, event.isOfJob ? "background" : "session");
    }
  }

  #agent(name: string): void {
    this.#send({ sessionUpdate: "current_mode_update", currentModeId: name });
    this.#sendOptions();
  }

  #decision(toolCallId: string, decision: CallDecision): void {
    if (!this.#client.decisions) return;
    this.#send({ sessionUpdate: "session_info_update", _meta: { decision: { toolCallId, ...decision } } });
  }

  /** Sends the tool call before the client receives a question about it. `title` is the question's title. */
  async announce(callId: string, title?: string): Promise<void> {
    await this.#runInOrder(() => {
      this.#subagents.announce(callId);
      this.state.releaseTurn();
      this.#calls.resetCard(callId, title);
      this.#subagents.resetCard(callId, title);
    });
  }

  /** Replays the conversation, each call in its final state, then shows what a running turn did meanwhile. */
  async replay(messages: AsyncIterable<Message>, signal: AbortSignal): Promise<void> {
    this.state.beginReplay();
    try {
      while (!this.#tasks.isIdle) await this.#tasks.idle();
      await this.#replay(messages, signal);
    } finally {
      while (this.#afterReplay.length > 0) {
        for (const task of this.#afterReplay.splice(0)) this.#enqueue(async () => task());
        await this.#tasks.idle();
      }
      this.#replayed.clear();
      this.state.endReplay();
      if (!this.state.hasTurn) this.#calls.forgetEnded();
    }
    if (this.session.todos.length > 0) this.#send(planUpdate(this.session.todos));
  }

  async #replay(messages: AsyncIterable<Message>, signal: AbortSignal): Promise<void> {
    this.#channel.beginReplay?.();
    this.#calls.forget();
    this.#subagents.forget();
    this.#background.clear();
    this.#compactions.forget();
    this.#retries.forget();
    let last: MessageInfo | undefined;
    for await (const message of messages) {
      signal.throwIfAborted();
      if (message.info.role === "user" && compactionOf(message)?.auto !== true) this.#replayFailure(last);
      last = message.info;
      await this.#replayMessage(message);
      await this.waitUntilReady();
    }
    if (!this.state.hasTurn) this.#replayFailure(last);
    const { open } = this.#compactions;
    // The newest compaction may still be running in the current turn.
    this.#compactions.cancel(this.state.hasTurn ? open.slice(0, -1) : open);
    this.#compactions.showUnended();
  }

  async #replayMessage({ info, parts }: Message): Promise<void> {
    // A summary directly follows its request: if this message does, the compaction was cancelled.
    if (info.role === "user") {
      this.#compactions.cancel(this.#compactions.open);
      for (const update of toUserUpdates({ info, parts })) this.#sendTurnUpdate(update);
    }
    for (const part of parts) {
      if (part.type === "compaction") this.#compactions.beginReplayed(info.id, part);
      else if (part.type === "retry") this.#retries.replay(part);
      else {
        const call = info.role === "assistant" && info.summary !== true ? toCall(part) : undefined;
        if (call === undefined) this.#part(part, info, noDiffs);
        else await this.#replayCall(call);
      }
    }
    this.#endCompaction(info, parts);
  }

  /** Shows why a turn failed; live, the response to its prompt says it. */
  #replayFailure(last: MessageInfo | undefined): void {
    if (last?.role !== "assistant" || last.error === undefined || last.error.code === "cancelled") return;
    this.#sendTurnUpdate(textChunk("text", last.id, describeFailure(last.error)));
  }

  /** Shows the work of a child session after the call that started it. */
  async #replayCall(stored: ToolPart): Promise<void> {
    const part = await this.session.jobs.describeCall(stored);
    const isRunning = hasRunningJob(part.state);
    if (isRunning) this.#background.add(part.callId);
    const diffs = await this.#calls.loadDiffs(part);
    this.#calls.show(part, diffs);
    const { child } = presentCall(part);
    if (isFinished(part.state) && !isRunning && child) await this.#subagents.replay(part, child);
    this.#sendPlanDocuments(part, diffs);
  }

  /** Shows the current state of a part, because the replay may already have shown this event or later ones. */
  async #showAfterReplay(event: SessionEvent): Promise<void> {
    if (event.type !== "part" && event.type !== "delta")
      return this.#show(event, await this.#loadDiffs(event));
    const id = event.type === "part" ? event.part.id : event.partId;
    const message = this.session.transcript.find(event.messageId);
    const part = message?.parts.find((known) => known.id === id);
    if (part === undefined) return;
    const call = toCall(part);
    this.#part(part, message?.info, call === undefined ? noDiffs : await this.#calls.loadDiffs(call));
  }

  async #loadDiffs(event: SessionEvent): Promise<Diffs> {
    const call = this.#findCallWithDiffs(event);
    return call === undefined ? noDiffs : this.#calls.loadDiffs(call);
  }

  /** Announces the calls whose jobs run, to a client that opened the session without a replay. */
  async announceJobs(): Promise<void> {
    for (const { call, end } of this.session.jobs.all) {
      if (call === undefined || end !== undefined || this.#background.has(call.part.callId)) continue;
      this.#call(await this.session.jobs.describeCall(call.part), noDiffs);
    }
  }

  /** Sends title and usage to a client that just opened the session. */
  sendSessionInfo(): void {
    this.sendUsage();
    const { title, time } = this.session.info;
    if (title !== undefined) this.#send(titleUpdate(title, time.updated));
  }

  /** Sends how a turn ended that another client started. */
  sendTurnEnd(turn: Record<string, unknown>): void {
    this.#send({ sessionUpdate: "session_info_update", _meta: { turn } });
  }

  sendCommands(): void {
    const availableCommands = listCommands(this.session);
    this.#send({ sessionUpdate: "available_commands_update", availableCommands });
  }

  sendUsage(): void {
    const { usage } = this.session;
    if (usage?.size !== undefined) this.#send(usageUpdate(usage.used, usage.size, usage.cost));
  }

  /** Sends a notice. Clients without notices get a thought, sent with the next turn if none is running. */
  notice(severity: "info" | "warning" | "error", text: string, kind: UpdateKind = "session"): void {
    if (this.#client.notices)
      return this.#sendAs(kind, { sessionUpdate: "notice", severity, title: text }, this.session.id);
    this.#pendingNotices.add(removeControls(text));
    if (this.state.hasTurn) this.sendPendingNotices();
  }

  sendPendingNotices(): void {
    const texts = [...this.#pendingNotices];
    this.#pendingNotices.clear();
    for (const text of texts) this.#send(textChunk("reasoning", newPartId(), `${text}\n\n`));
  }

  #message(info: MessageInfo): void {
    if (info.role === "user") this.#channel.userMessage?.(clientIdOf(info), info.steering === true);
    this.#endCompaction(info, this.session.transcript.find(info.id)?.parts ?? []);
  }

  /** Ends the compaction whose summary this message is. */
  #endCompaction(info: MessageInfo, parts: readonly Part[]): void {
    if (info.role !== "assistant" || info.summary !== true || info.time.completed === undefined) return;
    this.#compactions.end(info.parentId, info.error, plainText(parts));
  }

  #part(part: Part, info: MessageInfo | undefined, diffs: Diffs): void {
    if (part.type === "compaction" && info !== undefined) return this.#compactions.begin(info.id);
    if (info?.role === "user" || info?.summary === true) return;
    const call = toCall(part);
    if (call !== undefined) return this.#call(call, diffs);
    if (isText(part)) return this.#text(part);
    if (part.type === "evidence") return this.#sendTurnUpdate(evidenceUpdate(part, this.#client));
    if (part.type === "retry") return this.#retries.begin(part);
  }

  /** Shows a call. The view of the child session that it started ends before it. */
  #call(part: ToolPart, diffs: Diffs): void {
    const isRunning = hasRunningJob(part.state);
    const { callId } = part;
    if (isFinished(part.state) && !isRunning) this.#subagents.end(callId);
    if (isRunning) this.#background.add(callId);
    this.#calls.show(part, diffs);
    const hasEnded = !isRunning && this.#background.delete(callId);
    this.#sendPlanDocuments(part, diffs);
    if (isRunning || hasEnded) this.sendNowOrLater("turnState", () => this.#channel.backgroundChanged?.());
  }

  #sendPlanDocuments(part: ToolPart, diffs: Diffs): void {
    const { planDocuments: form } = this.#client;
    if (form === "none") return;
    const texts = form === "file" ? noDiffs : diffs;
    for (const update of createPlanUpdates(part, this.session.project.workspace.cwd, texts))
      this.#send(this.paths.mapUpdate(update));
  }

  /** Sends the text of a part that the replay has not sent yet. */
  #text(part: TextPart | ReasoningPart): void {
    if (part.type === "text" && part.synthetic === true) return;
    const { type, id, text } = part;
    const rest = text.slice(this.#replayed.get(id));
    if (this.state.isReplaying) this.#replayed.set(id, text.length);
    if (rest !== "" && text.trim() !== "") this.#sendTurnUpdate(textChunk(type, id, rest));
  }

  #sendOptions(): void {
    this.#send({
      sessionUpdate: "config_option_update",
      configOptions: createClientOptions(this.session, this.#client),
    });
  }

  /** Sends an update of a call: within its turn, or at any time if its job runs. */
  #sendCallUpdate(update: SessionUpdate): void {
    if ("toolCallId" in update) this.#sendOfCall(update.toolCallId, update);
    else this.#sendTurnUpdate(update);
  }

  #sendOfCall(callId: string, given: SessionUpdate, sessionId: SessionId = this.session.id): void {
    const update = this.paths.mapUpdate(given);
    if (this.#background.has(callId) && !this.state.isReplaying)
      this.#sendAs("background", update, sessionId);
    else this.#sendTurnUpdate(update, sessionId);
  }

  #sendTurnUpdate(update: SessionUpdate, sessionId: SessionId = this.session.id): void {
    this.#sendAs(this.state.isReplaying ? "history" : "turn", update, sessionId);
  }

  #send(update: SessionUpdate): void {
    this.#sendAs("session", update, this.session.id);
  }

  #sendAs(kind: UpdateKind, update: SessionUpdate, sessionId: SessionId): void {
    this.sendNowOrLater(kind, () => this.#channel.update(sessionId, update));
  }

  /** Sends an update as the view's state allows: now, later or never. */
  sendNowOrLater(kind: UpdateKind, send: () => void): void {
    const treatment = this.state.treatmentOf(kind);
    if (treatment === "send") send();
    else if (treatment === "hold") this.state.hold(kind, send);
  }
}

/** Creates a chunk of model text. Chunks with the same id belong to one message. */
function textChunk(kind: "text" | "reasoning", messageId: string, text: string): SessionUpdate {
  const sessionUpdate = kind === "text" ? "agent_message_chunk" : "agent_thought_chunk";
  return { sessionUpdate, messageId, content: { type: "text", text } };
}

const isText = (part: Part): part is TextPart | ReasoningPart =>
  part.type === "text" || part.type === "reasoning";

type Diffs = readonly ToolCallContent[];

const noDiffs: Diffs = [];

const turnEnded = "The turn ended before the outcome of this call was known.";

/** Event types that belong to a turn. */
const turnEvents: ReadonlySet<SessionEvent["type"]> = new Set([
  "message",
  "part",
  "delta",
  "summary",
  "compacted",
  "todos",
  "tool-output",
  "child",
]);

function isBackgroundOutput(event: SessionEvent): boolean {
  if (event.type !== "child") return event.type === "job-output";
  return ["delta", "tool-output", "job-output"].includes(event.event.type);
}

function plainText(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
}

/** Returns the tool call of an event, also of a child session's event. */
function findCall(event: SessionEvent): ToolPart | undefined {
  if (event.type === "child") return findCall(event.event);
  if (event.type === "job-ended") return event.part;
  return event.type === "part" ? toCall(event.part) : undefined;
}

/** Returns the part as a call, if it is shown as one. */
function toCall(part: Part): ToolPart | undefined {
  if (part.type === "changes") return toChangesCall(part);
  return part.type === "tool" ? part : undefined;
}
