import { toSlashes } from "../base/files/paths.ts";
import { extname, relative } from "node:path";
import { isPlanFile } from "../agent/plan-files.ts";
import type { Activity, ChangedPath } from "../message/activity.ts";
import type { CommandRun, CheckKind, EvidencePart } from "../message/part.ts";
import { analyzeShell } from "../shell/analysis.ts";
import type { ShellContext, ShellEffect } from "../shell/facts.ts";
import { type LineCommand, splitLine } from "../shell/line-commands.ts";
import { formatPath } from "../workspace/paths.ts";
import { listChanges } from "./activity.ts";
import { findCheckKinds, isHarmless, mayBeCheck, rewritesFiles } from "./checks.ts";
import { findClaims } from "./claims.ts";

/** Maximum number of listed files, commands and calls; of commands and calls the newest stay. */
const fileLimit = 40;
const runLimit = 20;
/** Longest shown command line, in characters. */
const commandLength = 160;

export type EvidenceFacts = Omit<EvidencePart, "id" | "type">;

export interface Evidence {
  readonly facts: EvidenceFacts;
  /** Set if the model should be reminded before the turn ends: of a claim, or that nothing was run. */
  readonly reminder: "claim" | "nothing" | undefined;
}

/** The session's folder and the user's home, both absolute. */
export interface EvidenceFolders {
  readonly cwd: string;
  readonly home: string;
}

/** Compares what a turn changed with what it ran, and both with the model's last text. Undefined if nothing changed. */
export function findEvidence(
  activities: readonly Activity[],
  text: string,
  folders: EvidenceFolders,
): Evidence | undefined {
  const events = activities.flatMap((activity) => toEvents(activity, folders));
  const files = listNetFiles(activities, folders);
  const changedBy = unique(events.flatMap((event) => (event.type === "rewrite" ? [event.command] : [])));
  if (files.length === 0 && changedBy.length === 0) return undefined;
  const last = findLastChange(events);
  const after = events.slice(last + 1);
  const runsAfter = after.flatMap((event) => (event.type === "run" ? [event] : []));
  const calls = unique(after.flatMap((event) => (event.type === "call" ? [event.title] : [])));
  const ranBefore = events.slice(0, last + 1).flatMap((event) => (event.type === "run" ? [event.run] : []));
  const before = ranBefore.filter(({ kinds }) => kinds.length > 0);
  const unproven = findClaims(text).flatMap((claim) =>
    findProblem(claim, { after: runsAfter, before, hasCalls: calls.length > 0 }),
  );
  const shown = listNewest(runsAfter.map(({ run }) => run));
  const facts: EvidenceFacts = {
    files: files.slice(0, fileLimit).map((path) => formatPath(folders.cwd, path)),
    ...(files.length > fileLimit && { moreFiles: files.length - fileLimit }),
    ...(changedBy.length > 0 && { changedBy: changedBy.slice(-runLimit) }),
    after: shown,
    before: listNewest(before).filter(({ command }) => shown.every((run) => run.command !== command)),
    ...(calls.length > 0 && { calls: calls.slice(-runLimit) }),
    unproven,
  };
  return { facts, reminder: findReminder(events, facts) };
}

/** A run, and whether it may be a check although no known one. */
interface RunEvent {
  readonly type: "run";
  readonly run: CommandRun;
  readonly mayBeCheck: boolean;
}

type Event =
  | RunEvent
  /** `isText`: no check examines the file. */
  | { readonly type: "change"; readonly isText: boolean }
  /** A command changed files; `isNamed`: it names them. */
  | {
      readonly type: "rewrite";
      readonly command: string;
      readonly isNamed: boolean;
      readonly isText: boolean;
    }
  | { readonly type: "call"; readonly title: string }
  | { readonly type: "refusal" };

function toEvents(activity: Activity, folders: EvidenceFolders): Event[] {
  switch (activity.type) {
    case "change":
      return isPlanFile(activity.path, folders.cwd)
        ? []
        : [{ type: "change", isText: isTextFile(activity.path) }];
    case "call":
    case "refusal":
      return [activity];
    case "task": {
      const run: CommandRun = { command: shorten(activity.title), kinds: [], end: "running" };
      return [{ type: "run", run, mayBeCheck: false }];
    }
    case "command":
      return toCommandEvents(activity, folders);
  }
}

type CommandActivity = Activity & { type: "command" };

