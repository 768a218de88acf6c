import type { ToolCallContent } from "@agentclientprotocol/sdk";
import { beginningOf, excerpt } from "../../base/text/excerpt.ts";

/** Limits for JSON in UTF-8: a whole card remains below 1 MiB, where some clients fail. */
const contentLimitBytes = 640 * 1024;
const inputLimitBytes = 256 * 1024;
/** Characters of each string of an input that exceeds its limit. */
const inputTextLength = 8 * 1024;
/** Characters of a tool name, which the model may have invented. */
const nameLength = 200;
/** Unchanged lines shown around a change if the whole file is too long. */
const contextLines = 20;
/** Characters of each side of a diff that is still too long; both fit even if each is escaped to six bytes. */
const diffTextLength = 48 * 1024;

/** Limits a card's content to one line of JSON. Adds a note for each shortened or removed item. */
export function limitContent(content: readonly ToolCallContent[]): ToolCallContent[] {
  let bytesLeft = contentLimitBytes;
  return content.flatMap((item) => {
    const fitting = [item, ...shrink(item)].find((one) => jsonBytes(one) <= bytesLeft);
    bytesLeft -= fitting === undefined ? 0 : jsonBytes(fitting);
    if (fitting === item) return [item];
    return fitting === undefined
      ? [createText(`${describeItem(item)} is too long to be shown.`)]
      : [fitting, createText(`${describeItem(item)} is too long to be shown as a whole.`)];
  });
}

/** Limits a tool's input: truncates long strings if it is too long as a whole. */
export function limitInput(input: unknown): unknown {
  if (input === undefined || jsonBytes(input) <= inputLimitBytes) return input;
  const truncate = truncateTexts(input);
  return jsonBytes(truncate) <= inputLimitBytes ? truncate : { note: "This input is too long to be shown." };
}

export function limitName(name: string): string {
  return excerpt(name, nameLength);
}

/** Returns shorter versions of an item, longest first. */
function shrink(item: ToolCallContent): ToolCallContent[] {
  if (item.type === "content" && item.content.type === "text")
    return [createText(cut(item.content.text, diffTextLength))];
  if (item.type !== "diff") return [];
  const { oldText, newText, firstLine } = trimUnchanged(item.oldText ?? "", item.newText);
  const hasOld = item.oldText !== null && item.oldText !== undefined;
  const part = { ...item, oldText: hasOld ? oldText : null, newText, _meta: { ...item._meta, firstLine } };
  const truncated = {
    ...item,
    oldText: hasOld ? cut(oldText, diffTextLength) : null,
    newText: cut(newText, diffTextLength),
    _meta: { ...item._meta, truncated: true },
  };
  return [part, truncated];
}

/**
 * Removes unchanged lines at both ends of the texts, except `contextLines` lines of context. `firstLine` is the number of
 * the first line that is left.
 */
function trimUnchanged(
  oldText: string,
  newText: string,
): { oldText: string; newText: string; firstLine: number } {
  const [oldLines, newLines] = [oldText.split("\n"), newText.split("\n")];
  const maxCommon = Math.min(oldLines.length, newLines.length);
  let start = 0;
  while (start < maxCommon && oldLines[start] === newLines[start]) start++;
  let end = 0;
  while (end < maxCommon - start && oldLines.at(-1 - end) === newLines.at(-1 - end)) end++;
  const [from, cut] = [Math.max(0, start - contextLines), Math.max(0, end - contextLines)];
  const part = (lines: string[]) => lines.slice(from, lines.length - cut).join("\n");
  return { oldText: part(oldLines), newText: part(newLines), firstLine: from + 1 };
}

function describeItem(item: ToolCallContent): string {
  if (item.type === "diff") return `The change of ${item.path}`;
  return item.type === "content" && item.content.type === "image"
    ? `An image (${item.content.mimeType})`
    : "A text";
}

function truncateTexts(value: unknown): unknown {
  if (typeof value === "string") return cut(value, inputTextLength);
  if (Array.isArray(value)) return value.map(truncateTexts);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, truncateTexts(inner)]));
}

export function cut(text: string, length: number): string {
  const more = text.length - length;
  return more <= 0 ? text : `${beginningOf(text, length)}\n… (${more} characters more)`;
}

function createText(text: string): ToolCallContent {
  return { type: "content", content: { type: "text", text } };
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
