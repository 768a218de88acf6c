import { fileURLToPath, pathToFileURL } from "node:url";
import { messageOf, UserError } from "../base/errors.ts";
import { newPartId } from "../message/ids.ts";
import type { Attachment, Part } from "../message/part.ts";
import { evaluate } from "../permission/judge.ts";
import type { Ruleset } from "../permission/rule.ts";
import { limitOutput, outputLimitBytes } from "../tool/output-limit.ts";
import { fitMedium, toAttachment } from "../tool/image/media.ts";
import { readTool } from "../tool/read/read.ts";
import { prepareCall, type ToolContext, appendNotes } from "../tool/tool.ts";
import { isInside, resolvePath } from "../workspace/paths.ts";
import { findMentions, type Mention } from "./mentions.ts";
import type { PromptBlock } from "../conversation/prompt-input.ts";

/** A link to a file, optionally to a range of lines, counted from 1. */
interface FileLink {
  path: string;
  lines?: { first: number; last: number };
}

/** Limits of a text embedded in a message. */
const embeddedLimits = { maxLines: 4_000, maxBytes: 128 * 1024 };
/** Maximum number of paths that one message attaches with `@`. */
const mentionLimit = 20;
/** Maximum number of words with `@` that are looked up on disk. */
const candidateLimit = 200;

/** Resources of MCP servers. */
export interface Resources {
  /** Returns whether a resource exists under the name or URI. */
  hasResource(name: string): boolean;
  /** Reads a resource; undefined if not found. */
  resource(
    name: string,
    signal: AbortSignal,
  ): Promise<{ text: string; attachments: readonly Attachment[] } | { problem: string } | undefined>;
}

/** Permission rules, resources and limits for attachments. */
export interface AttachOptions {
  readonly rules: Ruleset;
  readonly resources?: Resources | undefined;
  /** Maximum bytes per text, so that it fits into the model's window. */
  readonly maxBytes?: number | undefined;
}

/**
 * Converts the client's blocks to parts of a user message. Linked files are read immediately. Linking a file permits
 * reading it, unless a rule denies it.
 */
export async function toParts(
  blocks: readonly PromptBlock[],
  context: ToolContext,
  attaching: AttachOptions = { rules: [] },
): Promise<Part[]> {
  const parts: Part[] = [];
  for (const block of blocks) parts.push(...(await blockParts(block, context, attaching)));
  return parts;
}

async function blockParts(
  block: PromptBlock,
  context: ToolContext,
  attaching: AttachOptions,
): Promise<Part[]> {
  switch (block.type) {
    case "text": {
      const text: Part = {
        id: newPartId(),
        type: "text",
        text: block.text,
        ...(block.audience === "model" && { synthetic: true }),
        ...(block.audience === "person" && { ignored: true }),
      };
      const mayMention = block.audience === "both" && block.by !== "model";
      return mayMention ? [text, ...(await mentionParts(block.text, context, attaching))] : [text];
    }
    case "mentions":
      return mentionParts(block.text, context, attaching);
    case "media":
      return mediaParts(block, context, attaching);
    case "embedded":
      return embeddedParts(block, context, attaching);
    case "link":
      return linkParts(block, context, attaching);
    case "task":
      return [taskPart(block)];
  }
}

/** Embeds the beginning of a long text; the full text is stored in a file that the model can read. */
async function embeddedParts(
  { uri, text }: { uri: string; text: string },
  { workspace }: ToolContext,
  { maxBytes }: AttachOptions,
): Promise<Part[]> {
  const most = Math.min(embeddedLimits.maxBytes, maxBytes ?? embeddedLimits.maxBytes);
  const limits = { ...embeddedLimits, maxBytes: most };
  const limited = await limitOutput(text, { ...limits, folder: workspace.outputFolder });
  return [
    { id: newPartId(), type: "file", mime: "text/plain", url: uri, filename: uri },
    synthetic(`<attached uri="${uri}">\n${limited.text}\n</attached>`),
  ];
}

