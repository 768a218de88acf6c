import type {
  ContentBlock,
  RequestPermissionRequest,
  SessionUpdate,
  ToolCallContent,
  ToolCall,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk";
import { structuredPatch } from "diff";
import { removeControls } from "../../base/text/controls.ts";
import { isRecord } from "../../base/text/record.ts";
import { plainStyle, type Style } from "../terminal/style.ts";
import { CallOutput } from "./call-output.ts";
import { type ChangesCard, findChangesCard, formatChanges } from "./changes-diff.ts";
import { formatDuration } from "./elapsed.ts";
import type { Screen } from "./screen.ts";
import { Status } from "./status.ts";
import { LineWrapper, wrapLines } from "./line-wrapper.ts";
import { cutLine, toScreenLine, wrapLine } from "./text-lines.ts";

/** Lines printed of a finished call's text or diff, by its kind. */
const lineLimits: Readonly<Record<string, number>> = { read: 0, search: 5 };
const lineLimit = 12;
/** Milliseconds after which a running call is named if no status is drawn. */
const slowCallMs = 10_000;
/** Shorter durations are not printed. */
const minDurationMs = 1_000;
/** A word that has not ended after this time is printed as far as it is known. */
const wordLimitMs = 150;

/** The known part of a tool call. */
interface PrintedCall {
  readonly update: ToolCallUpdate;
  readonly output: CallOutput;
  /** When it began to run. */
  startedAt?: number;
  exitCode?: number;
  /** The user's decision about it; the text for the model about this decision is not printed. */
  decided?: "rejected" | "answered";
  slow?: NodeJS.Timeout;
}

/** Prints the session updates of a turn: text while it arrives, and each tool call with its output when it ends. */
export class Printer {
  readonly #style: Style;
  readonly #screen: Screen;
  readonly #status: Status;
  readonly #calls = new Map<string, PrintedCall>();
  /** Key of the text that is being streamed. */
  #open: string | undefined;
  #isLineEnded = false;
  /** Wraps the text that is being streamed to a terminal. */
  #wrapper: LineWrapper | undefined;
  #wordTimer: NodeJS.Timeout | undefined;
  #plan: readonly string[] = [];
  #isCancelling = false;

  constructor(options: { style: Style; screen: Screen }) {
    this.#style = options.style;
    this.#screen = options.screen;
    this.#status = new Status(options);
  }

  /** Shows what is in progress until {@link stop}. */
  start(activity: string): void {
    this.#status.start(activity);
  }

  /** Names what is in progress when no tool call is. */
  activity(text: string): void {
    this.#status.activity(text);
  }

  stop(): void {
    for (const { slow } of this.#calls.values()) clearTimeout(slow);
    this.#printWord();
    this.#status.stop();
  }

  /** Notes that the user cancelled: calls that fail from now on need no explanation. */
  cancelling(): void {
    this.#isCancelling = true;
    this.#status.activity("Cancelling");
  }

  /** Stops drawing while a question is answered. */
  async withQuestion<T>(ask: () => Promise<T>): Promise<T> {
    this.end();
    this.#status.pause();
    try {
      return await ask();
    } finally {
      this.#status.resume();
    }
  }

  update(update: SessionUpdate): void {
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
        return this.#stream("answer", toPlainText(update.content), update.messageId);
      case "agent_thought_chunk":
        return this.#stream("thought", toPlainText(update.content), update.messageId);
      case "user_message_chunk":
        return this.line(this.#style.bold(`> ${removeControls(toPlainText(update.content))}`));
      case "tool_call":
      case "tool_call_update":
        return this.#call(update);
      case "plan":
        return this.#printPlan(update.entries);
      case "current_mode_update":
        return this.line(this.#style.dim(`The agent is ${removeControls(update.currentModeId)} now.`));
      default:
        return undefined;
    }
  }

  /** Prints a question; the prompt prints the answers. */
  question({ toolCall }: RequestPermissionRequest): void {
    this.line(this.#style.yellow(`? ${removeControls(formatQuestion(toolCall))}`));
    this.#wrapped(toolCall.content ?? []);
  }

  /** Notes the user's decision about a call: of a rejected call only the title is printed, of an answered one nothing. */
  decided(toolCallId: string, decision: "rejected" | "answered"): void {
    const call = this.#calls.get(toolCallId);
    if (call !== undefined) call.decided = decision;
  }

  /** Prints a progress line. */
  line(text: string): void {
    this.end();
    const { isTerminal, columns } = this.#screen;
    this.#screen.progress(`${isTerminal ? wrapLines(text, columns - 1) : text}\n`);
  }

  /** Ends the line that is being streamed. */
  end(): void {
    if (this.#open === undefined) return;
    this.#printWord();
    if (!this.#isLineEnded) this.#write("\n");
    this.#open = this.#wrapper = undefined;
    this.#status.endText();
  }

  #stream(kind: "answer" | "thought", text: string, messageId: string | null | undefined): void {
    const key = `${kind} ${messageId ?? ""}`;
    if (text === "") return;
    if (this.#open !== key) {
      this.end();
      this.#open = key;
      this.#wrapper = this.#createWrapper(kind);
    }
    this.#isLineEnded = text.endsWith("\n");
    this.#status.text();
    this.#write(this.#wrapper === undefined ? text : this.#wrapper.add(removeControls(text)));
    clearTimeout(this.#wordTimer);
    if (this.#wrapper?.isHolding) this.#wordTimer = setTimeout(() => this.#printWord(), wordLimitMs).unref();
  }

  #createWrapper(kind: "answer" | "thought"): LineWrapper | undefined {
    const columns = () => (kind === "answer" ? this.#screen.answerColumns : this.#screen.columns) - 1;
    const isTerminal = kind === "answer" ? this.#screen.isAnswerTerminal : this.#screen.isTerminal;
    return isTerminal ? new LineWrapper(columns) : undefined;
  }

  /** Prints the word that may continue. */
  #printWord(): void {
    clearTimeout(this.#wordTimer);
    this.#write(this.#wrapper?.flush() ?? "");
  }

  /** Prints a part of the text that is being streamed. */
  #write(text: string): void {
    if (text === "") return;
    if (this.#open?.startsWith("answer")) this.#screen.answer(text);
    else this.#screen.progress(this.#style.dim(removeControls(text)));
  }

  /** Prints why a model call is repeated, when the wait begins. */
  #retry(
    { status, content }: ToolCall | ToolCallUpdate,
    { delayMs }: Readonly<Record<string, unknown>>,
  ): void {
    if (status !== "in_progress") return;
    for (const line of textLines(content ?? [])) this.line(this.#style.yellow(removeControls(line)));
    this.#status.activity(
      "Waiting to try again",
      typeof delayMs === "number" ? Date.now() + delayMs : undefined,
    );
  }

  #call(update: SessionUpdate & { sessionUpdate: "tool_call" | "tool_call_update" }): void {
    const changes = update.sessionUpdate === "tool_call" ? findChangesCard(update) : undefined;
    if (changes !== undefined) return this.#changes(changes);
    const evidence = update._meta?.["evidence"];
    if (isRecord(evidence)) return this.#evidence(evidence, update.title ?? "");
    const retry = update._meta?.["retry"];
    if (isRecord(retry)) return this.#retry(update, retry);
    const { toolCallId, status, _meta } = update;
    const known = this.#calls.get(toolCallId);
    const call: PrintedCall = {
      ...(known ?? { output: new CallOutput() }),
      update: { ...known?.update, ...update },
    };
    const terminal = _meta?.["terminal_output"];
    if (isRecord(terminal) && typeof terminal["data"] === "string") call.output.add(terminal["data"]);
    const exit = _meta?.["terminal_exit"];
    if (isRecord(exit) && typeof exit["exit_code"] === "number") call.exitCode = exit["exit_code"];
    this.#calls.set(toolCallId, call);
    if (status === "pending") this.#status.activity("Waiting for the model");
    if (status === "in_progress" && call.startedAt === undefined) this.#begin(call);
    if (call.startedAt !== undefined) this.#showRunning(call);
    if (status === "completed" || status === "failed") this.#finish(call);
  }

  #begin(call: PrintedCall): void {
    call.startedAt = Date.now();
    if (this.#screen.isLive) return;
    call.slow = setTimeout(() => {
      this.line(`${this.#style.cyan("…")} ${this.#heading(call)} ${this.#style.dim("is still running")}`);
    }, slowCallMs).unref();
  }

  #showRunning({ update, output, startedAt }: PrintedCall): void {
    this.#status.call(update.toolCallId, {
      title: formatTitle(update),
      startedAt: startedAt ?? Date.now(),
      lines: () => [...textLines(update.content ?? []), ...output.last(lineLimit)],
    });
  }

  #finish(call: PrintedCall): void {
    const { update, exitCode = 0, slow } = call;
    clearTimeout(slow);
    this.#calls.delete(update.toolCallId);
    this.#status.endCall(update.toolCallId);
    if (call.decided === "answered") return;
    const isGood = update.status === "completed" && exitCode === 0;
    const mark = isGood ? this.#style.green("✓") : this.#style.red("✗");
    const facts = this.#facts(call);
    this.line(`${mark} ${this.#heading(call, facts)}${facts === "" ? "" : this.#style.dim(` (${facts})`)}`);
    if (call.decided === "rejected" || (this.#isCancelling && !isGood)) return this.#output(call.output);
    if (update.status === "failed") this.#wrapped(update.content ?? []);
    else this.#content(update.content ?? [], lineLimits[update.kind ?? ""] ?? lineLimit);
    this.#output(call.output);
  }

  #facts({ update, startedAt, exitCode = 0, decided }: PrintedCall): string {
    if (decided !== undefined) return decided;
    if (this.#isCancelling && update.status === "failed") return "cancelled";
    const duration = startedAt === undefined ? 0 : Date.now() - startedAt;
    const facts = [
      ...(exitCode === 0 ? [] : [`exit ${exitCode}`]),
      ...(duration < minDurationMs ? [] : [formatDuration(duration)]),
    ];
    return facts.join(", ");
  }

  /** The call's title, cut so that it and the facts fit on one line of the terminal. */
  #heading({ update }: PrintedCall, facts = ""): string {
    const title = formatTitle(update);
    const other = 2 + (facts === "" ? 0 : facts.length + 3);
    return this.#style.bold(
      this.#screen.isTerminal ? cutLine(title, this.#screen.columns - other - 1) : title,
    );
  }

  /** Prints the card of `/changes`. On a terminal it is colored, which the answer cannot be. */
  #changes(card: ChangesCard): void {
    this.end();
    const { isTerminal, columns } = this.#screen;
    if (isTerminal) this.#screen.progress(`${formatChanges(card, { style: this.#style, width: columns })}\n`);
    else this.#screen.answer(`${formatChanges(card, { style: plainStyle })}\n`);
  }

  /** Prints what the turn changed and ran as one line. */
  #evidence({ unproven }: Readonly<Record<string, unknown>>, title: string): void {
    const isUnproven = Array.isArray(unproven) && unproven.length > 0;
    this.line(
      isUnproven ? this.#style.yellow(removeControls(title)) : this.#style.dim(removeControls(title)),
    );
  }

  #content(content: readonly ToolCallContent[], limit: number): void {
    for (const item of content) if (item.type === "diff") this.#diff(item);
    const lines = textLines(content);
    for (const line of lines.slice(0, limit)) this.#indented(line);
    const more = lines.length - limit;
    if (more > 0 && limit > 0) this.#omitted(`${more} more lines`);
  }

  /** Prints why a call failed or is asked about: nothing of it is cut. */
  #wrapped(content: readonly ToolCallContent[]): void {
    for (const item of content) if (item.type === "diff") this.#diff(item);
    const { isTerminal, columns } = this.#screen;
    const lines = textLines(content).flatMap((line) =>
      isTerminal ? wrapLine(toScreenLine(line), columns - 3) : [line],
    );
    for (const line of lines.slice(0, lineLimit)) this.#indented(line);
    if (lines.length > lineLimit) this.#omitted(`${lines.length - lineLimit} more lines`);
  }

  #diff({ path, oldText, newText }: { path: string; oldText?: string | null; newText: string }): void {
    const patch = structuredPatch(path, path, oldText ?? "", newText, "", "", { context: 1, timeout: 500 });
    const lines = patch?.hunks.flatMap((hunk) => hunk.lines) ?? ["(too large to show)"];
    const shown = lines.filter((line) => !line.startsWith("\\"));
    for (const line of shown.slice(0, lineLimit)) this.#indented(line, (text) => this.#paintDiff(text));
    if (shown.length > lineLimit) this.#omitted(`${shown.length - lineLimit} more lines`);
  }

  #output(output: CallOutput): void {
    const { head, omitted, tail } = output.summary();
    for (const line of head) this.#indented(line);
    if (omitted > 0) this.#omitted(`${omitted} lines`);
    for (const line of tail) this.#indented(line);
  }

  #indented(line: string, paint = (text: string) => this.#style.dim(text)): void {
    const text = toScreenLine(line);
    const { isTerminal, columns } = this.#screen;
    this.line(`  ${paint(isTerminal ? cutLine(text, columns - 3) : text)}`);
  }

  #omitted(what: string): void {
    this.line(this.#style.dim(`  … ${what}`));
  }

  #paintDiff(line: string): string {
    if (line.startsWith("+")) return this.#style.green(line);
    if (line.startsWith("-")) return this.#style.red(line);
    return this.#style.dim(line);
  }

  /** Prints the entries whose state has changed. */
  #printPlan(entries: readonly { content: string; status: string }[]): void {
    const marks: Readonly<Record<string, string>> = { completed: "[x]", in_progress: "[>]", pending: "[ ]" };
    const lines = entries.map(
      ({ content, status }) => `${marks[status] ?? "[ ]"} ${removeControls(content)}`,
    );
    for (const line of lines)
      if (!this.#plan.includes(line)) this.line(this.#style.cyan(`  ${line.replaceAll("\n", " ")}`));
    this.#plan = lines;
  }
}

