import type {
  RequestPermissionResponse,
  CreateElicitationResponse,
  SessionUpdate,
  StopReason,
} from "@agentclientprotocol/sdk";
import { deferred } from "../../base/async.ts";
import { UserError } from "../../base/errors.ts";
import { isRecord } from "../../base/text/record.ts";
import { describeFailure } from "../../conversation/turn-result.ts";
import { omitReverted } from "../../conversation/visible-messages.ts";
import type { AgentError, AssistantInfo, Message } from "../../message/message.ts";
import type { Call } from "../command-line/command.ts";
import { type Editor, getErrorReason, startEditor } from "../commands/editor.ts";
import { openApp } from "../local-app.ts";
import { AnswerText } from "../run/answer-text.ts";
import { answerPermission } from "../run/run-answers.ts";
import { canAsk } from "../run/run-options.ts";
import { createReport, getDecision } from "../run/run-report.ts";
import { createFailure, createResult, type RunResult } from "../run/run-result.ts";
import { findCalledSession } from "../sessions/find-session.ts";
import { writeToStderr } from "../terminal/output.ts";

/** Shows a running turn until it ends or the user detaches, or the last turn if none is running. */
export async function attach(call: Call): Promise<number> {
  const store = await openApp().store();
  const info = await findCalledSession(store, call);
  const attachment = new Attachment(info.id, canAsk(process));
  return attachment.run({
    cwd: info.cwd,
    title: info.title ?? "",
    cancels: call.has("cancel"),
    lastEnd: () => readLastEnd(omitReverted(store.messages(info.id), info.revert)),
  });
}

interface Target {
  readonly cwd: string;
  readonly title: string;
  readonly cancels: boolean;
  /** Reads how the last turn ended. */
  readonly lastEnd: () => Promise<LastEnd>;
}

/** Contains the fields of the update that reports the end of a turn. */
interface LastEnd {
  readonly stopReason?: StopReason;
  readonly error?: AgentError;
  readonly durationMs: number;
}

/** The terminal as a client of the process that runs the turn. */
class Attachment {
  readonly #sessionId: string;
  /** Whether questions are answered here; otherwise they continue to wait. */
  readonly #isAttended: boolean;
  readonly #startedAt = Date.now();
  /** Of a turn that had ended before. */
  #durationMs: number | undefined;
  readonly #report = createReport({ format: "text", showsAll: false, schema: undefined, cwd: "" });
  readonly #answer = new AnswerText();
  readonly #ended = deferred<RunResult | "detached">();
  #isRejected = false;
  #cost: number | undefined;
  /** Updates of the replay; undefined once they are printed. */
  #replayed: SessionUpdate[] | undefined = [];

  constructor(sessionId: string, isAttended: boolean) {
    this.#sessionId = sessionId;
    this.#isAttended = isAttended;
  }

  async run(target: Target): Promise<number> {
    const editor = await this.#start();
    const detach = () => this.#ended.resolve("detached");
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
    for (const signal of signals) process.on(signal, detach);
    try {
      await this.#join(editor, target);
      const result = await this.#ended.promise;
      if (result === "detached") {
        this.#report.note("Detached. The turn goes on.");
        this.#report.stop();
        return 0;
      }
      const { exitCode } = result;
      const durationMs = this.#durationMs ?? Date.now() - this.#startedAt;
      this.#report.ended(result, { sessionId: this.#sessionId, cost: this.#cost, durationMs });
      return exitCode;
    } finally {
      for (const signal of signals) process.off(signal, detach);
      await editor.close();
    }
  }

  #start(): Promise<Editor> {
    const waitForOthers = () => new Promise<never>(() => {});
    return startEditor({
      env: process.env,
      hasTerminals: true,
      onUpdate: (update) => this.#update(update),
      onPermission: (request, signal): Promise<RequestPermissionResponse> =>
        this.#isAttended
          ? answerPermission(
              request,
              { permission: "ask", isAttended: true },
              {
                asker: this.#report.asker,
                signal,
                onAsked: (asked) => this.#report.asked(asked),
                onDecided: (decision) => {
                  this.#isRejected ||= decision.outcome === "rejected";
                  this.#report.decided(decision);
                },
                onInterrupt: () => this.#ended.resolve("detached"),
                onRefused: () => {},
              },
            )
          : waitForOthers(),
      onForm: async (form, signal): Promise<CreateElicitationResponse> => {
        if (!this.#isAttended) return waitForOthers();
        const { askForm } = await import("../ask/forms.ts");
        const { asker } = this.#report;
        const outcome = await asker.inTurn(() => askForm(form, asker, signal));
        if (outcome.isInterrupted) this.#ended.resolve("detached");
        return outcome.response;
      },
    });
  }

