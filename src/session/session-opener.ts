import { type Log, withFields } from "../base/log.ts";
import { expectSpareFiles } from "../base/files/spare-files.ts";
import type { Emit } from "../message/event.ts";
import type { SessionId } from "../message/ids.ts";
import type { Message, ModelRef, SessionInfo, Todo } from "../message/message.ts";
import type { Servers } from "../mcp/servers.ts";
import { SessionServers } from "../mcp/session-servers.ts";
import type { Approvals } from "../permission/approvals.ts";
import { Gate } from "../permission/gate.ts";
import type { SessionStore, SessionWriter } from "../storage/session-store.ts";
import { reportWrites } from "../workspace/changes/report-writes.ts";
import { noteWrites } from "../workspace/recent/note-writes.ts";
import type { Worktrees } from "../workspace/worktrees/worktrees.ts";
import type { RecentChanges } from "../workspace/recent/recent-changes.ts";
import { EditorFiles } from "../workspace/files/editor-files.ts";
import type { ChildSession } from "../tasks/child-session.ts";
import type { SessionHost } from "./session-host.ts";
import { SessionEvents } from "../session-state/session-events.ts";
import { SessionPlugins } from "../session-state/session-plugins.ts";
import type { Folders, Project } from "../conversation/project.ts";
import { SessionDiff } from "../conversation/session-diff.ts";
import { Session } from "./session.ts";
import { toProjectFolders } from "./session-worktree.ts";
import type { MergeTarget } from "../tool/merge/merge.ts";
import type { TaskWorktree } from "../tool/tool.ts";
import { Transcript } from "../conversation/transcript.ts";

export interface SessionOpenerDeps {
  store(): Promise<SessionStore>;
  host: SessionHost;
  log: Log;
  openProject(folders: Folders): Promise<Project>;
  /** The MCP servers of this process. */
  servers: Servers;
  openApprovals(projectId: string): Promise<Approvals>;
  /** Called when a turn of any session was answered. Must not throw. */
  onTurnEnd(): void;
  /** Project data stored across processes. */
  memory: {
    lastUsedModel(projectId: string): Promise<ModelRef | undefined>;
    rememberModel(projectId: string, model: ModelRef): Promise<void>;
    noteSeen(projectId: string, root: string): Promise<void>;
  };
  /** Changes of files by all sessions. */
  recentChanges: RecentChanges;
  /** Loaded for the first session with a worktree. */
  worktrees(): Promise<Worktrees>;
  /** Returns the session if it is live in this process. */
  live(id: SessionId): Session | undefined;
  /** Returns the stored info of a session that is live in this process, including children. */
  infoOf(id: SessionId): SessionInfo | undefined;
  /** Called when a top-level session is live. */
  onOpened(session: Session): void;
  /** Returns the worktrees of a session and its tasks that have changes. */
  mergeTargets(info: SessionInfo): Promise<readonly MergeTarget[]>;
  /** Opens a child of a session. Throws {@link UserError} on failure. */
  openChild(child: ChildSession, parent: Session): Promise<Session>;
  /** Returns where the changes of a closed child are, if it worked in a worktree. */
  settleChild(child: SessionInfo, parent: Session): Promise<TaskWorktree | undefined>;
}

export type OpenResult =
  | { status: "opened"; session: Session; notice: string | undefined }
  | { status: "missing" }
  | { status: "busy"; pid: number | undefined };

/** The parent of a child session, and the child's task. */
export interface ParentOptions {
  session: Session;
  child: ChildSession;
}

interface OpenOptions {
  amend?: (stored: SessionInfo) => SessionInfo;
  parent?: ParentOptions;
}

const unchanged = (stored: SessionInfo): SessionInfo => stored;

/** Creates live sessions from stored data and adds their own files, tools and servers to their projects. */
export class SessionOpener {
  readonly #deps: SessionOpenerDeps;

  constructor(deps: SessionOpenerDeps) {
    this.#deps = deps;
  }

  /** Stores a new session and opens it. */
  async create(info: SessionInfo, project: Project): Promise<Session> {
    expectSpareFiles();
    const store = await this.#deps.store();
    const writer = await store.createAndOpen(info);
    const servers = this.#createServers(info.id, project);
    const withSessionOverlay = this.#createOverlay(info, project, servers);
    const diff = SessionDiff.begin({
      id: info.id,
      files: store.files,
      snapshots: project.workspace.snapshots,
    });
    return this.#start({ info, project, withSessionOverlay, servers, writer, diff, messages: [], todos: [] });
  }

