import { errorFields } from "../base/error-fields.ts";
import { deferred, orAfter } from "../base/async.ts";
import type { Agent } from "../agent/agent.ts";
import type { Usage } from "../message/event.ts";
import { type MessageId, newMessageId, type SessionId } from "../message/ids.ts";
import type { GivenPrompt, SessionInfo, Todo } from "../message/message.ts";
import type { Sampling, SamplingOutcome } from "../message/sampling.ts";
import type { GivenServers } from "../mcp/server-settings.ts";
import type { SessionServers } from "../mcp/session-servers.ts";
import type { Model } from "../model/model.ts";
import type { GivenSkill } from "../skill/skill.ts";
import type { Approvals } from "../permission/approvals.ts";
import type { SessionPlugins } from "../session-state/session-plugins.ts";
import type { ChildSession } from "../tasks/child-session.ts";
import type { SessionSettings } from "../session-state/session-settings.ts";
import type { Command } from "../slash-commands/commands.ts";
import type { OpenCalls } from "../tool-calls/open-calls.ts";
import type { LazyJobs } from "../session-state/lazy-jobs.ts";
import type { SessionEvents } from "../session-state/session-events.ts";
import type { Project } from "../conversation/project.ts";
import type { PromptInput } from "../conversation/prompt-input.ts";
import { createSessionServices, type SessionServices, type SessionServicesDeps } from "./session-services.ts";
import type { ContextUse } from "../turn/context-use.ts";
import { SessionTurns, type SessionTurnsDeps } from "./session-turns.ts";
import type { MergeTarget } from "../tool/merge/merge.ts";
import type { TaskWorktree } from "../tool/tool.ts";
import type { Worktrees } from "../workspace/worktrees/worktrees.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { TurnQueue } from "../turn/turn-queue.ts";
import { type QuestionKind, UserAttention } from "./user-attention.ts";
import type { TurnResult } from "../conversation/turn-result.ts";
import type { LazyUndo } from "../undo/lazy-undo.ts";

export interface SessionDeps
  extends
    Omit<SessionServicesDeps, "parent" | "open" | "settle" | "isBusy" | "onJobChanged">,
    Omit<SessionTurnsDeps, "sessionId" | "isChild"> {
  /** Called when a turn was answered. Must not throw. */
  onTurnEnd(): void;
  /** The parent session, for a child. */
  parent: Session | undefined;
  worktrees(): Promise<Worktrees>;
  /** Returns the worktrees of a session and its tasks that have changes. */
  mergeTargets(info: SessionInfo): Promise<readonly MergeTarget[]>;
  /** Opens a child of this session. Throws {@link UserError} on failure. */
  openChild(child: ChildSession, parent: Session): Promise<Session>;
  /** Returns where the changes of a closed child are, if it worked in a worktree. */
  settleChild(child: SessionInfo, parent: Session): Promise<TaskWorktree | undefined>;
}

/** Outcome of a change to a message that was added to a turn or queued. */
export type InjectionChange = "changed" | "already read" | "unknown";

/** Time for running notifications when a session or the program closes. */
const notificationWaitMs = 3_000;

/** A live conversation: its state and the operations on it. */
export class Session {
  readonly id: SessionId;
  readonly #deps: SessionDeps;
  readonly #services: SessionServices;
  readonly #turns: SessionTurns;
  readonly #queue: TurnQueue;
  readonly #attention: UserAttention;
  readonly #closed = deferred<void>();

