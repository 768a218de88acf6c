import type { SessionEvent } from "../message/event.ts";
import type { Advice, Answer, Ask, GateCall, Question } from "../permission/gate.ts";
import { authorEvents, authorQuestion } from "../plugin/author-words.ts";
import type { Plugins } from "../plugin/plugins.ts";

/** Tells what has just left by the door. */
export function tellPlugins(plugins: Plugins | undefined, event: SessionEvent): void {
  if (!plugins?.has("event")) return;
  for (const told of authorEvents(event)) plugins.event(told);
}

/** What plugins say of a call before the person is asked; undefined where none has a say. */
export function adviceOf(
  plugins: Plugins | undefined,
  call: GateCall,
  status: "allow" | "ask",
  signal: AbortSignal,
): Promise<Advice> | undefined {
  if (!plugins?.has("permission.ask")) return undefined;
  return plugins.permission(authorQuestion(call), status, signal);
}

/** Puts the question to the person and tells plugins of it and of its answer. */
export async function askBeforePlugins(
  ask: Ask,
  plugins: Plugins | undefined,
  question: Question,
  signal: AbortSignal,
): Promise<Answer> {
  const asked = authorQuestion(question);
  plugins?.event({ type: "permission.asked", properties: { ...asked } });
  const answer = await ask(question, signal);
  const { sessionID, callID } = asked;
  plugins?.event({ type: "permission.replied", properties: { sessionID, callID, reply: answer.reply } });
  return answer;
}
