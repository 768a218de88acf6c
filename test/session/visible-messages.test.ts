import { expect, test } from "vitest";
import { newPartId, newSessionId, type MessageId } from "../../src/message/ids.ts";
import type { Message } from "../../src/message/message.ts";
import { loadVisible } from "../../src/conversation/visible-messages.ts";
import { assistantInfo } from "../crash/support/stored-session.ts";

const sessionId = newSessionId();
const idOf = (number: number): MessageId => `msg_${String(number).padStart(4, "0")}`;

const user = (number: number): Message => ({
  info: { id: idOf(number), sessionId, role: "user", time: { created: 1 }, agent: "build" },
  parts: [],
});
const answer = (number: number, fields = {}): Message => ({
  info: assistantInfo(sessionId, { id: idOf(number), parentId: idOf(number - 1), finish: "stop", ...fields }),
  parts: [],
});
const compaction = (number: number, keepFrom?: number): Message => ({
  ...user(number),
  parts: [
    {
      id: newPartId(),
      type: "compaction",
      auto: true,
      ...(keepFrom !== undefined && { keepFrom: idOf(keepFrom) }),
    },
  ],
});
const summary = (number: number, fields = {}): Message => answer(number, { summary: true, ...fields });

/** The numbers of the visible messages, and the number of messages read to find them. */
async function visible(messages: Message[]): Promise<{ shown: number[]; read: number }> {
  let read = 0;
  const newestFirst = async function* () {
    for (const message of messages.toReversed()) {
      read++;
      yield message;
    }
  };
  const shown = await loadVisible(newestFirst());
  return { shown: shown.map(({ info }) => Number(info.id.slice(4))), read };
}

test("without a compaction everything is visible, oldest first", async () => {
  expect(await visible([user(1), answer(2), user(3), answer(4)])).toEqual({ shown: [1, 2, 3, 4], read: 4 });
});

test("a finished compaction hides the messages it summarizes, which are not even read", async () => {
  const messages = [
    ...Array.from({ length: 50 }, (_, at) => user(at + 1)),
    compaction(60),
    summary(61),
    user(62),
  ];
  const { shown, read } = await visible(messages);
  expect(shown).toEqual([60, 61, 62]);
  expect(read).toBeLessThan(6);
});

test("messages that a compaction kept follow its summary", async () => {
  const messages = [user(1), answer(2), user(3), answer(4), compaction(5, 3), summary(6), user(7)];
  expect((await visible(messages)).shown).toEqual([5, 6, 3, 4, 7]);
});

test("a compaction that did not finish hides nothing", async () => {
  const cut = summary(4, { finish: "error" });
  expect((await visible([user(1), answer(2), compaction(3), cut, user(5)])).shown).toEqual([1, 2, 3, 4, 5]);
});

test("the newest of several compactions counts", async () => {
  const messages = [user(1), compaction(2), summary(3), user(4), answer(5), compaction(6), summary(7)];
  expect((await visible(messages)).shown).toEqual([6, 7]);
});

test("a session without messages shows none", async () => {
  expect(await visible([])).toEqual({ shown: [], read: 0 });
});
