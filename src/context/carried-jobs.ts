import type { MessageId } from "../message/ids.ts";
import type { Message } from "../message/message.ts";
import type { Carried, ToolPart } from "../message/part.ts";
import { compactionOf } from "../conversation/visible-messages.ts";

/** A call with its message. */
export interface StoredCall {
  readonly messageId: MessageId;
  readonly part: ToolPart;
}

/** Returns the jobs that ran when the visible messages were compacted. */
export function listCarriedJobs(visible: readonly Message[]): NonNullable<Carried["jobs"]> {
  return visible.flatMap((message) => compactionOf(message)?.carried?.jobs ?? []);
}

/** Returns the highest number of a job that compacted messages contain. */
export function findCarriedJobId(visible: readonly Message[]): number {
  return Math.max(0, ...visible.map((message) => compactionOf(message)?.carried?.lastJob ?? 0));
}

/** Loads the calls of carried jobs, which compacted messages contain. */
export async function loadCarriedCalls(
  jobs: NonNullable<Carried["jobs"]>,
  newestFirst: () => AsyncIterable<Message>,
): Promise<StoredCall[]> {
  const wanted = new Set(jobs.map(({ callId }) => callId));
  const oldest = jobs.map(({ messageId }) => messageId).sort()[0];
  const found: StoredCall[] = [];
  if (oldest === undefined) return found;
  for await (const { info, parts } of newestFirst()) {
    if (info.id < oldest) break;
    for (const part of parts)
      if (part.type === "tool" && wanted.has(part.callId)) found.push({ messageId: info.id, part });
  }
  return found.reverse();
}