/** Resizes media to the limits, or replaces it with a note. */
async function mediaParts(
  { mime, data, name }: PromptBlock & { type: "media" },
  context: ToolContext,
  attaching: AttachOptions,
): Promise<Part[]> {
  const medium = { bytes: Buffer.from(data, "base64"), mime, name };
  const shownAs = name ?? mime;
  if (isText(mime)) {
    const text = medium.bytes.toString("utf8");
    return embeddedParts({ uri: shownAs, text }, context, attaching);
  }
  const fitted = await fitMedium(medium, context.signal);
  if (fitted.outcome === "fits") {
    const shown: Part = { id: newPartId(), type: "file", ...fitted.attachment };
    return fitted.note === "" ? [shown] : [shown, synthetic(`The attached ${shownAs} was ${fitted.note}.`)];
  }
  // The editor has displayed it, so the check may be wrong: send it unchanged.
  if (fitted.isDamaged && medium.bytes.length > 0)
    return [{ id: newPartId(), type: "file", ...toAttachment(medium) }];
  return [
    { id: newPartId(), type: "file", mime: "text/plain", url: `attachment:${shownAs}`, filename: shownAs },
    synthetic(`The user attached ${shownAs} (${mime}), but it is left out: ${fitted.reason}`),
  ];
}

/** Attaches files, folders and agents that the text names with `@`. The text itself does not change. */
async function mentionParts(text: string, context: ToolContext, attaching: AttachOptions): Promise<Part[]> {
  const links = new Map<string, PromptBlock & { type: "link" }>();
  const agents = new Set<string>();
  let more = 0;
  const candidates = findMentions(text);
  for (const readings of candidates.slice(0, candidateLimit)) {
    const link = (await toLink(readings, context)) ?? toResourceLink(readings, attaching);
    const agent = readings.find(({ path }) => context.tasks.agents.includes(path));
    if (link === undefined && agent !== undefined) agents.add(agent.path);
    if (link === undefined || links.has(link.uri)) continue;
    if (links.size < mentionLimit) links.set(link.uri, link);
    else more++;
  }
  const parts: Part[] = [...agents].flatMap(agentParts);
  for (const link of links.values()) parts.push(...(await linkParts(link, context, attaching)));
  if (more > 0) parts.push(synthetic(`${more} more paths that the user named with @ were not attached.`));
  const unseen = candidates.length - candidateLimit;
  if (unseen > 0)
    parts.push(synthetic(`${unseen} more words with @ were not looked up: they may name files as well.`));
  return parts;
}

/** The part records the user's request, so that no permission is asked; the text is for the model. */
function agentParts(name: string): Part[] {
  const instruction = `The user named the agent ${name}: hand it what the message asks of it with the tool task (subagent_type "${name}"), with all that it must know in the prompt.`;
  return [{ id: newPartId(), type: "agent", name }, synthetic(instruction)];
}

function taskPart({ prompt, agent, model, command }: PromptBlock & { type: "task" }): Part {
  const description = `/${command}`;
  return { id: newPartId(), type: "subtask", prompt, description, agent, command, ...(model && { model }) };
}

/** Returns a link for the first reading that exists in the workspace. */
async function toLink(
  readings: readonly Mention[],
  { workspace }: ToolContext,
): Promise<(PromptBlock & { type: "link" }) | undefined> {
  for (const { path: name, lines } of readings) {
    const path = await pathInside(name, workspace);
    if (path === undefined) continue;
    const hash = lines === undefined ? "" : `#L${lines.first}:${lines.last}`;
    return { type: "link", uri: `${pathToFileURL(path).href}${hash}`, name: name };
  }
  return undefined;
}

function toResourceLink(
  readings: readonly Mention[],
  { resources }: AttachOptions,
): (PromptBlock & { type: "link" }) | undefined {
  const found = readings.find(({ path }) => resources?.hasResource(path));
  return found && { type: "link", uri: found.path, name: found.path };
}

