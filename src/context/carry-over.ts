import { dirname } from "node:path";
import { PLAN_FILES } from "../agent/plan-files.ts";
import { isRecord } from "../base/text/record.ts";
import { estimateText } from "../message/estimate.ts";
import type { Message, Todo } from "../message/message.ts";
import type { Carried, Part, ToolPart } from "../message/part.ts";
import { endNote, removeEndNote } from "../tool/bash/command-end.ts";
import type { Job } from "../tool/job/jobs.ts";
import { cutMiddle } from "../tool/output-limit.ts";
import { toSlashes } from "../base/files/paths.ts";
import { formatPath } from "../workspace/paths.ts";
import { changesOf, type FileStep, fileSteps } from "../conversation/checkpoints.ts";
import { compactionOf } from "../conversation/visible-messages.ts";

/** Maximum number of listed paths and todos; the newest stay. */
const maxChanged = 40;
const maxRead = 20;
const maxTodos = 50;
/** Longest line of a list, in characters. */
const lineLimit = 300;
/** Shown characters of a content hash. */
const hashLength = 12;
/** Characters shown from the end of a failed command's output. */
const failedOutputLength = 800;
/** Tokens of one skill. */
const skillTokens = 5_000;
/** An excerpt with fewer tokens is omitted. */
const leastTokens = 100;

export interface CarryLimits {
  /** Maximum tokens of the user's messages together. */
  readonly requests: number;
  /** Maximum tokens of skills together. */
  readonly skills: number;
}

export interface CarryInput {
  /** The messages that the compaction replaces, oldest first, including the last compaction. */
  readonly replaced: readonly Message[];
  /** The messages that stay verbatim. */
  readonly remaining: readonly Message[];
  readonly todos: readonly Todo[];
  readonly jobs: readonly Job[];
  readonly cwd: string;
}

/** Collects data of replaced messages that the model must not lose. */
export function carryOver(input: CarryInput, limits: CarryLimits): Carried {
  const { replaced, remaining, todos, jobs, cwd } = input;
  const earlier = replaced.flatMap((message) => compactionOf(message)?.carried ?? []);
  const replacedCalls = listCalls(replaced);
  const calls = [...replacedCalls, ...listCalls(remaining)];
  const shown = (path: string) => cutLine(formatPath(cwd, path));
  const changes = changesOf([...replaced, ...remaining]);
  const changed = collectChanges(earlier, fileSteps(changes), shown);
  const plan = changes.findLast(({ path, operation }) => operation !== "delete" && isPlan(path))?.path;
  const allChanged = takeNewest([...changed.keys()], maxChanged);
  const read = [...earlier.flatMap((one) => one.read ?? []), ...calls.flatMap(listReadPaths).map(shown)];
  const requests = [...earlier.flatMap((one) => one.requests ?? []), ...replaced.flatMap(listRequestTexts)];
  const skills = [...earlier.flatMap((one) => one.skills ?? []), ...replacedCalls.flatMap(listLoadedSkills)];
  return omitEmpty({
    requests: takeNewestTexts(requests, limits.requests),
    todos: todos.slice(0, maxTodos).map(todoLine),
    changed: allChanged,
    hashes: pickHashes(changed, allChanged),
    read: takeNewest(
      read.filter((path) => !allChanged.includes(path)),
      maxRead,
    ),
    plan: plan === undefined ? earlier.at(-1)?.plan : shown(plan),
    failed: findLastFailed(calls, earlier.at(-1)?.failed),
    skills: takeNewestSkills(skills, limits.skills),
    jobs: jobs.flatMap(describeRunningJob),
    lastJob: findLastJob(calls, earlier.at(-1)?.lastJob),
  });
}

function describeRunningJob({ id, title, call, end }: Job) {
  if (end !== undefined || call === undefined) return [];
  const { messageId, part } = call;
  const taskId =
    part.tool === "task" && part.state.status === "completed"
      ? part.state.metadata?.["sessionId"]
      : undefined;
  return [
    {
      id,
      title: cutLine(title.replaceAll(/\s+/g, " ")),
      ...(typeof taskId === "string" && { taskId }),
      messageId,
      callId: part.callId,
    },
  ];
}

function findLastJob(calls: readonly ToolPart[], earlier = 0): number | undefined {
  const ids = calls.map(({ state }) => (state.status === "completed" ? (state.job?.id ?? 0) : 0));
  return Math.max(earlier, ...ids) || undefined;
}

/** Returns the user's own text of a message, or for a command the text to which it expands. */
export function listRequestTexts({ info, parts }: Message): string[] {
  if (info.role !== "user" || parts.some(({ type }) => type === "compaction")) return [];
  const texts = parts.filter((part) => part.type === "text");
  const own = texts.filter(({ synthetic, ignored }) => synthetic !== true && ignored !== true);
  const isCommand = own.length === 0 && texts.some(({ ignored }) => ignored === true);
  const requestParts = isCommand ? texts.filter(({ ignored }) => ignored !== true).slice(0, 1) : own;
  const text = requestParts.map((part) => part.text).join("\n\n");
  return text.trim() === "" ? [] : [text];
}

