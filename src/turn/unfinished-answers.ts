import type { AgentError, Message, Todo } from "../message/message.ts";
import type { ToolKind } from "../message/part.ts";
import { announcesStep, isLeftOpen } from "../model/answer/announcement.ts";
import { adviseServer } from "../model/answer/written-calls/server-advice.ts";
import type { WrittenCalls } from "../model/answer/written-calls/find-calls.ts";
import type { Model } from "../model/model.ts";
import {
  announcedStepReminder,
  emptyAnswerReminder,
  leakedCallReminder,
  uncertainCallReminder,
} from "../conversation/reminders.ts";
import type { StepOutcome } from "../conversation/step-outcome.ts";
import type { TurnEnd } from "../conversation/turn-result.ts";

/** Retries of an empty answer before the model is reminded. */
const emptyRetries = 2;
/** Maximum reminders of each kind per turn. */
const maxEmptyReminders = 5;
const maxLeakReminders = 2;
const maxAnnouncementReminders = 1;

/** Kinds of calls with a visible effect; the others only read. */
const mutatingKinds: ReadonlySet<ToolKind> = new Set(["edit", "delete", "move", "execute"]);

/** The next action after a step: a reminder for the model, or the end of the turn with a notice for the user. */
export type FollowUp = { remind: string } | { end: TurnEnd; notice?: string };

interface Step {
  readonly outcome: StepOutcome;
  /** The assistant message of the step. */
  readonly message: Message | undefined;
  readonly model: Model;
  readonly todos: readonly Todo[];
}

/**
 * Decides how a turn continues after an answer without a proper end: an empty answer, a call written as text, an
 * announcement without a call.
 */
export class UnfinishedAnswers {
  #empty = 0;
  #leaks = 0;
  #announcements = 0;
  /** Whether the previous answer was empty. */
  #isReminded = false;
  #hasDoneWork = false;

  /** Retries for the next step; none after a reminder. */
  get emptyRetries(): number {
    return this.#isReminded ? 0 : emptyRetries;
  }

  /** Returns undefined for a normal answer. */
  followUp(step: Step): FollowUp | undefined {
    const { outcome, message, model } = step;
    const wasReminded = this.#isReminded;
    this.#isReminded = outcome.end === "empty";
    this.#hasDoneWork ||= hasDoneWork(message);
    if (outcome.end === "empty") return this.#afterEmpty(wasReminded, model);
    if (outcome.end === "leaked") return this.#afterLeak(outcome.calls, model);
    if (outcome.end !== "finished" || !isUnfinished(step)) return undefined;
    return this.#announcements++ < maxAnnouncementReminders ? { remind: announcedStepReminder() } : undefined;
  }

  #afterEmpty(wasReminded: boolean, model: Model): FollowUp {
    if (!wasReminded && this.#empty++ < maxEmptyReminders) return { remind: emptyAnswerReminder() };
    if (this.#hasDoneWork) return { end: { end: "finished" }, notice: noFinalAnswer(model) };
    return { end: { end: "failed", error: noAnswer(model) } };
  }

  #afterLeak(written: WrittenCalls, model: Model): FollowUp {
    const tool = written.calls.at(-1)?.tool ?? "";
    if (this.#leaks++ < maxLeakReminders)
      return { remind: model.callsAsText ? uncertainCallReminder(tool) : leakedCallReminder(tool) };
    if (model.callsAsText) return { end: { end: "failed", error: onlyUncertainCalls(tool, model) } };
    return { end: { end: "failed", error: onlyLeaks(tool, written, model) } };
  }
}

function hasDoneWork(message: Message | undefined): boolean {
  return (message?.parts ?? []).some(
    (part) =>
      part.type === "tool" &&
      part.state.status === "completed" &&
      ((part.kind !== undefined && mutatingKinds.has(part.kind)) || (part.state.changes ?? []).length > 0),
  );
}

/** Only open models announce a step and stop; models of large vendors end on purpose. */
function isUnfinished({ message, model, todos }: Step): boolean {
  if (!(model.family === "open" || model.family === "small") || !todos.some(isOpen)) return false;
  const text = (message?.parts ?? [])
    .map((part) => (part.type === "text" && !part.ignored ? part.text : ""))
    .join("");
  return isLeftOpen(text) || announcesStep(text);
}

const isOpen = ({ status }: Todo): boolean => status === "pending" || status === "in_progress";

const noFinalAnswer = ({ name }: Model): string =>
  `${name} ended its work without a final answer: its last answers were empty. Check what it did, and ask it for a summary if you need one.`;

const noAnswer = ({ name }: Model): AgentError => ({
  code: "invalid-response",
  message: `${name} gave no answer: it was asked several times, and each answer was empty. Send the prompt again, or choose another model. If the server is your own, its log may say why; often the chat template does not fit the model.`,
  retryable: true,
});

const onlyUncertainCalls = (tool: string, { name }: Model): AgentError => ({
  code: "invalid-response",
  message: `${name} wrote its calls of ${tool} repeatedly in a form that may be an example, and nothing was run. Send the prompt again, or choose another model.`,
  retryable: true,
});

const onlyLeaks = (tool: string, { parsers }: WrittenCalls, { name, ref }: Model): AgentError => ({
  code: "invalid-response",
  message: `${name} wrote its calls of ${tool} as text repeatedly, and nothing was run, because the server did not recognize them as tool calls. ${adviseServer(ref.provider, parsers)} Or set "tool_calls": "text" under provider.${ref.provider}, so that such calls are run.`,
  retryable: false,
});
