import { formatPath } from "../workspace/paths.ts";
import type { PartlyTrackedCommand } from "../tool/tool.ts";
import type { Checkpoint } from "../conversation/checkpoints.ts";
import { changesOf, nameOf } from "../conversation/checkpoints.ts";
import type { FileOutcome, FileRevert } from "./revert.ts";

/** Result of one undo or redo, for the user. */
export interface Reverted {
  readonly direction: "undo" | "redo";
  /** The first words of each turn, newest first. */
  readonly turns: readonly string[];
  readonly files: readonly { readonly revert: FileRevert; readonly outcome: FileOutcome }[];
  /** Commands of the turns whose changes are not all undone. */
  readonly commands: readonly PartlyTrackedCommand[];
  /** Paths of edits that were cut off. */
  readonly interrupted: readonly string[];
  /** Whether `/redo` can continue. */
  readonly canRedo: boolean;
}

/** Maximum file lines in a report; skipped files come first. */
const fileLimit = 500;
const commandLimit = 5;
const commandLength = 80;

/** Reports what happened to every file and what cannot be reverted. Markdown. */
export function reportText(reverted: Reverted, cwd: string): string {
  const { direction, turns, canRedo } = reverted;
  const head = direction === "undo" ? `Undone: ${turnsText(turns)}.` : `Redone: ${turnsText(turns)}.`;
  const sees = direction === "undo" ? "The model no longer sees it." : "The model sees it again.";
  const again = "`/redo` restores all of this, until you send the next message.";
  const sections = [
    `${head} ${sees}`,
    filesText(reverted, cwd),
    keptAdvice(reverted),
    ...outOfReach(reverted, cwd),
  ];
  if (canRedo) sections.push(direction === "undo" ? again : "There is more to redo: send `/redo` again.");
  return sections.filter((section) => section !== "").join("\n\n");
}

/** Lists the turns, newest first, numbered as `/undo` counts them. */
export function checkpointsText(checkpoints: readonly Checkpoint[], more: boolean, undone: boolean): string {
  const note = undone ? "Send `/redo` to restore what was undone, until you send the next message." : "";
  if (checkpoints.length === 0) return note || "There are no checkpoints yet.";
  const lines = checkpoints.map((checkpoint, index) => `${index + 1}. ${checkpointText(checkpoint)}`);
  const end = more ? `Older ones: \`/checkpoints ${checkpoints.length * 2}\`.` : "";
  const how =
    "`/undo` undoes the newest turn, `/undo 2` the newest two, `/undo <name>` that turn and all after it.";
  return [lines.join("\n"), end, how, note].filter((section) => section !== "").join("\n\n");
}

function turnsText(turns: readonly string[]): string {
  return turns.length === 1 ? `the turn "${turns[0]}"` : `the last ${turns.length} turns`;
}

function checkpointText(checkpoint: Checkpoint): string {
  const { created, words, messages } = checkpoint;
  return `\`${nameOf(checkpoint)}\` · ${localTime(created)} · ${words} · ${changedText(messages)}`;
}

function changedText(messages: Checkpoint["messages"]): string {
  const changes = changesOf(messages);
  const files = new Set(changes.map(({ path }) => path)).size;
  if (files === 0) return "no files changed";
  const additions = changes.reduce((sum, change) => sum + change.additions, 0);
  const deletions = changes.reduce((sum, change) => sum + change.deletions, 0);
  return `${files} ${files === 1 ? "file" : "files"}, +${additions} -${deletions}`;
}

export function filesText({ files, direction }: Pick<Reverted, "files" | "direction">, cwd: string): string {
  if (files.length === 0) return "No file was changed in it.";
  const keptFirst = files.toSorted((one, other) => Number(isKept(other)) - Number(isKept(one)));
  const lines = keptFirst.slice(0, fileLimit).map(({ revert, outcome }) => {
    return `- ${formatPath(cwd, revert.path)}: ${outcomeText(outcome, revert, direction)}`;
  });
  const more = files.length - lines.length;
  return [...lines, ...(more > 0 ? [`- … and ${more} more files`] : [])].join("\n");
}

function isKept({ outcome }: Reverted["files"][number]): boolean {
  return typeof outcome === "object";
}

function outcomeText(outcome: FileOutcome, { reach }: FileRevert, direction: "undo" | "redo"): string {
  if (typeof outcome === "object") return `not changed, because ${outcome.kept}`;
  const done = { undo: undoneWords, redo: redoneWords }[direction][outcome];
  if (reach === "until-edited")
    return `${done}, but only the agent's last changes, because something else changed it before them`;
  if (reach === "until-not-kept")
    return `${done}, but only partly, because an earlier content was too large to store`;
  return done;
}

const undoneWords = {
  changed: "restored",
  made: "brought back",
  removed: "removed, because the agent had created it",
  unchanged: "was already as before",
};

const redoneWords = {
  changed: "changed again",
  made: "made again",
  removed: "deleted again",
  unchanged: "was already as the agent left it",
};

function keptAdvice({ files, direction }: Reverted): string {
  if (!files.some(isKept)) return "";
  const { other, state } =
    direction === "undo"
      ? { other: "`/redo`, then `/undo`", state: "the agent left" }
      : { other: "`/undo`, then `/redo`", state: "the undo left" };
  return `Edit the other files by hand, or restore what ${state} and send ${other} to try again.`;
}

export function outOfReach(
  { commands, interrupted }: Pick<Reverted, "commands" | "interrupted">,
  cwd: string,
): string[] {
  const paths = interrupted.map((path) => formatPath(cwd, path)).join(", ");
  return [
    commands.length === 0
      ? ""
      : `Not everything that its commands did is undone. Check these yourself:\n\n${commandsText(commands)}`,
    paths === ""
      ? ""
      : `The program ended while it changed ${paths}. It is unknown whether the change completed: check it yourself.`,
  ];
}

function commandsText(commands: readonly PartlyTrackedCommand[]): string {
  const shown = commands
    .slice(0, commandLimit)
    .map(({ command, reasons }) => `- \`${shorten(command)}\`: ${reasons.join("; ")}`);
  const more = commands.length - shown.length;
  return [...shown, ...(more > 0 ? [`- … and ${more} more commands`] : [])].join("\n");
}

function shorten(command: string): string {
  const line = command.replaceAll(/\s+/g, " ").replaceAll("`", "'");
  return line.length <= commandLength ? line : `${line.slice(0, commandLength - 1)}…`;
}

/** `2025-11-21 14:05`, in the time zone of this machine. */
function localTime(time: number): string {
  return new Date(time).toLocaleString("sv-SE").slice(0, "2025-11-21 14:05".length);
}