/** Returns the unresolved absolute path, so that rules apply to symbolic links too. */
async function pathInside(name: string, workspace: ToolContext["workspace"]): Promise<string | undefined> {
  try {
    const { unresolved, path, kind } = await resolvePath(name, workspace);
    const isThere = kind === "file" || kind === "directory";
    return isThere && isInside(path, workspace.roots) ? unresolved : undefined;
  } catch (error) {
    // An invalid path is not a mention.
    if (!(error instanceof UserError)) throw error;
    return undefined;
  }
}

async function linkParts(
  block: PromptBlock & { type: "link" },
  context: ToolContext,
  attaching: AttachOptions,
): Promise<Part[]> {
  const shown: Part = {
    id: newPartId(),
    type: "file",
    mime: block.mime?.startsWith("text/") ? block.mime : "text/plain",
    url: block.uri,
    filename: block.name,
  };
  const link = parseFileLink(block.uri);
  if (link !== undefined) return [shown, ...(await readLinkedFile(link, block, context, attaching))];
  const resource = await readResource(block.uri, context, attaching);
  return [shown, ...(resource ?? [synthetic(`The user linked ${block.uri} (${block.name}).`)])];
}

/**
 * Reads a resource. Naming it permits the request, unless a rule denies it. Returns undefined if there is no such
 * resource.
 */
async function readResource(
  uri: string,
  context: ToolContext,
  { rules, resources, maxBytes }: AttachOptions,
): Promise<Part[] | undefined> {
  if (resources === undefined || !resources.hasResource(uri)) return undefined;
  const request = { permission: "read_mcp_resource", subjects: [{ text: uri }], always: [] };
  const { action, reason } = evaluate(request, rules);
  if (action === "deny") return [synthetic(unreadableText(uri, reason))];
  const read = await resources.resource(uri, context.signal);
  if (read === undefined) return undefined;
  if ("problem" in read) return [synthetic(unreadableText(uri, read.problem))];
  const limited = await limitOutput(read.text, {
    folder: context.workspace.outputFolder,
    maxBytes: Math.min(outputLimitBytes, maxBytes ?? outputLimitBytes),
  });
  return [
    synthetic(`<attached uri="${uri}">\n${limited.text}\n</attached>`),
    ...read.attachments.map(toFilePart),
  ];
}

function toFilePart({ mime, url, filename }: Attachment): Part {
  return { id: newPartId(), type: "file", mime, url, ...(filename && { filename }) };
}

async function readLinkedFile(
  link: FileLink,
  block: { uri: string },
  context: ToolContext,
  { rules, maxBytes }: AttachOptions,
): Promise<Part[]> {
  const { path, lines } = link;
  const range = lines && { offset: lines.first, limit: lines.last - lines.first + 1 };
  try {
    const call = await prepareCall(readTool, { filePath: path, ...range }, context);
    const { action, reason } = evaluate(call.permissions, rules);
    if (action === "deny") return [synthetic(unreadableText(block.uri, reason))];
    const result = await call.run({
      callId: newPartId(),
      signal: context.signal,
      isAllowed: (permissions) => evaluate(permissions, rules).action !== "deny",
      output: () => {},
      waitUntilReady: async () => {},
      limits: { folder: context.workspace.outputFolder, maxBytes },
    });
    if (result.status === "failed") return [synthetic(unreadableText(block.uri, result.error))];
    const media = (result.attachments ?? []).map(toFilePart);
    return [
      synthetic(`<attached path="${path}">\n${appendNotes(result.output, result.notes)}\n</attached>`),
      ...media,
    ];
  } catch (error) {
    return [synthetic(unreadableText(block.uri, messageOf(error)))];
  }
}

/** Parses `file:///a/b.ts`, optionally with `#L10` or `#L10:20`, and `zed:///…?path=/a/b.ts`. */
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

/** Some editors send text as bytes. */
function isText(mime: string): boolean {
  return mime.startsWith("text/") || mime === "application/json" || mime === "image/svg+xml";
}

function synthetic(text: string): Part {
  return { id: newPartId(), type: "text", text, synthetic: true };
}

function unreadableText(uri: string, reason: string): string {
  return `The user attached ${uri}, but it could not be read: ${reason}`;
}
