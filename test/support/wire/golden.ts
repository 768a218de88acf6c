import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { codeOf } from "../../../src/base/errors.ts";
import { useSlashes, withSlashes } from "../platform/path-spelling.ts";
import { lacksSandbox, lacksSignals } from "../platform/platform.ts";
import { isObject, toObject, type JsonObject } from "../json.ts";
import type { Direction, WireId, WireLog } from "./wire-log.ts";

export interface GoldenPlaces {
  cwd: string;
  home: string;
  /** Other values that differ from run to run, and their names in the golden file. */
  names?: Readonly<Record<string, string>>;
  /** Selects the compared messages; all by default. */
  counts?: (message: JsonObject) => boolean;
}

const updating = process.env.UPDATE_GOLDEN === "1";

const folder = new URL("../../golden/", import.meta.url);
/** The path of this checkout and of the program that runs it. */
const machine: [string, string][] = [
  [process.execPath, "<node>"],
  [fileURLToPath(new URL("../../..", import.meta.url)).replace(/[/\\]$/, ""), "<program>"],
];
const fileEnds: Record<Direction, string> = { fromAgent: "from-agent", toAgent: "to-agent" };

/** Keys whose values are ids, and the names of the ids in the golden file. */
const idKeys = new Map([
  ["sessionId", "session"],
  ["messageId", "msg"],
  ["toolCallId", "call"],
  ["terminalId", "terminal"],
  ["terminal_id", "terminal"],
  ["elicitationId", "elicitation"],
]);
const timeText = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;
const durationText = /\b\d+(\.\d+)? ?(ms|s|seconds)\b/g;
/** The estimated size after a compaction, which changes with every prompt and with the length of paths. */
const sizeText = /(?<=→ )[\d.]+k? tokens/g;
/** A pattern contains the command of its server, which contains the path of this checkout. */
const serverText = /(?<=\w@)[0-9a-f]{12}\b/g;
/** The approval mode that only systems with a sandbox offer. */
const sandboxedMode = /\{"value":"sandboxed",[^{}]*\},/g;
const durationKey = /(Ms|duration|elapsed)$/i;

/**
 * Compares the messages on the wire with `test/golden/<name>.from-agent.json` and `.to-agent.json`, each
 * direction separately because their interleaving is not fixed. `UPDATE_GOLDEN=1` writes the files; a missing
 * one fails.
 */
export async function expectGolden(
  name: string,
  wire: WireLog,
  places: GoldenPlaces,
  update = updating,
): Promise<void> {
  const golden = normalize(wire, places);
  for (const direction of ["fromAgent", "toAgent"] as const)
    await expectGoldenText(`${name}.${fileEnds[direction]}.json`, toLines(golden[direction]), update);
}

/** Compares a text with `test/golden/<file>`, or writes it with `UPDATE_GOLDEN=1`. */
export async function expectGoldenText(file: string, text: string, update = updating): Promise<void> {
  const path = fileURLToPath(new URL(file, folder));
  if (update) await write(path, text);
  else expect(text, path).toBe(await readGolden(path));
}

/** Returns the messages of each direction without values that differ from run to run. */
export function normalize(wire: WireLog, places: GoldenPlaces): Record<Direction, unknown[]> {
  const messages = counted(wire).filter(({ json }) => places.counts?.(json) ?? true);
  const names = collectIdNames(messages.map(({ json }) => json));
  const more = Object.entries(places.names ?? {});
  const folders: [string, string][] = [[places.cwd, "<cwd>"], [places.home, "<home>"], ...machine];
  const clean = cleaner([...names, ...more], folders);
  const of = (wanted: Direction) => {
    const wantedMessages = messages.filter(({ direction }) => direction === wanted);
    const cleaned = hideEstimates(wantedMessages.map(({ json }) => clean(json)));
    return separateCalls(firstTails(mergeChunks(cleaned)));
  };
  return { fromAgent: of("fromAgent"), toAgent: of("toAgent") };
}

/** Replaces the estimated size that follows a compaction. */
function hideEstimates(messages: unknown[]): unknown[] {
  const updateOf = (message: unknown) => toObject(toObject(toObject(message).params).update);
  return messages.map((message, index) => {
    const follows = String(updateOf(messages[index - 1]).title).startsWith("Summarized the conversation");
    const update = updateOf(message);
    if (!follows || update.sessionUpdate !== "usage_update") return message;
    const params = toObject(toObject(message).params);
    return { ...toObject(message), params: { ...params, update: { ...update, used: "<size>" } } };
  });
}

/**
 * Numbers the requests of each side from 0, because an agent that has served other stories continues its
 * count.
 */
function counted(wire: WireLog): { direction: Direction; json: JsonObject }[] {
  const counts = { toAgent: 0, fromAgent: 0 };
  const numbers = { toAgent: new Map<WireId, number>(), fromAgent: new Map<WireId, number>() };
  return wire.entries.flatMap(({ direction, message }) => {
    if (message === undefined) return [];
    const { json } = message;
    if (message.kind === "notification")
      return [{ direction, json: countedCancel(json, numbers[direction]) }];
    if (typeof message.id !== "number") return [{ direction, json }];
    const asker = (message.kind === "request") === (direction === "toAgent") ? "toAgent" : "fromAgent";
    if (message.kind === "request") numbers[asker].set(message.id, counts[asker]++);
    return [{ direction, json: { ...json, id: numbers[asker].get(message.id) ?? message.id } }];
  });
}

