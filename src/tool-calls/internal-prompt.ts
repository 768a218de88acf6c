import type { Emit } from "../message/event.ts";
import { newMessageId, newPartId, type SessionId } from "../message/ids.ts";
import type { ToolPart, ToolState } from "../message/part.ts";
import type { Decider } from "../permission/gate.ts";
import type { Decision, PermissionRequest, Ruleset } from "../permission/rule.ts";

export interface InternalPromptDeps {
  sessionId: SessionId;
  agent: string;
  gate: Decider;
  emit: Emit;
}

/** A question of the program to the user. */
export interface InternalQuestion {
  /** Tool name of the question's call, for clients that distinguish calls. */
  tool: string;
  title: string;
  input: Record<string, unknown>;
  /** Explanation shown with the question. */
  text: string;
  subject: string;
  /** Why only the user can answer, each time. */
  confirm?: string;
  /** Lets "always" store the subject. Rules that name this tool then decide. */
  remember?: { readonly rules: Ruleset; readonly reason: string };
}

/**
 * Asks the user a question in the form of a tool call, because editors ask about tool calls only. Not stored: it is
 * not part of the conversation.
 */
export class InternalPrompt {
  readonly #deps: InternalPromptDeps;
  readonly #question: InternalQuestion;
  readonly #messageId = newMessageId();
  readonly #id = newPartId();

  constructor(deps: InternalPromptDeps, question: InternalQuestion) {
    this.#deps = deps;
    this.#question = question;
  }

  async ask(signal: AbortSignal): Promise<Decision> {
    const { sessionId, agent, gate } = this.#deps;
    const { tool, title, input, text, remember } = this.#question;
    this.#show({ status: "pending", input });
    const permissions = [createPermission(this.#question)];
    const preview = { text };
    const call = { sessionId, callId: this.#id, agent, tool, title, kind: "other" as const, locations: [] };
    return gate.decide({ ...call, preview, input, permissions }, remember?.rules ?? [], signal);
  }

  complete(output: string): void {
    this.#show({ status: "completed", input: this.#question.input, output, time: now() });
  }

  fail(reason: "failed" | "rejected" | "cancelled", error: string): void {
    this.#show({ status: "error", input: this.#question.input, error, reason, time: now() });
  }

  #show(state: ToolState): void {
    const { tool, title } = this.#question;
    const id = this.#id;
    const part: ToolPart = { id, type: "tool", callId: id, tool, title, kind: "other", state };
    this.#deps.emit({
      sessionId: this.#deps.sessionId,
      type: "part",
      messageId: this.#messageId,
      part,
    });
  }
}

function createPermission({ tool, subject, confirm, remember }: InternalQuestion): PermissionRequest {
  if (remember === undefined)
    return { permission: tool, subjects: [{ text: subject, ...(confirm && { confirm }) }], always: [] };
  const subjects = [{ text: subject, asked: remember.reason }];
  return { permission: tool, subjects, always: [subject], byNameOnly: true };
}

function now() {
  const time = Date.now();
  return { start: time, end: time };
}