/** The changes of a command come before its run. */
function toCommandEvents(activity: CommandActivity, folders: EvidenceFolders): Event[] {
  const { cwd, home } = folders;
  const start = activity.folder ?? cwd;
  const context: ShellContext = {
    cwd,
    start,
    roots: [cwd],
    home,
    resolve: (path) => path,
    findCriticalReason: () => undefined,
    list: () => [],
  };
  const commands = splitLine(activity.command).map((command) => describeCommand(command, context));
  // What a check writes, such as snapshots, needs no other check.
  const isCheck = commands.some(({ kinds }) => kinds.length > 0);
  const changes = isCheck ? [] : listChanges(activity).filter((change) => isRelevant(change, folders));
  const written = changes.map(({ path }): Event => ({ type: "change", isText: isTextFile(path) }));
  const isAlone = commands.filter(({ isSetting }) => !isSetting).length <= 1;
  const events = commands.flatMap((command): Event[] => {
    const { rewrites, isHarmless: isQuiet } = command;
    const label = shorten(isAlone && command.exit === "shown" ? command.text : activity.command);
    const rewrite: Event[] = rewrites === undefined ? [] : [{ type: "rewrite", command: label, ...rewrites }];
    if (isQuiet || (rewrites !== undefined && command.kinds.length === 0)) return rewrite;
    const end = toRunEnd(activity, command);
    const name = end.end === "passed" ? shorten(command.text) : label;
    const run = { command: name, kinds: [...command.kinds], ...end };
    return [...rewrite, { type: "run", run, mayBeCheck: command.mayBeCheck }];
  });
  return [...written, ...events];
}

/** Whether a command's change counts: outputs and plans do not. */
function isRelevant({ path }: ChangedPath, { cwd }: EvidenceFolders): boolean {
  return !isPlanFile(path, cwd) && !outputPath.test(toSlashes(relative(cwd, path)));
}

function toRunEnd(activity: CommandActivity, { exit }: LineCommand): Pick<CommandRun, "end" | "exitCode"> {
  if (activity.end !== "exited") return { end: activity.end };
  if (exit === "background") return { end: "background" };
  const { exitCode } = activity;
  if (exit === "hidden") return { end: "hidden", ...(exitCode !== 0 && { exitCode }) };
  return exitCode === 0 ? { end: "passed" } : { end: "failed", exitCode };
}

interface DescribedCommand extends LineCommand {
  readonly kinds: readonly CheckKind[];
  readonly mayBeCheck: boolean;
  /** It neither runs nor builds the project. */
  readonly isHarmless: boolean;
  /** It only sets up the shell. */
  readonly isSetting: boolean;
  readonly rewrites: { readonly isNamed: boolean; readonly isText: boolean } | undefined;
}

/** A here-document is input; only its beginning is part of the command's text. */
const hereDocument = /<<-?\s*(?:'[^']*'|"[^"]*"|\\?\w+)/g;

function describeCommand(command: LineCommand, context: ShellContext): DescribedCommand {
  const effects = analyzeShell(command.text.replaceAll(hereDocument, ""), context).filter(
    ({ isAlternativeReading }) => isAlternativeReading !== true,
  );
  const runs = effects.filter(({ type }) => type === "run");
  const spellings = runs.flatMap(({ text, also = [] }) => [text, ...also]);
  const found = spellings.map(findCheckKinds).find((kinds) => kinds.length > 0);
  const kinds = found ?? findCheckKinds(command.text);
  const paths = kinds.length > 0 ? [] : listWrittenPaths(effects);
  const rewrites = spellings.some(rewritesFiles)
    ? { isNamed: false, isText: false }
    : paths.length > 0
      ? { isNamed: true, isText: paths.every(isTextFile) }
      : undefined;
  return {
    ...command,
    kinds,
    mayBeCheck: spellings.some(mayBeCheck),
    isHarmless: kinds.length === 0 && runs.every(({ text }) => isHarmless(text)),
    isSetting: /^(?:cd|export|set|source|\.|mkdir|echo|printf)(?:\s|$)/.test(command.text),
    rewrites,
  };
}

const folderCommand = /^(?:mkdir|rmdir)\s/;
/** Outputs of builds and tools, which no check examines. */
const outputPath =
  /(?:^|\/)(?:\.git|dist|build|out|target|node_modules|coverage|tmp|temp|\.cache|__pycache__)(?:\/|$)|\.(?:log|tmp|out|pid|bak|orig)$/;

/** Returns the files of the project that a command writes, as its text says. */
function listWrittenPaths(effects: readonly ShellEffect[]): string[] {
  if (effects.some(({ type, text }) => type === "run" && folderCommand.test(text))) return [];
  return effects
    .filter(({ type, opaque, glob }) => type === "write" && opaque === undefined && glob !== true)
    .map(({ text }) => text)
    .filter((path) => !/^(?:[/~]|\.\.\/)/.test(path) && !outputPath.test(path));
}

