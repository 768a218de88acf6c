import type * as draft from "@agentclientprotocol/sdk/experimental/v2/unstable";
import type {
  AvailableCommand,
  SessionConfigOption,
  SessionUpdate,
  ToolCallContent,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk/unstable";
import { gitPatch, type TextChange } from "./git-patch.ts";

/** A session has one plan. */
const planId = "todos";

type ChunkKind = "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk";

/** Updates that announce a message before its chunks. */
const messageUpdates = {
  user_message_chunk: "user_message",
  agent_message_chunk: "agent_message",
  agent_thought_chunk: "agent_thought",
} as const satisfies Record<ChunkKind, string>;
type MessageUpdate = (typeof messageUpdates)[ChunkKind];

type Meta = Record<string, unknown>;

/** The version 2 updates in use, without the open variants of the SDK's type. */
export type DraftUpdate =
  | { sessionUpdate: ChunkKind; messageId: string; content: draft.ContentBlock }
  | { sessionUpdate: MessageUpdate; messageId: string; content: draft.ContentBlock[] }
  | {
      sessionUpdate: "state_update";
      state: "running" | "requires_action" | "idle";
      /** Only when idle. */
      stopReason?: string;
      error?: draft.Error;
      background: draft.BackgroundWork[];
      _meta?: Meta;
    }
  | ({ sessionUpdate: "tool_call_update" } & draft.ToolCallUpdate)
  | ({ sessionUpdate: "terminal_update" } & draft.TerminalUpdate)
  | ({ sessionUpdate: "terminal_output_chunk" } & draft.TerminalOutputChunk)
  | ({ sessionUpdate: "plan_update" } & draft.PlanUpdate)
  | ({ sessionUpdate: "plan_removed" } & draft.PlanRemoved)
  | {
      sessionUpdate: "subagent_update";
      sessionId: string;
      title?: string | null;
      description?: string | null;
      capabilities?: draft.SubagentSessionCapabilities;
      state?: { state: "running" | "idle"; background: draft.BackgroundWork[] };
    }
  | ({ sessionUpdate: "available_commands_update" } & draft.AvailableCommandsUpdate)
  | ({ sessionUpdate: "config_option_update" } & draft.ConfigOptionUpdate)
  | ({ sessionUpdate: "session_info_update" } & draft.SessionInfoUpdate)
  | ({ sessionUpdate: "usage_update" } & draft.UsageUpdate)
  | ({ sessionUpdate: "notice" } & draft.Notice)
  | ({ sessionUpdate: "compaction_update" } & draft.CompactionUpdate)
  | ({ sessionUpdate: "compaction_summary_chunk" } & draft.CompactionSummaryChunk)
  /** Null if no message is left. */
  | { sessionUpdate: "history_truncated"; lastMessageId: string | null };

/** Converts an update to version 2. Returns an empty list for updates that version 2 does not have. */
export function toDraftUpdates(update: SessionUpdate): DraftUpdate[] {
  switch (update.sessionUpdate) {
    case "user_message_chunk":
    case "agent_message_chunk":
    case "agent_thought_chunk": {
      const { messageId, content, sessionUpdate } = update;
      if (messageId === undefined || messageId === null) return [];
      return [
        { sessionUpdate: messageUpdates[sessionUpdate], messageId, content: [] },
        { sessionUpdate, messageId, content },
      ];
    }
    case "tool_call":
    case "tool_call_update":
      return toolCallUpdates(update);
    case "plan":
      return [{ sessionUpdate: "plan_update", plan: { type: "items", planId, entries: update.entries } }];
    case "available_commands_update":
      return [
        {
          sessionUpdate: "available_commands_update",
          availableCommands: toCommands(update.availableCommands),
        },
      ];
    case "config_option_update":
      return [{ sessionUpdate: "config_option_update", configOptions: toOptions(update.configOptions) }];
    case "subagent_update": {
      const { sessionId, title, description, capabilities, state } = update;
      return [
        {
          sessionUpdate: "subagent_update",
          sessionId,
          ...(title !== undefined && { title }),
          ...(description !== undefined && { description }),
          ...(capabilities && { capabilities: { cancel: {} } }),
          ...(state && { state: { state: state.state === "running" ? "running" : "idle", background: [] } }),
        },
      ];
    }
    case "plan_update":
    case "plan_removed":
    case "session_info_update":
    case "usage_update":
    case "notice":
    case "compaction_update":
    case "compaction_summary_chunk":
      return [update];
    // Modes are options in version 2.
    case "current_mode_update":
    // Sessions do not write to each other.
    case "session_message":
    case "session_message_chunk":
      return [];
  }
}

export function toCommands(commands: readonly AvailableCommand[]): draft.AvailableCommand[] {
  return commands.map(({ name, description, input }) => ({
    type: "command",
    name,
    description,
    ...(input && { input: { type: "text", hint: input.hint } }),
  }));
}

export function toOptions(options: readonly SessionConfigOption[]): draft.SessionConfigOption[] {
  return options.map((option): draft.SessionConfigOption => {
    const { id: configId, name, description, category } = option;
    const common = { configId, name, ...(description && { description }), ...(category && { category }) };
    if (option.type === "boolean") return { ...common, type: "boolean", currentValue: option.currentValue };
    return {
      ...common,
      type: "select",
      currentValue: option.currentValue,
      options: toValues(option.options),
    };
  });
}

type Select = SessionConfigOption & { type: "select" };

function toValues(values: Select["options"]): draft.SessionConfigSelectOptions {
  const groups = values.flatMap((value) =>
    "group" in value ? [{ groupId: value.group, name: value.name, options: value.options }] : [],
  );
  if (groups.length > 0) return groups;
  return values.flatMap((value) => ("value" in value ? [value] : []));
}

/** Converts a call and the terminal in its `_meta`: terminal updates first, then the call. */
function toolCallUpdates(update: ToolCallUpdate): DraftUpdate[] {
  const { info, output, exit, isCancelled, meta } = parseMeta(update._meta);
  const call: DraftUpdate = {
    sessionUpdate: "tool_call_update",
    ...toToolCall(update),
    ...(isCancelled && { status: "cancelled" as const }),
    ...(meta && { _meta: meta }),
  };
  const isEmpty = Object.keys(call).length === 2;
  return [
    ...(info === undefined ? [] : [terminalUpdate(update, info, output)]),
    ...(info === undefined && output !== undefined ? [outputChunk(update.toolCallId, output)] : []),
    ...(exit === undefined ? [] : [terminalExit(update.toolCallId, exit)]),
    ...(isEmpty ? [] : [call]),
  ];
}

export function toToolCall(update: ToolCallUpdate): draft.ToolCallUpdate {
  const { toolCallId, title, kind, status, name, content, locations, rawInput, rawOutput } = update;
  return {
    toolCallId,
    ...(name !== undefined && { name }),
    ...(title !== undefined && { title }),
    ...(kind !== undefined && { kind }),
    ...(status !== undefined && { status }),
    ...(content && { content: content.map((item) => toContent(item)) }),
    ...(locations && { locations }),
    ...(rawInput !== undefined && { rawInput }),
    ...(rawOutput !== undefined && { rawOutput }),
  };
}

function toContent(item: ToolCallContent): draft.ToolCallContent {
  switch (item.type) {
    case "content":
      return { type: "content", content: item.content };
    case "terminal":
      return { type: "terminal", terminalId: item.terminalId };
    case "diff": {
      const { kind, fromPath, firstLine, truncated } = item._meta ?? {};
      const { path, oldText } = item;
      const change = {
        path,
        before: oldText ?? null,
        after: kind === "delete" ? null : item.newText,
        ...(typeof fromPath === "string" && { fromPath }),
      };
      const shown = typeof firstLine === "number" ? { ...change, firstLine } : change;
      // A patch of truncated texts would not apply.
      const text = truncated === true ? undefined : gitPatch(shown);
      return {
        type: "diff",
        changes: [toChange(change)],
        ...(text !== undefined && { patch: { format: "git_patch" as const, text } }),
      };
    }
  }
}

function toChange({ path, fromPath, before, after }: TextChange): draft.DiffChange {
  const common = { path, fileType: "text" as const };
  if (fromPath !== undefined) return { ...common, operation: "move", oldPath: fromPath };
  if (after === null) return { ...common, operation: "delete" };
  return before === null ? { ...common, operation: "add" } : { ...common, operation: "modify" };
}

/** Fields of `_meta` that have their own fields in version 2. */
interface ParsedMeta {
  /** Working directory of a terminal that starts with this update. */
  info?: string;
  output?: string;
  exit?: { exitCode: number | null; signal: string | null };
  isCancelled: boolean;
  /** The remaining fields. */
  meta?: Record<string, unknown>;
}

function parseMeta(given: Record<string, unknown> | null | undefined): ParsedMeta {
  const { terminal_info, terminal_output, terminal_exit, cancelled, ...meta } = given ?? {};
  const cwd = getField(terminal_info, "cwd");
  const data = getField(terminal_output, "data");
  const code = getField(terminal_exit, "exit_code");
  const signal = getField(terminal_exit, "signal");
  return {
    isCancelled: cancelled === true,
    ...(typeof cwd === "string" && { info: cwd }),
    ...(typeof data === "string" && { output: data }),
    ...(terminal_exit !== undefined && {
      exit: {
        exitCode: typeof code === "number" ? code : null,
        signal: typeof signal === "string" ? signal : null,
      },
    }),
    ...(Object.keys(meta).length > 0 && { meta }),
  };
}

function getField(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.entries(value).find(([key]) => key === name)?.[1];
}

function terminalUpdate(call: ToolCallUpdate, cwd: string, output?: string): DraftUpdate {
  const command = getCommand(call.rawInput);
  return {
    sessionUpdate: "terminal_update",
    terminalId: call.toolCallId,
    cwd,
    ...(command !== undefined && { command }),
    ...(output !== undefined && { output: { data: toBase64(output) } }),
  };
}

/** Returns undefined while the model is still writing the command. */
export function getCommand(rawInput: unknown): string | undefined {
  const command = getField(rawInput, "command");
  return typeof command === "string" ? command : undefined;
}

function outputChunk(terminalId: string, output: string): DraftUpdate {
  return { sessionUpdate: "terminal_output_chunk", terminalId, data: toBase64(output) };
}

function terminalExit(terminalId: string, exitStatus: NonNullable<ParsedMeta["exit"]>): DraftUpdate {
  return { sessionUpdate: "terminal_update", terminalId, exitStatus };
}

function toBase64(text: string): string {
  return Buffer.from(text).toString("base64");
}
