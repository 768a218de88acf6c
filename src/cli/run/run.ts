import { type StopReason } from "@agentclientprotocol/sdk";
import { toJson } from "../../base/text/json.ts";
import { type Editor, getErrorReason, startEditor } from "../commands/editor.ts";
import type { Call } from "../command-line/command.ts";
import { exitCodes } from "../terminal/help.ts";
import { openLocalApp, openApp } from "../local-app.ts";
import { writeNotice, sanitizeFor } from "../terminal/output.ts";
import { Printer } from "../terminal/printer.ts";
import { answerPermission, describeRefused, type RefusedCall } from "./run-answers.ts";
import { applyChoices } from "./run-choices.ts";
import { readOptions, type RunOptions, unattendedSteps } from "./run-options.ts";
import { styleFor } from "../terminal/style.ts";
import { UsageError } from "../command-line/usage.ts";

/** Runs one prompt and prints the answer, as a client of the same server that editors start. */
export async function run(call: Call): Promise<number> {
  const options = await readOptions(call);
  if (options.trust) await (await openLocalApp(options.cwd)).project.consent?.accept();
  const report = options.format === "json" ? new JsonReport() : new TextReport();
  let isListening = false;
  const refused: RefusedCall[] = [];
  const editor = await startEditor({
    env: options.env,
    isVerbose: options.isVerbose,
    onUpdate: (update) => {
      if (isListening) report.update(update);
    },
    onPermission: (request, signal) =>
      answerPermission(request, options, {
        printer: report.printer,
        signal,
        onInterrupt: () => interrupt(),
        onRefused: (call) => refused.push(call),
      }),
  });
  let interrupt = () => {};
  try {
    const sessionId = await openSession(editor, options);
    isListening = true;
    const prompt = new Prompt(editor, sessionId, report);
    interrupt = () => prompt.interrupt();
    const end = await prompt.send(options);
    report.ended({ ...end, sessionId, refused });
    const isIncomplete = end.stopReason === "end_turn" && refused.length > 0;
    return isIncomplete ? exitCodes.refused : stopCodes[end.stopReason];
  } catch (error) {
    if (error instanceof UsageError) throw error;
    report.failed(getErrorReason(error));
    return exitCodes.failed;
  } finally {
    await editor.close();
  }
}

const stopCodes: Readonly<Record<StopReason, number>> = {
  end_turn: exitCodes.done,
  refusal: exitCodes.failed,
  max_tokens: exitCodes.limit,
  max_turn_requests: exitCodes.limit,
  cancelled: exitCodes.cancelled,
};

type TurnEnd = { stopReason: StopReason; usage: unknown };
type RunEnd = TurnEnd & { sessionId: string; refused: readonly RefusedCall[] };

/** Output of a run, for users or for programs. */
interface Report {
  /** For questions on stderr. */
  readonly printer: Printer;
  update: Printer["update"];
  note(text: string): void;
  ended(end: RunEnd): void;
  failed(reason: string): void;
}

/** Prints the answer to stdout and everything else to stderr. */
class TextReport implements Report {
  readonly #style = styleFor(process.stderr, process.env);
  readonly printer = new Printer({
    style: this.#style,
    answer: (chunk) => process.stdout.write(sanitizeFor(process.stdout, chunk)),
    progress: (chunk) => process.stderr.write(chunk),
  });

  update(update: Parameters<Printer["update"]>[0]): void {
    this.printer.update(update);
  }

