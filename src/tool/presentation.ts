import { shortenTitle, titleOfObject } from "../base/text/call-titles.ts";
import { isRecord } from "../base/text/record.ts";
import { isSessionId, type SessionId } from "../message/ids.ts";
import type { JobEnd, ToolKind, ToolPart } from "../message/part.ts";
import { removeEndNote } from "./bash/command-end.ts";
import { removeTaskNotes } from "./task/task-report.ts";

/** Facts about a call from which each client's view is made. */
export interface Presentation {
  readonly kind: ToolKind;
  readonly title: string;
  /** False if the session shows the call's effect in another way, such as the todo list. */
  readonly hasCard: boolean;
  /** Set if the call runs a command. */
  readonly command?: CommandFacts;
  /** Whether a completed call is shown as failed: its command did not succeed. */
  readonly hasFailed?: boolean;
  /** Number of the job that continues after the call was answered. */
  readonly job?: number;
  /** Set if a child session does the call's work. */
  readonly child?: ChildFacts;
  /** Set when the call has ended. */
  readonly result?: ResultText;
}

export interface CommandFacts {
  /** Output of the command, set when the call has completed. */
  readonly printed?: string;
  readonly exitCode: number | null;
  readonly signal: string | null;
}

export interface ChildFacts {
  readonly sessionId: SessionId;
  readonly agent: string;
}

export interface ResultText {
  /**
   * - `output`: printed by a program, not Markdown; shown if there are no diffs and no terminal.
   * - `report`: written for the user, in Markdown; always shown.
   * - `message`: why the call failed; always shown.
   */
  readonly type: "output" | "report" | "message";
  readonly text: string;
}

type Presenter = (part: ToolPart) => Partial<Presentation>;

/** Tools whose calls are shown differently from other calls. */
const presenters: ReadonlyMap<string, Presenter> = new Map<string, Presenter>([
  ["bash", presentCommand],
  ["lsp", presentQuestionAboutCode],
  ["task", presentTask],
  ["todoread", presentTodos],
  ["todowrite", presentTodos],
]);

/** Names of the tools that have a presenter. */
export const presentedTools: readonly string[] = [...presenters.keys()];

/**
 * Describes a call for the user. Uses only what is stored of a call, so that a replayed call looks like the live one,
 * also if an earlier version stored it. Fast: does not load the tools.
 */
export function presentCall(part: ToolPart): Presentation {
  const result = resultText(part);
  const special = presenters.get(part.tool)?.(part);
  const kind = special?.kind ?? part.kind ?? "other";
  const title = part.title || describeSubject({ ...part, kind }) || part.tool;
  return {
    kind,
    title: kind === "execute" ? title : shortenTitle(title),
    hasCard: true,
    ...(result && { result }),
    ...(part.state.status === "completed" && part.state.job && { job: part.state.job.id }),
    ...special,
  };
}

function presentTodos(): Partial<Presentation> {
  return { hasCard: false };
}

function presentCommand({ state, kind = "execute" }: ToolPart): Partial<Presentation> {
  const { exitCode, signal } = endOfJob(state) ?? metadataOf(state);
  const command = {
    ...(state.status === "completed" && {
      printed: endOfJob(state)?.output ?? removeEndNote(state.output, state.metadata),
    }),
    exitCode: typeof exitCode === "number" ? exitCode : null,
    signal: typeof signal === "string" ? signal : null,
  };
  const end = endOfJob(state);
  // A job that was stopped did what it was asked to do.
  const hasFailed =
    end === undefined ? (command.exitCode ?? 0) !== 0 || command.signal !== null : end.state === "failed";
  return { kind, command, ...(state.status === "completed" && hasFailed && { hasFailed }) };
}

/** Operations on one file read it; the others search. */
const readingOperations: ReadonlySet<unknown> = new Set(["hover", "documentSymbol", "diagnostics"]);

function presentQuestionAboutCode({ state: { input } }: ToolPart): Partial<Presentation> {
  return isRecord(input) && readingOperations.has(input.operation) ? { kind: "read" } : {};
}

function presentTask({ state }: ToolPart): Partial<Presentation> {
  const { sessionId, agent } = metadataOf(state);
  const child = isSessionId(sessionId) && typeof agent === "string" ? { sessionId, agent } : undefined;
  return {
    ...(child && { child }),
    ...(state.status === "completed" && {
      result: { type: "report", text: removeTaskNotes(endOfJob(state)?.output ?? state.output) },
    }),
  };
}

function resultText({ state }: ToolPart): ResultText | undefined {
  if (state.status === "completed") return { type: "output", text: describeOutput(state) };
  if (state.status !== "error") return undefined;
  // A failed call has an exit code if its error is what a program printed.
  const isPrinted = "exitCode" in metadataOf(state);
  return { type: isPrinted ? "output" : "message", text: state.error };
}

/** Returns the output with the end of a job, which the call's own output does not contain. */
function describeOutput(state: ToolPart["state"] & { status: "completed" }): string {
  const end = state.job?.end;
  return end === undefined ? state.output : `${end.output}\n\n[${end.description}]`;
}

function endOfJob(state: ToolPart["state"]): JobEnd | undefined {
  return state.status === "completed" ? state.job?.end : undefined;
}

function metadataOf(state: ToolPart["state"]): Readonly<Record<string, unknown>> {
  return ("metadata" in state ? state.metadata : undefined) ?? {};
}

/** Names the main argument, for calls that were rejected before the tool set a title. */
function describeSubject({ kind = "other", state: { input } }: ToolPart): string | undefined {
  if (kind === "other" || !isRecord(input)) return undefined;
  const subject = subjectFields.map((name) => input[name]).find((value) => typeof value === "string");
  if (typeof subject !== "string" || subject === "") return undefined;
  const verb = subjectVerbs.get(kind);
  return verb === undefined ? subject : titleOfObject(verb, subject);
}

/** Verbs of titles by kind. A command is its own title. */
const subjectVerbs: ReadonlyMap<ToolKind, string> = new Map([
  ["read", "Read"],
  ["edit", "Edit"],
  ["search", "Search"],
  ["fetch", "Fetch"],
]);

const subjectFields = ["command", "filePath", "path", "pattern", "url", "query", "description"];

/** Names a call in one line: a command with its tool, any other call by its title. */
export function nameCall({ tool, title = "", kind }: Pick<ToolPart, "tool" | "title" | "kind">): string {
  if (kind === "execute") return `${tool} ${title}`.trim();
  return title || tool;
}
