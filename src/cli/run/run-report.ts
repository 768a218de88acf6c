import type {
  CreateElicitationRequest,
  RequestPermissionRequest,
  SessionUpdate,
  StopReason,
} from "@agentclientprotocol/sdk";
import { removeControls } from "../../base/text/controls.ts";
import { toJson } from "../../base/text/json.ts";
import { isRecord } from "../../base/text/record.ts";
import { sanitizeFor, writeNotice, writeToStderr } from "../terminal/output.ts";
import { Asker } from "../ask/asker.ts";
import type { FormOutcome } from "../ask/forms.ts";
import { formatDuration } from "../live/elapsed.ts";
import { Printer } from "../live/printer.ts";
import { Screen } from "../live/screen.ts";
import { findChangesCard } from "../live/changes-diff.ts";
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

/** A request to fill in a form; its other fields depend on its kind. */
type Form = CreateElicitationRequest & Readonly<Record<string, unknown>>;

/** Output of a run, for users or for programs. */
export interface Report {
  /** Asks on the terminal. */
  readonly asker: Asker;
  /** Called before the server is started. */
  starting(): void;
  started(session: RunSession): void;
  update(update: SessionUpdate): void;
  asked(request: RequestPermissionRequest): void;
  /** Called before the fields of a form are asked. */
  askedForm(form: Form): void;
  answeredForm(form: Form, outcome: FormOutcome): void;
  decided(decision: PermissionDecision): void;
  note(text: string): void;
  cancelling(text: string): void;
  ended(result: RunResult, totals: RunTotals): void;
  /** Called instead of {@link ended} when the turn continues without this program. */
  stop(): void;
}

export function createReport(options: Pick<RunOptions, "format" | "showsAll" | "schema" | "cwd">): Report {
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
  readonly #printer: Printer;
  readonly asker: Asker;

  constructor({ showsAll, schema }: Pick<RunOptions, "showsAll" | "schema">) {
    this.#isLive = schema === undefined && (showsAll || process.stdout.isTTY);
    const { stdout, stderr, env } = process;
    const answers = {
      isTTY: stdout.isTTY,
      get columns() {
        return stdout.columns;
      },
      write: (chunk: string) => this.#isLive && stdout.write(sanitizeFor(stdout, chunk)),
    };
    const screen = new Screen({ stdout: answers, stderr, env });
    this.#printer = new Printer({ style: this.#style, screen });
    this.asker = new Asker({ printer: this.#printer, screen, style: this.#style });
  }

  starting(): void {
    this.#printer.start("Starting");
  }

  started(): void {
    this.#printer.activity("Waiting for the model");
  }

  update(update: SessionUpdate): void {
    if (this.#isLive) return this.#printer.update(update);
    const commentary = this.#held.add(update);
    if (commentary !== undefined) this.#comment(commentary);
    const isPartOfAnswer =
      update.sessionUpdate === "agent_message_chunk" || findChangesCard(update) !== undefined;
    if (!isPartOfAnswer) this.#printer.update(update);
  }

  asked(request: RequestPermissionRequest): void {
    this.#printer.question(request);
  }

  askedForm(): void {}
  answeredForm({ toolCallId }: Form): void {
    if (typeof toolCallId === "string") this.#printer.decided(toolCallId, "answered");
  }

  decided({ toolCallId, outcome, reason }: PermissionDecision): void {
    if (outcome === "rejected") this.#printer.decided(toolCallId, "rejected");
    if (outcome === "not_asked") this.#printer.line(`  not allowed: ${reason ?? ""}`);
  }

  note(text: string): void {
    this.#printer.line(this.#style.yellow(text));
  }

  cancelling(text: string): void {
    this.note(text);
    this.#printer.cancelling();
  }

  stop(): void {
    this.#printer.end();
    this.#printer.stop();
  }

  ended(result: RunResult, totals: RunTotals): void {
    const { exitReason, answer, error, stopReason, refused } = result;
    this.stop();
    if (!this.#isLive) {
      if (answer !== "") process.stdout.write(sanitizeFor(process.stdout, `${answer}\n`));
      else if (this.#held.text !== "" && error !== this.#held.text) this.#comment(this.#held.text);
    }
    if (error !== undefined && !(this.#isLive && exitReason === "unknown_command")) writeNotice(error);
    if (totals.sessionId !== undefined && stopReason !== undefined)
      this.#printer.line(
        this.#style.dim(`${describeEnd(result, stopReason)}${describeTotals(result, totals)}`),
      );
    if (refused.length > 0) this.note(describeRefused(refused));
  }

  #comment(text: string): void {
    this.#printer.line(this.#style.dim(removeControls(text)));
  }
}

/** Formats duration, tokens, cost and session: ` in 3.2 s, 5,020 tokens, $0.0123 (session ses_…)`. */
function describeTotals({ usage }: RunResult, { sessionId, cost, durationMs }: RunTotals): string {
  const tokens =
    isRecord(usage) && typeof usage["totalTokens"] === "number" ? usage["totalTokens"] : undefined;
  const facts = [
    ` in ${formatDuration(durationMs)}`,
    ...(tokens === undefined || tokens === 0 ? [] : [`${tokens.toLocaleString("en")} tokens`]),
    ...(cost === undefined || cost === 0 ? [] : [formatDollars(cost)]),
  ];
  return `${facts.join(", ")} (session ${sessionId ?? ""})`;
}

/** Formats an amount to the cent, small ones to the hundredth of a cent. */
function formatDollars(amount: number): string {
  return `$${amount.toFixed(amount < 1 ? 4 : 2)}`;
}

function describeEnd({ exitReason, error }: RunResult, stopReason: StopReason): string {
  if (error !== undefined) return "failed";
  return exitReason === "cancelled" && stopReason === "end_turn"
    ? "stopped, because you rejected a call,"
    : endTexts[stopReason];
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
  /** The changes and runs of the turn, if it changed files. */
  #evidence: unknown;
  readonly #printer: Printer;
  readonly asker: Asker;

  constructor({ cwd }: Pick<RunOptions, "cwd">) {
    this.#cwd = cwd;
    const { stderr, env } = process;
    const screen = new Screen({ stdout: { write: () => {} }, stderr, env });
    const style = styleFor(stderr, env);
    this.#printer = new Printer({ style, screen });
    this.asker = new Asker({ printer: this.#printer, screen, style });
  }

  starting(): void {}

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
    this.#printer.question(request);
  }

  askedForm({ message, toolCallId, requestedSchema }: Form): void {
    this.#print("question", { toolCallId, title: message, form: requestedSchema });
  }

  answeredForm({ toolCallId }: Form, { action }: FormOutcome): void {
    const outcomes = { accept: "allowed", decline: "rejected", cancel: "cancelled" };
    this.#print("decision", { toolCallId, outcome: outcomes[action], by: "user" });
  }

  decided(decision: PermissionDecision): void {
    this.#print("decision", decision);
    if (decision.outcome === "not_asked") this.#printer.line(`  not allowed: ${decision.reason ?? ""}`);
  }

  note(text: string): void {
    writeNotice(text);
  }

  cancelling(text: string): void {
    writeNotice(text);
  }

  stop(): void {}

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
