import { errorFields } from "../base/error-fields.ts";
import { deferred } from "../base/async.ts";
import type { Agent } from "../agent/agent.ts";
import type { Usage } from "../message/event.ts";
import type { SessionId } from "../message/ids.ts";
import type { GivenPrompt, SessionInfo, Todo } from "../message/message.ts";
import type { GivenServers } from "../mcp/server-settings.ts";
import type { SessionServers } from "../mcp/session-servers.ts";
import type { Model } from "../model/model.ts";
import type { Approvals } from "../permission/approvals.ts";
import type { Plugins } from "../plugin/plugins.ts";
import type { ChildSession } from "../tasks/child-session.ts";
import type { SessionSettings } from "../session-state/session-settings.ts";
import type { Command } from "../slash-commands/commands.ts";
import type { Decisions } from "../conversation/decisions.ts";
import type { OpenCalls } from "../tool-calls/open-calls.ts";
import type { PluginEvents } from "../session-state/plugin-events.ts";
import type { Project } from "../conversation/project.ts";
import type { PromptInput } from "../conversation/prompt-input.ts";
import { createSessionServices, type SessionServices, type SessionServicesDeps } from "./session-services.ts";
import { SessionTurns } from "./session-turns.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { TurnQueue } from "../turn/turn-queue.ts";
import type { TurnResult } from "../conversation/turn-result.ts";
import type { Undo } from "../undo/undo.ts";

export interface SessionDeps extends Omit<SessionServicesDeps, "parent" | "open"> {
  /** Told when a turn was answered. Must not throw. */
  onTurnEnd(): void;
  /** The session that this one works for, if it is a child. */
  parent: Session | undefined;
  /** Opens a child of this session. Throws {@link UserError} where it cannot. */
  openChild(child: ChildSession, parent: Session): Promise<Session>;
}

/** One live conversation, as others see it: what can be asked of it and done with it. */
export class Session {
  readonly id: SessionId;
  readonly #deps: SessionDeps;
  readonly #services: SessionServices;
  readonly #queue: TurnQueue;
  readonly #closed = deferred<void>();

  constructor(deps: SessionDeps) {
    const { parent } = deps;
    const own = {
      ...deps,
      parent: parent === undefined ? undefined : parent.#services,
      open: (child: ChildSession) => deps.openChild(child, this),
    };
    this.id = deps.info.id;
    this.#deps = deps;
    this.#services = createSessionServices(own);
    const turns = new SessionTurns(own, this.#services, this);
    this.#queue = new TurnQueue({
      run: (input, signal) => turns.run(input, signal),
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

  /** The way back to earlier turns, and forth again. */
  get history(): Undo {
    return this.#services.history;
  }

  /** Who answers, and how. */
  get settings(): SessionSettings {
    return this.#services.settings;
  }

  get agent(): Agent {
    return this.settings.agent;
  }

  /** The model that would answer now, if one can be chosen. */
  get model(): Model | undefined {
    return this.settings.model;
  }

  /** Context in use after the newest model call, with the window of the model that would answer now. */
  get usage(): Usage | undefined {
    return this.#services.usage.usage;
  }

  get todos(): readonly Todo[] {
    return this.#services.todos.read();
  }

  /** What can be called with a slash. */
  get commands(): readonly Command[] {
    return this.#services.commands.all;
  }

  /** Those that take part now. */
  get plugins(): Plugins | undefined {
    return this.#services.plugins.current;
  }

  /** Sends plugins what happens in it. */
  get events(): PluginEvents {
    return this.#deps.events;
  }

  get servers(): SessionServers {
    return this.#deps.servers;
  }

  get decisions(): Decisions {
    return this.#deps.decisions;
  }

  get approvals(): Approvals {
    return this.#deps.approvals;
  }

  /** Its calls that can be cancelled one by one. */
  get openCalls(): OpenCalls {
    return this.#services.openCalls;
  }

  get isBusy(): boolean {
    return this.#queue.isBusy;
  }

  /** Resolves when it was closed. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Queues the message; the promise is for its own turn. Turns run one after the other. */
  prompt(input: PromptInput): Promise<TurnResult> {
    return this.#queue.add(input);
  }

  /** Puts a message into the running turn. False when none runs. */
  steer(input: PromptInput): boolean {
    return !this.#queue.isCancelled && this.#services.steering.add(input);
  }

  /** Ends the running turn and all that wait; without one it does nothing. */
  cancel(): void {
    this.#queue.cancel();
  }

  /** Works from here on with what the project's files say now, and tells what became another by it. */
  reload(): Promise<Project> {
    return this.#services.project.reload();
  }

  setTitle(title: string, source: "person"): Promise<void> {
    return this.#services.title.set(title, source);
  }

  /** Keeps what the person allowed for this session. */
  async saveApprovals(approvals: NonNullable<SessionInfo["approvals"]>): Promise<void> {
    await this.#services.infoStore.save({ approvals });
  }

  /** Has the model go by the client's instructions from the next turn on. */
  async setGivenPrompt(givenPrompt: GivenPrompt): Promise<void> {
    await this.#services.infoStore.save({ givenPrompt });
  }

  /** Takes the MCP servers that the editor gives from now on. */
  setServers(given: GivenServers): void {
    this.servers.give(given);
  }

  /** Writes the conversation as it stands into a new file of the workspace. Answers what was done. */
  async exportTo(file: string): Promise<string> {
    const { runExport } = await import("../reports/export-command.ts");
    await this.#deps.writer.flush();
    const { messagesFromNewest } = this.#deps;
    const { workspace } = this.project;
    return runExport({ info: this.info, workspace, messagesFromNewest }, file);
  }

  /** Takes a new session for this process, which was put off until its id is told. What is lost then, the next write tells. */
  claim(): void {
    const { writer, log } = this.#deps;
    writer.claim().catch((error: unknown) => log.warn("a new session is not ours", errorFields(error)));
  }

  /** Resolves when everything so far is on disk. */
  stored(): Promise<void> {
    return this.#deps.writer.flush();
  }

  /** Cancels what runs, waits for it, frees the session. */
  async close(): Promise<void> {
    const { parent, gate, writer } = this.#deps;
    const { title, tasks, plugins } = this.#services;
    const ended = this.#queue.close();
    title.close();
    await ended;
    await tasks.waitForChildren();
    plugins.leave();
    if (parent === undefined) this.servers.close();
    gate.close();
    await writer.close();
    this.#closed.resolve();
  }

  #onAnswered(ended: TurnResult | undefined): void {
    this.events.idle(this.id, ended?.end === "failed" ? ended.error : undefined);
    this.#deps.onTurnEnd();
  }
}
