import type { Command as WrittenCommand } from "../command/command.ts";
import type { Usage } from "../message/event.ts";
import type { ModelRef, SessionInfo } from "../message/message.ts";
import type { ServerPrompt } from "../mcp/tools/prompts.ts";
import type { AgentsContext } from "./agents-command.ts";
import type { ShownContext } from "./context-command.ts";
import type { McpCommandContext } from "./mcp-command.ts";
import type { MergeContext } from "./merge-command.ts";
import type { ModelContext } from "./model-command.ts";
import type { PermissionsContext } from "./permissions-command.ts";
import type { Job } from "../tool/job/jobs.ts";
import type { Tool } from "../tool/tool.ts";
import type { Project } from "../conversation/project.ts";
import { normalizeTitle } from "../session-state/title.ts";
import type { LazyUndo } from "../undo/lazy-undo.ts";
import type { ChangesAnswer } from "../undo/review.ts";

/** A slash command. */
export interface Command {
  readonly name: string;
  readonly description: string;
  /** Describes the text after the name. */
  readonly hint?: string | undefined;
  readonly effect: PromptEffect | { kind: "compact" } | AnswerEffect | CallEffect;
}

/** Sends a prompt to the model. */
export type PromptEffect =
  | {
      readonly kind: "template";
      /** A text, or a function that loads it. */
      readonly template: string | (() => Promise<string>);
      /** Agent for this message, instead of the session's. */
      readonly agent?: string | undefined;
      /** Whether it comes from an untrusted project. */
      readonly isUntrusted?: boolean | undefined;
      readonly model?: ModelRef | undefined;
      /** Reasoning effort, if no model is named. */
      readonly variant?: string | undefined;
      /** Whether it runs in a child session. Default: if the agent is a subagent. */
      readonly subtask?: boolean | undefined;
    }
  | { readonly kind: "skill"; readonly skill: string }
  | { readonly kind: "server-prompt"; readonly prompt: ServerPrompt };

/** A command with the text after its name. */
export interface ParsedCommand {
  readonly command: Command;
  readonly typed: string;
}

/** Runs without a model; the returned text is the answer. */
export interface AnswerEffect {
  readonly kind: "answer";
  run(session: CommandContext, rest: string, signal: AbortSignal): Promise<string | ChangesAnswer>;
}

/** Runs a tool without a model. The call is stored like those of models, and can be undone. */
export interface CallEffect {
  readonly kind: "call";
  /** Returns the call, or a text that answers the command instead. */
  prepare(session: CommandContext, rest: string): Promise<CommandCall | string>;
}

export interface CommandCall {
  readonly tool: Tool;
  readonly input: unknown;
}

/** The parts of a session that commands use. */
export interface CommandContext
  extends
    PermissionsContext,
    McpCommandContext,
    MergeContext,
    Omit<ModelContext, "project" | "settings">,
    Omit<AgentsContext, "project" | "settings"> {
  /** All commands. */
  readonly commands: readonly Command[];
  readonly project: ModelContext["project"] & AgentsContext["project"];
  readonly settings: ModelContext["settings"] & AgentsContext["settings"];
  /** Returns what fills the context window; undefined without a model. */
  contextUse(signal: AbortSignal): Promise<ShownContext | undefined>;
  /** Commands in the background. */
  readonly jobs: { readonly all: readonly Job[] };
  readonly usage: Usage | undefined;
  readonly info: SessionInfo;
  readonly history: Pick<LazyUndo, "load" | "loadReview">;
  setTitle(title: string, source: "person"): Promise<void>;
  reload(): Promise<Project>;
  /** Returns a message for the user. */
  exportTo(file: string): Promise<string>;
}

/** Maximum length of a description in characters. */
const descriptionLimit = 200;

const loadTemplates = async () => (await import("./prompt-templates.ts")).promptTemplates;

