import matter from "gray-matter";
import { messageOf, UserError } from "../../base/errors.ts";
import { isRecord } from "../../base/text/record.ts";

/** A Markdown file split into front matter and trimmed text. */
export interface MarkdownFile {
  readonly settings: Record<string, unknown>;
  readonly body: string;
  /** Set if the front matter was invalid but could still be read. */
  readonly note?: string;
}

/**
 * Splits front matter (YAML or JSON) from the text. Invalid YAML is read key by key, with a note.
 * Throws {@link UserError} if the front matter cannot be read.
 */
export function parseMarkdown(written: string): MarkdownFile {
  const text = written.replace(/^\uFEFF?(?:[^\S\n]*\n)*(?=---)/, "");
  try {
    if (isUnclosed(text)) throw new Error('the closing line "---" is missing');
    // gray-matter parses tab-indented lines as top-level settings, so a nested permission would be lost.
    if (isTabbed(text)) throw new Error("it is indented with tabs; use blanks");
    return split(text);
  } catch (thrown) {
    const file = splitQuoted(text) ?? splitByKeys(text);
    if (file !== undefined) return file;
    throw new UserError(`the front matter cannot be read: ${firstLine(messageOf(thrown))}`, {
      cause: thrown,
    });
  }
}

function split(text: string): MarkdownFile {
  // Without an options object gray-matter caches by text and shares results between callers.
  const { data, content } = matter(text, { engines: { js: refuse, javascript: refuse, coffee: refuse } });
  if (!isRecord(data)) throw new Error('expected "key: value" lines between the two "---"');
  return { settings: data, body: content.trim() };
}

function splitQuoted(text: string): MarkdownFile | undefined {
  return isUnclosed(text) || isTabbed(text) ? undefined : tryOrUndefined(() => split(quoteValues(text)));
}

function tryOrUndefined<T>(task: () => T): T | undefined {
  try {
    return task();
  } catch {
    // The caller reports the first attempt's error.
    return undefined;
  }
}

/**
 * Quotes plain text values of top-level keys. People write `description: Use it when: …` and
 * `argument-hint: [file] [line]`, which is not YAML.
 */
function quoteValues(text: string): string {
  return text.replace(/^---[^\S\n]*\n[^]*?\n---/, (block) =>
    block.replaceAll(/^([A-Za-z][\w-]*):[ \t]+(\S[^\r\n]*?)[ \t]*$/gm, (line, key: string, value: string) =>
      isPlainText(value) ? `${key}: ${JSON.stringify(value)}` : line,
    ),
  );
}

function isPlainText(value: string): boolean {
  if (/^["'|>]/.test(value) || /^\[[^[\]]*\]$/.test(value)) return false;
  return value.includes(": ") || /^\[.*\]/.test(value) || /^[@`%]/.test(value);
}

function refuse(): never {
  throw new Error("scripts in front matter are not run; write YAML");
}

const firstLine = (text: string): string => text.split("\n", 1)[0] ?? text;

const opening = /^---[^\S\n]*\n/;
const closing = /^---[^\S\n]*$/m;

function isUnclosed(text: string): boolean {
  return opening.test(text) && !closing.test(text.replace(opening, ""));
}

function isTabbed(text: string): boolean {
  const [header = ""] = text.replace(opening, "").split(closing);
  return opening.test(text) && /^ *\t+ *\S/m.test(header);
}

/** Known keys of agents, skills and commands, also of other programs. A multi-line value ends at one of these. */
const knownKeys = new Set(
  "name description mode model variant temperature top_p topP steps maxSteps maxTurns prompt tools allowed-tools disallowedTools disallowed-tools permission permissionMode options color hidden disable label agent subtask argument-hint arguments template license version author metadata compatibility skills hooks memory mcpServers category tags type disable-model-invocation user-invocable when_to_use context globs alwaysApply paths".split(
    " ",
  ),
);

/** A key with the lines of its value. */
interface Entry {
  readonly key: string;
  readonly lines: string[];
}

/** Reads each key of invalid YAML separately. Undefined if it contains no known key. */
function splitByKeys(text: string): MarkdownFile | undefined {
  if (!opening.test(text)) return undefined;
  const lines = text.replace(opening, "").split(/\r?\n/);
  const isClosed = !isUnclosed(text);
  const end = isClosed ? lines.findIndex((line) => closing.test(line)) : findUnclosedEnd(lines);
  const entries = splitEntries(lines.slice(0, end));
  if (!entries.some(({ key }) => knownKeys.has(key))) return undefined;
  const settings = Object.fromEntries(entries.map((entry) => [entry.key, parseValue(entry)]));
  const body = lines
    .slice(isClosed ? end + 1 : end)
    .join("\n")
    .trim();
  return { settings, body, note: isClosed ? notYaml : notClosed };
}

const notYaml = "its front matter is not valid YAML and was read key by key (indent long values after |)";
const notClosed =
  'its front matter is not closed and was read up to the first blank line or heading (end it with "---")';

function findUnclosedEnd(lines: readonly string[]): number {
  const end = lines.findIndex((line) => line.trim() === "" || /^#{1,6} /.test(line));
  return end === -1 ? lines.length : end;
}

function splitEntries(lines: readonly string[]): Entry[] {
  const entries: Entry[] = [];
  let goesOn = false;
  for (const line of lines) {
    const key = /^([A-Za-z][\w-]*):(?:\s|$)/.exec(line)?.[1];
    if (key !== undefined && (!goesOn || knownKeys.has(key))) {
      entries.push({ key, lines: [line] });
      goesOn = false;
    } else {
      goesOn ||= /^[^\s#-]/.test(line);
      entries.at(-1)?.lines.push(line);
    }
  }
  return entries;
}

function parseValue({ key, lines }: Entry): unknown {
  const text = lines
    .map((line) => line.replace(/^[ \t]+/, (indent) => indent.replaceAll("\t", "  ")))
    .join("\n");
  const read = tryOrUndefined(() => split(quoteValues(`---\n${text}\n---\n`)));
  if (read !== undefined && Object.hasOwn(read.settings, key)) return read.settings[key];
  const value = lines
    .join("\n")
    .slice(key.length + 1)
    .trim();
  return /^(["'])[^]*\1$/.test(value) ? value.slice(1, -1) : value.replace(/^[|>][+-]?\n/, "");
}
