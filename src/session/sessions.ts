import { KeyedSerial } from "../base/async.ts";
import { messageOf, UserError } from "../base/errors.ts";
import { type Log, withFields } from "../base/log.ts";
import type { Emit, SessionEvent } from "../message/event.ts";
import { isSessionId, newSessionId, type SessionId } from "../message/ids.ts";
import type { Elicit, ElicitationAbilities } from "../message/elicitation.ts";
import type { Inquire } from "../message/inquiry.ts";
import { SessionServers } from "../mcp/session-servers.ts";
import type { Servers } from "../mcp/servers.ts";
import type { Message, ModelRef, SessionInfo, Todo } from "../message/message.ts";
import type { Approvals } from "../permission/approvals.ts";
import { type Ask, Gate } from "../permission/gate.ts";
import type { SessionQuery } from "../storage/session-list.ts";
import type { SessionStore, SessionWriter } from "../storage/session-store.ts";
import { type EditorBuffers, EditorFiles } from "../workspace/editor-files.ts";
import { type ChildSession, findTask } from "./child-session.ts";
import { Decisions } from "./decisions.ts";
import { copyMessages, type ForkPoint, inherited, messagesUpTo } from "./fork.ts";
import { adviceOf, askBeforePlugins, tellPlugins } from "./plugin-ears.ts";
import type { Project } from "./project.ts";
import { recover } from "./recovery.ts";
import { SessionDiff } from "./session-diff.ts";
import { Session } from "./session.ts";
import { ToolSpecs } from "./tool-set.ts";
import { Transcript } from "./transcript.ts";
import { withoutReverted } from "./visible-messages.ts";

/** The way out of the engine: each change, each question to the person, and the editor's own texts. */
export interface Door {
  emit: Emit;
  ask: Ask;
  inquire(sessionId: SessionId, ...asked: Parameters<Inquire>): ReturnType<Inquire>;
  /** Puts what an MCP server asks to the person. */
  elicit(sessionId: SessionId, ...asked: Parameters<Elicit>): ReturnType<Elicit>;
  elicitationAbilities(): ElicitationAbilities;
  /** Says that an address which a person was brought to has served its purpose. */
  visited(elicitationId: string): void;
  buffers(sessionId: SessionId): EditorBuffers;
}

export interface SessionsDeps {
  store(): Promise<SessionStore>;
  version: string;
  door: Door;
  log: Log;
  openProject(folders: Folders): Promise<Project>;
  /** The MCP servers of this process. */
  servers: Servers;
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

export type Forked =
  | { status: "forked"; session: Session }
  | { status: "missing" }
  | { status: "no such message" };

/** Warnings that are kept for the next session; older ones are in the log. */
const warningLimit = 20;

/** All sessions: those that live in this process, and the stored ones. */
export class Sessions {
  readonly #deps: SessionsDeps;
  readonly #live = new Map<SessionId, Session>();
  /** Those that work for a task now. */
  readonly #children = new Map<SessionId, Session>();
  readonly #opening = new KeyedSerial();
  readonly #specs = new ToolSpecs();
  /** What nobody could be told yet. */
  #warnings: string[] = [];

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  /** The session if it is live in this process. */
  live(id: SessionId): Session | undefined {
    return this.#live.get(id);
  }

  /** A child session while its task runs. */
  child(id: SessionId): Session | undefined {
    return this.#children.get(id);
  }

  /** A new session, stored before it is answered, so that it can be listed, loaded and removed at once. */
  async create(folders: Folders): Promise<Session> {
    const project = await this.#deps.openProject(folders);
    const info = this.#newInfo(project, folders);
    const store = await this.#deps.store();
    const writer = await store.begin(info);
    const servers = this.#serversFor(info.id, project);
    const inEditor = this.#overlay(info.id, project, servers);
    const diff = SessionDiff.begin({ ...diffDeps(store, project), id: info.id });
    return this.#start({ info, project, inEditor, servers, writer, diff, messages: [], todos: [] });
  }

