import { expect, test } from "vitest";
import { newMessageId, newPartId, type SessionId } from "../../src/message/ids.ts";
import type { Message, UserInfo } from "../../src/message/message.ts";
import type { ToolPart } from "../../src/message/part.ts";
import { assistantInfo, textPart } from "../crash/stored-session.ts";
import { storedTranscript } from "../support/stored-transcript.ts";

const userInfo = (sessionId: SessionId, id = newMessageId()): UserInfo => ({
  id,
  sessionId,
  role: "user",
  time: { created: 1 },
  agent: "build",
});

test("each change is in memory, on its way to disk, and told, in the order of the changes", async () => {
  await using place = await storedTranscript();
  const { transcript, events, stored } = place;
  const user = userInfo(transcript.sessionId);
  const question = textPart("Hi");
  await transcript.addMessage(user);
  await transcript.putPart(user.id, question);
  await transcript.seal(user.id);
  const info = assistantInfo(transcript.sessionId, { parentId: user.id });
  const answer = textPart("");
  await transcript.addMessage(info);
  await transcript.putPart(info.id, answer);
  await transcript.append(info.id, answer.id, "Hel");
  await transcript.append(info.id, answer.id, "lo");
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

test("a finished call is on disk before anybody is told of it", async () => {
  const found: unknown[] = [];
  await using place = await storedTranscript(async (event) => {
    if (event.type === "part") found.push((await place.stored())[0]?.parts);
  });
  const { transcript } = place;
  const info = assistantInfo(transcript.sessionId);
  await transcript.addMessage(info);
  const call: ToolPart = {
    id: newPartId(),
    type: "tool",
    callId: "call",
    tool: "read",
    state: { status: "completed", input: {}, output: "one", time: { start: 1, end: 2 } },
  };
  await transcript.putPart(info.id, call);
  expect(found).toEqual([[call]]);
});

test("whoever is slow to hear of a change slows the next one down", async () => {
  const heard = Promise.withResolvers<void>();
  await using place = await storedTranscript(async (event) => {
    if (event.type === "delta") await heard.promise;
  });
  const { transcript } = place;
  const info = assistantInfo(transcript.sessionId);
  const part = textPart("");
  await transcript.addMessage(info);
  await transcript.putPart(info.id, part);
  const append = (async () => {
    await transcript.append(info.id, part.id, "x");
    return "went on";
  })();
  expect(await Promise.race([append, place.stored().then(() => "waits")])).toBe("waits");
  heard.resolve();
  expect(await append).toBe("went on");
});

test("the id of a new message sorts behind all, also when the clock was set back", async () => {
  await using place = await storedTranscript();
  const { transcript } = place;
  const future = `msg_f${newMessageId().slice(5)}` as const;
  await transcript.addMessage(userInfo(transcript.sessionId, future));
  const next = transcript.newMessageId();
  expect(next > future).toBe(true);
});

test("a change of what is not there is a mistake of the caller", async () => {
  await using place = await storedTranscript();
  const { transcript } = place;
  const info = assistantInfo(transcript.sessionId);
  await expect(transcript.putPart(info.id, textPart("x"))).rejects.toThrow("no message");
  await transcript.addMessage(info);
  expect(() => transcript.append(info.id, newPartId(), "x")).toThrow("no text part");
});
