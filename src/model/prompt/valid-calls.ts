import { sha256 } from "../../base/text/hash.ts";
import { isRecord } from "../../base/text/record.ts";
import type { Message } from "../../message/message.ts";
import { clearedOutput, type Part, type ToolPart, visibleOutput } from "../../message/part.ts";
import { calledInput, calledName } from "../answer/written-calls/call-texts.ts";

const interruptedCall = "[Tool execution was interrupted]";

/** A call with its result as providers accept them. */
export interface ValidCall {
  readonly part: ToolPart;
  /** Unique in the request. */
  readonly id: string;
  readonly name: string;
  /** The input as sent, so that the model sees its mistake. */
  readonly input: Record<string, unknown>;
  readonly output: string;
}

/** Returns the calls of a transcript by their parts. `allowedId` matches the ids that the provider accepts. */
export function toValidCalls(messages: readonly Message[], allowedId: RegExp): ReadonlyMap<Part, ValidCall> {
  const calls = new Map<Part, ValidCall>();
  const used = new Set<string>();
  for (const part of messages.flatMap(({ parts }) => parts)) {
    if (part.type !== "tool") continue;
    const id = findId(part, (one) => allowedId.test(one) && !used.has(one));
    used.add(id);
    const input = calledInput(part, isRecord(part.sent?.input) ? part.sent.input : part.state.input);
    calls.set(part, {
      part,
      id,
      name: toValidName(calledName(part)),
      // Providers reject other inputs even if the call failed for that reason.
      input: isRecord(input) ? input : {},
      output: outputOf(part),
    });
  }
  return calls;
}

/** Returns the provider's id or ours if it is accepted, otherwise one derived from ours. */
function findId({ providerCallId, callId }: ToolPart, isAccepted: (id: string) => boolean): string {
  const known = [providerCallId, callId].find((id) => id !== undefined && isAccepted(id));
  if (known !== undefined) return known;
  for (let round = 0; ; round++) {
    const id = sha256(`${round}:${callId}`).slice(0, 9);
    if (isAccepted(id)) return id;
  }
}

/** Replaces invalid names: providers reject them even if the call failed for that reason. */
export function toValidName(tool: string): string {
  return tool.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed";
}

function outputOf({ state }: ToolPart): string {
  if (state.status === "completed")
    return state.compactedAt === undefined ? visibleOutput(state) : clearedOutput;
  return state.status === "error" ? state.error : interruptedCall;
}