  constructor(deps: SessionDeps) {
    const { info, parent, transcript, diff, writer, gate, servers, inquire, emit, log } = deps;
    const { waitUntilReady } = deps;
    this.id = info.id;
    this.#deps = deps;
    this.#services = createSessionServices({
      info,
      project: deps.project,
      writer,
      transcript,
      gate,
      reopenProject: deps.reopenProject,
      inquire,
      servers,
      plugins: deps.plugins,
      todos: deps.todos,
      emit,
      waitUntilReady,
      log,
      rememberModel: deps.rememberModel,
      lastUsedModel: deps.lastUsedModel,
      diff,
      messagesFromNewest: deps.messagesFromNewest,
      parent: parent === undefined ? undefined : parent.#services,
      isBusy: () => this.#queue.isBusy,
      onJobChanged: async (messageId, changes) => {
        diff.noteLate(messageId, changes);
        if (!this.#queue.isBusy) await this.#turns.saveDiff();
      },
      open: (child) => deps.openChild(child, this),
      settle: (child) => deps.settleChild(child, this),
    });
    this.#turns = new SessionTurns(
      {
        sessionId: info.id,
        isChild: parent !== undefined,
        transcript,
        diff,
        writer,
        files: deps.files,
        gate,
        approvals: deps.approvals,
        servers,
        inquire,
        emit,
        waitUntilReady,
        events: deps.events,
        log,
        noteSeen: () => deps.noteSeen(),
        recent: deps.recent,
      },
      this.#services,
      this,
    );
    this.#attention = new UserAttention({
      info: () => this.info,
      project: () => this.project,
      hooks: () => this.#turns.hooks(),
      log,
    });
    this.#queue = new TurnQueue({
      run: (input, signal) => {
        this.#attention.beginTurn();
        return this.#turns.run(input, signal);
      },
      onAnswered: (ended) => this.#onAnswered(ended),
    });
  }

  get info(): SessionInfo {
    return this.#services.infoStore.info;
  }

  get project(): Project {
    return this.#services.project.current;
  }

  get transcript(): Transcript {
    return this.#deps.transcript;
  }

  /** Undo and redo of turns. */
  get history(): LazyUndo {
    return this.#services.history;
  }

  /** Agent, model, effort and approval mode. */
  get settings(): SessionSettings {
    return this.#services.settings;
  }

  get agent(): Agent {
    return this.settings.agent;
  }

  /** The model for the next message, if one can be chosen. */
  get model(): Model | undefined {
    return this.settings.model;
  }

  /** Tokens in the context after the newest model call, and the window of the model for the next message. */
  get usage(): Usage | undefined {
    return this.#services.usage.usage;
  }

  get todos(): readonly Todo[] {
    return this.#services.todos.read();
  }

  /** The slash commands. */
  get commands(): readonly Command[] {
    return this.#services.commands.all;
  }

  get plugins(): SessionPlugins {
    return this.#deps.plugins;
  }

  get events(): SessionEvents {
    return this.#deps.events;
  }

  get servers(): SessionServers {
    return this.#deps.servers;
  }

  get approvals(): Approvals {
    return this.#deps.approvals;
  }

  /** Running tool calls, each of which can be cancelled individually. */
  get openCalls(): OpenCalls {
    return this.#services.openCalls;
  }

  /** Commands and tasks in the background. */
  get jobs(): LazyJobs {
    return this.#services.jobs;
  }

  get isBusy(): boolean {
    return this.#queue.isBusy;
  }

  /** The result of the newest prompt; undefined while no turn runs. */
  get runningTurn(): Promise<TurnResult> | undefined {
    return this.#queue.newest;
  }

  /** Resolves when no turn runs or waits. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }

  /** Resolves when the session is closed. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Notifies an absent user of a question. Returns its answer. */
  noticeQuestion<Answer>(text: string, kind: QuestionKind, answer: Promise<Answer>): Promise<Answer> {
    this.#attention.noticeQuestion(text, kind, answer);
    return answer;
  }

  /** Queues a message; resolves with the result of its turn, which `signal` cancels. Turns run one after the other. */
  prompt(input: PromptInput, signal?: AbortSignal): Promise<TurnResult> {
    return this.#queue.add(input, signal);
  }

  /** Adds a message to the running turn. Returns its id; undefined when no turn runs. */
  steer(input: PromptInput): MessageId | undefined {
    const injectId = newMessageId();
    const isAdded = !this.#queue.isCancelled && this.#services.steering.add({ ...input, injectId });
    return isAdded ? injectId : undefined;
  }

  /** Removes a message that was not read, by the id under which it was added. */
  revoke(id: string): InjectionChange {
    const isRemoved = this.#services.steering.remove(id) || this.#queue.remove(id);
    return isRemoved ? "changed" : this.#describeInjection(id);
  }

  /** Replaces a message that was not read, by the id under which it was added. It keeps its place. */
  replace(id: string, input: PromptInput): InjectionChange {
    const isReplaced = this.#services.steering.replace(id, input) || this.#queue.replace(id, input);
    return isReplaced ? "changed" : this.#describeInjection(id);
  }

  #describeInjection(id: string): InjectionChange {
    return this.#services.steering.hasRead(id) || this.#queue.hasRead(id) ? "already read" : "unknown";
  }

  /** Cancels the running turn and all queued ones; does nothing without one. */
  cancel(): void {
    this.#queue.cancel();
  }

  /** Reloads the project from its files and emits what changed. */
  reload(): Promise<Project> {
    return this.#services.project.reload();
  }

  setTitle(title: string, source: "person"): Promise<void> {
    return this.#services.title.set(title, source);
  }

  /** Stores the user's approvals for this session. */
  async saveApprovals(approvals: NonNullable<SessionInfo["approvals"]>): Promise<void> {
    await this.#services.infoStore.save({ approvals });
  }

  /** Sets the client's system prompt from the next turn on. */
  async setGivenPrompt(givenPrompt: GivenPrompt): Promise<void> {
    await this.#services.infoStore.save({ givenPrompt });
  }

  /** Replaces the skills given by the editor. They are not stored. */
  setSkills(given: readonly GivenSkill[]): void {
    this.#services.project.giveSkills(given);
  }

  /** Replaces the MCP servers given by the editor. */
  setServers(given: GivenServers): void {
    this.servers.give(given);
  }

  /** Answers a request of an MCP server with the session's model, if the user allows it. */
  async sample(sampling: Sampling, signal: AbortSignal): Promise<SamplingOutcome> {
    const { sampleForServer } = await import("../session-state/server-sampling.ts");
    const { gate, emit } = this.#deps;
    const { usage: usageTracker } = this.#services;
    const { models, retryPolicy } = this.project;
    const { model, agent } = this.settings;
    const deps = { sessionId: this.id, gate, emit, usageTracker, models, retryPolicy, model, agent };
    return sampleForServer(deps, sampling, signal);
  }

  /** Returns what fills the context window of the next request; undefined without a model. */
  contextUse(signal: AbortSignal): Promise<ContextUse | undefined> {
    return this.#turns.contextUse(signal);
  }

  /** Returns whether the conversation loads tools of MCP servers on demand. */
  loadsToolsOnDemand(): Promise<boolean> {
    return this.#turns.loadsToolsOnDemand();
  }

  worktrees(): Promise<Worktrees> {
    return this.#deps.worktrees();
  }

  /** Returns the worktrees with changes: the session's and those of its tasks. */
  async mergeTargets(): Promise<readonly MergeTarget[]> {
    await this.#deps.writer.flush();
    return this.#deps.mergeTargets(this.info);
  }

  /** Exports the conversation to a new file in the workspace. Returns a message for the user. */
  async exportTo(file: string): Promise<string> {
    const { runExport } = await import("../reports/export-command.ts");
    await this.#deps.writer.flush();
    const { messagesFromNewest } = this.#deps;
    const { workspace } = this.project;
    return runExport({ info: this.info, workspace, messagesFromNewest }, file);
  }

  /**
   * Acquires the lease of a new session, which is deferred until the client knows its id. A failure is reported by the
   * next write.
   */
  claim(): void {
    const { writer, log } = this.#deps;
    writer.claim().catch((error: unknown) => log.warn("session lease not acquired", errorFields(error)));
  }

  /** Resolves when all changes so far are on disk. */
  stored(): Promise<void> {
    return this.#deps.writer.flush();
  }

  /** Cancels the running turn and stops the jobs that the user does not keep. The session stays live. */
  async detach(): Promise<void> {
    this.cancel();
    await Promise.all([this.idle(), this.jobs.stopOthers()]);
    await this.#services.tasks.waitForChildren();
    await this.stored();
  }

  /** Cancels the running turn, waits for its end and releases the session. */
  async close(): Promise<void> {
    const { parent, gate, writer } = this.#deps;
    const { title, tasks, jobs, plugins } = this.#services;
    const ended = this.#queue.close();
    title.close();
    await Promise.all([ended, jobs.close()]);
    await tasks.waitForChildren();
    await this.notified();
    plugins.leave();
    if (parent === undefined) this.servers.close();
    gate.close();
    await writer.close();
    this.#closed.resolve();
  }

  /** Resolves when running notifications have ended, or take too long. */
  async notified(): Promise<void> {
    await orAfter(this.#attention.settled(), notificationWaitMs, undefined);
  }

  #onAnswered(ended: TurnResult | undefined): void {
    this.events.idle(this.id, ended?.end === "failed" ? ended.error : undefined);
    this.#deps.onTurnEnd();
    if (this.#deps.parent === undefined && !this.#queue.hasWaiting) this.#attention.noticeEnd(ended);
    if (!this.#queue.hasWaiting) this.jobs.noticeEnds();
  }
}
