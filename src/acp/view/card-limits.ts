import type { ToolCallContent } from "@agentclientprotocol/sdk";
import { beginningOf, excerpt } from "../../base/text/excerpt.ts";

/** Of JSON in UTF-8. Together with the rest of a card a line stays below 1 MiB, on which some clients break. */
const contentLimitBytes = 640 * 1024;
const inputLimitBytes = 256 * 1024;
/** Characters of each text of an input that is too long as a whole. */
const inputTextLength = 8 * 1024;
/** Characters of the name of a tool, which is what the model wrote. */
const nameLength = 200;
/** Unchanged lines that stay around a change whose whole file is too long. */
const contextLines = 20;
/** Characters of each side of a diff that is still too long; escaped at its worst, six bytes each, both fit. */
const diffTextLength = 48 * 1024;

/** What of a card's content fits into a line. What does not is cut, and says so. */
export function limitContent(content: readonly ToolCallContent[]): ToolCallContent[] {
  let room = contentLimitBytes;
  return content.flatMap((item) => {
    const fitting = [item, ...shrink(item)].find((one) => jsonBytes(one) <= room);
    room -= fitting === undefined ? 0 : jsonBytes(fitting);
    if (fitting === item) return [item];
    return fitting === undefined
      ? [createText(`${describeItem(item)} is too long to be shown.`)]
      : [fitting, createText(`${describeItem(item)} is too long to be shown as a whole.`)];
  });
}

/** What the model gave a tool, its long texts cut where it is too long. */
export function limitInput(input: unknown): unknown {
  if (input === undefined || jsonBytes(input) <= inputLimitBytes) return input;
  const truncate = truncateTexts(input);
  return jsonBytes(truncate) <= inputLimitBytes ? truncate : { note: "This input is too long to be shown." };
}

export function limitName(name: string): string {
  return excerpt(name, nameLength);
}

/** The same in less and less space. */
function shrink(item: ToolCallContent): ToolCallContent[] {
  if (item.type === "content" && item.content.type === "text")
    return [createText(cut(item.content.text, diffTextLength))];
  if (item.type !== "diff") return [];
  const [oldText, newText] = trimUnchanged(item.oldText ?? "", item.newText);
  const part = { ...item, oldText: item.oldText === null ? null : oldText, newText };
  const cutOld =
    part.oldText === null || part.oldText === undefined ? null : cut(part.oldText, diffTextLength);
  return [part, { ...part, oldText: cutOld, newText: cut(newText, diffTextLength) }];
}

/** Both texts without what is the same before and behind the change, but for some lines. */
function trimUnchanged(oldText: string, newText: string): [string, string] {
  const [oldLines, newLines] = [oldText.split("\n"), newText.split("\n")];
  const most = Math.min(oldLines.length, newLines.length);
  let start = 0;
  while (start < most && oldLines[start] === newLines[start]) start++;
  let end = 0;
  while (end < most - start && oldLines.at(-1 - end) === newLines.at(-1 - end)) end++;
  const [from, kept] = [Math.max(0, start - contextLines), Math.max(0, end - contextLines)];
  const part = (lines: string[]) => lines.slice(from, lines.length - kept).join("\n");
  return [part(oldLines), part(newLines)];
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
