import type {
  ContentBlock,
  CreateElicitationRequest,
  CreateElicitationResponse,
  SessionUpdate,
} from "@agentclientprotocol/sdk";
import { sessionFolderVariable } from "../../app.ts";
import { deferred } from "../../base/async.ts";
import { messageOf } from "../../base/errors.ts";
import { toJson } from "../../base/text/json.ts";
import { isRecord } from "../../base/text/record.ts";
import type { Call } from "../command-line/command.ts";
import { UsageError } from "../command-line/usage.ts";
import { type Editor, getErrorReason, startEditor } from "../commands/editor.ts";
import { openLocalApp } from "../local-app.ts";
import { askAgain } from "./answer-schema.ts";
import { AnswerText } from "./answer-text.ts";
import { BackgroundWork } from "../live/background-work.ts";
import { createEphemeralFolder, removeEphemeralFolder } from "./ephemeral-folder.ts";
import { writeOutputFile } from "./output-file.ts";
import { answerPermission, type RefusedCall } from "./run-answers.ts";
import { readOptions, type RunOptions } from "./run-options.ts";
import { createReport, getDecision } from "./run-report.ts";
import {
  createFailure,
  createResult,
  getFailureReason,
  type RunResult,
  signalCodes,
  type TurnEnd,
  withSignal,
} from "./run-result.ts";
import { openSession } from "./run-session.ts";

/** Maximum number of times that a run waits for tasks in the background and asks for the answer again. */
const taskRounds = 10;

const tasksEndedPrompt =
  "The tasks that you started in the background have ended. Finish the work with their reports, and give the whole answer to my request.";

/** Runs one prompt and prints the answer, as a client of the same server that editors start. */
export async function run(call: Call): Promise<number> {
  const options = await readOptions(call);
  if (options.trust) await (await openLocalApp(options.cwd)).project.consent?.accept();
  if (!options.isEphemeral) return new Run(options, options.env).run();
  const folder = await createEphemeralFolder();
  try {
    return await new Run(options, { ...options.env, [sessionFolderVariable]: folder }).run();
  } finally {
    await removeEphemeralFolder(folder);
  }
}

/** One run: a session, its prompt, and a second prompt if the answer does not match the schema. */
class Run {
  readonly #options: RunOptions;
  readonly #env: NodeJS.ProcessEnv;
  readonly #startedAt = Date.now();
  readonly #report;
  readonly #answer = new AnswerText();
  readonly #refused: RefusedCall[] = [];
  /** Whether the user rejected a call. */
  #isRejected = false;
  readonly #background = new BackgroundWork();
  #sessionId: string | undefined;
  /** The session's dollars: before this run, and now. */
  #costBefore: number | undefined;
  #cost: number | undefined;
  #interrupt: (signal: NodeJS.Signals) => void = () => {};

  constructor(options: RunOptions, env: NodeJS.ProcessEnv) {
    this.#options = options;
    this.#env = env;
    this.#report = createReport(options);
  }

