import { Serial } from "../base/async.ts";
import { startsTurn } from "../message/starts-turn.ts";
import type { MessageId } from "../message/ids.ts";
import {
  clientIdOf,
  hasClientId,
  isReverted,
  type Message,
  type Revert,
  type SessionInfo,
} from "../message/message.ts";
import { hasRunningJob, type Part } from "../message/part.ts";
import type { SessionWriter } from "../storage/session-store.ts";
import type { Workspace } from "../workspace/workspace.ts";
import {
  changesOf,
  type Checkpoint,
  fileSteps,
  firstWords,
  interruptedEditsOf,
  partlyTrackedCommandsOf,
  readCheckpoints,
} from "../conversation/checkpoints.ts";
import { parseCheckpoint } from "./checkpoint-name.ts";
import { type FileOutcome, type FileRevert, planRevert, removes, reverse, revertFile } from "./revert.ts";
import type { SessionDiff } from "../conversation/session-diff.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { checkpointsText, reportText, type Reverted } from "./undo-report.ts";
import {
  findLastId,
  previewReverts,
  type RewindOptions,
  type RewindOutcome,
  type RewindPoint,
  type RewindResult,
  type RewindTarget,
  type RewoundFiles,
  toRewoundFiles,
} from "./rewind.ts";
import { loadVisible, omitReverted } from "../conversation/visible-messages.ts";

export interface UndoDeps {
  workspace: Workspace;
  transcript: Transcript;
  writer: SessionWriter;
  diff: SessionDiff;
  /** All messages of the session, newest first, including undone ones. */
  messagesFromNewest: () => AsyncIterable<Message>;
  /** The current undo, if any. */
  revert(): Revert | undefined;
  /** Changes the stored session; it is on disk after the writer is flushed. */
  save(change: Pick<SessionInfo, "revert" | "summary">): Promise<void>;
  /** Called when the visible messages have changed. */
  onShown(): Promise<void>;
}

/** Default and maximum number of checkpoints in a list. */
const defaultCheckpoints = 20;
const checkpointLimit = 500;

const nothingToUndo = "There is no turn to undo.";
const nothingToRedo = "There is nothing to redo. /redo works until you send the next message.";

/**
 * Undoes and redoes turns, files and messages. The operation is stored before the first file changes, and each step
 * is repeatable: {@link recoverSession} completes an interrupted one.
 */
export class Undo {
  readonly #deps: UndoDeps;
  readonly #serial = new Serial();

  constructor(deps: UndoDeps) {
    this.#deps = deps;
  }

