import type { MessageId } from "../message/ids.ts";
import type { Message } from "../message/message.ts";
import type { FileChange, Part, ToolPart } from "../message/part.ts";
import { fallbackTitle } from "../message/title.ts";

/** A turn that can be taken back: the person's message and everything up to the next one. */
export interface Checkpoint {
  /** Of the person's message. */
  readonly id: MessageId;
  /** Milliseconds since 1970. */
  readonly created: number;
  /** The first words of the person's message. */
  readonly words: string;
  /** Oldest first, without the commands that were answered beside it. */
  readonly messages: readonly Message[];
}

/** One file from one content to the next; contents are named as in {@link FileChange}. */
export interface FileStep {
  readonly path: string;
  readonly before: string | null | undefined;
  readonly after: string | null | undefined;
  /** Lines, where they were counted for this file alone. */
  readonly counts?: { readonly additions: number; readonly deletions: number };
  /** Permission bits to make the file with. */
  readonly mode?: number;
}

/** Letters of a message's id that name its checkpoint; they are random, so that they differ in one session. */
const nameLength = 8;

/** The turns of a session, newest first, read as far as they are asked for. */
export async function* readCheckpoints(newestFirst: AsyncIterable<Message>): AsyncGenerator<Checkpoint> {
  let later: Message[] = [];
  for await (const message of newestFirst) {
    if (isExchange(message)) continue;
    later.push(message);
    if (!beginsTurn(message)) continue;
    const { id, time } = message.info;
    yield { id, created: time.created, words: firstWords(message), messages: later.reverse() };
    later = [];
  }
}

/** What people call a checkpoint by. */
export function nameOf({ id }: Pick<Checkpoint, "id">): string {
  return id.slice(-nameLength);
}

export function hasName({ id }: Pick<Checkpoint, "id">, name: string): boolean {
  return id === name || (name.length >= nameLength && id.endsWith(name));
}

/** What the calls in the messages changed, in the order in which they did. */
export function changesOf(messages: readonly Message[]): FileChange[] {
  return messages.flatMap((message) =>
    callsOf(message)
      .sort((one, other) => startOf(one) - startOf(other))
      .flatMap(({ state }) => ("changes" in state ? (state.changes ?? []) : [])),
  );
}

/** The changes file by file: a move is a file that goes and one that comes. */
export function fileSteps(changes: readonly FileChange[]): FileStep[] {
  return changes.flatMap((change): FileStep[] => {
    const { path, before, after, additions, deletions, fromPath } = change;
    const mode = change.mode !== undefined && { mode: change.mode };
    if (change.operation !== "move" || fromPath === undefined)
      return [{ path, before, after, counts: { additions, deletions }, ...mode }];
    return [
      { path: fromPath, before, after: null, ...mode },
      { path, before: null, after, ...mode },
    ];
  });
}

/** The command lines that ran, as their calls were titled. */
export function commandsOf(messages: readonly Message[]): string[] {
  const ran = messages.flatMap(callsOf).filter((call) => call.tool === "bash" && hasRun(call));
  return ran.map((call) => call.title ?? call.tool);
}

/** The paths of edits that were cut off by the end of the program, so that nobody knows whether they were done. */
export function interruptedEditsOf(messages: readonly Message[]): string[] {
  const cut = messages.flatMap(callsOf).filter(({ kind, state }) => {
    const isEdit = kind === "edit" || kind === "delete" || kind === "move";
    return isEdit && state.status === "error" && state.reason === "interrupted";
  });
  return cut.flatMap(({ locations }) => (locations ?? []).map(({ path }) => path));
}

/** Whether the person's message asks for an answer, in contrast to what is said into a turn or written for it. */
export function beginsTurn({ info, parts }: Message): boolean {
  if (info.role !== "user" || info.steering === true) return false;
  if (parts.some(({ type }) => type === "compaction")) return false;
  return parts.some(isForModel) && parts.some(isForPerson);
}

/** Whether the message is a command's question or answer, which the model never sees. */
export function isExchange({ parts }: Message): boolean {
  return parts.length > 0 && parts.every((part) => part.type === "text" && part.ignored === true);
}

function isForModel(part: Part): boolean {
  return part.type === "text" ? part.ignored !== true : isSaid(part);
}

function isForPerson(part: Part): boolean {
  return part.type === "text" ? part.synthetic !== true : isSaid(part);
}

function isSaid({ type }: Part): boolean {
  return type === "file" || type === "agent" || type === "subtask";
}

/** The first words of a person's message. */
export function firstWords({ parts }: Message): string {
  const texts = parts.map((part) => (part.type === "text" && part.synthetic !== true ? part.text : ""));
  const text = texts.join(" ").trim();
  return text === "" ? "(attachment)" : fallbackTitle(text);
}

function callsOf({ parts }: Message): ToolPart[] {
  return parts.filter((part) => part.type === "tool");
}

/** Calls that wrote side by side stand in the order in which the model named them, not in which they ran. */
function startOf({ state }: ToolPart): number {
  return "time" in state ? (state.time?.start ?? 0) : 0;
}

/** A call that was never let run ended when it began; of one that the program's end cut off nobody knows. */
function hasRun({ state }: ToolPart): boolean {
  if (state.status !== "error") return state.status === "completed";
  return state.time === undefined || state.time.end !== state.time.start;
}
