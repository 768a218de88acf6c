import { mergeLines, revertLines, splitLines } from "../base/text/line-diff.ts";
import { isBelow } from "../base/files/paths.ts";
import { newPartId } from "../message/ids.ts";
import type { Message, UserInfo } from "../message/message.ts";
import type { ChangesPart, DropPart, FileChange, ListedChange } from "../message/part.ts";
import { startsTurn } from "../message/starts-turn.ts";
import {
  changesByCalls,
  changesOf,
  fileSteps,
  firstWords,
  interruptedEditsOf,
  partlyTrackedCommandsOf,
  readCheckpoints,
} from "../conversation/checkpoints.ts";
import { droppedChangesReminder } from "../conversation/reminders.ts";
import { omitReverted } from "../conversation/visible-messages.ts";
import { formatPath, toAbsolute } from "../workspace/paths.ts";
import { parseCheckpoint } from "./checkpoint-name.ts";
import { listChange, loadLines, type NumberedItem, numberItems } from "./change-list.ts";
import { findNetChanges, type StoredContent, toMergeableText } from "./net-changes.ts";
import {
  type FileOutcome,
  type FileRevert,
  findThing,
  planRevert,
  removes,
  reverse,
  revertFile,
} from "./revert.ts";
import {
  afterDrop,
  describeCard,
  describeChanges,
  describeDrop,
  describeForModel,
  describeScope,
  type RefusedItem,
} from "./review-text.ts";
import { previewRevert } from "./rewind.ts";
import type { UndoDeps } from "./undo.ts";
import { filesText, outOfReach } from "./undo-report.ts";

/** The answer to `/changes`: a list, and the changes for the client to show. */
export interface ChangesAnswer {
  readonly text: string;
  readonly part?: ChangesPart;
}

/** The changes of a turn or of the session. */
interface Scope {
  /** First words of the turn; undefined for the session. */
  readonly turn: string | undefined;
  /** Whether later turns have changed files too. */
  readonly isOlder?: boolean;
  /** Oldest first. */
  readonly messages: readonly Message[];
}

interface AppliedChange {
  readonly revert: FileRevert;
  readonly outcome: FileOutcome;
}

/** Changes to make for some items of one file. */
interface PlannedDrop {
  readonly items: readonly NumberedItem[];
  readonly changes: readonly FileChange[];
}

const nothingToShow = "No turn has changed files yet.";
const dropUsage =
  "Write what to drop: `/drop 2`, `/drop 2 4`, `/drop 2-4`, `/drop src/a.ts` or `/drop all`. `/changes` numbers the changes.";

/** Shows the agent's changes and undoes single ones. */
export class Review {
  readonly #deps: UndoDeps;
  readonly #settle: () => Promise<void>;

  /** `settle` makes the current undo final. */
  constructor(deps: UndoDeps, settle: () => Promise<void>) {
    this.#deps = deps;
    this.#settle = settle;
  }