  /**
   * Opens a stored session; `amend` updates its stored info. A child uses its parent's project, including the editor's
   * buffers, and asks through its gate.
   */
  async open(
    id: SessionId,
    onDisk: Project,
    { amend = unchanged, parent }: OpenOptions = {},
  ): Promise<OpenResult> {
    // A child is part of a turn, which already reserved files.
    if (parent === undefined) expectSpareFiles();
    const store = await this.#deps.store();
    const opened = await store.openSession(id);
    if (opened.status === "busy") return { status: "busy", pid: opened.pid };
    if (opened.status === "missing") return { status: "missing" };
    const { writer, wasLeft } = opened;
    const info = amend(opened.info);
    const servers = parent?.session.servers ?? this.#createServers(info.id, onDisk);
    const withSessionOverlay =
      parent === undefined ? this.#createOverlay(info, onDisk, servers) : (project: Project) => project;
    const messagesFromNewest = () => store.messagesFromNewest(info.id);
    const diff = await SessionDiff.load({
      id: info.id,
      files: store.files,
      snapshots: onDisk.workspace.snapshots,
    });
    const taskOf = async (callId: string) => {
      const { findTask } = await import("../tasks/child-session.ts");
      return findTask(store, info.id, callId);
    };
    const stored = { info, project: onDisk, writer, diff, messagesFromNewest, taskOf };
    // Loaded on first use: a new session has nothing to recover.
    const { recoverSession } = await import("../undo/recover-session.ts");
    const recovered = await recoverSession(
      stored,
      wasLeft,
      withFields(this.#deps.log, { sessionId: info.id }),
    );
    const { messages } = recovered;
    const todos = await store.todos(info.id);
    const begun = {
      info: recovered.info,
      project: onDisk,
      withSessionOverlay,
      servers,
      writer,
      diff,
      messages,
      todos,
    };
    const session = await this.#start(begun, parent);
    const notices = [opened.notice, recovered.notice].filter((notice) => notice !== undefined);
    return { status: "opened", session, notice: notices.length > 0 ? notices.join("\n\n") : undefined };
  }

  /** Creates the live session from its parts. */
  async #start(begun: SessionParts, parent?: ParentOptions): Promise<Session> {
    const { host, memory } = this.#deps;
    const { info, withSessionOverlay, servers, writer, diff, messages, todos } = begun;
    const { id, title = "" } = info;
    const log = withFields(this.#deps.log, { sessionId: info.id });
    const recent = this.#deps.recentChanges.openFor(() => {
      const { title } = this.#deps.infoOf(id) ?? info;
      return { id, title, isTask: parent !== undefined };
    });
    const withNotes = (opened: Project): Project => {
      const { workspace } = opened;
      return { ...opened, workspace: { ...workspace, files: noteWrites(workspace.files, recent) } };
    };
    const project = withNotes(withSessionOverlay(begun.project));
    const store = await this.#deps.store();
    const plugins = new SessionPlugins((text) => {
      // The parent session shows the same warning.
      if (parent === undefined) events.emit({ sessionId: id, type: "notice", severity: "warning", text });
    });
    const events: SessionEvents = new SessionEvents({
      plugins: parent?.session.plugins ?? plugins,
      infoOf: (live) => this.#deps.infoOf(live),
      parent: parent?.session.events,
      log,
    });
    const emit = parent?.child.emitFor({ id, agent: info.agent, title }) ?? events.emit;
    const [approvals, lastUsedModel] = await Promise.all([
      this.#deps.openApprovals(project.id),
      memory.lastUsedModel(project.id),
    ]);
    const gate =
      parent?.child.gate ??
      new Gate({
        ask: (question, signal) =>
          session.noticeQuestion(question.title, "permission_prompt", events.ask(host.ask, question, signal)),
        askWhy: (question, signal) => host.askWhy(question, signal),
        advise: (call, status, signal) => events.advice(call, status, signal),
        approvals,
        log,
        mode: () => session.info.approval ?? "ask",
        limits: () => session.settings.limits,
        onDecided: (callId, decision) => events.emit({ sessionId: id, type: "decision", callId, decision }),
      });
    const { cwd } = project.workspace;
    const session: Session = new Session({
      info,
      project,
      writer,
      files: store.files,
      diff,
      messagesFromNewest: () => store.messagesFromNewest(info.id),
      transcript: new Transcript({
        writer,
        emit,
        messages,
        newest: info.revert?.through,
        path: { cwd, root: project.workspace.worktree ?? cwd },
      }),
      gate,
      approvals,
      parent: parent?.session,
      openChild: (child, session) => this.#deps.openChild(child, session),
      reopenProject: async () =>
        withNotes(
          parent?.child.project ?? withSessionOverlay(await this.#deps.openProject(toProjectFolders(info))),
        ),
      recent,
      servers,
      inquire:
        parent?.child.inquire ??
        ((inquiry, signal) =>
          session.noticeQuestion(
            inquiry.questions[0]?.question ?? "",
            "elicitation_dialog",
            host.inquire(info.id, inquiry, signal),
          )),
      todos,
      emit,
      waitUntilReady: () => events.waitUntilReady(),
      plugins,
      events,
      log,
      rememberModel: (model) => memory.rememberModel(project.id, model),
      noteSeen: () => memory.noteSeen(project.id, info.worktree?.main ?? project.workspace.worktree ?? cwd),
      worktrees: () => this.#deps.worktrees(),
      mergeTargets: (info) => this.#deps.mergeTargets(info),
      settleChild: (child, parent) => this.#deps.settleChild(child, parent),
      onTurnEnd: () => this.#deps.onTurnEnd(),
      lastUsedModel,
    });
    if (parent === undefined) {
      approvals.attachSession({
        entries: info.approvals ?? [],
        save: (entries) => session.saveApprovals(entries),
      });
      this.#deps.onOpened(session);
      servers.configure(project.config);
    }
    return session;
  }

