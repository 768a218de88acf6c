import initTemplate from "../../prompts/commands/init.md";
import reviewTemplate from "../../prompts/commands/review.md";
import type { Usage } from "../message/event.ts";
import type { SessionInfo } from "../message/message.ts";
import { type Permitted, runPermissions } from "./permissions-command.ts";
import type { Undo } from "./undo.ts";

/** What a person can begin a message with, after a slash. */
interface Command {
  readonly name: string;
  readonly description: string;
  /** What may follow the name. */
  readonly hint?: string;
  readonly effect: { kind: "prompt"; template: string } | { kind: "compact" } | AnswerEffect;
}

/** Done at once without a model; the text is the answer. */
export interface AnswerEffect {
  readonly kind: "answer";
  run(session: Commanded, rest: string): Promise<string>;
}

/** What commands may use of a session. */
interface Commanded extends Permitted {
  readonly usage: Usage | undefined;
  readonly info: SessionInfo;
  readonly history: Pick<Undo, "undo" | "redo" | "checkpoints">;
  setTitle(title: string, source: "person"): Promise<void>;
}

const builtIn: readonly Command[] = [
  {
    name: "init",
    description: "Write or improve AGENTS.md for this project",
    hint: "what to pay attention to",
    effect: { kind: "prompt", template: initTemplate },
  },
  {
    name: "review",
    description: "Review uncommitted changes, a commit or a branch",
    hint: "commit, branch or focus",
    effect: { kind: "prompt", template: reviewTemplate },
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
    name: "permissions",
    description: "List rules and approvals, take approvals back, show what was decided",
    hint: "revoke N, keep N or log",
    effect: { kind: "answer", run: runPermissions },
  },
  {
    name: "cost",
    description: "Show what this session has used and cost so far",
    effect: { kind: "answer", run: async (session) => cost(session) },
  },
];

export function commandList(): readonly Pick<Command, "name" | "description" | "hint">[] {
  return builtIn;
}

/** The command that a message calls. Text that merely begins with a slash is text. */
export function parseCommand(text: string): { command: Command; rest: string } | undefined {
  const match = /^\/([A-Za-z][\w/-]*)(?:\s+([\s\S]*))?$/.exec(text.trim());
  const command = builtIn.find(({ name }) => name === match?.[1]);
  return command && { command, rest: match?.[2]?.trim() ?? "" };
}

/** The template with what was typed behind the command's name, whose own text means nothing to it. */
export function commandPrompt(template: string, rest: string): string {
  return template.replaceAll("$ARGUMENTS", () => rest).trim();
}

async function rename(session: Commanded, title: string): Promise<string> {
  if (title === "") return "Write the new title behind the command: `/rename My title`.";
  await session.setTitle(title, "person");
  return `This session is now called "${title}".`;
}

function cost(session: Commanded): string {
  const { usage, info } = session;
  if (usage === undefined) return "Nothing has been used yet.";
  const size = usage.size === undefined ? "" : ` of ${usage.size.toLocaleString("en")}`;
  const spent = info.cost === 0 ? "no cost is known" : `$${info.cost.toFixed(4)} in all`;
  return `Context: ${usage.used.toLocaleString("en")}${size} tokens; ${spent}.`;
}
