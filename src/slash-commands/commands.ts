import initTemplate from "../../prompts/commands/init.md";
import reviewTemplate from "../../prompts/commands/review.md";
import type { Command as WrittenCommand } from "../command/command.ts";
import type { Usage } from "../message/event.ts";
import type { ModelRef, SessionInfo } from "../message/message.ts";
import type { ServerPrompt } from "../mcp/tools/prompts.ts";
import { type McpCommandContext, runMcp } from "./mcp-command.ts";
import { type PermissionsContext, runPermissions } from "./permissions-command.ts";
import type { Project } from "../conversation/project.ts";
import { normalizeTitle } from "../session-state/title.ts";
import type { Undo } from "../undo/undo.ts";

/** What a person can begin a message with, after a slash. */
export interface Command {
  readonly name: string;
  readonly description: string;
  /** What may follow the name. */
  readonly hint?: string | undefined;
  readonly effect: PromptEffect | { kind: "compact" } | AnswerEffect;
}

/** Says something to the model. */
export type PromptEffect =
  | {
      readonly kind: "template";
      readonly template: string;
      /** Answers this one message, instead of the session's. */
      readonly agent?: string | undefined;
      /** It came with a project that nobody has trusted yet. */
      readonly isUntrusted?: boolean | undefined;
      readonly model?: ModelRef | undefined;
      /** The reasoning effort of whichever model answers, where no model is named. */
      readonly variant?: string | undefined;
      /** Runs in a child session; where it is not said, if the agent only does tasks. */
      readonly subtask?: boolean | undefined;
    }
  | { readonly kind: "skill"; readonly skill: string }
  | { readonly kind: "server-prompt"; readonly prompt: ServerPrompt };

/** A command with what was typed behind its name. */
export interface ParsedCommand {
  readonly command: Command;
  readonly typed: string;
}

/** Done at once without a model; the text is the answer. */
export interface AnswerEffect {
  readonly kind: "answer";
  run(session: CommandContext, rest: string, signal: AbortSignal): Promise<string>;
}

/** What commands may use of a session. */
export interface CommandContext extends PermissionsContext {
  readonly usage: Usage | undefined;
  readonly info: SessionInfo;
  readonly servers: McpCommandContext;
  readonly history: Pick<Undo, "undo" | "redo" | "checkpoints">;
  setTitle(title: string, source: "person"): Promise<void>;
  reload(): Promise<Project>;
  /** Answers what was done. */
  exportTo(file: string): Promise<string>;
}

/** Problems that one answer lists. */
const problemsLimit = 40;
/** Characters of a description in the editor's list. */
const descriptionLimit = 200;

const builtIn: readonly Command[] = [
  {
    name: "init",
    description: "Write or improve AGENTS.md for this project",
    hint: "what to pay attention to",
    effect: { kind: "template", template: initTemplate },
  },
  {
    name: "review",
    description: "Review uncommitted changes, a commit or a branch",
    hint: "commit, branch or focus",
    effect: { kind: "template", template: reviewTemplate },
  },
  {
    name: "compact",
    description: "Sum up the conversation to make room in the model's context",
    hint: "what the summary must keep",
    effect: { kind: "compact" },
  },
  {
    name: "undo",
    description: "Take back the last turn, its messages and the files that it changed",
    hint: "how many turns, or a checkpoint",
    effect: { kind: "answer", run: ({ history }, target) => history.undo(target) },
  },
  {
    name: "redo",
    description: "Bring again what the last undo took back",
    effect: { kind: "answer", run: ({ history }) => history.redo() },
  },
  {
    name: "checkpoints",
    description: "List the turns that can be taken back",
    hint: "how many",
    effect: { kind: "answer", run: ({ history }, count) => history.checkpoints(count) },
  },
  {
    name: "rename",
    description: "Give this session a title",
    hint: "title",
    effect: { kind: "answer", run: rename },
  },
  {
    name: "export",
    description: "Write this conversation into a Markdown file",
    hint: "file.md",
    effect: { kind: "answer", run: (session, file) => session.exportTo(file) },
  },
  {
    name: "permissions",
    description: "List rules and approvals, take approvals back, show what was decided",
    hint: "revoke N, keep N or log",
    effect: { kind: "answer", run: runPermissions },
  },
  {
    name: "mcp",
    description: "Show the MCP servers, how they are and what they offer; connect or authorize one",
    hint: "server, reconnect server, or auth server",
    effect: { kind: "answer", run: ({ servers }, rest, signal) => runMcp(servers, rest, signal) },
  },
  {
    name: "cost",
    description: "Show what this session has used and cost so far",
    effect: { kind: "answer", run: async (session) => cost(session) },
  },
  {
    name: "reload",
    description: "Read configuration, agents, commands and skills again, and show what is wrong with them",
    effect: { kind: "answer", run: reload },
  },
];

/** Names that no file can take: those that do something else than asking the model. */
export const reservedNames: ReadonlySet<string> = new Set(
  builtIn.filter(({ effect }) => effect.kind !== "template").map(({ name }) => name),
);

/** Everything that can be called in a project: built in, written down, the skills, and prompts of servers. Of one name the first counts. */
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

/** The command that a message calls. Text that merely begins with a slash is text. */
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

async function reload(session: CommandContext): Promise<string> {
  const { agents, commands, skills, problems } = await session.reload();
  const counts = `${agents.size} agents, ${commands.length} commands, ${skills.length} skills`;
  const shown = problems.slice(0, problemsLimit).map((problem) => `- ${problem}`);
  const rest = problems.length - shown.length;
  return [
    `Read again: ${counts}. ${problems.length === 0 ? "Nothing is wrong with them." : "Something is wrong:"}`,
    ...(shown.length === 0 ? [] : ["", ...shown]),
    ...(rest > 0 ? [`- and ${rest} more`] : []),
  ].join("\n");
}

async function rename(session: CommandContext, typed: string): Promise<string> {
  const title = normalizeTitle(typed);
  if (title === "") return "Write the new title behind the command: `/rename My title`.";
  await session.setTitle(title, "person");
  return `This session is now called "${title}".`;
}

function cost(session: CommandContext): string {
  const { usage, info } = session;
  if (usage === undefined) return "Nothing has been used yet.";
  const size = usage.size === undefined ? "" : ` of ${usage.size.toLocaleString("en")}`;
  const spent = info.cost === 0 ? "no cost is known" : `$${info.cost.toFixed(4)} in all`;
  return `Context: ${usage.used.toLocaleString("en")}${size} tokens; ${spent}.`;
}