  note(text: string): void {
    this.printer.line(this.#style.yellow(text));
  }

  ended({ stopReason, sessionId, refused }: RunEnd): void {
    this.printer.line(this.#style.dim(`${stopTexts[stopReason]} (session ${sessionId})`));
    if (refused.length > 0) this.note(describeRefused(refused));
  }

  failed(reason: string): void {
    this.printer.end();
    writeNotice(reason);
  }
}

/** Prints one JSON update per line to stdout; the last line is the stop reason or the error. */
class JsonReport implements Report {
  /** What the turn changed and ran, if it changed files. */
  #evidence: unknown;
  readonly printer = new Printer({
    style: styleFor(process.stderr, process.env),
    answer: () => {},
    progress: (chunk) => process.stderr.write(chunk),
  });

  update(update: Parameters<Printer["update"]>[0]): void {
    if (update.sessionUpdate === "tool_call") this.#evidence = update._meta?.["evidence"] ?? this.#evidence;
    this.#write(update);
  }

  #write(line: unknown): void {
    process.stdout.write(`${toJson(line)}\n`);
  }

  note(text: string): void {
    writeNotice(text);
  }

  ended({ stopReason, sessionId, usage, refused }: RunEnd): void {
    const evidence = this.#evidence;
    this.#write({
      sessionUpdate: "stop",
      stopReason,
      sessionId,
      usage,
      refused,
      ...(evidence !== undefined && { evidence }),
    });
    if (refused.length > 0) this.note(describeRefused(refused));
  }

  failed(reason: string): void {
    this.#write({ sessionUpdate: "error", message: reason });
    writeNotice(reason);
  }
}

async function openSession(editor: Editor, options: RunOptions): Promise<string> {
  const { agent } = editor;
  const { cwd } = options;
  const known = await findSessionToContinue(editor, options);
  if (known !== undefined) {
    const available = await agent.request("session/resume", { sessionId: known, cwd, mcpServers: [] });
    await applyChoices({ editor, sessionId: known, available }, options);
    return known;
  }
  const { sessionId, ...available } = await agent.request("session/new", { cwd, mcpServers: [] });
  try {
    await applyChoices({ editor, sessionId, available }, options);
  } catch (error) {
    // Otherwise the next --continue would find this empty session.
    await agent.request("session/delete", { sessionId });
    throw error;
  }
  return sessionId;
}

/** Returns the session id that the flags name; undefined for a new session. */
async function findSessionToContinue(
  editor: Editor,
  { session, continuesNewest, cwd }: RunOptions,
): Promise<string | undefined> {
  if (session === undefined) return continuesNewest ? findNewestSession(editor, cwd) : undefined;
  const { findSession } = await import("../sessions/find-session.ts");
  return (await findSession(await openApp().store(), session, cwd)).id;
}

async function findNewestSession({ agent }: Editor, cwd: string): Promise<string> {
  const { sessions } = await agent.request("session/list", { cwd });
  const first = sessions[0];
  if (first === undefined) throw new UsageError(`there is no session in ${cwd} to continue`, "run");
  return first.sessionId;
}

/** The prompt's turn. The first interrupt cancels the turn, the second exits. */
class Prompt {
  readonly #editor: Editor;
  readonly #sessionId: string;
  readonly #report: Report;
  #isCancelled = false;

  constructor(editor: Editor, sessionId: string, report: Report) {
    this.#editor = editor;
    this.#sessionId = sessionId;
    this.#report = report;
  }

  async send({ blocks }: RunOptions): Promise<TurnEnd> {
    const onInterrupt = () => this.interrupt();
    process.on("SIGINT", onInterrupt);
    try {
      const { agent } = this.#editor;
      const { stopReason, _meta } = await agent.request("session/prompt", {
        sessionId: this.#sessionId,
        prompt: [...blocks],
      });
      return { stopReason, usage: _meta?.["usage"] };
    } finally {
      process.off("SIGINT", onInterrupt);
    }
  }

  interrupt(): void {
    if (this.#isCancelled) process.exit(exitCodes.cancelled);
    this.#isCancelled = true;
    this.#report.note("cancelling; press Ctrl-C again to exit at once");
    void this.#editor.agent.notify("session/cancel", { sessionId: this.#sessionId });
  }
}

const stopTexts: Readonly<Record<StopReason, string>> = {
  end_turn: "done",
  cancelled: "cancelled",
  max_tokens: "stopped: the model's output limit was reached",
  max_turn_requests: `stopped: a limit of steps or cost was reached (a run that asks nobody makes ${unattendedSteps} model calls unless --max-steps says otherwise)`,
  refusal: "the model refused",
};