  async #join({ agent }: Editor, { cwd, title, cancels, lastEnd }: Target): Promise<void> {
    const sessionId = this.#sessionId;
    const response = await agent
      .request("session/load", { sessionId, cwd, mcpServers: [] })
      .catch((error: unknown) => {
        throw new UserError(getErrorReason(error), { cause: error });
      });
    const replayed = this.#replayed ?? [];
    this.#replayed = undefined;
    const isRunning = response._meta?.["turn"] !== undefined || replayed.some(isTurnEnd);
    if (!isRunning && (cancels || !replayed.some(isOfUser)))
      throw new UserError(`No turn is running in ${sessionId}.`);
    const named = `${sessionId}${title === "" ? "" : ` (${title})`}`;
    writeToStderr(
      isRunning
        ? `Attached to ${named}. Ctrl-C detaches, and the turn goes on. To cancel it: fairlead attach ${sessionId} --cancel`
        : `The last turn of ${named} has ended. To continue: fairlead run --session ${sessionId}`,
    );
    this.#report.started({ sessionId, agent: "", model: "" });
    const end = isRunning ? undefined : await lastEnd();
    const failure = end?.error && describeFailure(end.error);
    for (const update of getNewestTurn(replayed)) if (!isText(update, failure)) this.#update(update);
    if (end !== undefined) {
      this.#durationMs = end.durationMs;
      return this.#end(end);
    }
    if (cancels) await agent.notify("session/cancel", { sessionId });
  }

  #update(update: SessionUpdate): void {
    if (update.sessionUpdate === "usage_update") this.#cost = update.cost?.amount;
    if (this.#replayed !== undefined) return void this.#replayed.push(update);
    if (isTurnEnd(update)) return this.#end(update._meta?.["turn"]);
    const decision = getDecision(update);
    if (decision === "answered") return;
    if (decision !== undefined) return this.#report.decided(decision);
    this.#answer.add(update);
    this.#report.update(update);
  }

  #end(turn: unknown): void {
    const { stopReason, error, usage } = isRecord(turn) ? turn : {};
    const facts = { refused: [], isRejected: this.#isRejected };
    if (isRecord(error)) {
      const reason = String(error["message"]);
      return this.#ended.resolve(createFailure("model_failed", reason, { refused: [] }));
    }
    const end = { stopReason: toStopReason(stopReason), usage, command: undefined };
    this.#ended.resolve(createResult(end, this.#answer.text, facts));
  }
}

const stopReasons: readonly StopReason[] = [
  "end_turn",
  "cancelled",
  "max_tokens",
  "max_turn_requests",
  "refusal",
];

function toStopReason(value: unknown): StopReason {
  return stopReasons.find((known) => known === value) ?? "end_turn";
}

/** Whether the update reports the end of a turn that another client started. */
function isTurnEnd({ _meta: meta }: SessionUpdate): boolean {
  const turn = meta?.["turn"];
  return isRecord(turn) && turn["state"] === "ended";
}

/** Whether the update is this text of the agent. */
const isText = (update: SessionUpdate, text: string | undefined): boolean =>
  update.sessionUpdate === "agent_message_chunk" &&
  update.content.type === "text" &&
  update.content.text === text;

const isOfUser = (update: SessionUpdate | undefined): boolean =>
  update?.sessionUpdate === "user_message_chunk";

/** Returns the updates from the newest message of the user on. */
function getNewestTurn(updates: readonly SessionUpdate[]): readonly SessionUpdate[] {
  let start = updates.findLastIndex(isOfUser);
  while (start > 0 && isOfUser(updates[start - 1])) start--;
  return start === -1 ? updates : updates.slice(start);
}

/** Reads the end of the last turn from the model's last answer. Answers of slash commands come from no model. */
async function readLastEnd(messages: AsyncIterable<Message>): Promise<LastEnd> {
  let [startedAt, endedAt] = [0, 0];
  let last: AssistantInfo | undefined;
  for await (const { info } of messages) {
    const isStart = info.role === "user" && info.steering !== true;
    if (isStart) [startedAt, last] = [info.time.created, undefined];
    endedAt = info.role === "assistant" ? (info.time.completed ?? endedAt) : info.time.created;
    if (info.role === "assistant" && info.model.provider !== "fairlead") last = info;
  }
  const durationMs = Math.max(0, endedAt - startedAt);
  const error = last?.error;
  if (error !== undefined && error.code !== "cancelled") return { error, durationMs };
  if (error !== undefined) return { stopReason: "cancelled", durationMs };
  return { stopReason: last?.finish === "length" ? "max_tokens" : "end_turn", durationMs };
}
