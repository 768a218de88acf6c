import type { Log } from "../base/log.ts";
import type { Emit } from "../message/event.ts";
import type { Inquire } from "../message/inquiry.ts";
import type { MessageId } from "../message/ids.ts";
import type { Message, ModelRef, SessionInfo, Todo } from "../message/message.ts";
import type { FileChange } from "../message/part.ts";
import type { SessionServers } from "../mcp/session-servers.ts";
import type { Decider } from "../permission/gate.ts";
import type { SessionWriter } from "../storage/session-store.ts";
import { SessionSettings } from "../session-state/session-settings.ts";
import { CommandCalls } from "../slash-commands/command-calls.ts";
import type { SessionPlugins } from "../session-state/session-plugins.ts";
import { ProjectWatcher } from "./project-watcher.ts";
import { OpenCalls } from "../tool-calls/open-calls.ts";
import { CurrentProject } from "../conversation/current-project.ts";
import type { Project } from "../conversation/project.ts";
import type { SessionDiff } from "../conversation/session-diff.ts";
import { SessionInstructions } from "../session-state/session-instructions.ts";
import { LazyJobs } from "../session-state/lazy-jobs.ts";
import { SessionInfoStore } from "../conversation/session-info-store.ts";
import type { ChildSession } from "../tasks/child-session.ts";
import { type OpenedChild, SessionTasks } from "../tasks/session-tasks.ts";
import { SessionTitle } from "../session-state/session-title.ts";
import { UsageTracker } from "../session-state/usage-tracker.ts";
import { Steering } from "../turn/steering.ts";
import { StoredTodos } from "../conversation/stored-todos.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { LazyUndo } from "../undo/lazy-undo.ts";
import type { TaskWorktree } from "../tool/tool.ts";
import { UserMessages } from "../user-input/user-messages.ts";
import { addMergedFolders } from "../workspace/worktrees/worktree-path.ts";
import { ContextWindows } from "../context/windows.ts";

export interface SessionServicesDeps {
  info: SessionInfo;
  project: Project;
  writer: SessionWriter;
  transcript: Transcript;
  gate: Decider;
  /** Loads the project again. */
  reopenProject: () => Promise<Project>;
  /** Shows the model's questions to the user. */
  inquire: Inquire;
  /** The session's MCP servers, released when it closes. */
  servers: SessionServers;
  plugins: SessionPlugins;
  todos: Todo[];
  emit: Emit;
  /** Resolves when the client can receive more. */
  waitUntilReady: () => Promise<void>;
  log: Log;
  /** Remembers the model for new sessions of the project. */
  rememberModel: (model: ModelRef) => Promise<void>;
  lastUsedModel: ModelRef | undefined;
  diff: SessionDiff;
  /** Reads all messages of the session from the newest back, including undone ones. */
  messagesFromNewest: () => AsyncIterable<Message>;
  /** Services of the parent session, for a child. */
  parent: SessionServices | undefined;
  /** Whether a turn runs or waits. */
  isBusy: () => boolean;
  /** Called when a job ended and its changes were added to its call. */
  onJobChanged: (messageId: MessageId, changes: readonly FileChange[]) => Promise<void>;
  /** Opens a child of this session. Throws {@link UserError} on failure. */
  open: (child: ChildSession) => Promise<OpenedChild>;
  /** Returns where the changes of a closed child are, if it worked in a worktree. */
  settle: (child: SessionInfo) => Promise<TaskWorktree | undefined>;
}

/** The services of a session, one per concern. */
export interface SessionServices {
  readonly infoStore: SessionInfoStore;
  /** Agent, model, effort and approval mode. */
  readonly settings: SessionSettings;
  readonly project: ProjectWatcher;
  readonly plugins: SessionPlugins;
  readonly instructions: SessionInstructions;
  readonly commands: CommandCalls;
  readonly messages: UserMessages;
  readonly steering: Steering;
  readonly usage: UsageTracker;
  readonly tasks: SessionTasks;
  readonly jobs: LazyJobs;
  readonly title: SessionTitle;
  readonly todos: StoredTodos;
  readonly openCalls: OpenCalls;
  /** Shared with the parent session. */
  readonly windows: ContextWindows;
  /** Undo and redo of turns. */
  readonly history: LazyUndo;
  /** Shows the user a warning; a child's warnings go through its parent. */
  readonly warn: (text: string) => void;
}

/** Creates the services in an order in which each needs only earlier ones. */
export function createSessionServices(deps: SessionServicesDeps): SessionServices {
  const { info, writer, servers, parent, emit, transcript, gate, log } = deps;
  const { id: sessionId } = info;
  const warn = (text: string) => {
    emit({ sessionId, type: "notice", severity: "warning", text });
  };
  const infoStore = new SessionInfoStore(info, writer);
  const windows = parent?.windows ?? new ContextWindows();
  const currentProject = new CurrentProject(deps.project);
  const project = () => currentProject.get();
  const plugins = () => deps.plugins.current;
  const settings = new SessionSettings({
    sessionId,
    infoStore,
    gate,
    emit,
    project,
    rememberModel: deps.rememberModel,
    lastUsedModel: deps.lastUsedModel,
    windows,
  });
  const model = () => settings.model;
  const usageTracker = new UsageTracker({
    sessionId,
    limits: deps.project.config.max_cost,
    infoStore,
    transcript,
    gate,
    emit,
    agent: () => settings.agent.name,
    model,
    parent: parent?.usage,
  });
  const messages = new UserMessages({ transcript, infoStore, settings, servers, plugins, warn });
  const commands = new CommandCalls({
    gate,
    emit,
    log,
    project,
    prompts: () => servers.prompts,
    plugins,
    settings,
    transcript,
    messages,
    warn,
    waitUntilReady: deps.waitUntilReady,
  });
  return {
    infoStore,
    settings,
    project: new ProjectWatcher({
      sessionId,
      project: currentProject,
      reopenProject: deps.reopenProject,
      onReopened: ({ config }) => {
        // A child uses its parent's servers.
        if (parent === undefined) servers.configure(config);
        usageTracker.setLimits(config.max_cost);
      },
      infoStore,
      settings,
      commands: () => commands.all,
      gate,
      emit,
      warn,
    }),
    plugins: deps.plugins,
    instructions: new SessionInstructions({ project, settings, warn, parent: parent?.instructions }),
    commands,
    messages,
    steering: new Steering(),
    usage: usageTracker,
    tasks: new SessionTasks({
      sessionId,
      parent: parent?.tasks,
      project,
      settings,
      transcript,
      gate,
      emit,
      inquire: deps.inquire,
      open: deps.open,
      settle: deps.settle,
    }),
    jobs: new LazyJobs({
      sessionId,
      transcript,
      config: () => project().config,
      emit,
      log,
      isBusy: deps.isBusy,
      onChanged: deps.onJobChanged,
      messagesFromNewest: deps.messagesFromNewest,
    }),
    title: new SessionTitle({ sessionId, infoStore, usageTracker, emit, log, project, model, warn }),
    todos: new StoredTodos(deps.todos, { sessionId, writer, emit }),
    openCalls: new OpenCalls(),
    windows,
    history: new LazyUndo({
      workspace: addMergedFolders(deps.project.workspace, info),
      transcript,
      writer,
      diff: deps.diff,
      messagesFromNewest: deps.messagesFromNewest,
      revert: () => infoStore.info.revert,
      save: (change) => infoStore.save(change),
      onShown: () => usageTracker.recountContext(),
    }),
    warn: parent?.warn ?? warn,
  };
}