  async run(): Promise<number> {
    const options = this.#options;
    this.#report.starting();
    const editor = await startEditor({
      env: this.#env,
      isVerbose: options.isVerbose,
      onUpdate: (update) => this.#update(update),
      onPermission: (request, signal) =>
        answerPermission(request, options, {
          asker: this.#report.asker,
          signal,
          onAsked: (asked) => this.#report.asked(asked),
          onDecided: (decision) => {
            this.#isRejected ||= decision.outcome === "rejected";
            this.#report.decided(decision);
          },
          onInterrupt: () => this.#interrupt("SIGINT"),
          onRefused: (call) => this.#refused.push(call),
        }),
      isUnattended: options.permission !== "ask",
      isScripted: options.format !== "text",
      // Programs that read events get the output when a command ends.
      hasTerminals: options.format === "text",
      ...(options.permission === "ask" && {
        onForm: (form: CreateElicitationRequest, signal: AbortSignal) => this.#answerForm(form, signal),
      }),
    });
    try {
      const result = await this.#writeOutput(await this.#runPrompts(editor));
      const { titles } = this.#background;
      if (titles.length > 0) this.#report.note(`Ended with this run: ${titles.join(", ")}`);
      this.#report.ended(result, {
        sessionId: this.#sessionId,
        cost: this.#cost === undefined ? undefined : this.#cost - (this.#costBefore ?? 0),
        durationMs: Date.now() - this.#startedAt,
      });
      return result.exitCode;
    } finally {
      await editor.close(this.#sessionId);
    }
  }

  async #answerForm(form: CreateElicitationRequest, signal: AbortSignal): Promise<CreateElicitationResponse> {
    const { asker } = this.#report;
    const { askForm } = await import("../ask/forms.ts");
    const outcome = await asker.inTurn(() => {
      this.#report.askedForm(form);
      return askForm(form, asker, signal);
    });
    this.#report.answeredForm(form, outcome);
    if (outcome.isInterrupted) this.#interrupt("SIGINT");
    return outcome.response;
  }

  async #runPrompts(editor: Editor): Promise<RunResult> {
    try {
      const { isNew, ...session } = await openSession(editor, this.#options);
      if (isNew) this.#costBefore = 0;
      this.#sessionId = session.sessionId;
      this.#report.started(session);
      const prompts = new Prompts(editor, session.sessionId, (text) => this.#report.cancelling(text));
      this.#interrupt = (signal) => prompts.interrupt(signal);
      return await prompts.withSignals(async () => this.#answerPrompt(prompts));
    } catch (error) {
      if (error instanceof UsageError) throw error;
      return createFailure(getFailureReason(error), getErrorReason(error), { refused: this.#refused });
    }
  }

  async #answerPrompt(prompts: Prompts): Promise<RunResult> {
    const { blocks, schema } = this.#options;
    if (schema === undefined) return this.#send(prompts, blocks);
    const first = await this.#send(prompts, [...blocks, { type: "text", text: schema.instruction }]);
    if (first.answer === "") return first;
    const checked = schema.check(first.answer);
    if (checked.outcome === "valid") return withValue(first, checked.value);
    this.#report.note("The answer does not match the schema; the model is asked again.");
    this.#answer.clear();
    const second = await this.#send(prompts, [{ type: "text", text: askAgain(checked.problems) }]);
    if (second.answer === "") return second;
    const again = schema.check(second.answer);
    if (again.outcome === "valid") return withValue(second, again.value);
    const problem = `The answer does not match the schema: ${again.problems.join("; ")}`;
    return createFailure("schema", problem, second);
  }

  async #send(prompts: Prompts, blocks: readonly ContentBlock[]): Promise<RunResult> {
    let end = await prompts.send(blocks);
    for (let rounds = 0; rounds < taskRounds && end.stopReason === "end_turn"; rounds++) {
      const hasWaited = await this.#waitForTasks(prompts);
      if (prompts.signal !== undefined || (!hasWaited && end.unreportedTasks === 0)) break;
      this.#answer.clear();
      end = await prompts.send([{ type: "text", text: tasksEndedPrompt }]);
    }
    return withSignal(
      createResult(end, this.#answer.text, { refused: this.#refused, isRejected: this.#isRejected }),
      prompts.signal,
    );
  }

  /** Waits for tasks in the background, whose reports the answer needs. Returns whether there were any. */
  async #waitForTasks(prompts: Prompts): Promise<boolean> {
    const { tasks } = this.#background;
    if (tasks.length === 0) return false;
    this.#report.note(`Waiting for tasks in the background: ${tasks.join(", ")}`);
    await Promise.race([this.#background.waitForTasks(), prompts.interrupted]);
    return true;
  }

  async #writeOutput(result: RunResult): Promise<RunResult> {
    const { output } = this.#options;
    if (output === undefined || result.answer === "") return result;
    try {
      await writeOutputFile(output, `${result.answer}\n`);
      return result;
    } catch (error) {
      const reason = `The answer cannot be written to ${output}: ${messageOf(error)}`;
      return {
        ...result,
        exitReason: "failed",
        exitCode: createFailure("failed", reason).exitCode,
        error: reason,
      };
    }
  }

  #update(update: SessionUpdate): void {
    if (update.sessionUpdate === "usage_update") {
      this.#costBefore ??= update.cost?.amount ?? 0;
      this.#cost = update.cost?.amount ?? this.#cost;
    }
    if (this.#sessionId === undefined) return;
    const decision = getDecision(update);
    if (decision === "answered") return;
    if (decision !== undefined) return this.#report.decided(decision);
    this.#background.note(update);
    this.#answer.add(update);
    this.#report.update(update);
  }
}

function withValue(result: RunResult, value: unknown): RunResult {
  return { ...result, value, answer: toJson(value) };
}

/** Sends prompts of one session. The first signal cancels the turn, the second exits. */
class Prompts {
  readonly #editor: Editor;
  readonly #sessionId: string;
  readonly #cancelling: (text: string) => void;
  readonly #interrupted = deferred<void>();
  #signal: NodeJS.Signals | undefined;

  constructor(editor: Editor, sessionId: string, cancelling: (text: string) => void) {
    this.#editor = editor;
    this.#sessionId = sessionId;
    this.#cancelling = cancelling;
  }

  /** The signal that cancelled the turn. */
  get signal(): NodeJS.Signals | undefined {
    return this.#signal;
  }

  /** Resolves at the first signal. */
  get interrupted(): Promise<void> {
    return this.#interrupted.promise;
  }

  /** Handles signals while `work` runs. */
  async withSignals<T>(work: () => Promise<T>): Promise<T> {
    const onSignal = (signal: NodeJS.Signals) => this.interrupt(signal);
    const signals = [...signalCodes.keys()];
    for (const signal of signals) process.on(signal, onSignal);
    try {
      return await work();
    } finally {
      for (const signal of signals) process.off(signal, onSignal);
    }
  }

  async send(blocks: readonly ContentBlock[]): Promise<TurnEnd & { readonly unreportedTasks: number }> {
    const { stopReason, _meta } = await this.#editor.agent.request("session/prompt", {
      sessionId: this.#sessionId,
      prompt: [...blocks],
    });
    const command = _meta?.["command"];
    return {
      stopReason,
      usage: _meta?.["usage"],
      unreportedTasks: Number(_meta?.["unreportedTasks"] ?? 0),
      command: isRecord(command)
        ? { name: String(command["name"]), problem: String(command["problem"]) }
        : undefined,
    };
  }

  interrupt(signal: NodeJS.Signals): void {
    if (this.#signal !== undefined) process.exit(signalCodes.get(signal));
    this.#signal = signal;
    this.#interrupted.resolve();
    this.#cancelling(signal === "SIGINT" ? "cancelling; press Ctrl-C again to exit at once" : "cancelling");
    void this.#editor.agent.notify("session/cancel", { sessionId: this.#sessionId });
  }
}