  /**
   * Returns a function that adds the editor's buffers and the tools of the session's MCP servers to a project. Gives
   * the same result each time the project is reopened.
   */
  #createOverlay(
    { id, worktree }: SessionInfo,
    { workspace }: Project,
    servers: SessionServers,
  ): (project: Project) => Project {
    const { host, log } = this.#deps;
    const { files: disk } = workspace;
    // The editor has the checkout open, not the worktree.
    const roots = worktree === undefined ? workspace.roots : [worktree.main];
    const buffered = new EditorFiles({ disk, buffers: () => host.buffers(id), roots, log });
    const files = reportWrites(buffered, workspace.changeTracker);
    return (project) => ({
      ...project,
      workspace: { ...project.workspace, files },
      serverInstructions: () => servers.instructions,
      tools: async () => {
        const own = await project.tools();
        return [...own, ...(await servers.tools(own.map(({ name }) => name)))];
      },
    });
  }

  #createServers(sessionId: SessionId, project: Project): SessionServers {
    const { host, servers } = this.#deps;
    const emit: Emit = (event) => this.#deps.live(sessionId)?.events.emit(event);
    const { workspace, secrets } = project;
    const { cwd, roots } = workspace;
    return new SessionServers({
      servers,
      cwd,
      roots,
      // A reload of the configuration replaces the project.
      confine: (argv, program) =>
        (this.#deps.live(sessionId)?.project ?? project).confineProgram(argv, program),
      secrets,
      answers: {
        elicit: (elicitation, signal) => {
          const answer = host.elicit(sessionId, elicitation, signal);
          const session = this.#deps.live(sessionId);
          return session?.noticeQuestion(elicitation.message, "elicitation_dialog", answer) ?? answer;
        },
        sample: async (sampling, signal) =>
          (await this.#deps.live(sessionId)?.sample(sampling, signal)) ?? {
            outcome: "refused",
            reason: "the session is closed",
          },
      },
      canVisit: () => host.userCapabilities().urls,
      onVisited: (id) => host.visited(id),
      report: (text, severity = "warning") => emit({ sessionId, type: "notice", severity, text }),
      onPrompts: () => emit({ sessionId, type: "commands" }),
      onTools: (server) => this.#deps.live(sessionId)?.events.mcpToolsChanged(server),
    });
  }
}

/** The parts of a stored session that is not live yet. */
interface SessionParts {
  info: SessionInfo;
  project: Project;
  /** Adds the editor's buffers and the session's tools to a project. */
  withSessionOverlay: (project: Project) => Project;
  writer: SessionWriter;
  diff: SessionDiff;
  messages: Message[];
  todos: Todo[];
  servers: SessionServers;
}
