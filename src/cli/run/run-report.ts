import type { RequestPermissionRequest, SessionUpdate, StopReason } from "@agentclientprotocol/sdk";
import { removeControls } from "../../base/text/controls.ts";
import { toJson } from "../../base/text/json.ts";
import { isRecord } from "../../base/text/record.ts";
import { sanitizeFor, writeNotice, writeToStderr } from "../terminal/output.ts";
import { Printer } from "../terminal/printer.ts";
import { styleFor } from "../terminal/style.ts";
import { AnswerText } from "./answer-text.ts";
import { describeRefused, type PermissionDecision } from "./run-answers.ts";
import { type RunOptions, unattendedSteps } from "./run-options.ts";
import type { RunResult } from "./run-result.ts";

/** The session that a run uses, for the first line of `--json`. */
export interface RunSession {
  readonly sessionId: string;
  readonly agent: string;
  readonly model: string;
  readonly effort?: string;
}

/** Totals of a finished run. */
export interface RunTotals {
  readonly sessionId: string | undefined;
  /** US dollars; undefined if the model has no prices. */
  readonly cost: number | undefined;
  readonly durationMs: number;
}

/** Output of a run, for users or for programs. */
export interface Report {
  /** For questions on stderr. */
  readonly printer: Printer;
  started(session: RunSession): void;
  update(update: SessionUpdate): void;
  asked(request: RequestPermissionRequest): void;
  decided(decision: PermissionDecision): void;
  note(text: string): void;
  ended(result: RunResult, totals: RunTotals): void;
}

export function createReport(options: RunOptions): Report {
  return options.format === "json" ? new JsonReport(options) : new TextReport(options);
}

/**
 * Prints the answer to stdout and everything else to stderr. On a terminal, and with --all, text is printed while it
 * arrives; otherwise stdout gets the answer alone, at the end.
 */
class TextReport implements Report {
  readonly #style = styleFor(process.stderr, process.env);
  readonly #isLive: boolean;
  /** Text that is not printed yet. */
  readonly #held = new AnswerText();
  readonly printer: Printer;

  constructor({ showsAll, schema }: Pick<RunOptions, "showsAll" | "schema">) {
    this.#isLive = schema === undefined && (showsAll || process.stdout.isTTY);
    this.printer = new Printer({
      style: this.#style,
      answer: (chunk) => this.#isLive && process.stdout.write(sanitizeFor(process.stdout, chunk)),
      progress: (chunk) => process.stderr.write(chunk),
    });
  }

  started(): void {}