/** A cancellation names its request by the new number. */
function countedCancel(json: JsonObject, numbers: Map<WireId, number>): JsonObject {
  const params = toObject(json.params);
  const number = typeof params.requestId === "number" ? numbers.get(params.requestId) : undefined;
  return number === undefined ? json : { ...json, params: { ...params, requestId: number } };
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

async function readGolden(path: string): Promise<string> {
  try {
    const text = await readFile(path, "utf8");
    const offered = lacksSandbox ? text.replaceAll(sandboxedMode, "") : text;
    return lacksSignals ? offered.replaceAll('"signal":"SIGTERM"', '"signal":null') : offered;
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    throw new Error(`${path} is missing. Run the test with UPDATE_GOLDEN=1 and read what it wrote.`, {
      cause: error,
    });
  }
}

/** A JSON array with one message on each line. */
const toLines = (messages: unknown[]): string =>
  `[\n${messages.map((message) => JSON.stringify(message)).join(",\n")}\n]\n`;

/** Each id in order of appearance, with its name. */
function collectIdNames(messages: unknown[]): [string, string][] {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  visit(messages, (key, value) => {
    const kind = idKeys.get(key);
    if (kind === undefined || typeof value !== "string" || names.has(value)) return;
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    names.set(value, `<${kind}-${count}>`);
  });
  return [...names];
}

function visit(value: unknown, check: (key: string, value: unknown) => void): void {
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    check(key, inner);
    visit(inner, check);
  }
}

/** Replaces whole names in every string, the longest first, in one pass. */
function cleaner(replacements: [string, string][], folders: [string, string][]): (value: unknown) => unknown {
  const paths = folders.map(([path]) => path);
  const names = new Map([
    ...replacements,
    ...folders.map(([path, name]) => [withSlashes(path), name] as const),
  ]);
  const longestFirst = [...names.keys()].sort((one, other) => other.length - one.length);
  const anyName = new RegExp(`(?<![\\w-])(${longestFirst.map(escape).join("|")})(?![\\w-])`, "g");
  const cleanText = (text: string) =>
    useSlashes(text, paths)
      .replaceAll(serverText, "<server>")
      .replaceAll(timeText, "<time>")
      .replaceAll(durationText, "<duration>")
      .replaceAll(sizeText, "<size> tokens")
      .replaceAll(anyName, (found) => names.get(found) ?? found);
  const clean = (value: unknown, key = ""): unknown => {
    if (typeof value === "string") return key === "version" ? "<version>" : cleanText(value);
    if (typeof value === "number") return durationKey.test(key) ? "<duration>" : value;
    if (Array.isArray(value)) return value.map((item) => clean(item));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [cleanText(name), clean(inner, name)]),
    );
  };
  return clean;
}

const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Parallel calls continue in any order, so consecutive updates are grouped by call. */
function separateCalls(messages: unknown[]): unknown[] {
  const rows: { keys: string[]; messages: unknown[] }[] = [];
  for (const message of messages) {
    const key = parallelKey(message);
    const last = rows.at(-1);
    if (key !== undefined && last !== undefined && last.keys.length > 0) {
      last.keys.push(key);
      last.messages.push(message);
    } else rows.push({ keys: key === undefined ? [] : [key], messages: [message] });
  }
  return rows.flatMap(({ keys, messages: row }) =>
    row
      .map((message, index) => ({ message, key: keys[index] ?? "" }))
      .sort((one, other) => one.key.localeCompare(other.key))
      .map(({ message }) => message),
  );
}

/** The group of an update: its call, or the requests for the editor's files. */
function parallelKey(message: unknown): string | undefined {
  const { method, params } = toObject(message);
  if (String(method).startsWith("fs/")) return "";
  const { sessionUpdate, toolCallId } = toObject(toObject(params).update);
  return sessionUpdate === "tool_call_update" ? String(toolCallId) : undefined;
}

/**
 * The number of updates with the output of a running call depends on its duration: only the first is kept.
 */
function firstTails(messages: unknown[]): unknown[] {
  const seen = new Set<string>();
  return messages.filter((message) => {
    const params = toObject(toObject(message).params);
    const { sessionUpdate, toolCallId, content, _meta, ...others } = toObject(params.update);
    const isTail = sessionUpdate === "tool_call_update" && content !== undefined;
    if (!isTail || Object.keys(others).length > 0) return true;
    const key = JSON.stringify([params.sessionId, toolCallId]);
    return !seen.has(key) && seen.add(key);
  });
}

/**
 * The split of a text into chunks depends on how fast the client reads, so consecutive chunks of one message
 * are joined.
 */
function mergeChunks(messages: unknown[]): unknown[] {
  const merged: unknown[] = [];
  for (const message of messages) {
    const text = getChunk(message);
    const before = getChunk(merged.at(-1));
    if (text && before && text.key === before.key)
      before.content.text = String(before.content.text) + String(text.content.text);
    else merged.push(message);
  }
  return merged;
}

function getChunk(message: unknown): { key: string; content: JsonObject } | undefined {
  const params = toObject(toObject(message).params);
  const update = toObject(params.update);
  const content = toObject(update.content);
  if (!String(update.sessionUpdate).endsWith("_chunk") || content.type !== "text") return undefined;
  const key = JSON.stringify([params.sessionId, update.sessionUpdate, update.messageId]);
  return { key, content };
}
