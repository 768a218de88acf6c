import type { Log } from "../base/log.ts";
import type { Emit } from "../message/event.ts";
import type { Inquire } from "../message/inquiry.ts";
import type { Message, ModelRef, SessionInfo, Todo } from "../message/message.ts";
import type { SessionServers } from "../mcp/session-servers.ts";
import type { Approvals } from "../permission/approvals.ts";
import type { Decider } from "../permission/gate.ts";
import type { SessionWriter } from "../storage/session-store.ts";
import { SessionSettings } from "../session-state/session-settings.ts";
import { CommandCalls } from "../slash-commands/command-calls.ts";
import type { Decisions } from "../conversation/decisions.ts";
import { SessionPlugins } from "../session-state/session-plugins.ts";
import { ProjectWatcher } from "./project-watcher.ts";
import { OpenCalls } from "../tool-calls/open-calls.ts";
import type { PluginEvents } from "../session-state/plugin-events.ts";
import type { Project } from "../conversation/project.ts";
import type { SessionDiff } from "../conversation/session-diff.ts";
import { SessionInstructions } from "../session-state/session-instructions.ts";
import { SessionInfoStore } from "../conversation/session-info-store.ts";
import { SessionTasks, type SessionTasksDeps } from "../tasks/session-tasks.ts";
import { SessionTitle } from "../session-state/session-title.ts";
import { UsageTracker } from "../session-state/usage-tracker.ts";
import { Steering } from "../turn/steering.ts";
import { StoredTodos } from "../conversation/stored-todos.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { Undo } from "../undo/undo.ts";
import { UserMessages } from "../user-input/user-messages.ts";
import { ContextWindows } from "../context/windows.ts";

export interface SessionServicesDeps {
  info: SessionInfo;
  project: Project;
  writer: SessionWriter;
  transcript: Transcript;
  gate: Decider;
  approvals: Approvals;
  decisions: Decisions;
  /** Loads the project again. */
  reopenProject(): Promise<Project>;
  /** Shows the model's questions to the user. */
  inquire: Inquire;
  /** The session's MCP servers, released when it closes. */
  servers: SessionServers;
  todos: Todo[];
  emit: Emit;
  /** Resolves when the client can receive more. */
  waitUntilReady(): Promise<void>;
  /** Sends events to plugins. */
  events: PluginEvents;
  log: Log;
  /** Remembers the model for new sessions of the project. */
  rememberModel(model: ModelRef): Promise<void>;
  /** Stores that the project is in use. */
  noteSeen(): Promise<void>;
  lastUsedModel: ModelRef | undefined;
  diff: SessionDiff;
  /** Reads all messages of the session from the newest back, including undone ones. */
  messagesFromNewest: () => AsyncIterable<Message>;
  /** Services of the parent session, for a child. */
  parent: SessionServices | undefined;
  /** Opens a child of this session. Throws {@link UserError} on failure. */
  open: SessionTasksDeps["open"];
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
  readonly title: SessionTitle;
  readonly todos: StoredTodos;
  readonly openCalls: OpenCalls;
  /** Shared with the parent session. */
  readonly windows: ContextWindows;
  /** Undo and redo of turns. */
  readonly history: Undo;
  /** Shows the user a warning; a child's warnings go through its parent. */
  readonly warn: (text: string) => void;
}

export function createSessionServices(deps: SessionServicesDeps): SessionServices {
  const { info, writer, servers, parent, emit } = deps;
  const warn = (text: string) => {
    emit({ sessionId: info.id, type: "notice", severity: "warning", text });
  };
  const infoStore = new SessionInfoStore(info, writer);
  const live = {
    project: () => project.current,
    plugins: () => plugins.current,
    model: () => settings.model,
  };
  const windows = parent?.windows ?? new ContextWindows();
  const own = { ...deps, ...live, sessionId: info.id, infoStore, warn, windows };
  const settings = new SessionSettings(own);
  const usageTracker = new UsageTracker({
    ...own,
    limits: deps.project.config.max_cost,
    agent: () => settings.agent.name,
    parent: parent?.usage,
  });
  const project: ProjectWatcher = new ProjectWatcher({
    ...own,
    settings,
    project: deps.project,
    commands: () => commands.all,
    onReopened: ({ config }) => {
      // A child uses its parent's servers.
      if (parent === undefined) servers.configure(config);
      usageTracker.setLimits(config.max_cost);
    },
  });
  const plugins = new SessionPlugins((text) => {
    // The parent session shows the same warning.
    if (parent !== undefined) return;
    warn(text);
  });
  const messages = new UserMessages({ ...own, settings });
  const commands = new CommandCalls({ ...own, settings, messages, prompts: () => servers.prompts });
  return {
    infoStore,
    settings,
    project,
    plugins,
    instructions: new SessionInstructions({ ...own, settings, parent: parent?.instructions }),
    commands,
    messages,
    steering: new Steering(),
    usage: usageTracker,
    tasks: new SessionTasks({ ...own, settings, parent: parent?.tasks }),
    title: new SessionTitle({ ...own, usageTracker }),
    todos: new StoredTodos(deps.todos, own),
    openCalls: new OpenCalls(),
    windows,
    history: new Undo({
      ...own,
      workspace: deps.project.workspace,
      revert: () => infoStore.info.revert,
      save: (change) => infoStore.save(change),
      onShown: () => usageTracker.recountContext(),
    }),
    warn: parent?.warn ?? warn,
  };
}