  /** A new session with what was said in another one, all of it or up to a message of it. */
  async fork(id: SessionId, folders: Folders, point?: ForkPoint): Promise<Forked> {
    const store = await this.#deps.store();
    const source = this.#live.get(id)?.info ?? (await store.load(id));
    if (source === undefined) return { status: "missing" };
    const messages = await messagesUpTo(this.history(id), point);
    if (messages === undefined) return { status: "no such message" };
    const project = await this.#deps.openProject(folders);
    const info = { ...this.#newInfo(project, folders), ...inherited(source) };
    await store.create(info);
    try {
      await copyMessages(store, info.id, messages);
      return { status: "forked", session: await this.#openNew(info, project) };
    } catch (error) {
      await this.remove(info.id);
      throw error;
    }
  }

  #newInfo(project: Project, folders: Folders): SessionInfo {
    const now = Date.now();
    return {
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
  }

  async #openNew(info: SessionInfo, project: Project): Promise<Session> {
    const opened = await this.#open(info, project);
    if (opened.status !== "opened")
      throw new UserError(`The new session ${info.id} could not be opened: ${opened.status}.`);
    return opened.session;
  }

  /** Opens a stored session, or answers the live one; an idle one is opened anew where its folders change. */
  open(id: SessionId, folders?: Folders): Promise<Opened> {
    return this.#opening.run(id, async () => {
      const live = this.#live.get(id);
      if (live !== undefined && (live.isBusy || hasFolders(live, folders)))
        return { status: "opened", session: live, notice: undefined };
      await this.#end(id);
      const info = await (await this.#deps.store()).load(id);
      if (info === undefined) return { status: "missing" };
      // Who opens a session that was put away wants it back.
      const { archived: _, ...time } = info.time;
      const additionalDirectories = folders?.additionalDirectories ?? info.additionalDirectories ?? [];
      const project = await this.#deps.openProject({ cwd: folders?.cwd ?? info.cwd, additionalDirectories });
      return this.#open({ ...info, time, additionalDirectories: [...additionalDirectories] }, project);
    });
  }

  /** Everything that was said in it, oldest first, compacted or not; without what is undone. */
  async *history(id: SessionId): AsyncIterable<Message> {
    const store = await this.#deps.store();
    const live = this.#live.get(id);
    const info = live?.info ?? (await store.load(id));
    const messages = withNewest(store.messages(id), live?.transcript.messages ?? []);
    yield* withoutReverted(messages, info?.revert);
  }

  async list(query: SessionQuery) {
    return (await this.#deps.store()).list(query);
  }

  async isStored(id: SessionId): Promise<boolean> {
    return (await (await this.#deps.store()).load(id)) !== undefined;
  }

  /** Gives any session, live or stored, the title that a person chose. False for one that is not there. */
  async setTitle(id: SessionId, title: string): Promise<boolean> {
    const live = this.#live.get(id);
    if (live === undefined) return this.#amend(id, (info) => ({ ...info, title, titleSource: "person" }));
    await live.setTitle(title, "person");
    return true;
  }

  /** Takes a session out of the list, after closing it, or brings it back. False for one that is not there. */
  async setArchived(id: SessionId, isArchived: boolean): Promise<boolean> {
    if (isArchived) await this.close(id);
    else if (this.#live.has(id)) return true;
    return this.#amend(id, ({ time: { archived, ...time }, ...info }) => ({
      ...info,
      time: isArchived ? { ...time, archived: archived ?? Date.now() } : time,
    }));
  }

  /** Reads again what every live session's project works with. */
  async reloadAll(): Promise<void> {
    await Promise.all([...this.#live.values()].map((session) => session.reload()));
  }

  /** Changes what is stored of a session that is not live. */
  #amend(id: SessionId, change: (info: SessionInfo) => SessionInfo): Promise<boolean> {
    return this.#opening.run(id, async () => {
      const store = await this.#deps.store();
      const opened = await store.openSession(id);
      if (opened.status === "missing") return false;
      if (opened.status === "busy")
        throw new UserError(`The session ${id} is open in another process. Close it there first.`);
      const { writer } = opened;
      try {
        const info = await store.load(id);
        if (info !== undefined) writer.saveInfo(change(info));
      } finally {
        await writer.close();
      }
      return true;
    });
  }

  close(id: SessionId): Promise<void> {
    return this.#opening.run(id, () => this.#end(id));
  }

