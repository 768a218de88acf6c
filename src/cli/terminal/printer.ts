import type {
  ContentBlock,
  RequestPermissionRequest,
  SessionUpdate,
  ToolCall,
  ToolCallContent,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk";
import { structuredPatch } from "diff";
import { removeControls } from "../../base/text/controls.ts";
import { isRecord } from "../../base/text/record.ts";
import type { Style } from "./style.ts";

/** Lines printed of a tool call's output or diff. */
const lineLimit = 12;

export interface PrinterOptions {
  style: Style;
  /** The model's answer; progress goes to `progress`. */
  answer(text: string): void;
  progress(text: string): void;
}

/** Prints the session updates of a turn. */
export class Printer {
  readonly #options: PrinterOptions;
  readonly #calls = new Map<string, ToolCallUpdate>();
  /** Key of the text that is being streamed. */
  #open: string | undefined;
  #isLineEnded = false;

  constructor(options: PrinterOptions) {
    this.#options = options;
  }

  update(update: SessionUpdate): void {
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
        return this.#stream(
          "answer",
          update.content.type === "text" ? update.content.text : "",
          update.messageId,
        );
      case "agent_thought_chunk":
        return this.#stream(
          "thought",
          update.content.type === "text" ? update.content.text : "",
          update.messageId,
        );
      case "user_message_chunk":
        return this.line(this.#style.bold(`> ${removeControls(toPlainText(update.content))}`));
      case "tool_call":
      case "tool_call_update":
        return this.#call(update);
      case "plan":
        return this.#plan(update.entries);
      case "session_info_update":
        return update.title
          ? this.line(this.#style.dim(`title: ${removeControls(update.title)}`))
          : undefined;
      case "usage_update": {
        const cost = update.cost ? `, $${update.cost.amount.toFixed(4)}` : "";
        return this.line(this.#style.dim(`context: ${update.used} of ${update.size} tokens${cost}`));
      }
      case "current_mode_update":
        return this.line(this.#style.dim(`mode: ${update.currentModeId}`));
      default:
        return undefined;
    }
  }

  question(request: RequestPermissionRequest): void {
    const { toolCall, options } = request;
    this.line(this.#style.yellow(`? ${removeControls(formatQuestion(toolCall))}`));
    this.#content(toolCall.content ?? []);
    this.line(this.#style.yellow(`  ${options.map(({ name }) => `[${name}]`).join(" ")}`));
  }

  /** Prints a progress line. */
  line(text: string): void {
    this.end();
    this.#options.progress(`${text}\n`);
  }

  /** Ends the line that is being streamed. */
  end(): void {
    if (this.#open === undefined) return;
    const isAnswer = this.#open.startsWith("answer");
    this.#open = undefined;
    if (this.#isLineEnded) return;
    if (isAnswer) this.#options.answer("\n");
    else this.#options.progress("\n");
  }

  get #style(): Style {
    return this.#options.style;
  }

  #stream(kind: "answer" | "thought", text: string, messageId: string | null | undefined): void {
    const key = `${kind} ${messageId ?? ""}`;
    if (text === "") return;
    if (this.#open !== key) this.end();
    this.#open = key;
    this.#isLineEnded = text.endsWith("\n");
    if (kind === "answer") this.#options.answer(text);
    else this.#options.progress(this.#style.dim(removeControls(text)));
  }

  #call(update: ToolCall | ToolCallUpdate): void {
    const evidence = update._meta?.["evidence"];
    if (isRecord(evidence)) return this.#evidence(evidence, update.title ?? "");
    const known = this.#calls.get(update.toolCallId);
    const call = { ...known, ...update };
    this.#calls.set(update.toolCallId, call);
    if (update.status === "in_progress") this.#head(this.#style.cyan("●"), call);
    if (update.status === "completed") this.#finished(call, known);
    if (update.status === "failed") {
      this.#head(this.#style.red("✗"), call);
      this.#content(call.content ?? []);
    }
    if (update.status === "completed" || update.status === "failed") this.#calls.delete(update.toolCallId);
  }

  /** Prints what the turn changed and ran as one line. */
  #evidence({ unproven }: Readonly<Record<string, unknown>>, title: string): void {
    const isUnproven = Array.isArray(unproven) && unproven.length > 0;
    this.line(
      isUnproven ? this.#style.yellow(removeControls(title)) : this.#style.dim(removeControls(title)),
    );
  }

  #finished(call: ToolCallUpdate, known: ToolCallUpdate | undefined): void {
    if (known === undefined) this.#head(this.#style.green("✓"), call);
    this.#content(call.content ?? []);
  }

  #head(mark: string, { name, title }: ToolCallUpdate): void {
    this.line(`${mark} ${removeControls(name ?? "")} ${this.#style.bold(removeControls(title ?? ""))}`);
  }

  #content(content: readonly ToolCallContent[]): void {
    for (const item of content) {
      if (item.type === "diff") this.#diff(item);
      if (item.type === "content" && item.content.type === "text")
        this.#lines(removeFence(item.content.text).split("\n"));
    }
  }

  #diff({ path, oldText, newText }: { path: string; oldText?: string | null; newText: string }): void {
    const patch = structuredPatch(path, path, oldText ?? "", newText, "", "", { context: 1, timeout: 500 });
    const lines = patch?.hunks.flatMap((hunk) => hunk.lines) ?? ["(too large to show)"];
    this.#lines(lines.filter((line) => !line.startsWith("\\")));
  }

  #lines(lines: readonly string[]): void {
    const shown = lines.slice(0, lineLimit);
    for (const line of shown) this.line(`  ${this.#paint(removeControls(line))}`);
    if (lines.length > shown.length)
      this.line(this.#style.dim(`  … ${lines.length - shown.length} more lines`));
  }

  #paint(line: string): string {
    if (line.startsWith("+")) return this.#style.green(line);
    if (line.startsWith("-")) return this.#style.red(line);
    return this.#style.dim(line);
  }

  #plan(entries: readonly { content: string; status: string }[]): void {
    const marks: Readonly<Record<string, string>> = { completed: "[x]", in_progress: "[>]", pending: "[ ]" };
    for (const { content, status } of entries)
      this.line(this.#style.cyan(`  ${marks[status] ?? "[ ]"} ${removeControls(content)}`));
  }
}

const toPlainText = (content: ContentBlock): string =>
  content.type === "text" ? content.text : content.type;

/** Verbs of the permission question, by tool kind. */
const verbs: Readonly<Record<string, string>> = {
  read: "Read",
  edit: "Edit",
  delete: "Delete",
  move: "Move",
  search: "Search for",
  execute: "Run",
  fetch: "Fetch",
};

function formatQuestion({ kind, title, toolCallId }: ToolCallUpdate): string {
  const verb = verbs[kind ?? "other"];
  const text = (title ?? toolCallId).replace(/\?$/, "");
  return `${verb === undefined ? text : `${verb} ${text}`}?`;
}

function removeFence(text: string): string {
  return text.replace(/^`{3,}[^\n]*\n/, "").replace(/\n`{3,}\s*$/, "");
}
