import { KeyedSerial } from "../base/async.ts";
import { UserError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Emit, SessionEvent } from "../message/event.ts";
import { newSessionId, type SessionId } from "../message/ids.ts";
import type { Message, ModelRef, SessionInfo } from "../message/message.ts";
import type { Approvals } from "../permission/approvals.ts";
import { type Ask, Gate } from "../permission/gate.ts";
import type { SessionStore } from "../storage/session-store.ts";
import { endInterrupted } from "./interruption.ts";
import type { Project } from "./project.ts";
import { Session } from "./session.ts";
import { ToolSpecs } from "./tool-set.ts";
import { Transcript } from "./transcript.ts";
import { loadVisible } from "./visible-messages.ts";

/** The way out of the engine: each change, and each question to the person. */
export interface Door {
  emit: Emit;
  ask: Ask;
}

export interface SessionsDeps {
  store(): Promise<SessionStore>;
  version: string;
  door: Door;
  log: Log;
  openProject(folders: Folders): Promise<Project>;
  openApprovals(projectId: string): Promise<Approvals>;
  /** Told when a turn of any session was answered. Must not throw. */
  onTurnEnd(): void;
  /** What is remembered of a project between processes. */
  memory: {
    lastUsedModel(projectId: string): Promise<ModelRef | undefined>;
    rememberModel(projectId: string, model: ModelRef): Promise<void>;
  };
}

/** Absolute paths. */
export interface Folders {
  cwd: string;
  additionalDirectories: readonly string[];
}

export type Opened =
  | { status: "opened"; session: Session; notice: string | undefined }
  | { status: "missing" }
  | { status: "busy"; pid: number | undefined };

/** All sessions: those that live in this process, and the stored ones. */
export class Sessions {
  readonly #deps: SessionsDeps;
  readonly #live = new Map<SessionId, Session>();
  readonly #opening = new KeyedSerial();
  readonly #specs = new ToolSpecs();

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  /** The session if it is live in this process. */
  live(id: SessionId): Session | undefined {
    return this.#live.get(id);
  }

  /** A new session, stored before it is answered, so that it can be listed, loaded and removed at once. */
  async create(folders: Folders): Promise<Session> {
    const project = await this.#deps.openProject(folders);
    const now = Date.now();
    const info: SessionInfo = {
      id: newSessionId(),
      projectId: project.id,
      cwd: project.workspace.cwd,
      ...(folders.additionalDirectories.length > 0 && {
        additionalDirectories: [...folders.additionalDirectories],
      }),
      agent: project.defaultAgent,
      cost: 0,
      time: { created: now, updated: now },
      version: this.#deps.version,
    };
    const store = await this.#deps.store();
    await store.create(info);
    const opened = await this.#open(info, project);
    if (opened.status !== "opened")
      throw new UserError(`The new session ${info.id} could not be opened: ${opened.status}.`);
    return opened.session;
  }

  /** Opens a stored session, or answers the live one. */
  open(id: SessionId, folders?: Folders): Promise<Opened> {
    return this.#opening.run(id, async () => {
      const live = this.#live.get(id);
      if (live !== undefined) return { status: "opened", session: live, notice: undefined };
      const info = await (await this.#deps.store()).load(id);
      if (info === undefined) return { status: "missing" };
      // Who opens a session that was put away wants it back.
      const { archived: _, ...time } = info.time;
      const additionalDirectories = folders?.additionalDirectories ?? info.additionalDirectories ?? [];
      const project = await this.#deps.openProject({ cwd: folders?.cwd ?? info.cwd, additionalDirectories });
      return this.#open({ ...info, time, additionalDirectories: [...additionalDirectories] }, project);
    });
  }

  /** Everything that was said in it, oldest first, compacted or not. */
  async *history(id: SessionId): AsyncIterable<Message> {
    yield* (await this.#deps.store()).messages(id);
  }

  async list(query: { cwd?: string; cursor?: string; limit: number }) {
    return (await this.#deps.store()).list(query);
  }

  close(id: SessionId): Promise<void> {
    return this.#opening.run(id, async () => {
      const session = this.#live.get(id);
      this.#live.delete(id);
      await session?.close();
    });
  }

  /** Silent for a session that is not there. */
  async remove(id: SessionId): Promise<void> {
    await this.close(id);
    await (await this.#deps.store()).remove(id);
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#live.keys()].map((id) => this.close(id)));
  }

  async #open(info: SessionInfo, project: Project): Promise<Opened> {
    const { door, log, memory } = this.#deps;
    const store = await this.#deps.store();
    const opened = await store.openSession(info.id);
    if (opened.status === "busy") return { status: "busy", pid: opened.pid };
    if (opened.status === "missing") return { status: "missing" };
    const { writer, wasLeft } = opened;
    const messages = await loadVisible(store.messagesFromNewest(info.id));
    const emit = (event: SessionEvent) => door.emit(event);
    const quiet = async () => {};
    const notice = await endInterrupted(new Transcript({ writer, emit: quiet, messages }), wasLeft);
    const approvals = await this.#deps.openApprovals(project.id);
    const gate = new Gate({ ask: (question, signal) => door.ask(question, signal), approvals, log });
    const session = new Session({
      info,
      project,
      writer,
      transcript: new Transcript({ writer, emit, messages }),
      gate,
      specs: this.#specs,
      todos: await store.todos(info.id),
      emit,
      log,
      rememberModel: (model) => memory.rememberModel(project.id, model),
      onTurnEnd: this.#deps.onTurnEnd,
      lastUsedModel: await memory.lastUsedModel(project.id),
    });
    this.#live.set(info.id, session);
    return { status: "opened", session, notice };
  }
}