  /** Silent for a session that is not there. */
  async remove(id: SessionId): Promise<void> {
    await this.close(id);
    await (await this.#deps.store()).remove(id);
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#live.keys()].map((id) => this.close(id)));
  }

  /** Tells the person in every live session; without one it waits for the next that is opened. */
  async warn(text: string): Promise<void> {
    const { door } = this.#deps;
    if (this.#live.size === 0) this.#warnings = [...this.#warnings, text].slice(-warningLimit);
    for (const sessionId of this.#live.keys()) {
      await door.emit({ sessionId, type: "notice", severity: "warning", text });
    }
  }

  /** A child of a live session: a new one, or one of its own that goes on. It is not listed and ends with its task. */
  async #openChild(child: ChildSession, parent: Session): Promise<Session> {
    const { agent, model, title, callId: parentCallId, project } = child;
    const now = Date.now();
    const wish = { agent, ...(model && { model }), parentCallId };
    const earlier = child.id === undefined ? undefined : await this.#earlierChild(child.id, parent);
    const info: SessionInfo = {
      id: newSessionId(),
      projectId: project.id,
      parentId: parent.id,
      cwd: project.workspace.cwd,
      title,
      titleSource: "fallback",
      cost: 0,
      time: { created: now, updated: now },
      version: this.#deps.version,
      ...earlier,
      ...wish,
    };
    if (earlier === undefined) await (await this.#deps.store()).create(info);
    const opened = await this.#open(info, project, { child, session: parent });
    if (opened.status === "opened") return this.#keepChild(opened.session);
    const why = opened.status === "busy" ? "it is still at work" : "it is gone";
    throw new UserError(`The task ${info.id} cannot go on: ${why}.`);
  }

  #keepChild(session: Session): Session {
    this.#children.set(session.id, session);
    void session.closed.then(() => this.#children.delete(session.id));
    return session;
  }

  async #earlierChild(id: string, parent: Session): Promise<SessionInfo> {
    const info = isSessionId(id) ? await (await this.#deps.store()).load(id) : undefined;
    if (info?.parentId === parent.id) return info;
    throw new UserError(`This session has no task "${id}". Leave task_id out to begin a new one.`);
  }

  async #end(id: SessionId): Promise<void> {
    const session = this.#live.get(id);
    this.#live.delete(id);
    await session?.close();
  }

  /** A child works with its parent's project, editor's buffers included, and asks through its gate. */
  async #open(info: SessionInfo, onDisk: Project, parent?: Parent): Promise<Opened> {
    const store = await this.#deps.store();
    const opened = await store.openSession(info.id);
    if (opened.status === "busy") return { status: "busy", pid: opened.pid };
    if (opened.status === "missing") return { status: "missing" };
    const { writer, wasLeft } = opened;
    const servers = parent?.session.servers ?? this.#serversFor(info.id, onDisk);
    const inEditor =
      parent === undefined ? this.#overlay(info.id, onDisk, servers) : (project: Project) => project;
    const messagesFromNewest = () => store.messagesFromNewest(info.id);
    const diff = await SessionDiff.load({ ...diffDeps(store, onDisk), id: info.id });
    const taskOf = (callId: string) => findTask(store, info.id, callId);
    const stored = { info, project: onDisk, writer, diff, messagesFromNewest, taskOf };
    const recovered = await recover(stored, wasLeft, withFields(this.#deps.log, { sessionId: info.id }));
    const { messages } = recovered;
    const todos = await store.todos(info.id);
    const begun = { info: recovered.info, project: onDisk, inEditor, servers, writer, diff, messages, todos };
    const session = await this.#start(begun, parent);
    const notices = [recovered.notice, ...this.#warnings.splice(0)].filter((text) => text !== undefined);
    return { status: "opened", session, notice: notices.length > 0 ? notices.join("\n") : undefined };
  }

  /** Makes a session of this process of what is known of it. */
  async #start(begun: Begun, parent?: Parent): Promise<Session> {
    const { door, memory } = this.#deps;
    const { info, inEditor, servers, writer, diff, messages, todos } = begun;
    const log = withFields(this.#deps.log, { sessionId: info.id });
    const project = inEditor(begun.project);
    const store = await this.#deps.store();
    const { id, title = "" } = info;
    const emit =
      parent?.child.emitFor({ id, agent: info.agent, title }) ??
      (async (event: SessionEvent) => {
        await door.emit(event);
        tellPlugins(this.#live.get(id)?.plugins, event);
      });
    const [approvals, lastUsedModel] = await Promise.all([
      this.#deps.openApprovals(project.id),
      memory.lastUsedModel(project.id),
    ]);
    const decisions = parent?.session.decisions ?? new Decisions();
    const gate =
      parent?.child.gate ??
      new Gate({
        ask: (question, signal) => askBeforePlugins(door.ask, session.plugins, question, signal),
        advise: (call, status, signal) => adviceOf(session.plugins, call, status, signal),
        approvals,
        log,
        mode: () => session.info.approval ?? "ask",
        audit: (entry) => decisions.add(entry),
      });
    const { cwd, additionalDirectories = [] } = info;
    const session: Session = new Session({
      info,
      project,
      writer,
      diff,
      messagesFromNewest: () => store.messagesFromNewest(info.id),
      transcript: new Transcript({ writer, emit, messages, newest: info.revert?.through }),
      gate,
      approvals,
      decisions,
      parent: parent?.session,
      openChild: (child, session) => this.#openChild(child, session),
      reopenProject: async () =>
        parent?.child.project ?? inEditor(await this.#deps.openProject({ cwd, additionalDirectories })),
      servers,
      inquire: parent?.child.inquire ?? ((inquiry, signal) => door.inquire(info.id, inquiry, signal)),
      specs: this.#specs,
      todos,
      emit,
      log,
      rememberModel: (model) => memory.rememberModel(project.id, model),
      onTurnEnd: () => this.#deps.onTurnEnd(),
      lastUsedModel,
    });
    if (parent === undefined) {
      this.#live.set(info.id, session);
      servers.configure(project.config);
    }
    return session;
  }

  /**
   * Lays what is the session's own over a project, the same however often the project is opened again: the editor's
   * buffers over its files, the tools of the session's MCP servers beside its own.
   */
  #overlay(id: SessionId, { workspace }: Project, servers: SessionServers): (project: Project) => Project {
    const { door, log } = this.#deps;
    const { roots, files: disk } = workspace;
    const files = new EditorFiles({ disk, buffers: () => door.buffers(id), roots, log });
    return (project) => ({
      ...project,
      workspace: { ...project.workspace, files },
      tools: async () => {
        const own = await project.tools();
        return [...own, ...(await servers.tools(own.map(({ name }) => name)))];
      },
    });
  }

  #serversFor(sessionId: SessionId, { workspace: { cwd, roots }, secrets }: Project): SessionServers {
    const { door, log, servers } = this.#deps;
    const tell = (event: SessionEvent) =>
      void door
        .emit(event)
        .catch((error: unknown) => log.warn("nobody was told of an MCP server", { error: messageOf(error) }));
    return new SessionServers({
      servers,
      cwd,
      roots,
      secrets,
      elicit: (elicitation, signal) => door.elicit(sessionId, elicitation, signal),
      canVisit: () => door.elicitationAbilities().urls,
      onVisited: (id) => door.visited(id),
      report: (text, severity = "warning") => tell({ sessionId, type: "notice", severity, text }),
      onPrompts: () => tell({ sessionId, type: "commands" }),
    });
  }
}

/** Who works with a child session. */
interface Parent {
  child: ChildSession;
  session: Session;
}

/** A session that is on disk and not live yet. */
interface Begun {
  info: SessionInfo;
  project: Project;
  /** Lays the editor's buffers over a project's files. */
  inEditor: (project: Project) => Project;
  writer: SessionWriter;
  diff: SessionDiff;
  messages: Message[];
  todos: Todo[];
  servers: SessionServers;
}

function diffDeps(store: SessionStore, { workspace }: Project) {
  return { files: store.files, snapshots: workspace.snapshots };
}

/** The list is complete each time: what it leaves out is not a folder of the session any more. */
function hasFolders(session: Session, folders: Folders | undefined): boolean {
  const { additionalDirectories = [] } = session.info;
  return (
    folders === undefined ||
    JSON.stringify(folders.additionalDirectories) === JSON.stringify(additionalDirectories)
  );
}

/** The stored messages as they stand in memory, of which the disk has the newest only a moment later. */
async function* withNewest(
  stored: AsyncIterable<Message>,
  inMemory: readonly Message[],
): AsyncIterable<Message> {
  const newest = new Map(inMemory.map((message) => [message.info.id, message]));
  for await (const message of stored) {
    yield newest.get(message.info.id) ?? message;
    newest.delete(message.info.id);
  }
  yield* newest.values();
}
