import { renderEvidence } from "../../evidence/describe.ts";
import { isCommandMessage } from "../../conversation/checkpoints.ts";
import type { Message } from "../../message/message.ts";
import type { Part, ToolPart } from "../../message/part.ts";
import { type LoadContent, renderChange } from "./diff.ts";
import { escapeHtml, renderMarkdown } from "./markdown.ts";

export interface ViewSource {
  readonly cwd: string;
  readonly load: LoadContent;
  /** Messages of a task's session, oldest first; empty if it was deleted. */
  readonly messagesOf: (sessionId: string) => Promise<readonly Message[]>;
}

/** Maximum characters of an output that the page shows. The JSON export has all. */
const outputLimit = 20_000;
/** Tasks in tasks are rare, and each level is indented. */
const depthLimit = 4;

/** Renders messages, oldest first. */
export async function renderMessages(
  messages: readonly Message[],
  source: ViewSource,
  depth = 0,
): Promise<string> {
  const rendered: string[] = [];
  for (const message of messages) {
    if (isCommandMessage(message)) continue;
    const parts: string[] = [];
    for (const part of message.parts) parts.push(await renderPart(part, source, depth));
    const { info } = message;
    if (info.role === "assistant" && info.error !== undefined)
      parts.push(`<p class="failed">Failed: ${escapeHtml(info.error.message)}</p>`);
    const content = parts.filter((part) => part !== "").join("\n");
    if (content === "") continue;
    const id = depth === 0 ? ` id="${escapeHtml(info.id)}"` : "";
    rendered.push(`<article class="${info.role}"${id}>${content}</article>`);
  }
  return rendered.join("\n");
}

async function renderPart(part: Part, source: ViewSource, depth: number): Promise<string> {
  switch (part.type) {
    case "text":
      return part.synthetic === true || part.text.trim() === "" ? "" : renderMarkdown(part.text);
    case "reasoning":
      if (part.text.trim() === "") return "";
      return `<details class="thought"><summary>Thoughts</summary>${renderMarkdown(part.text)}</details>`;
    case "file":
      return `<p class="note">Attached: ${escapeHtml(part.filename ?? part.url.slice(0, 100))}</p>`;
    case "tool":
      return renderCall(part, source, depth);
    case "retry":
      return `<p class="note">Retried (${part.attempt} of ${part.attempts}) after: ${escapeHtml(part.error)}</p>`;
    case "evidence":
      return `<div class="evidence">${renderMarkdown(renderEvidence(part))}</div>`;
    case "compaction":
      return '<p class="note">The conversation was compacted here.</p>';
    case "subtask":
      return `<p class="note">Task for ${escapeHtml(part.agent)}: ${escapeHtml(part.description)}</p>`;
    case "drop":
    case "step-start":
    case "step-finish":
    case "snapshot":
    case "patch":
    case "changes":
    case "agent":
      return "";
  }
}

async function renderCall(part: ToolPart, source: ViewSource, depth: number): Promise<string> {
  const { tool, title, state } = part;
  const end = state.status === "error" ? state.reason : state.status === "completed" ? "" : "not finished";
  const label = `<b>${escapeHtml(tool)}</b> ${escapeHtml(title ?? "")}`;
  const head = `<summary>${label}${end === "" ? "" : ` <span class="failed">${escapeHtml(end)}</span>`}</summary>`;
  const text = state.status === "completed" ? state.output : state.status === "error" ? state.error : "";
  const changes = state.status === "completed" || state.status === "error" ? (state.changes ?? []) : [];
  const parts: string[] = [];
  for (const change of changes) parts.push(await renderChange(change, source.load, source.cwd));
  const task =
    state.status === "completed" || state.status === "error" ? state.metadata?.["sessionId"] : undefined;
  if (typeof task === "string" && depth < depthLimit) {
    const messages = await renderMessages(await source.messagesOf(task), source, depth + 1);
    if (messages !== "") parts.push(`<section class="task">${messages}</section>`);
  }
  if (text.trim() !== "") parts.push(renderOutput(text));
  const isOpen = changes.length > 0 || state.status === "error" ? " open" : "";
  return `<details class="call"${isOpen}>${head}${parts.join("")}</details>`;
}

function renderOutput(text: string): string {
  const rest = text.length - outputLimit;
  const more = rest > 0 ? `<p class="note">${rest} more characters</p>` : "";
  return `<pre>${escapeHtml(text.slice(0, outputLimit))}</pre>${more}`;
}
