import { fileURLToPath } from "node:url";
import { messageOf } from "../base/errors.ts";
import { newPartId } from "../message/ids.ts";
import type { Part } from "../message/part.ts";
import { evaluate } from "../permission/evaluate.ts";
import type { Ruleset } from "../permission/rule.ts";
import { readTool } from "../tool/read.ts";
import type { ToolContext } from "../tool/tool.ts";
import type { PromptBlock } from "./prompt-input.ts";

/** A link names a file and perhaps some of its lines, counted from 1. */
interface FileLink {
  path: string;
  lines?: { first: number; last: number };
}

/**
 * Turns what the client sent into parts of a user message; linked files are read now, as the model will see them.
 * Who links a file has agreed that it is read, unless a rule denies it.
 */
export async function toParts(
  blocks: readonly PromptBlock[],
  context: ToolContext,
  rules: Ruleset = [],
): Promise<Part[]> {
  const parts: Part[] = [];
  for (const block of blocks) parts.push(...(await blockParts(block, context, rules)));
  return parts;
}

async function blockParts(block: PromptBlock, context: ToolContext, rules: Ruleset): Promise<Part[]> {
  switch (block.type) {
    case "text":
      return [
        {
          id: newPartId(),
          type: "text",
          text: block.text,
          ...(block.audience === "model" && { synthetic: true }),
          ...(block.audience === "person" && { ignored: true }),
        },
      ];
    case "media": {
      const url = `data:${block.mime};base64,${block.data}`;
      return [
        { id: newPartId(), type: "file", mime: block.mime, url, ...(block.name && { filename: block.name }) },
      ];
    }
    case "embedded":
      return [
        { id: newPartId(), type: "file", mime: "text/plain", url: block.uri, filename: block.uri },
        synthetic(`<attached uri="${block.uri}">\n${block.text}\n</attached>`),
      ];
    case "link":
      return linkParts(block, context, rules);
  }
}

async function linkParts(
  block: PromptBlock & { type: "link" },
  context: ToolContext,
  rules: Ruleset,
): Promise<Part[]> {
  const shown: Part = {
    id: newPartId(),
    type: "file",
    mime: block.mime?.startsWith("text/") ? block.mime : "text/plain",
    url: block.uri,
    filename: block.name,
  };
  const link = parseFileLink(block.uri);
  if (link === undefined) return [shown, synthetic(`The person linked ${block.uri} (${block.name}).`)];
  return [shown, ...(await readLinked(link, block, context, rules))];
}

async function readLinked(
  link: FileLink,
  block: { uri: string },
  context: ToolContext,
  rules: Ruleset,
): Promise<Part[]> {
  const { path, lines } = link;
  const range = lines && { offset: lines.first, limit: lines.last - lines.first + 1 };
  try {
    const call = await readTool.prepare({ filePath: path, ...range }, context);
    const { action, reason } = evaluate(call.permissions, rules);
    if (action === "deny") return [synthetic(unreadable(block.uri, reason))];
    const result = await call.run({ signal: context.signal, output: async () => {} });
    if (result.status === "failed") return [synthetic(unreadable(block.uri, result.error))];
    const media = (result.attachments ?? []).map(({ mime, url, filename }): Part => ({
      id: newPartId(),
      type: "file",
      mime,
      url,
      ...(filename && { filename }),
    }));
    return [synthetic(`<attached path="${path}">\n${result.output}\n</attached>`), ...media];
  } catch (error) {
    return [synthetic(unreadable(block.uri, messageOf(error)))];
  }
}

/** Understands `file:///a/b.ts`, `#L10` and `#L10:20` behind it, and `zed:///…?path=/a/b.ts`. */
export function parseFileLink(uri: string): FileLink | undefined {
  if (!URL.canParse(uri)) return undefined;
  const url = new URL(uri);
  const path =
    url.protocol === "file:"
      ? filePathOf(url)
      : url.protocol === "zed:"
        ? url.searchParams.get("path")
        : null;
  if (path === null) return undefined;
  const range = /^#L(\d+)(?:[:-]L?(\d+))?$/.exec(url.hash);
  if (range === null) return { path };
  const first = Math.max(1, Number(range[1]));
  return { path, lines: { first, last: Math.max(first, Number(range[2] ?? range[1])) } };
}

function filePathOf(url: URL): string | null {
  try {
    return fileURLToPath(new URL(url.pathname, "file://"));
  } catch {
    return null;
  }
}

function synthetic(text: string): Part {
  return { id: newPartId(), type: "text", text, synthetic: true };
}

function unreadable(uri: string, reason: string): string {
  return `The person attached ${uri}, but it could not be read: ${reason}`;
}