/** The code of a command loads when it is called. */
const builtIn: readonly Command[] = [
  {
    name: "help",
    description: "List the commands",
    effect: {
      kind: "answer",
      run: async ({ commands }) => (await import("./help-command.ts")).describeCommands(commands),
    },
  },
  {
    name: "init",
    description: "Write or improve AGENTS.md for this project",
    hint: "what to pay attention to",
    effect: { kind: "template", template: async () => (await loadTemplates()).init },
  },
  {
    name: "review",
    description: "Review uncommitted changes, a commit or a branch",
    hint: "commit, branch or focus",
    effect: { kind: "template", template: async () => (await loadTemplates()).review },
  },
  {
    name: "compact",
    description: "Summarize the conversation to free space in the model's context",
    hint: "what the summary must keep",
    effect: { kind: "compact" },
  },
  {
    name: "undo",
    description: "Undo the last turn: its messages and its file changes",
    hint: "number of turns, or a checkpoint",
    effect: { kind: "answer", run: async ({ history }, target) => (await history.load()).undo(target) },
  },
  {
    name: "redo",
    description: "Redo what the last undo or drop removed",
    effect: { kind: "answer", run: redo },
  },
  {
    name: "changes",
    description: "Show what the last turn changed, by file and place, numbered",
    hint: "all for the whole session, or a file",
    effect: {
      kind: "answer",
      run: async ({ history }, typed) => (await history.loadReview()).list(typed),
    },
  },
  {
    name: "drop",
    description: "Undo single changes by their numbers in /changes, those of a file, or all",
    hint: "2 4, file, or all",
    effect: {
      kind: "answer",
      run: async ({ history }, typed) => (await history.loadReview()).drop(typed),
    },
  },
  {
    name: "checkpoints",
    description: "List the turns that can be undone",
    hint: "number of turns",
    effect: { kind: "answer", run: async ({ history }, count) => (await history.load()).checkpoints(count) },
  },
  {
    name: "merge",
    description: "Merge the changes of a worktree of the session or of its tasks, or drop them",
    hint: "drop, or the name of a worktree",
    effect: {
      kind: "call",
      prepare: async (session, rest) => (await import("./merge-command.ts")).prepareMerge(session, rest),
    },
  },
  {
    name: "rename",
    description: "Give this session a title",
    hint: "title",
    effect: { kind: "answer", run: rename },
  },
  {
    name: "export",
    description: "Export this conversation to a Markdown file",
    hint: "file.md",
    effect: { kind: "answer", run: (session, file) => session.exportTo(file) },
  },
  {
    name: "permissions",
    description: "List rules and approvals, revoke approvals, show the decision log",
    hint: "revoke N, keep N or log",
    effect: {
      kind: "answer",
      run: async (session, rest) => (await import("./permissions-command.ts")).runPermissions(session, rest),
    },
  },
  {
    name: "mcp",
    description: "List MCP servers with their status and tools; reconnect or authorize one",
    hint: "server, reconnect server, or auth server",
    effect: {
      kind: "answer",
      run: async (session, rest, signal) => (await import("./mcp-command.ts")).runMcp(session, rest, signal),
    },
  },
  {
    name: "jobs",
    description: "List commands and tasks in the background, stop or keep one",
    hint: "stop N or keep N",
    effect: {
      kind: "answer",
      run: async ({ jobs }, rest) => (await import("./jobs-command.ts")).runJobs(jobs.all, rest),
    },
  },
  {
    name: "model",
    description: "Show or change the model and how much it thinks",
    hint: "provider/name or provider/name:effort",
    effect: {
      kind: "answer",
      run: async (session, name) => (await import("./model-command.ts")).runModel(session, name),
    },
  },
  {
    name: "agents",
    description: "List agents and subagents, or change the agent",
    hint: "name",
    effect: {
      kind: "answer",
      run: async (session, name) => (await import("./agents-command.ts")).runAgents(session, name),
    },
  },
  {
    name: "context",
    description: "Show what fills the model's context window",
    effect: {
      kind: "answer",
      run: async (session, _rest, signal) => {
        const { describeContext } = await import("./context-command.ts");
        return describeContext(await session.contextUse(signal), session.usage);
      },
    },
  },
  {
    name: "cost",
    description: "Show the tokens and the cost of this session",
    effect: {
      kind: "answer",
      run: async (session) => (await import("./session-commands.ts")).describeCost(session),
    },
  },
  {
    name: "reload",
    description: "Reload configuration, agents, commands and skills, and list their problems",
    effect: {
      kind: "answer",
      run: async (session) => (await import("./session-commands.ts")).reload(session),
    },
  },
];

/** Names that command files cannot use: built-in commands that are not prompts. */
export const reservedNames: ReadonlySet<string> = new Set(
  builtIn.filter(({ effect }) => effect.kind !== "template").map(({ name }) => name),
);

/** Lists all commands: built-in, from files, skills, MCP prompts. The first of each name wins. */
export function listCommands(
  { commands, skills }: Pick<Project, "commands" | "skills">,
  prompts: readonly ServerPrompt[] = [],
): Command[] {
  const written = commands.map(toCommand);
  const names = new Set(written.map(({ name }) => name));
  const own = builtIn.filter(({ name }) => !names.has(name));
  for (const { name } of own) names.add(name);
  const loading = skills
    .filter(({ name }) => !names.has(name))
    .map(({ name, description }): Command => {
      return {
        name,
        description: shorten(description),
        hint: "what to do",
        effect: { kind: "skill", skill: name },
      };
    });
  for (const { name } of loading) names.add(name);
  const served = prompts.filter(({ name }) => !names.has(name)).map(toServedCommand);
  return [...own, ...written, ...loading, ...served];
}

/** Returns the command at the start of the text; undefined if its name is unknown. */
export function parseCommand(text: string, commands: readonly Command[]): ParsedCommand | undefined {
  const match = /^\/(\S+)(?:\s+([\s\S]*))?$/.exec(text.trim());
  const command = commands.find(({ name }) => name === match?.[1]);
  return command && { command, typed: match?.[2]?.trim() ?? "" };
}

function toCommand({ name, description, hint, ...effect }: WrittenCommand): Command {
  return { name, description, hint, effect: { kind: "template", ...effect } };
}

function toServedCommand(prompt: ServerPrompt): Command {
  const { name, description, hint } = prompt;
  return { name, description: shorten(description), hint, effect: { kind: "server-prompt", prompt } };
}

function shorten(description: string): string {
  return description.length <= descriptionLimit ? description : `${description.slice(0, descriptionLimit)}…`;
}

async function rename(session: CommandContext, typed: string): Promise<string> {
  const title = normalizeTitle(typed);
  if (title === "") return "Write the new title after the command: `/rename My title`.";
  await session.setTitle(title, "person");
  return `This session is now called "${title}".`;
}

async function redo({ info, history }: CommandContext): Promise<string> {
  const brought = info.revert === undefined ? await (await history.loadReview()).redo() : undefined;
  return brought ?? (await history.load()).redo();
}
