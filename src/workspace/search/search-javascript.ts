import { readdir, readFile, stat } from "node:fs/promises";
import type { Dirent } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../base/errors.ts";
import { IgnoreRules } from "./ignore-rules.ts";
import { MAX_FILE_BYTES, MAX_FILES, type SearchEngine } from "./search-engine.ts";
import { createTimeLimit, type TimeLimit } from "./time-limit.ts";

/** Files read concurrently. */
const READERS = 16;
/** Time limit for the lines of one file. */
const MATCH_LIMIT_MS = 1_000;

/** Searches without ripgrep. Slower, and with JavaScript's regular expressions. */
export const javascriptEngine: SearchEngine = {
  async *files(folder, signal) {
    yield* walk(folder, "", await IgnoreRules.above(folder), signal);
  },

  async filesWithMatch({ folder, pattern, filter, onLarge, onFound, signal }) {
    const regex = toRegExp(pattern);
    const inTime = createLimit(pattern);
    const found: string[] = [];
    const paths = this.files(folder, signal);
    await Promise.all(Array.from({ length: READERS }, readOn));
    return found;

    async function readOn(): Promise<void> {
      for await (const path of { [Symbol.asyncIterator]: () => ({ next: () => paths.next() }) }) {
        if (found.length === MAX_FILES) return;
        if (!filter(path)) continue;
        const lines = await readLines(join(folder, path), () => onLarge(path));
        if (inTime(() => lines.some((line) => regex.test(line)))) found.push(path);
        onFound(found.length);
      }
    }
  },

  async matches({ paths, pattern, limit, signal }) {
    const regex = toRegExp(pattern);
    const inTime = createLimit(pattern);
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

function createLimit(pattern: string): TimeLimit {
  const problem = `The regular expression ${JSON.stringify(pattern)} takes too long. Avoid nested repetitions.`;
  return createTimeLimit(MATCH_LIMIT_MS, () => new Error(problem));
}

/** Paths relative to the first folder, with `/`. Does not follow or list links. */
async function* walk(
  folder: string,
  prefix: string,
  above: IgnoreRules,
  signal: AbortSignal,
): AsyncGenerator<string> {
  signal.throwIfAborted();
  const folders: string[] = [];
  const entries = await readEntries(folder);
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

/** Empty if the folder cannot be read or is gone. */
async function readEntries(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Lines of a text file; empty if it is binary, too large or unreadable. */
async function readLines(path: string, onLarge?: () => void): Promise<string[]> {
  try {
    if ((await stat(path)).size > MAX_FILE_BYTES) {
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

/** Decodes by byte order mark, else as UTF-8. Undefined if there is a NUL, because text has none. */
function decode(bytes: Buffer): string | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  return bytes.includes(0) ? undefined : new TextDecoder().decode(bytes);
}

/** JavaScript equivalents of Rust expression syntax, which models write. */
const RUST_SYNTAX: readonly (readonly [RegExp, string])[] = [
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
  const body = RUST_SYNTAX.reduce(
    (text, [from, to]) => text.replaceAll(from, to),
    pattern.slice(inline?.[0].length ?? 0),
  );
  try {
    return new RegExp(body, `${flags}u`);
  } catch (error) {
    return compileWithoutUnicode(body, flags) ?? createInvalidError(pattern, error);
  }
}

/** Without the `u` flag, unnecessary escapes such as `\-` and `\"` are allowed. */
function compileWithoutUnicode(body: string, flags: string): RegExp | undefined {
  const unescaped = body.replaceAll(/\\(["'#%&,:;<=>@_`~!\- ])/g, "$1");
  try {
    return new RegExp(unescaped.includes("\\p{") ? unescaped : body, flags);
  } catch {
    return undefined;
  }
}

function createInvalidError(pattern: string, error: unknown): never {
  const why = messageOf(error).replace(/^.*\/[a-z]*: /, "");
  throw new Error(`The regular expression ${JSON.stringify(pattern)} is not valid: ${why}`, { cause: error });
}
