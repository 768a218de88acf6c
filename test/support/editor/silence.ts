import { setTimeout as delay } from "node:timers/promises";
import { expectFailure } from "../failure.ts";
import type { Editor } from "./editor.ts";
import type { WireEntry } from "../wire/wire-log.ts";

/** Milliseconds without messages, for rules about time. */
const quietMs = 250;

/** Returns the messages that the agent sent without a request, up to the response of a harmless request. */
export async function collectUnrequestedMessages(editor: Editor): Promise<WireEntry[]> {
  const before = editor.wire.entries.length;
  await delay(quietMs);
  await expectFailure(editor.request("_test/fence"));
  return editor.wire.entries
    .slice(before)
    .filter(({ direction, message }) => direction === "fromAgent" && message?.kind !== "response");
}
