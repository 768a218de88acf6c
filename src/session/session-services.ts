import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Emit } from "../message/event.ts";
import type { Inquire } from "../message/inquiry.ts";
import type { Message, ModelRef, SessionInfo, Todo } from "../message/message.ts";
import type { SessionServers } from "../mcp/session-servers.ts";
import type { Approvals } from "../permission/approvals.ts";
import type { Decider } from "../permission/gate.ts";
import type { SessionWriter } from "../storage/session-store.ts";
import { Choices } from "../session-state/session-settings.ts";
import { CommandCalls } from "../slash-commands/command-calls.ts";
import type { Decisions } from "../conversation/decisions.ts";
import { JoinedPlugins } from "../session-state/session-plugins.ts";
import { LiveProject } from "./project-watcher.ts";
import { OpenCalls } from "../tool-calls/open-calls.ts";
import type { PluginEvents } from "../session-state/plugin-events.ts";
import type { Project } from "../conversation/project.ts";
import type { SessionDiff } from "../conversation/session-diff.ts";
import { SessionInstructions } from "../session-state/session-instructions.ts";
import { SessionRecord } from "../conversation/session-info-store.ts";
import { SessionTasks, type SessionTasksDeps } from "../tasks/session-tasks.ts";
import { SessionTitle } from "../session-state/session-title.ts";
import { Spending } from "../session-state/usage-tracker.ts";
import { Steering } from "../turn/steering.ts";
import { StoredTodos } from "../conversation/stored-todos.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { Undo } from "../undo/undo.ts";
import { UserMessages } from "../user-input/user-messages.ts";
import { Windows } from "../context/windows.ts";

export interface SessionPartsDeps {
  info: SessionInfo;
  project: Project;
  writer: SessionWriter;
  transcript: Transcript;
  gate: Decider;
  approvals: Approvals;
  decisions: Decisions;
  /** The project as it is now. */
  reopenProject(): Promise<Project>;
  /** Puts the model's questions to the person. */
  inquire: Inquire;
  /** Its MCP servers; it lets go of them when it is closed. */
  servers: SessionServers;
  todos: Todo[];
  emit: Emit;
  /** Sends plugins what happens. */
  events: PluginEvents;
  log: Log;
  /** Remembers the model for new sessions of the project. */
  rememberModel(model: ModelRef): Promise<void>;
  /** Stores that the project is worked in. */
  noteSeen(): Promise<void>;
  lastUsedModel: ModelRef | undefined;
  diff: SessionDiff;
  /** All messages of the session from the newest back, those that are taken back among them. */
  messagesFromNewest: () => AsyncIterable<Message>;
  /** Of the session that this one works for, if it is a child. */
  parent: SessionParts | undefined;
  /** Opens a child of this session. Throws {@link UserError} where it cannot. */
  open: SessionTasksDeps["open"];
}

/** What a session is made of, each with a matter of its own. */
export interface SessionParts {
  readonly record: SessionRecord;
  /** Who answers, and how. */
  readonly choices: Choices;
  readonly project: LiveProject;
  readonly plugins: JoinedPlugins;
  readonly instructions: SessionInstructions;
  readonly commands: CommandCalls;
  readonly messages: UserMessages;
  readonly steering: Steering;
  readonly spending: Spending;
  readonly tasks: SessionTasks;
  readonly title: SessionTitle;
  readonly todos: StoredTodos;
  readonly openCalls: OpenCalls;
  /** Shared with the session that this one works for. */
  readonly windows: Windows;
  /** The way back to earlier turns, and forth again. */
  readonly history: Undo;
  /** Tells the person, who hears of a child through whom it works for. */
  readonly warn: (text: string) => Promise<void>;
}

/** Puts together what a session is made of. */
export function partsOf(deps: SessionPartsDeps): SessionParts {
  const { info, writer, servers, parent, emit, log } = deps;
  const warn = async (text: string) => {
    await emit({ sessionId: info.id, type: "notice", severity: "warning", text });
  };
  const record = new SessionRecord(info, writer);
  const now = {
    project: () => project.current,
    plugins: () => plugins.current,
    model: () => choices.model,
  };
  const windows = parent?.windows ?? new Windows();
  const own = { ...deps, ...now, sessionId: info.id, record, warn, windows };
  const choices = new Choices(own);
  const spending = new Spending({
    ...own,
    limits: deps.project.config.max_cost,
    agent: () => choices.agent.name,
    parent: parent?.spending,
  });
  const project: LiveProject = new LiveProject({
    ...own,
    choices,
    project: deps.project,
    commands: () => commands.all,
    onReopened: ({ config }) => {
      // A child uses its parent's.
      if (parent === undefined) servers.configure(config);
      spending.limitTo(config.max_cost);
    },
  });
  const plugins = new JoinedPlugins((text) => {
    // Whom a child works for is told the same.
    if (parent !== undefined) return;
    warn(text).catch((error: unknown) => log.warn("a notice was lost", { error: messageOf(error) }));
  });
  const messages = new UserMessages({ ...own, choices });
  const commands = new CommandCalls({ ...own, choices, messages, prompts: () => servers.prompts });
  return {
    record,
    choices,
    project,
    plugins,
    instructions: new SessionInstructions({ ...own, choices, parent: parent?.instructions }),
    commands,
    messages,
    steering: new Steering(),
    spending,
    tasks: new SessionTasks({ ...own, choices, parent: parent?.tasks }),
    title: new SessionTitle({ ...own, spending }),
    todos: new StoredTodos(deps.todos, own),
    openCalls: new OpenCalls(),
    windows,
    history: new Undo({
      ...own,
      workspace: deps.project.workspace,
      revert: () => record.info.revert,
      save: (change) => record.save(change),
      onShown: () => spending.lookAgain(),
    }),
    warn: parent?.warn ?? warn,
  };
}