  /**
   * Lists the changes of the last turn that changed files. `typed`: `all` for the session or a checkpoint for its turn,
   * and a file or folder.
   */
  async list(typed: string): Promise<ChangesAnswer> {
    const [first, rest] = splitFirstWord(typed.replaceAll("`", "").trim());
    const { cwd } = this.#deps.workspace;
    const turn = first === "all" ? undefined : await this.#loadTurn(first);
    const scope = turn ?? (await this.#loadScope(first === "all"));
    if (turn === undefined && isNumber(first))
      return {
        text: `There is no turn ${first}. \`/checkpoints\` numbers the turns; \`/changes ./${first}\` is a file.`,
      };
    if (scope === undefined) return { text: nothingToShow };
    const isScopeNamed = first === "all" || turn !== undefined;
    const path = (isScopeNamed ? rest : `${first} ${rest}`.trim()).replace(/^@/, "");
    const files = await this.#listFiles(scope);
    if (files.length === 0)
      return { text: `Nothing is left of the changes of ${describeScope(scope.turn)}.` };
    const paths = path === "" ? files.map(({ change }) => change.path) : this.#findPaths(files, path);
    if (paths.length === 0) return { text: this.#describeUnknownPath(path, files) };
    const list = {
      ...(scope.turn !== undefined && { turn: scope.turn }),
      ...(scope.isOlder === true && { isOlder: true as const }),
      files,
    };
    const card = describeCard(list, paths, cwd);
    return {
      text: describeChanges(list, paths, cwd),
      part: { id: newPartId(), type: "changes", ...list, ...card },
    };
  }

  /** Undoes the changes with these numbers, those of a file or folder, or all. */
  async drop(typed: string): Promise<string> {
    const target = typed.replaceAll("`", "").trim();
    if (target === "") return dropUsage;
    const shown = await this.#findShownList();
    if (target === "all" && shown?.isOlder === true) return this.#dropItems(numberItems(shown.files));
    if (target === "all") return this.#dropAll(shown !== undefined && shown.turn === undefined);
    const numbers = parseNumbers(target);
    if (numbers === undefined) return this.#dropPath(target, shown);
    if (shown === undefined)
      return "The agent has changed files since the last list, or there is none. Send `/changes` to see the numbers, then `/drop 2`.";
    const items = numberItems(shown.files);
    const unknown = numbers.filter((number) => !items.some((item) => item.number === number));
    if (unknown.length > 0)
      return `There is no change ${unknown.join(", ")}: \`/changes\` listed 1 to ${items.length}.`;
    return this.#dropItems(items.filter(({ number }) => numbers.includes(number)));
  }

  /** Restores what the last drop removed. Returns undefined if there is none since the last turn. */
  async redo(): Promise<string | undefined> {
    const dropped = await this.#findLastDrop();
    if (dropped === undefined) return undefined;
    const changes = dropped.map(invert).reverse();
    const applied = await this.#apply({ changes, isRedo: true });
    const { cwd } = this.#deps.workspace;
    return `Restored what the last \`/drop\` removed.\n\n${filesText({ files: applied, direction: "redo" }, cwd)}`;
  }

  /** Completes a drop that a killed process started. Returns a notice for the user. */
  async recover(): Promise<string | undefined> {
    const { transcript, workspace } = this.#deps;
    for (const { info, parts } of transcript.messages) {
      const part = parts.find((one) => one.type === "drop");
      if (part === undefined || part.isDone || info.role !== "user") continue;
      const files = await this.#complete(info, part);
      return `Completed an interrupted drop.\n\n${filesText({ files, direction: "undo" }, workspace.cwd)}`;
    }
    return undefined;
  }

  async #dropPath(target: string, shown: ChangesPart | undefined): Promise<string> {
    const scope = shown === undefined ? await this.#loadScope(false) : undefined;
    const files = shown?.files ?? (scope === undefined ? [] : await this.#listFiles(scope));
    if (files.length === 0) return nothingToShow;
    const paths = this.#findPaths(files, target);
    if (paths.length === 0) return this.#describeUnknownPath(target, files);
    return this.#dropItems(numberItems(files).filter(({ file }) => paths.includes(file.change.path)));
  }

  /** Undoes what an undo of the same turns would, and keeps the conversation. */
  async #dropAll(isSession: boolean): Promise<string> {
    const scope = await this.#loadScope(isSession);
    if (scope === undefined) return nothingToShow;
    const { messages, turn } = scope;
    const plan = planRevert(fileSteps(changesOf(messages)));
    const applied = await this.#apply({ changes: plan.flatMap(toFileChange) });
    const outcomes = new Map(applied.map(({ revert, outcome }) => [revert.path, outcome]));
    const files = plan.map((revert) => {
      const kept = { kept: "its content was too large to store" };
      const outcome = revert.reach === "none" ? kept : (outcomes.get(revert.path) ?? "unchanged");
      return { revert, outcome };
    });
    const { cwd } = this.#deps.workspace;
    const isKept = files.some(({ outcome }) => typeof outcome === "object");
    const sections = [
      `Dropped: all changes of ${describeScope(turn)}. The conversation stays.`,
      filesText({ files, direction: "undo" }, cwd),
      isKept
        ? "A file that was edited since is left as it is: `/changes` numbers its changes, and `/drop` with a number undoes those that the edits did not touch."
        : "",
      ...outOfReach(
        { commands: partlyTrackedCommandsOf(messages), interrupted: interruptedEditsOf(messages) },
        cwd,
      ),
      applied.some(isApplied) ? afterDrop : "",
    ];
    return sections.filter((section) => section !== "").join("\n\n");
  }

  async #dropItems(items: readonly NumberedItem[]): Promise<string> {
    const refused: RefusedItem[] = [];
    const planned: PlannedDrop[] = [];
    for (const [file, ownItems] of Map.groupBy(items, (item) => item.file)) {
      const { isFree = [], isContested = [] } = Object.groupBy(ownItems, ({ item }) =>
        item.isContested ? "isContested" : "isFree",
      );
      refused.push(...isContested.map((item) => ({ item, reason: "the same place was edited since" })));
      if (isFree.length === 0) continue;
      const plan = await this.#planFile(file.change, isFree);
      refused.push(...plan.refused);
      if (plan.items.length > 0) planned.push(plan);
    }
    const applied = await this.#apply({ changes: planned.flatMap(({ changes }) => changes) });
    const dropped = planned.flatMap(({ items: own, changes }) => {
      const kept = applied.flatMap(({ revert, outcome }) =>
        typeof outcome === "object" && changes.some(({ path }) => path === revert.path) ? [outcome.kept] : [],
      );
      const [reason] = kept;
      if (reason === undefined) return own;
      refused.push(...own.map((item) => ({ item, reason })));
      return [];
    });
    refused.sort((one, other) => one.item.number - other.item.number);
    return describeDrop(dropped, refused, this.#deps.workspace.cwd);
  }

  async #planFile(
    file: FileChange,
    items: readonly NumberedItem[],
  ): Promise<PlannedDrop & { refused: RefusedItem[] }> {
    const refuse = (reason: string) => ({
      items: [],
      changes: [],
      refused: items.map((item) => ({ item, reason })),
    });
    const has = (kind: string) => items.some(({ item }) => item.kind === kind);
    if (has("not-stored")) return refuse("its content was too large to store");
    if (has("created") || has("deleted") || has("link"))
      return { items, changes: [invert(file)], refused: [] };
    const now = await this.#storeNow(file.path, undefined);
    if (now === null) return refuse("it has been deleted since");
    if (now === undefined) return refuse("it is too large or cannot be read");
    const content = has("binary")
      ? { target: now === file.after ? file.before : undefined, dropped: items, refused: [] }
      : await this.#revertHunks(file, items, now);
    if (typeof content === "string") return refuse(content);
    const { target, dropped, refused } = content;
    if (typeof target !== "string") return refuse("it has changed since");
    const mode = file.newMode ?? file.mode;
    const nextMode = has("mode") ? file.mode : mode;
    const counts = { additions: 0, deletions: 0 };
    if (!has("renamed") || file.fromPath === undefined) {
      const isSame = now === target && nextMode === mode;
      const modes = { ...(mode !== undefined && { mode }), ...(nextMode !== mode && { newMode: nextMode }) };
      const { path } = file;
      const change = { path, operation: "update" as const, before: now, after: target, ...counts, ...modes };
      return { items: dropped, changes: isSame ? [] : [change], refused };
    }
    const changes: FileChange[] = [
      { path: file.path, operation: "delete", before: now, after: null, ...counts, mode },
      { path: file.fromPath, operation: "add", before: null, after: target, ...counts, mode: nextMode },
    ];
    const obstacle = await this.#findObstacle(changes);
    return obstacle === undefined ? { items: dropped, changes, refused } : refuse(obstacle);
  }

