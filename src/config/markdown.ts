import matter from "gray-matter";
import { messageOf, UserError } from "../base/errors.ts";
import { isRecord } from "../base/record.ts";

/** A Markdown file with front matter: its settings and its text without blank edges. */
export interface MarkdownFile {
  readonly settings: Record<string, unknown>;
  readonly body: string;
}

/**
 * Splits front matter (YAML or JSON) from the text.
 * Throws {@link UserError} where the front matter cannot be read.
 */
export function parseMarkdown(text: string): MarkdownFile {
  try {
    return split(text);
  } catch (thrown) {
    const mended = withQuotedValues(text);
    if (mended !== text) return parseMarkdown(mended);
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

/**
 * People write `description: Use it when: …` and `argument-hint: [file] [line]`, which is not YAML. The values of
 * top-level keys that are plainly words are put between quotes.
 */
function withQuotedValues(text: string): string {
  return text.replace(/^---\r?\n[^]*?\n---/, (block) =>
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
