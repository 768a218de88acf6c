import { fenced } from "../base/text/fence.ts";
import type { Message, SessionInfo } from "../message/message.ts";
import type { DropPart, Part, ToolPart } from "../message/part.ts";
import { renderEvidence } from "../evidence/describe.ts";
import { nameCall } from "../tool/presentation.ts";
import { isCommandMessage } from "../conversation/checkpoints.ts";

/** Maximum characters of a call's output or error. The JSON export is not cut. */
const outputLimit = 4_000;

/** Renders a conversation as Markdown, oldest message first. */
export function renderSession(info: SessionInfo, messages: readonly Message[]): string {
  const blocks = [
    renderHeader(info),
    ...messages.filter((message) => !isCommandMessage(message)).flatMap(renderMessage),
  ];
  return `${blocks.filter((block) => block !== "").join("\n\n")}\n`;
}

function renderHeader(info: SessionInfo): string {
  const { id, title, cwd, cost, time, summary } = info;
  const facts = [
    `Session \`${id}\` in \`${cwd}\``,
    `${new Date(time.created).toISOString()} to ${new Date(time.updated).toISOString()}`,
    ...(cost > 0 ? [`$${cost.toFixed(4)}`] : []),
    ...(summary === undefined
      ? []
      : [`${summary.files} files, +${summary.additions} −${summary.deletions} lines`]),
  ];
  return `# ${oneLine(title ?? "Session")}\n\n${facts.map((fact) => `- ${fact}`).join("\n")}`;
}

function renderMessage(message: Message): string[] {
  const { info, parts } = message;
  const blocks = parts.map(renderPart).filter((block) => block !== "");
  const failed =
    info.role === "assistant" && info.error !== undefined ? [`**Failed:** ${info.error.message}`] : [];
  if (blocks.length === 0 && failed.length === 0) return [];
  const who =
    info.role === "user"
      ? info.steering === true
        ? "You, meanwhile"
        : "You"
      : `${info.agent} (${info.model.provider}/${info.model.model})${info.summary === true ? ", summary" : ""}`;
  return [`## ${who}`, ...blocks, ...failed];
}

function renderPart(part: Part): string {
  switch (part.type) {
    case "text":
      return part.synthetic === true ? "" : part.text.trim();
    case "reasoning":
      return part.text.trim() === "" ? "" : quoteBlock(part.text);
    case "file":
      return `Attached: ${oneLine(part.filename ?? part.url.slice(0, 100))}`;
    case "tool":
      return renderCall(part);
    case "retry":
      return `Retried (${part.attempt} of ${part.attempts}) after: ${oneLine(part.error)}`;
    case "evidence":
      return renderEvidence(part);
    case "drop":
      return renderDrop(part);
    case "compaction":
      return "The conversation was compacted here.";
    case "subtask":
      return `Task for ${part.agent}: ${oneLine(part.description)}`;
    case "step-start":
    case "step-finish":
    case "snapshot":
    case "patch":
    case "changes":
    case "agent":
      return "";
  }
}

function renderDrop({ changes, isRedo }: DropPart): string {
  const paths = [...new Set(changes.map(({ path }) => oneLine(path)))].join(", ");
  if (paths === "") return "";
  return isRedo ? `Restored dropped changes: ${paths}` : `Dropped changes of the agent: ${paths}`;
}

function renderCall(part: ToolPart): string {
  const { tool, title = "", kind, state } = part;
  const what = oneLine(kind === "execute" ? `**${tool}** ${title}` : `**${nameCall(part)}**`);
  switch (state.status) {
    case "completed":
      return [what, ...block(state.output)].join("\n\n");
    case "error":
      return [`${what}: ${state.reason}`, ...block(state.error)].join("\n\n");
    case "pending":
    case "running":
      return `${what}: not finished`;
  }
}

function block(text: string): string[] {
  if (text.trim() === "") return [];
  const rest = text.length - outputLimit;
  return [fenced(rest > 0 ? `${text.slice(0, outputLimit)}\n… ${rest} more characters` : text)];
}

function quoteBlock(text: string): string {
  return text
    .trim()
    .split("\n")
    .map((line) => `> ${line}`.trimEnd())
    .join("\n");
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}
