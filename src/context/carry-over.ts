import { dirname } from "node:path";
import { PLAN_FILES } from "../agent/plan-files.ts";
import { isRecord } from "../base/text/record.ts";
import { estimateText } from "../message/estimate.ts";
import type { Message, Todo } from "../message/message.ts";
import type { Carried, Part, ToolPart } from "../message/part.ts";
import { endNote, removeEndNote } from "../tool/bash/command-end.ts";
import { cutMiddle } from "../tool/output-limit.ts";
import { relativeTo, withSlashes } from "../workspace/paths.ts";
import { compactionOf } from "../conversation/visible-messages.ts";

/** Maximum number of listed paths and todos; the newest stay. */
const mostChanged = 40;
const mostRead = 20;
const mostTodos = 50;
/** Longest line of a list, in characters. */
const lineLimit = 300;
/** Characters kept from the end of a failed command's output. */
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
  readonly gone: readonly Message[];
  /** The messages that stay verbatim. */
  readonly kept: readonly Message[];
  readonly todos: readonly Todo[];
  readonly cwd: string;
}

/** Collects data of replaced messages that the model must not lose. */
export function carryOver({ gone, kept, todos, cwd }: CarryInput, limits: CarryLimits): Carried {
  const earlier = gone.flatMap((message) => compactionOf(message)?.carried ?? []);
  const goneCalls = callsOf(gone);
  const calls = [...goneCalls, ...callsOf(kept)];
  const shown = (path: string) => cutLine(relativeTo(cwd, path));
  const changed = calls.flatMap(changedPaths).map(shown);
  const plan = calls.flatMap(changedPaths).findLast(isPlan);
  const allChanged = newest([...earlier.flatMap((one) => one.changed ?? []), ...changed], mostChanged);
  const read = [...earlier.flatMap((one) => one.read ?? []), ...calls.flatMap(readPaths).map(shown)];
  const requests = [...earlier.flatMap((one) => one.requests ?? []), ...gone.flatMap(requestTexts)];
  const skills = [...earlier.flatMap((one) => one.skills ?? []), ...goneCalls.flatMap(loadedSkills)];
  return omitEmpty({
    requests: newestTexts(requests, limits.requests),
    todos: todos.slice(0, mostTodos).map(todoLine),
    changed: allChanged,
    read: newest(
      read.filter((path) => !allChanged.includes(path)),
      mostRead,
    ),
    plan: plan === undefined ? earlier.at(-1)?.plan : shown(plan),
    failed: lastFailed(calls, earlier.at(-1)?.failed),
    skills: newestSkills(skills, limits.skills),
  });
}

/** Returns the user's own text of a message, or for a command the text that it expands to. */
export function requestTexts({ info, parts }: Message): string[] {
  if (info.role !== "user" || parts.some(({ type }) => type === "compaction")) return [];
  const texts = parts.filter((part) => part.type === "text");
  const own = texts.filter(({ synthetic, ignored }) => synthetic !== true && ignored !== true);
  const isCommand = own.length === 0 && texts.some(({ ignored }) => ignored === true);
  const meant = isCommand ? texts.filter(({ ignored }) => ignored !== true).slice(0, 1) : own;
  const text = meant.map((part) => part.text).join("\n\n");
  return text.trim() === "" ? [] : [text];
}

const callsOf = (messages: readonly Message[]): ToolPart[] =>
  messages.flatMap(({ parts }) => parts.filter((part: Part) => part.type === "tool"));

function changedPaths({ state }: ToolPart): string[] {
  return "changes" in state ? (state.changes ?? []).map(({ path }) => path) : [];
}

function readPaths({ tool, state, locations }: ToolPart): string[] {
  return tool === "read" && state.status === "completed" ? (locations ?? []).map(({ path }) => path) : [];
}

function isPlan(path: string): boolean {
  return PLAN_FILES.some((pattern) => withSlashes(path).includes(`/${dirname(pattern)}/`));
}

function loadedSkills({ tool, state }: ToolPart): { name: string; text: string }[] {
  if (tool !== "skill" || state.status !== "completed") return [];
  const name = inputText(state.input, "name");
  return name === undefined ? [] : [{ name, text: state.output }];
}

/** Returns the newest failed command that has not succeeded since. */
function lastFailed(calls: readonly ToolPart[], earlier: Carried["failed"]): Carried["failed"] {
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
function newest(lines: readonly string[], most: number): string[] {
  return [...new Set(lines.toReversed())].slice(0, most).reverse();
}

/** Returns the newest texts that fit. The first that does not fit is shortened in the middle. */
function newestTexts(texts: readonly string[], mostTokens: number): string[] {
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

function newestSkills(skills: readonly { name: string; text: string }[], mostTokens: number) {
  const byName = new Map(skills.map((skill) => [skill.name, skill]));
  const names = newest(
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
