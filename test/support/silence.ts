import { setTimeout as delay } from "node:timers/promises";
import { failureOf } from "./failure.ts";
import type { Editor } from "./editor.ts";
import type { WireEntry } from "./wire-log.ts";

/** Milliseconds in which nothing may come, where a rule is about time. */
const quietMs = 250;

/** What the agent sent while nobody asked for anything, and up to the answer of a harmless request after that. */
export async function sentUnasked(editor: Editor): Promise<WireEntry[]> {
  const before = editor.wire.entries.length;
  await delay(quietMs);
  await failureOf(editor.request("_test/fence"));
  return editor.wire.entries
    .slice(before)
    .filter(({ direction, message }) => direction === "fromAgent" && message?.kind !== "response");
}