  /** Reverts hunks in the file as it is now. Returns the reason if the file cannot be merged. */
  async #revertHunks(file: FileChange, items: readonly NumberedItem[], now: string) {
    const { snapshots } = this.#deps.workspace;
    const hunkItems = items.filter(({ item }) => item.kind === "hunk");
    if (hunkItems.length === 0) return { target: now, dropped: items, refused: [] };
    const listed = await loadLines(file, snapshots);
    const text = toMergeableText(await snapshots.load(now));
    if (listed === undefined) return "its contents are no longer stored";
    if (text === undefined) return "it is no longer a text file";
    let lines: readonly string[] = splitLines(text);
    const refused: RefusedItem[] = [];
    for (const item of hunkItems) {
      const hunk = listed.hunks[item.hunkIndex];
      const without = revertLines(listed.old, listed.fresh, hunk?.changes ?? []);
      const merged = mergeLines(listed.fresh, lines, without);
      if (merged.hasConflict) refused.push({ item, reason: "the same lines have changed since" });
      else if (merged.lines.join("") === lines.join("")) refused.push({ item, reason: "it is already gone" });
      else lines = merged.lines;
    }
    const target = await snapshots.save(Buffer.from(lines.join("")));
    const dropped = items.filter((item) => !refused.some((one) => one.item === item));
    return { target, dropped, refused };
  }

  async #findObstacle(changes: readonly FileChange[]): Promise<string | undefined> {
    for (const revert of planRevert(fileSteps(changes))) {
      const outcome = await previewRevert(this.#deps.workspace, reverse(revert));
      if (typeof outcome === "object") return outcome.kept;
    }
    return undefined;
  }

  /** Stores the intent, changes the files, and adds a reminder for the model. */
  async #apply({ changes, isRedo }: { changes: readonly FileChange[]; isRedo?: true }) {
    if (changes.length === 0) return [];
    await this.#settle();
    const { transcript, writer } = this.#deps;
    const info = this.#createInfo();
    const part: DropPart = {
      id: newPartId(),
      type: "drop",
      changes: [...changes],
      ...(isRedo && { isRedo }),
      isDone: false,
    };
    transcript.addMessage(info);
    transcript.putPart(info.id, part);
    await writer.flush();
    return this.#complete(info, part);
  }

  /** Repeatable: files that are already changed stay as they are. */
  async #complete(info: UserInfo, part: DropPart): Promise<AppliedChange[]> {
    const { transcript, workspace } = this.#deps;
    const plan = planRevert(fileSteps(part.changes)).map(reverse);
    // A file may have taken the place of a folder, or a folder that of a file.
    const removedFirst = plan.toSorted((one, other) => Number(removes(other)) - Number(removes(one)));
    const applied: AppliedChange[] = [];
    for (const revert of removedFirst) {
      if (revert.reach === "none") continue;
      applied.push({ revert, outcome: await revertFile(workspace, revert) });
    }
    const paths = new Set(applied.filter(isApplied).map(({ revert }) => revert.path));
    const changes = part.changes.filter(({ path }) => paths.has(path));
    if (changes.length > 0) {
      const described = await describeForModel(changes, workspace.snapshots, workspace.cwd);
      const text = droppedChangesReminder(described, part.isRedo === true);
      transcript.putPart(info.id, { id: newPartId(), type: "text", text, synthetic: true });
    }
    transcript.putPart(info.id, { ...part, changes, isDone: true });
    await transcript.seal(info.id);
    await this.#deps.onShown();
    return applied.sort((one, other) => (one.revert.path < other.revert.path ? -1 : 1));
  }

  #createInfo(): UserInfo {
    const { transcript } = this.#deps;
    const question = transcript.messages.findLast(({ info }) => info.role === "user")?.info;
    if (question?.role !== "user") throw new Error("a drop without a question");
    const { steering: _, injectId: _injectId, ...info } = question;
    return { ...info, id: transcript.newMessageId(), time: { created: Date.now() } };
  }

  async #listFiles({ messages }: Scope): Promise<ListedChange[]> {
    const { snapshots } = this.#deps.workspace;
    const readNow = (path: string, known: StoredContent) => this.#storeNow(path, known);
    const nets = await findNetChanges(changesOf(messages), { snapshots, readNow });
    const files: ListedChange[] = [];
    for (const net of nets) files.push(await listChange(net, snapshots));
    return files;
  }

  /** Returns the hash of a file's content, stored unless it is the known one; undefined if it cannot be stored. */
  async #storeNow(path: string, known: StoredContent): Promise<StoredContent> {
    const { files, snapshots } = this.#deps.workspace;
    try {
      const { hash, isLink } = await findThing(files, path);
      if (hash === known || hash === null || isLink) return hash;
      return await snapshots.save((await files.read(path)).bytes);
    } catch {
      // A folder, a device, or a file that is too large.
      return undefined;
    }
  }

  /** Returns the whole session, or the last turn whose calls changed files and everything after it. */
  async #loadScope(isSession: boolean): Promise<Scope | undefined> {
    const found: Message[] = [];
    let hasChanges = false;
    for await (const message of this.#visibleMessages()) {
      found.push(message);
      hasChanges ||= changesByCalls(message).length > 0;
      if (!isSession && hasChanges && startsTurn(message))
        return { turn: firstWords(message), messages: found.reverse() };
    }
    return hasChanges ? { turn: undefined, messages: found.reverse() } : undefined;
  }

  /** Returns the turn of a checkpoint, by its number or name; undefined if there is none. */
  async #loadTurn(typed: string): Promise<Scope | undefined> {
    const isWanted = typed === "" ? undefined : parseCheckpoint(typed);
    if (isWanted === undefined) return undefined;
    let count = 0;
    let isOlder = false;
    for await (const checkpoint of readCheckpoints(this.#visibleMessages())) {
      const { words, messages } = checkpoint;
      if (isWanted(checkpoint, ++count)) return { turn: words, messages, isOlder };
      isOlder ||= messages.some((message) => changesByCalls(message).length > 0);
    }
    return undefined;
  }

  /** Returns the newest list, unless the agent has changed files since. */
  async #findShownList(): Promise<ChangesPart | undefined> {
    for await (const message of this.#visibleMessages()) {
      const part = message.parts.find((one) => one.type === "changes");
      if (part !== undefined) return part;
      if (changesByCalls(message).length > 0) return undefined;
    }
    return undefined;
  }

  /** Returns the changes of the newest drop since the last turn that was not restored. */
  async #findLastDrop(): Promise<readonly FileChange[] | undefined> {
    let redone = 0;
    for await (const message of this.#visibleMessages()) {
      if (startsTurn(message)) return undefined;
      const part = message.parts.find((one) => one.type === "drop");
      if (part === undefined || part.changes.length === 0) continue;
      if (part.isRedo) redone++;
      else if (redone > 0) redone--;
      else return part.changes;
    }
    return undefined;
  }

  #visibleMessages(): AsyncIterable<Message> {
    return omitReverted(this.#deps.messagesFromNewest(), this.#deps.revert());
  }

  /** Returns the paths of the files that are, were, or are below the typed path. */
  #findPaths(files: readonly ListedChange[], typed: string): string[] {
    const path = toAbsolute(typed, this.#deps.workspace);
    const isNamed = (one: string | undefined) => one !== undefined && (one === path || isBelow(one, path));
    return files.flatMap(({ change }) =>
      isNamed(change.path) || isNamed(change.fromPath) ? [change.path] : [],
    );
  }

  #describeUnknownPath(typed: string, files: readonly ListedChange[]): string {
    const { cwd } = this.#deps.workspace;
    const known = files.slice(0, namedFiles).map(({ change }) => formatPath(cwd, change.path));
    const more = files.length > known.length ? ` and ${files.length - known.length} more` : "";
    return `The agent changed nothing in "${typed}". Changed files: ${known.join(", ")}${more}.`;
  }
}