  update(update: SessionUpdate): void {
    if (this.#isLive) return this.printer.update(update);
    const commentary = this.#held.add(update);
    if (commentary !== undefined) this.#comment(commentary);
    if (update.sessionUpdate !== "agent_message_chunk") this.printer.update(update);
  }

  asked(request: RequestPermissionRequest): void {
    this.printer.question(request);
  }

  decided({ outcome, reason }: PermissionDecision): void {
    if (outcome === "not_asked") this.printer.line(`  not allowed: ${reason ?? ""}`);
  }

  note(text: string): void {
    this.printer.line(this.#style.yellow(text));
  }

  ended(result: RunResult, { sessionId }: RunTotals): void {
    const { exitReason, answer, error, stopReason, refused } = result;
    this.printer.end();
    if (!this.#isLive) {
      if (answer !== "") process.stdout.write(sanitizeFor(process.stdout, `${answer}\n`));
      else if (this.#held.text !== "" && error !== this.#held.text) this.#comment(this.#held.text);
    }
    if (error !== undefined && !(this.#isLive && exitReason === "unknown_command")) writeNotice(error);
    if (sessionId !== undefined && stopReason !== undefined && error === undefined)
      this.printer.line(this.#style.dim(`${endTexts[stopReason]} (session ${sessionId})`));
    if (refused.length > 0) this.note(describeRefused(refused));
  }

  #comment(text: string): void {
    this.printer.line(this.#style.dim(removeControls(text)));
  }
}

const endTexts: Readonly<Record<StopReason, string>> = {
  end_turn: "done",
  cancelled: "cancelled",
  max_tokens: "stopped: the model's output limit was reached",
  max_turn_requests: `stopped: a limit of steps or cost was reached (a run that asks nobody makes ${unattendedSteps} model calls unless --max-steps says otherwise)`,
  refusal: "the model refused",
};

/** Updates that describe what can be chosen, not what happened. */
const hiddenUpdates: ReadonlySet<SessionUpdate["sessionUpdate"]> = new Set([
  "available_commands_update",
  "config_option_update",
]);

/** Prints one object per line to stdout, each with a `type`: first `start`, last `result`. */
class JsonReport implements Report {
  readonly #cwd: string;
  /** What the turn changed and ran, if it changed files. */
  #evidence: unknown;
  readonly printer = new Printer({
    style: styleFor(process.stderr, process.env),
    answer: () => {},
    progress: (chunk) => process.stderr.write(chunk),
  });

  constructor({ cwd }: Pick<RunOptions, "cwd">) {
    this.#cwd = cwd;
  }

  started({ sessionId, ...facts }: RunSession): void {
    this.#print("start", { session: sessionId, folder: this.#cwd, ...facts });
  }

  update(update: SessionUpdate): void {
    if (update.sessionUpdate === "tool_call") this.#evidence = update._meta?.["evidence"] ?? this.#evidence;
    if (hiddenUpdates.has(update.sessionUpdate)) return;
    const { sessionUpdate, ...fields } = update;
    this.#print(sessionUpdate, fields);
  }

  asked(request: RequestPermissionRequest): void {
    const { toolCallId, title, kind, rawInput, _meta } = request.toolCall;
    const options = request.options.map(({ name }) => name);
    const tool = _meta?.["tool_name"];
    this.#print("question", { toolCallId, tool, title, kind, rawInput, options });
    // Only a user who is asked on the terminal needs to read it there.
    this.printer.question(request);
  }

  decided(decision: PermissionDecision): void {
    this.#print("decision", decision);
    if (decision.outcome === "not_asked") this.printer.line(`  not allowed: ${decision.reason ?? ""}`);
  }

  note(text: string): void {
    writeNotice(text);
  }

  ended(result: RunResult, { sessionId, cost, durationMs }: RunTotals): void {
    const { exitReason, exitCode, answer, value, error, stopReason, usage, refused } = result;
    this.#print("result", {
      exitReason,
      exitCode,
      answer: answer === "" ? null : answer,
      ...(value !== undefined && { value }),
      ...(error !== undefined && { error }),
      session: sessionId ?? null,
      stopReason,
      cost: cost ?? null,
      durationMs,
      usage,
      refused,
      ...(this.#evidence !== undefined && { evidence: this.#evidence }),
    });
    if (error !== undefined) writeNotice(error);
    if (refused.length > 0) writeToStderr(describeRefused(refused));
  }

  #print(type: string, fields: object): void {
    process.stdout.write(`${toJson({ type, ...fields })}\n`);
  }
}

/** Decisions of questions, which were reported when they were answered. */
const answeredBy: ReadonlySet<unknown> = new Set(["person", "failure"]);

/** Reads the decision that the server reports without a question. */
export function getDecision(update: SessionUpdate): PermissionDecision | "answered" | undefined {
  if (update.sessionUpdate !== "session_info_update") return undefined;
  const sent = update._meta?.["decision"];
  if (!isRecord(sent)) return undefined;
  const { toolCallId, outcome, by, permission, subject, rule } = sent;
  if (answeredBy.has(by)) return "answered";
  return {
    toolCallId: String(toolCallId),
    outcome: String(outcome),
    by: String(by),
    permission,
    subject,
    rule,
  };
}
