import { expect, test } from "vitest";
import { newMessageId, newPartId, type SessionId } from "../../src/message/ids.ts";
import type { Message, UserInfo } from "../../src/message/message.ts";
import type { ToolPart } from "../../src/message/part.ts";
import { assistantInfo, textPart } from "../crash/support/stored-session.ts";
import { storedTranscript } from "../support/stored-transcript.ts";

const userInfo = (sessionId: SessionId, id = newMessageId()): UserInfo => ({
  id,
  sessionId,
  role: "user",
  time: { created: 1 },
  agent: "build",
});

test("each change is in memory, queued for disk, and emitted, in order", async () => {
  await using place = await storedTranscript();
  const { transcript, events, stored } = place;
  const user = userInfo(transcript.sessionId);
  const question = textPart("Hi");
  transcript.addMessage(user);
  transcript.putPart(user.id, question);
  await transcript.seal(user.id);
  const info = assistantInfo(transcript.sessionId, { parentId: user.id });
  const answer = textPart("");
  transcript.addMessage(info);
  transcript.putPart(info.id, answer);
  transcript.append(info.id, answer.id, "Hel");
  transcript.append(info.id, answer.id, "lo");
  await transcript.complete({ ...info, finish: "stop" });
  const expected: Message[] = [
    { info: user, parts: [question] },
    {
      info: { ...info, finish: "stop", time: { created: 1, completed: expect.any(Number) } },
      parts: [{ ...answer, text: "Hello" }],
    },
  ];
  expect(transcript.messages).toEqual(expected);
  expect(await stored()).toEqual(expected);
  expect(events.map((event) => (event.type === "delta" ? event.delta : event.type))).toEqual([
    "message",
    "part",
    "message",
    "part",
    "Hel",
    "lo",
    "message",
  ]);
});

test("a finished call is on disk before it is emitted", async () => {
  const reads: Promise<Message[]>[] = [];
  await using place = await storedTranscript((event) => {
    if (event.type === "part") reads.push(place.stored());
  });
  const { transcript } = place;
  const info = assistantInfo(transcript.sessionId);
  transcript.addMessage(info);
  const call: ToolPart = {
    id: newPartId(),
    type: "tool",
    callId: "call",
    tool: "read",
    state: { status: "completed", input: {}, output: "one", time: { start: 1, end: 2 } },
  };
  await transcript.settleCall(info.id, call);
  expect((await Promise.all(reads)).map(([message]) => message?.parts)).toEqual([[call]]);
});

test("the id of a new message sorts last, even if the clock was set back", async () => {
  await using place = await storedTranscript();
  const { transcript } = place;
  const future = `msg_f${newMessageId().slice(5)}` as const;
  transcript.addMessage(userInfo(transcript.sessionId, future));
  const next = transcript.newMessageId();
  expect(next > future).toBe(true);
});

test("a change of a missing message or part throws", async () => {
  await using place = await storedTranscript();
  const { transcript } = place;
  const info = assistantInfo(transcript.sessionId);
  expect(() => transcript.putPart(info.id, textPart("x"))).toThrow("no message");
  transcript.addMessage(info);
  expect(() => transcript.append(info.id, newPartId(), "x")).toThrow("no text part");
});