/** Files that a message names. */
const namedFiles = 10;
const numberLimit = 100_000;

function splitFirstWord(text: string): [first: string, rest: string] {
  const [first = ""] = /^\S*/.exec(text) ?? [];
  return [first, text.slice(first.length).trim()];
}

function isNumber(text: string): boolean {
  return /^\d+$/.test(text);
}

/** Parses `2 4`, `2,4` and `2-4`; undefined for other texts. */
function parseNumbers(text: string): number[] | undefined {
  const words = text.split(/[\s,]+/).filter((word) => word !== "");
  const ranges = words.map((word) => /^(\d{1,6})(?:[-–](\d{1,6}))?$/.exec(word));
  const numbers = ranges.flatMap((range) => {
    const first = Number(range?.[1]);
    const last = Math.min(Number(range?.[2] ?? first), numberLimit);
    return Array.from({ length: Math.max(1, last - first + 1) }, (_, index) => first + index);
  });
  return ranges.includes(null) || numbers.length === 0 ? undefined : numbers;
}

/** Returns the opposite change. */
function invert(change: FileChange): FileChange {
  const { path, before, after, additions, deletions, mode, newMode, wasLink, isLink } = change;
  return {
    path,
    operation: after === null ? "add" : before === null ? "delete" : "update",
    before: after,
    after: before,
    additions: deletions,
    deletions: additions,
    ...((newMode ?? mode) !== undefined && { mode: newMode ?? mode }),
    ...(newMode !== undefined && { newMode: mode }),
    ...(isLink && { wasLink: isLink }),
    ...(wasLink && { isLink: wasLink }),
  };
}

/** Returns the change that a revert makes. */
function toFileChange(revert: FileRevert): FileChange[] {
  if (revert.reach === "none") return [];
  const { path, left: after, back: before, mode, newMode, wasLink, isLink } = revert;
  const metadata = { mode, newMode, wasLink, isLink };
  if (before === after && newMode === undefined && wasLink === isLink) return [];
  return [invert({ path, operation: "update", before, after, additions: 0, deletions: 0, ...metadata })];
}

function isApplied({ outcome }: AppliedChange): boolean {
  return typeof outcome !== "object" && outcome !== "unchanged";
}