  /** Undoes the last turn, the last few (a number), or a checkpoint (its name) and all after it. */
  undo(target: string): Promise<string> {
    return this.#serial.run(async () => {
      const completed = await this.#complete();
      if (completed !== undefined) return completed;
      const chosen = await this.#choose(target);
      if ("problem" in chosen) return chosen.problem;
      const { revert } = chosen;
      const running = describeRunningTask(await this.#messagesOf(revert));
      if (running !== undefined) return running;
      await this.#store({ revert });
      return this.#undo(revert);
    });
  }

  /** Redoes the last undo. */
  redo(): Promise<string> {
    return this.#serial.run(async () => {
      const completed = await this.#complete();
      if (completed !== undefined) return completed;
      const undone = this.#deps.revert();
      if (undone === undefined) return nothingToRedo;
      const revert: Revert = { ...undone, state: "redoing" };
      await this.#store({ revert });
      return this.#redo(revert);
    });
  }

  /** Rewinds files, the conversation or both to a message. */
  rewind(target: RewindTarget, options: RewindOptions): Promise<RewindOutcome> {
    return this.#serial.run(async () => {
      await this.#complete();
      const found = await this.#findTarget(target.point);
      if (found === undefined) return { outcome: "unknown message" };
      const { at, later } = found;
      if (target.isDropped && !startsTurn(at)) return { outcome: "not a turn" };
      const dropped = target.isDropped ? [at, ...later] : later;
      const problem = options.isDryRun ? undefined : describeRunningTask(dropped);
      if (problem !== undefined) return { outcome: "task runs", problem };
      const result = await (options.isDryRun
        ? this.#previewRewind(dropped, options)
        : this.#rewind(dropped, options));
      return { outcome: "rewound", result };
    });
  }

  /** Returns the newest turns, oldest first. */
  async rewindPoints(): Promise<RewindPoint[]> {
    const found: Checkpoint[] = [];
    for await (const checkpoint of this.#visibleCheckpoints()) {
      found.push(checkpoint);
      if (found.length > checkpointLimit) break;
    }
    const points = found.slice(0, checkpointLimit).map(async ({ id, words, messages }, index) => {
      const previousId = await findLastId(found[index + 1]?.messages.toReversed() ?? []);
      const [question] = messages;
      return { id: question === undefined ? id : clientIdOf(question.info), words, previousId };
    });
    return (await Promise.all(points)).reverse();
  }

  /** Lists the turns that can be undone, newest first; `count` as typed. */
  async checkpoints(count: string): Promise<string> {
    if (!/^\d*$/.test(count)) return "Write a number after the command: `/checkpoints 50`.";
    const wanted = Math.min(Math.max(1, Number(count || defaultCheckpoints)), checkpointLimit);
    const found: Checkpoint[] = [];
    for await (const checkpoint of this.#visibleCheckpoints()) {
      found.push(checkpoint);
      if (found.length > wanted) break;
    }
    const isUndone = this.#deps.revert() !== undefined;
    return checkpointsText(found.slice(0, wanted), found.length > wanted, isUndone);
  }

  /** Makes the current undo final by removing its messages. Waits for running operations. */
  settle(): Promise<void> {
    return this.#serial.run(async () => {
      await this.#complete();
      const revert = this.#deps.revert();
      if (revert !== undefined) await this.#discard(revert);
    });
  }

  /** Completes what a killed process started. Returns a notice for the user. */
  recover(): Promise<string | undefined> {
    return this.#serial.run(() => this.#complete());
  }

  async #complete(): Promise<string | undefined> {
    const revert = this.#deps.revert();
    switch (revert?.state) {
      case undefined:
      case "undone":
        return undefined;
      case "undoing":
        return `Completed an interrupted undo.\n\n${await this.#undo(revert)}`;
      case "redoing":
        return `Completed an interrupted redo.\n\n${await this.#redo(revert)}`;
      case "discarding":
        await this.#discard(revert);
        return undefined;
    }
  }

  async #undo(revert: Revert): Promise<string> {
    const messages = await this.#messagesOf(revert);
    const files = await this.#apply(planRevert(fileSteps(changesOf(messages))));
    await this.#show({ ...revert, state: "undone" });
    return this.#report({ direction: "undo", messages, files, canRedo: true });
  }

  /** Returns the visible message of the point, and those after it, oldest first. */
  async #findTarget(point: string): Promise<{ at: Message; later: Message[] } | undefined> {
    const later: Message[] = [];
    for await (const message of omitReverted(this.#deps.messagesFromNewest(), this.#deps.revert())) {
      if (hasClientId(message, point)) return { at: message, later: later.reverse() };
      later.push(message);
    }
    return undefined;
  }

  async #previewRewind(dropped: readonly Message[], { mode }: RewindOptions): Promise<RewindResult> {
    const changes = changesOf(dropped);
    const plan = mode === "conversation" ? [] : planRevert(fileSteps(changes));
    const preview = await previewReverts(this.#deps.workspace, plan);
    return this.#toResult(dropped, mode, toRewoundFiles(preview, changes));
  }

  /** Changes the files before the conversation, as an undo does. */
  async #rewind(dropped: readonly Message[], { mode }: RewindOptions): Promise<RewindResult> {
    const changes = changesOf(dropped);
    const revert = mode === "files" ? undefined : await this.#createRewind(dropped);
    if (mode === "both" && revert !== undefined) await this.#store({ revert });
    const plan = mode === "conversation" ? [] : planRevert(fileSteps(changes));
    const files = toRewoundFiles(await this.#apply(plan), changes);
    if (revert !== undefined) await this.#show({ ...revert, state: "undone" });
    return this.#toResult(dropped, mode, files);
  }

  async #toResult(
    dropped: readonly Message[],
    mode: RewindOptions["mode"],
    files: RewoundFiles,
  ): Promise<RewindResult> {
    const visible = omitReverted(this.#deps.messagesFromNewest(), this.#deps.revert());
    return {
      ...(mode !== "conversation" && { files }),
      ...(mode !== "files" && { droppedMessages: dropped.length }),
      lastId: await findLastId(visible),
    };
  }

  /** Creates the undo that drops the messages; undefined if there are none. */
  async #createRewind(dropped: readonly Message[]): Promise<Revert | undefined> {
    const [first, last] = [dropped[0], dropped.at(-1)];
    if (first === undefined || last === undefined) return undefined;
    let before = this.#deps.revert();
    // Each undo must go further back than the one before it.
    if (before !== undefined && first.info.id > before.through) {
      await this.#discard(before);
      before = undefined;
    }
    const through = before === undefined || last.info.id > before.through ? last.info.id : before.through;
    return { state: "undoing", from: [...(before?.from ?? []), first.info.id], through };
  }

  async #redo(revert: Revert): Promise<string> {
    const messages = await this.#messagesOf(revert);
    const files = await this.#apply(planRevert(fileSteps(changesOf(messages))).map(reverse));
    const from = revert.from.slice(0, -1);
    const rest: Revert | undefined = from.length === 0 ? undefined : { ...revert, state: "undone", from };
    await this.#show(rest);
    return this.#report({ direction: "redo", messages, files, canRedo: rest !== undefined });
  }

  async #discard(revert: Revert): Promise<void> {
    await this.#store({ revert: { ...revert, state: "discarding" } });
    const ids: MessageId[] = [];
    for await (const { info } of this.#deps.messagesFromNewest()) {
      if (isReverted(info.id, revert)) ids.push(info.id);
      if (info.id < (revert.from.at(-1) ?? "")) break;
    }
    await this.#deps.writer.removeMessages(ids);
    await this.#store({ revert: undefined });
  }

  async #apply(plan: readonly FileRevert[]): Promise<{ revert: FileRevert; outcome: FileOutcome }[]> {
    const files: { revert: FileRevert; outcome: FileOutcome }[] = [];
    // A file may have taken the place of a folder, or a folder that of a file.
    const removedFirst = plan.toSorted((one, other) => Number(removes(other)) - Number(removes(one)));
    for (const revert of removedFirst) files.push({ revert, outcome: await this.#applyOne(revert) });
    return files.sort((one, other) => (one.revert.path < other.revert.path ? -1 : 1));
  }

  async #applyOne(revert: FileRevert): Promise<FileOutcome> {
    if (revert.reach === "none") return { kept: "its content was too large to store" };
    return revertFile(this.#deps.workspace, revert);
  }

  /** Updates the visible messages in the session's diff, on disk and for the model. */
  async #show(revert: Revert | undefined): Promise<void> {
    const { diff, transcript } = this.#deps;
    const summary = await diff.rebuild(omitReverted(this.#deps.messagesFromNewest(), revert));
    await this.#store({ revert, summary });
    transcript.show(await loadVisible(omitReverted(this.#deps.messagesFromNewest(), revert)));
    await this.#deps.onShown();
  }

  /** Returns the messages of the newest undo, oldest first. */
  async #messagesOf({ from, through }: Revert): Promise<Message[]> {
    const first = from.at(-1) ?? "";
    const end = from.at(-2);
    const found: Message[] = [];
    for await (const message of this.#deps.messagesFromNewest()) {
      const { id } = message.info;
      if (id < first) break;
      if (end === undefined ? id <= through : id < end) found.push(message);
    }
    return found.reverse();
  }

  async #choose(target: string): Promise<{ revert: Revert } | { problem: string }> {
    const wanted = parseCheckpoint(target);
    if (wanted === undefined) {
      return { problem: "Write a number of turns or a name from `/checkpoints`: `/undo 2`." };
    }
    const chosen: Checkpoint[] = [];
    for await (const checkpoint of this.#visibleCheckpoints()) {
      chosen.push(checkpoint);
      if (wanted(checkpoint, chosen.length)) return { revert: this.#revertOf(chosen) };
    }
    if (chosen.length === 0) return { problem: nothingToUndo };
    const turns = chosen.length === 1 ? "is only 1 turn" : `are ${chosen.length} turns`;
    return {
      problem: `Checkpoint "${target}" not found; there ${turns} to undo. \`/checkpoints\` lists them.`,
    };
  }

  #revertOf(chosen: readonly Checkpoint[]): Revert {
    const before = this.#deps.revert();
    const [oldest, newest] = [chosen.at(-1), chosen[0]];
    const last = newest?.messages.at(-1);
    if (oldest === undefined || last === undefined) throw new Error("no checkpoint was chosen");
    return {
      state: "undoing",
      from: [...(before?.from ?? []), oldest.id],
      through: before?.through ?? last.info.id,
    };
  }

  #visibleCheckpoints(): AsyncIterable<Checkpoint> {
    return readCheckpoints(omitReverted(this.#deps.messagesFromNewest(), this.#deps.revert()));
  }

  #report(done: Pick<Reverted, "direction" | "files" | "canRedo"> & { messages: Message[] }): string {
    const { messages, ...rest } = done;
    const { cwd } = this.#deps.workspace;
    const turns = messages.filter(startsTurn).map(firstWords).reverse();
    const reverted: Reverted = {
      ...rest,
      turns,
      commands: partlyTrackedCommandsOf(messages),
      interrupted: interruptedEditsOf(messages),
    };
    return reportText(reverted, cwd);
  }

  async #store(change: Pick<SessionInfo, "revert" | "summary">): Promise<void> {
    await this.#deps.save(change);
    await this.#deps.writer.flush();
  }
}

/** Returns why messages cannot be undone now: a background task that they started could still change files. */
function describeRunningTask(messages: readonly Message[]): string | undefined {
  const parts = messages.flatMap((message) => message.parts);
  const isRunning = (part: Part) => part.type === "tool" && part.tool === "task" && hasRunningJob(part.state);
  const call = parts.find(isRunning);
  if (call?.type !== "tool" || call.state.status !== "completed") return undefined;
  const id = call.state.job?.id;
  return `Nothing is undone yet: job ${id} (${call.title ?? call.tool}) still works and may change files. Wait for its end or stop it with \`/jobs stop ${id}\`, then try again.`;
}