const textExtensions: ReadonlySet<string> = new Set(
  ".md .mdx .markdown .txt .text .rst .adoc .asciidoc .org .tex .csv .tsv .log .svg .png .jpg .jpeg .gif .webp .ico .pdf".split(
    " ",
  ),
);
const textNames =
  /(?:^|[\\/])(?:README|LICEN[CS]E|CHANGELOG|CONTRIBUTING|AUTHORS|NOTICE|TODO|CODEOWNERS|\.gitignore|\.gitattributes|\.editorconfig)$/i;

/** Whether tests, builds and linters usually do not examine a file. */
const isTextFile = (path: string): boolean =>
  textExtensions.has(extname(path).toLowerCase()) || textNames.test(path);

/** Returns the changed files, a moved one by its new path, without plans and those that are as before the turn. */
function listNetFiles(activities: readonly Activity[], folders: EvidenceFolders): string[] {
  const files = new Map<string, NetChange>();
  const changes = activities.flatMap((activity) =>
    listChanges(activity).filter((change) =>
      activity.type === "command" ? isRelevant(change, folders) : !isPlanFile(change.path, folders.cwd),
    ),
  );
  for (const { path, before, after, isMoved = false } of changes) {
    const known = files.get(path);
    files.set(path, { before: known === undefined ? before : known.before, after, isMoved });
  }
  return [...files].flatMap(([path, { before, after, isMoved }]) =>
    isMoved || (before === after && before !== undefined) ? [] : [path],
  );
}

/** A file before and after the turn; undefined if its content was not stored. */
interface NetChange {
  readonly before: string | null | undefined;
  readonly after: string | null | undefined;
  readonly isMoved: boolean;
}

/** Returns the index of the last change of something that checks examine, else of the last change. */
function findLastChange(events: readonly Event[]): number {
  const isChange = (event: Event) => event.type === "change" || event.type === "rewrite";
  const examined = events.findLastIndex((event) => isChange(event) && "isText" in event && !event.isText);
  return examined === -1 ? events.findLastIndex(isChange) : examined;
}

/** Returns why a claim is not proven; nothing if it is, or if an unknown command may have proven it. */
function findProblem(
  claim: CheckKind,
  {
    after,
    before,
    hasCalls,
  }: { after: readonly RunEvent[]; before: readonly CommandRun[]; hasCalls: boolean },
): EvidenceFacts["unproven"] {
  const isFor = ({ kinds }: CommandRun) => (claim === "check" ? kinds.length > 0 : kinds.includes(claim));
  const known = after.map(({ run }) => run).filter(isFor);
  const newest = known.at(-1);
  if (newest !== undefined) {
    const isProven = newest.end !== "failed" && known.some(({ end }) => end === "passed");
    return isProven ? [] : [{ claim, reason: "run", run: newest }];
  }
  const mayBeProven =
    hasCalls ||
    after.some((one) => one.run.kinds.includes("check") || (one.mayBeCheck && one.run.kinds.length === 0));
  if (mayBeProven) return [];
  const earlier = before.findLast(isFor);
  return [earlier === undefined ? { claim, reason: "none" } : { claim, reason: "before", run: earlier }];
}

/** Only an edit calls for a check: a formatter or a checkout after the tests does not. */
function findReminder(events: readonly Event[], { unproven }: EvidenceFacts): Evidence["reminder"] {
  const isEdit = (event: Event) =>
    (event.type === "change" || (event.type === "rewrite" && event.isNamed)) && !event.isText;
  const last = events.findLastIndex(isEdit);
  if (last === -1 || events.some(({ type }) => type === "refusal")) return undefined;
  // Where an exit code is hidden, the model has read the output.
  if (unproven.some(({ run }) => run?.end !== "hidden")) return "claim";
  return events.slice(last + 1).some(({ type }) => type === "run" || type === "call") ? undefined : "nothing";
}

/** Returns the newest runs, each command once. */
function listNewest(runs: readonly CommandRun[]): CommandRun[] {
  const newest = new Map<string, CommandRun>();
  for (const run of runs) {
    newest.delete(run.command);
    newest.set(run.command, run);
  }
  return [...newest.values()].slice(-runLimit);
}

const unique = (texts: readonly string[]): string[] => [...new Set(texts)];

function shorten(command: string): string {
  const line = command.replaceAll(/\s+/g, " ").trim();
  return line.length <= commandLength ? line : `${line.slice(0, commandLength - 1).toWellFormed()}…`;
}