const listCalls = (messages: readonly Message[]): ToolPart[] =>
  messages.flatMap(({ parts }) => parts.filter((part: Part) => part.type === "tool"));

/** Returns the content hash of each changed file, the newest change last. */
function collectChanges(
  earlier: readonly Carried[],
  steps: readonly FileStep[],
  shown: (path: string) => string,
): Map<string, FileStep["after"]> {
  const before = earlier.flatMap(({ changed = [], hashes }) =>
    changed.map((path) => [path, hashes?.[path]] as const),
  );
  const now = steps.map(({ path, after }) => [shown(path), after?.slice(0, hashLength) ?? after] as const);
  const changed = new Map<string, FileStep["after"]>();
  for (const [path, hash] of [...before, ...now]) {
    changed.delete(path);
    changed.set(path, hash);
  }
  return changed;
}

function pickHashes(changed: ReadonlyMap<string, FileStep["after"]>, paths: readonly string[]) {
  const known = paths.flatMap((path) => {
    const hash = changed.get(path);
    return hash === undefined ? [] : [[path, hash] as const];
  });
  return known.length === 0 ? undefined : Object.fromEntries(known);
}

function listReadPaths({ tool, state, locations }: ToolPart): string[] {
  return tool === "read" && state.status === "completed" ? (locations ?? []).map(({ path }) => path) : [];
}

function isPlan(path: string): boolean {
  return PLAN_FILES.some((pattern) => toSlashes(path).includes(`/${dirname(pattern)}/`));
}

function listLoadedSkills({ tool, state }: ToolPart): { name: string; text: string }[] {
  if (tool !== "skill" || state.status !== "completed") return [];
  const name = inputText(state.input, "name");
  return name === undefined ? [] : [{ name, text: state.output }];
}

/** Returns the newest failed command that has not succeeded since. */
function findLastFailed(calls: readonly ToolPart[], earlier: Carried["failed"]): Carried["failed"] {
  let failed = earlier;
  for (const { tool, state } of calls) {
    if (tool !== "bash" || state.status !== "completed") continue;
    const command = inputText(state.input, "command");
    if (command === undefined) continue;
    const end = endNote(state.metadata?.["exitCode"], state.metadata?.["signal"]);
    if (end !== undefined) {
      const output = removeEndNote(state.output, state.metadata)
        .trimEnd()
        .slice(-failedOutputLength)
        .toWellFormed();
      failed = { command: cutLine(command), end, output };
    } else if (failed?.command === cutLine(command)) failed = undefined;
  }
  return failed;
}

function inputText(input: unknown, name: string): string | undefined {
  const text = isRecord(input) ? input[name] : undefined;
  return typeof text === "string" ? text : undefined;
}

const todoLine = ({ content, status }: Todo, index: number): string =>
  cutLine(`${index + 1}. [${status}] ${content}`);

function cutLine(text: string): string {
  return text.length <= lineLimit ? text : `${text.slice(0, lineLimit).toWellFormed()}…`;
}

/** Removes duplicates, keeping the last one, and returns the newest lines. */
function takeNewest(lines: readonly string[], most: number): string[] {
  return [...new Set(lines.toReversed())].slice(0, most).reverse();
}

/** Returns the newest texts that fit. The first that does not fit is shortened in the middle. */
function takeNewestTexts(texts: readonly string[], mostTokens: number): string[] {
  let left = mostTokens;
  const fitting: string[] = [];
  for (const text of texts.toReversed()) {
    const tokens = estimateText(text);
    if (tokens > left && left < leastTokens) break;
    fitting.push(tokens <= left ? text : cutMiddle(text, Math.floor((text.length * left) / tokens)));
    left -= tokens;
    if (left <= 0) break;
  }
  return fitting.reverse();
}

function takeNewestSkills(skills: readonly { name: string; text: string }[], mostTokens: number) {
  const byName = new Map(skills.map((skill) => [skill.name, skill]));
  const names = takeNewest(
    skills.map(({ name }) => name),
    skills.length,
  );
  let left = mostTokens;
  const fitting: { name: string; text: string }[] = [];
  for (const skill of names.toReversed().flatMap((name) => byName.get(name) ?? [])) {
    const tokens = estimateText(skill.text);
    const most = Math.min(left, skillTokens);
    if (most < leastTokens) break;
    const text =
      tokens <= most ? skill.text : cutMiddle(skill.text, Math.floor((skill.text.length * most) / tokens));
    fitting.push({ name: skill.name, text });
    left -= Math.min(tokens, most);
  }
  return fitting.reverse();
}

function omitEmpty(carried: Carried): Carried {
  const filled = Object.entries(carried).filter(
    ([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0),
  );
  return Object.fromEntries(filled);
}
