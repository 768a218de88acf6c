import type { Emit } from "../message/event.ts";
import { newMessageId, newPartId, type SessionId } from "../message/ids.ts";
import type { ToolPart, ToolState } from "../message/part.ts";
import type { Gate, GateCall } from "../permission/gate.ts";
import type { PendingConsent } from "./project.ts";

export interface ConsentDeps {
  sessionId: SessionId;
  agent: string;
  gate: Gate;
  emit: Emit;
}

/** The name under which the question goes as a call, for clients that tell calls apart. */
export const consentTool = "trust";

const title = "Trust this project's configuration?";

/** Lines of the question about what the project wants. */
const wantsLimit = 40;

/**
 * Asks whether the project's own configuration may count in full, as a call that the editor shows. The card is not
 * stored: it is no part of the conversation, the answer is kept with the folder.
 */
export async function askConsent(
  deps: ConsentDeps,
  consent: PendingConsent,
  signal: AbortSignal,
): Promise<"accepted" | "declined" | "cancelled"> {
  const show = cardOf(deps);
  await show({ status: "pending", input: { folder: consent.folder } });
  const decision = await deps.gate.decide(toCall(deps, show.callId, consent), [], signal);
  const time = { start: Date.now(), end: Date.now() };
  const input = { folder: consent.folder };
  if (decision.outcome === "allowed") {
    await consent.accept();
    const output = "This project's own configuration counts in full, as long as it stays as it is now.";
    await show({ status: "completed", input, output, time });
    return "accepted";
  }
  const isCancelled = decision.outcome === "cancelled";
  const error = isCancelled ? "The turn was cancelled before this was answered." : declinedText(consent);
  await show({ status: "error", input, error, reason: isCancelled ? "cancelled" : "rejected", time });
  return isCancelled ? "cancelled" : "declined";
}

/** What waits for consent, as lines for the person. */
export function describeConsent({ folder, wants, hasChanged }: PendingConsent): string {
  const more = wants.length - wantsLimit;
  return [
    hasChanged
      ? `The configuration in ${folder} has changed since you trusted it. It wants to set or load:`
      : `The configuration in ${folder} wants to set or load:`,
    ...wants.slice(0, wantsLimit).map((want) => `- ${want}`),
    ...(more > 0 ? [`- and ${more} more`] : []),
    "Without your consent it can make rules stricter and describe agents, nothing else.",
  ].join("\n");
}

function cardOf({ sessionId, emit }: ConsentDeps) {
  const messageId = newMessageId();
  const id = newPartId();
  const part = { id, type: "tool", callId: id, tool: consentTool, title, kind: "other" } as const;
  const show = (state: ToolState) => {
    const shown: ToolPart = { ...part, state };
    return emit({ sessionId, type: "part", messageId, part: shown });
  };
  return Object.assign(show, { callId: id });
}

function toCall({ sessionId, agent }: ConsentDeps, callId: string, consent: PendingConsent): GateCall {
  const { folder } = consent;
  const confirm = "only you can say whose configuration you trust";
  return {
    sessionId,
    callId,
    agent,
    tool: consentTool,
    title,
    kind: "other",
    locations: [],
    preview: { text: describeConsent(consent) },
    input: { folder },
    permissions: [{ permission: consentTool, subjects: [{ text: folder, confirm }], always: [] }],
  };
}

function declinedText({ folder }: PendingConsent): string {
  return `Not used: what this project's configuration would run, load, redirect or allow. To change your mind: fairlead trust add ${folder}`;
}