/** Formats what a call does: `$ npm test`, `Read src/a.ts`. */
function formatTitle({ kind, name, title }: ToolCallUpdate): string {
  const text = toScreenLine((title ?? "").replaceAll(/\s*\n\s*/g, " ⏎ "));
  if (kind === "execute" && text !== "") return `$ ${text}`;
  const tool = toScreenLine(name ?? "");
  if (text !== "" && text !== tool) return text;
  return /^[a-z]+$/.test(tool) ? tool.replace(/^./, (letter) => letter.toUpperCase()) : tool;
}

const toPlainText = (content: ContentBlock): string =>
  content.type === "text" ? content.text : `(${content.type})`;

/** Returns the text of a call's content, without code fences. */
function textLines(content: readonly ToolCallContent[]): string[] {
  return content.flatMap((item) =>
    item.type === "content" && item.content.type === "text" && item.content.text.trim() !== ""
      ? removeFence(item.content.text).trimEnd().split("\n")
      : [],
  );
}

function formatQuestion({ kind, title, toolCallId }: ToolCallUpdate): string {
  const text = (title ?? toolCallId).replace(/\?$/, "");
  return `${kind === "execute" ? `Run ${text}` : text}?`;
}

function removeFence(text: string): string {
  return text.replace(/^`{3,}[^\n]*\n/, "").replace(/\n`{3,}\s*$/, "");
}
