import { type StopReason } from "@agentclientprotocol/sdk";
import { toJson } from "../../base/text/json.ts";
import { type Editor, reasonOf, startEditor } from "../commands/editor.ts";
import type { Call } from "../command-line/command.ts";
import { exitCodes } from "../terminal/help.ts";
import { localApp, openApp } from "../local-app.ts";
import { writeNotice, shownOn } from "../terminal/output.ts";
import { Printer } from "../terminal/printer.ts";
import { answerFor, describeRefused, type RefusedCall } from "./run-answers.ts";
import { choose } from "./run-choices.ts";
import { readOptions, type RunOptions, unattendedSteps } from "./run-options.ts";
import { styleFor } from "../terminal/style.ts";
import { UsageError } from "../command-line/usage.ts";

/** Does one thing and prints the answer: a client of the same server that editors start. */
export async function run(call: Call): Promise<number> {
  const options = await readOptions(call);
  if (options.trust) await (await localApp(options.cwd)).project.consent?.accept();
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
      answerFor(request, options, {
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
    const ended = await prompt.send(options);
    report.stopped({ ...ended, sessionId, refused });
    const isIncomplete = ended.stopReason === "end_turn" && refused.length > 0;
    return isIncomplete ? exitCodes.refused : stopCodes[ended.stopReason];
  } catch (error) {
    if (error instanceof UsageError) throw error;
    report.failed(reasonOf(error));
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

type Ended = { stopReason: StopReason; usage: unknown };
type Stopped = Ended & { sessionId: string; refused: readonly RefusedCall[] };

/** What a run tells of itself, to a person or to a program. */
interface Report {
  /** For questions on stderr. */
  readonly printer: Printer;
  update: Printer["update"];
  note(text: string): void;
  stopped(ended: Stopped): void;
  failed(reason: string): void;
}

/** The answer on stdout, all else on stderr. */
class TextReport implements Report {
  readonly #style = styleFor(process.stderr, process.env);
  readonly printer = new Printer({
    style: this.#style,
    answer: (chunk) => process.stdout.write(shownOn(process.stdout, chunk)),
    progress: (chunk) => process.stderr.write(chunk),
  });

  update(update: Parameters<Printer["update"]>[0]): void {
    this.printer.update(update);
  }

  note(text: string): void {
    this.printer.line(this.#style.yellow(text));
  }

  stopped({ stopReason, sessionId, refused }: Stopped): void {
    this.printer.line(this.#style.dim(`${stopTexts[stopReason]} (session ${sessionId})`));
    if (refused.length > 0) this.note(describeRefused(refused));
  }

  failed(reason: string): void {
    this.printer.end();
    writeNotice(reason);
  }
}

/** One update a line on stdout, the last of them says how it ended. */
class JsonReport implements Report {
  readonly printer = new Printer({
    style: styleFor(process.stderr, process.env),
    answer: () => {},
    progress: (chunk) => process.stderr.write(chunk),
  });

  update(update: unknown): void {
    process.stdout.write(`${toJson(update)}\n`);
  }

  note(text: string): void {
    writeNotice(text);
  }

  stopped({ stopReason, sessionId, usage, refused }: Stopped): void {
    this.update({ sessionUpdate: "stop", stopReason, sessionId, usage, refused });
    if (refused.length > 0) this.note(describeRefused(refused));
  }

  failed(reason: string): void {
    this.update({ sessionUpdate: "error", message: reason });
    writeNotice(reason);
  }
}

async function openSession(editor: Editor, options: RunOptions): Promise<string> {
  const { agent } = editor;
  const { cwd } = options;
  const known = await sessionToGoOn(editor, options);
  if (known !== undefined) {
    const offered = await agent.request("session/resume", { sessionId: known, cwd, mcpServers: [] });
    await choose({ editor, sessionId: known, offered }, options);
    return known;
  }
  const { sessionId, ...offered } = await agent.request("session/new", { cwd, mcpServers: [] });
  try {
    await choose({ editor, sessionId, offered }, options);
  } catch (error) {
    // The next --continue is to find what came before.
    await agent.request("session/delete", { sessionId });
    throw error;
  }
  return sessionId;
}

/** The session that the flags name; undefined for a new one. */
async function sessionToGoOn(
  editor: Editor,
  { session, goOn, cwd }: RunOptions,
): Promise<string | undefined> {
  if (session === undefined) return goOn ? newest(editor, cwd) : undefined;
  const { findSession } = await import("../sessions/find-session.ts");
  return (await findSession(await openApp().store(), session, cwd)).id;
}

async function newest({ agent }: Editor, cwd: string): Promise<string> {
  const { sessions } = await agent.request("session/list", { cwd });
  const first = sessions[0];
  if (first === undefined) throw new UsageError(`there is no session in ${cwd} to go on with`, "run");
  return first.sessionId;
}

/** The turn. The first interrupt cancels it, the second one ends the program. */
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

  async send({ blocks }: RunOptions): Promise<Ended> {
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
    this.#report.note("cancelling; once more ends the program at once");
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
