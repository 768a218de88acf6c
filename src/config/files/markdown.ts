import matter from "gray-matter";
import { messageOf, UserError } from "../../base/errors.ts";
import { isRecord } from "../../base/text/record.ts";

/** A Markdown file with front matter: its settings and its text without blank edges. */
export interface MarkdownFile {
  readonly settings: Record<string, unknown>;
  readonly body: string;
  /** What is wrong with the front matter although it could be read. */
  readonly note?: string;
}

/**
 * Splits front matter (YAML or JSON) from the text. What is no YAML is read key by key, with a note.
 * Throws {@link UserError} where the front matter cannot be read.
 */
export function parseMarkdown(written: string): MarkdownFile {
  const text = written.replace(/^\uFEFF?(?:[^\S\n]*\n)*(?=---)/, "");
  try {
    if (isUnclosed(text)) throw new Error('a line "---" has to end it');
    // The library takes what tabs indent for further settings, a permission for none.
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
  // Without an options object gray-matter caches by text and shares its results between callers.
  const { data, content } = matter(text, { engines: { js: refuse, javascript: refuse, coffee: refuse } });
  if (!isRecord(data)) throw new Error('expected "key: value" lines between the two "---"');
  return { settings: data, body: content.trim() };
}

function splitQuoted(text: string): MarkdownFile | undefined {
  return isUnclosed(text) || isTabbed(text) ? undefined : quietly(() => split(withQuotedValues(text)));
}

function quietly<T>(task: () => T): T | undefined {
  try {
    return task();
  } catch {
    // The first attempt's error is the one that is reported.
    return undefined;
  }
}

/**
 * People write `description: Use it when: …` and `argument-hint: [file] [line]`, which is not YAML. The values of
 * top-level keys that are plainly words are put between quotes.
 */
function withQuotedValues(text: string): string {
  return text.replace(/^---[^\S\n]*\n[^]*?\n---/, (block) =>
    block.replaceAll(/^([A-Za-z][\w-]*):[ \t]+(\S[^\r\n]*?)[ \t]*$/gm, (line, key: string, value: string) =>
      isPlainWords(value) ? `${key}: ${JSON.stringify(value)}` : line,
    ),
  );
}

function isPlainWords(value: string): boolean {
  if (/^["'|>]/.test(value) || /^\[[^[\]]*\]$/.test(value)) return false;
  return value.includes(": ") || /^\[.*\]/.test(value) || /^[@`%]/.test(value);
}

function refuse(): never {
  throw new Error("front matter that is a script is not run; write YAML");
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

/** Settings of agents, skills and commands, of this program and others: a value that goes on ends at one of these. */
const usualKeys = new Set(
  "name description mode model variant temperature top_p topP steps maxSteps maxTurns prompt tools allowed-tools disallowedTools disallowed-tools permission permissionMode options color hidden disable label agent subtask argument-hint arguments template license version author metadata compatibility skills hooks memory mcpServers category tags type disable-model-invocation user-invocable when_to_use context globs alwaysApply paths".split(
    " ",
  ),
);

/** A key and the lines of its value. */
interface Entry {
  readonly key: string;
  readonly lines: string[];
}

/** Front matter that is no YAML as a whole, each key by itself. Undefined where no usual key is in it. */
function splitByKeys(text: string): MarkdownFile | undefined {
  if (!opening.test(text)) return undefined;
  const lines = text.replace(opening, "").split(/\r?\n/);
  const isClosed = !isUnclosed(text);
  const end = isClosed ? lines.findIndex((line) => closing.test(line)) : unclosedEnd(lines);
  const entries = entriesOf(lines.slice(0, end));
  if (!entries.some(({ key }) => usualKeys.has(key))) return undefined;
  const settings = Object.fromEntries(entries.map((entry) => [entry.key, valueOf(entry)]));
  const body = lines
    .slice(isClosed ? end + 1 : end)
    .join("\n")
    .trim();
  return { settings, body, note: isClosed ? notYaml : notClosed };
}

const notYaml = "its front matter is no YAML; it was read key by key (write long values indented, behind |)";
const notClosed =
  'its front matter has no end; it was read up to the first blank line or heading (end it with "---")';

function unclosedEnd(lines: readonly string[]): number {
  const end = lines.findIndex((line) => line.trim() === "" || /^#{1,6} /.test(line));
  return end === -1 ? lines.length : end;
}

function entriesOf(lines: readonly string[]): Entry[] {
  const entries: Entry[] = [];
  let goesOn = false;
  for (const line of lines) {
    const key = /^([A-Za-z][\w-]*):(?:\s|$)/.exec(line)?.[1];
    if (key !== undefined && (!goesOn || usualKeys.has(key))) {
      entries.push({ key, lines: [line] });
      goesOn = false;
    } else {
      goesOn ||= /^[^\s#-]/.test(line);
      entries.at(-1)?.lines.push(line);
    }
  }
  return entries;
}

function valueOf({ key, lines }: Entry): unknown {
  const text = lines
    .map((line) => line.replace(/^[ \t]+/, (indent) => indent.replaceAll("\t", "  ")))
    .join("\n");
  const read = quietly(() => split(withQuotedValues(`---\n${text}\n---\n`)));
  if (read !== undefined && Object.hasOwn(read.settings, key)) return read.settings[key];
  const value = lines
    .join("\n")
    .slice(key.length + 1)
    .trim();
  return /^(["'])[^]*\1$/.test(value) ? value.slice(1, -1) : value.replace(/^[|>][+-]?\n/, "");
}
