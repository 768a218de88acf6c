import { readdir, readFile, stat } from "node:fs/promises";
import type { Dirent } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../base/errors.ts";
import { IgnoreRules } from "./ignore-rules.ts";
import { MOST_FILE_BYTES, MOST_FILES, type SearchEngine } from "./search-engine.ts";
import { timeLimit, type TimeLimit } from "./time-limit.ts";

/** Files read at the same time. */
const READERS = 16;
/** For the lines of one file. */
const MATCH_LIMIT_MS = 1_000;

/** Searches without any program. Slower than ripgrep, and its expressions are JavaScript's. */
export const javascriptEngine: SearchEngine = {
  async *files(folder, signal) {
    yield* walk(folder, "", await IgnoreRules.above(folder), signal);
  },

  async filesWithMatch({ folder, pattern, filter, onLarge, onFound, signal }) {
    const regex = toRegExp(pattern);
    const inTime = limitFor(pattern);
    const found: string[] = [];
    const paths = this.files(folder, signal);
    await Promise.all(Array.from({ length: READERS }, readOn));
    return found;

    async function readOn(): Promise<void> {
      for await (const path of { [Symbol.asyncIterator]: () => ({ next: () => paths.next() }) }) {
        if (found.length === MOST_FILES) return;
        if (!filter(path)) continue;
        const lines = await readLines(join(folder, path), () => onLarge(path));
        if (inTime(() => lines.some((line) => regex.test(line)))) found.push(path);
        await onFound(found.length);
      }
    }
  },

  async matches({ paths, pattern, limit, signal }) {
    const regex = toRegExp(pattern);
    const inTime = limitFor(pattern);
    const found = new Map<string, { line: number; text: string }[]>();
    for (const path of paths) {
      signal.throwIfAborted();
      const lines = (await readLines(path)).map((text, index) => ({ line: index + 1, text }));
      const matching = inTime(() => lines.filter(({ text }) => regex.test(text)));
      found.set(path, matching.slice(0, limit));
    }
    return found;
  },
};

function limitFor(pattern: string): TimeLimit {
  const problem = `The regular expression ${JSON.stringify(pattern)} takes too long. Write it without repetitions of repetitions.`;
  return timeLimit(MATCH_LIMIT_MS, () => new Error(problem));
}

/** Paths relative to the first folder, with `/`. Links are not followed and not listed. */
async function* walk(
  folder: string,
  prefix: string,
  above: IgnoreRules,
  signal: AbortSignal,
): AsyncGenerator<string> {
  signal.throwIfAborted();
  const folders: string[] = [];
  const entries = await entriesOf(folder);
  const rules = await above.enter(folder, new Set(entries.map(({ name }) => name)));
  for (const entry of entries) {
    if (entry.name === ".git" || !(entry.isFile() || entry.isDirectory())) continue;
    if (rules.excludes(entry.name, entry.isDirectory())) continue;
    if (entry.isDirectory()) folders.push(entry.name);
    else yield prefix + entry.name;
  }
  for (const name of folders) {
    yield* walk(join(folder, name), `${prefix}${name}/`, rules, signal);
  }
}

/** A folder that we may not read, or that has just gone, holds nothing for us. */
async function entriesOf(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** The lines of a text file; none when it is binary, too large or cannot be read. */
async function readLines(path: string, onLarge?: () => void): Promise<string[]> {
  try {
    if ((await stat(path)).size > MOST_FILE_BYTES) {
      onLarge?.();
      return [];
    }
    const text = decode(await readFile(path));
    if (text === undefined) return [];
    const lines = text.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
    return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
  } catch {
    return [];
  }
}

/** By its byte order mark, else as UTF-8. Undefined when it holds a NUL, which text does not. */
function decode(bytes: Buffer): string | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  return bytes.includes(0) ? undefined : new TextDecoder().decode(bytes);
}

/** Spellings of Rust's expressions, which models write, in JavaScript's. */
const SPELLINGS: readonly (readonly [RegExp, string])[] = [
  [/\(\?P</g, "(?<"],
  [/\[:alpha:\]/g, "a-zA-Z"],
  [/\[:digit:\]/g, "0-9"],
  [/\[:alnum:\]/g, "a-zA-Z0-9"],
  [/\[:space:\]/g, "\\s"],
  [/\[:upper:\]/g, "A-Z"],
  [/\[:lower:\]/g, "a-z"],
  [/\\A/g, "^"],
  [/\\z/g, "$"],
];

function toRegExp(pattern: string): RegExp {
  const inline = /^\(\?([ims]+)\)/.exec(pattern);
  const flags = inline?.[1] ?? "";
  const body = SPELLINGS.reduce(
    (text, [from, to]) => text.replaceAll(from, to),
    pattern.slice(inline?.[0].length ?? 0),
  );
  try {
    return new RegExp(body, `${flags}u`);
  } catch (error) {
    return withoutUnicode(body, flags) ?? invalid(pattern, error);
  }
}

/** Without `u` an expression may escape what needs no escape, as in `\-` and `\"`. */
function withoutUnicode(body: string, flags: string): RegExp | undefined {
  const unescaped = body.replaceAll(/\\(["'#%&,:;<=>@_`~!\- ])/g, "$1");
  try {
    return new RegExp(unescaped.includes("\\p{") ? unescaped : body, flags);
  } catch {
    return undefined;
  }
}

function invalid(pattern: string, error: unknown): never {
  const why = messageOf(error).replace(/^.*\/[a-z]*: /, "");
  throw new Error(`The regular expression ${JSON.stringify(pattern)} is not valid: ${why}`, { cause: error });
}
