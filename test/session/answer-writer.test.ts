import { describe, expect, test } from "vitest";
import { newPartId } from "../../src/message/ids.ts";
import type { MessageId } from "../../src/message/ids.ts";
import type { Transcript } from "../../src/conversation/transcript.ts";
import { AnswerWriter, type CallEvent } from "../../src/turn/answer-writer.ts";
import { assistantInfo } from "../crash/support/stored-session.ts";
import { storedTranscript } from "../support/stored-transcript.ts";

type Piece = `text ${string}` | `reasoning ${string}`;

function writerOf(transcript: Transcript, messageId: MessageId): AnswerWriter {
  const { signal } = new AbortController();
  return new AnswerWriter({ transcript, messageId, signal, takeCall: () => {} });
}

/**
 * Streams attempts of one model call: each is a list of blocks, each block its kind and then its chunks,
 * separated by a bar. The last attempt ends normally, the others break off.
 */
async function written(...attempts: Piece[][]) {
  await using place = await storedTranscript();
  const { transcript, events, stored } = place;
  const info = assistantInfo(transcript.sessionId);
  transcript.addMessage(info);
  const writer = writerOf(transcript, info.id);
  for (const [attempt, blocks] of attempts.entries()) {
    if (attempt > 0) writer.restart();
    for (const piece of blocks) {
      const kind = piece.startsWith("text ") ? "text" : "reasoning";
      const pieces = piece.slice(kind.length + 1).split("|");
      for (const text of pieces) writer.take({ type: `${kind}-delta`, text });
      writer.end();
    }
  }
  writer.finish();
  await transcript.complete(info);
  const parts = transcript.find(info.id)?.parts ?? [];
  expect((await stored())[0]?.parts).toEqual(parts);
  const streamed = events.map((event) => (event.type === "delta" ? event.delta : "")).join("");
  const texts = parts.map((part) => {
    if (part.type !== "text" && part.type !== "reasoning") return part.type;
    return `${part.type} ${part.text}${part.type === "text" && part.ignored === true ? " (ignored)" : ""}`;
  });
  return { streamed, texts };
}

describe("one attempt", () => {
  test("becomes one part for each block, in their order", async () => {
    expect(await written(["reasoning Hm,| so", "text Hel|lo", "text Bye"])).toEqual({
      streamed: "Hm, soHelloBye",
      texts: ["reasoning Hm, so", "text Hello", "text Bye"],
    });
  });

  test("without text leaves no part", async () => {
    expect(await written(["text "])).toEqual({ streamed: "", texts: [] });
  });

  test("streams leading whitespace with the first word, and stores it even without one", async () => {
    expect(await written(["reasoning \n|\n", "text \n| Hel|lo"])).toEqual({
      streamed: "\n Hello",
      texts: ["reasoning \n\n", "text \n Hello"],
    });
  });

  test.each(["text", "reasoning"] as const)(
    "stops a model that repeats its %s in small deltas",
    async (kind) => {
      const passage = "I will look at the file again, and then I will look at it once more. ";
      await using place = await storedTranscript();
      const info = assistantInfo(place.transcript.sessionId);
      place.transcript.addMessage(info);
      const writer = writerOf(place.transcript, info.id);
      const write = () => {
        for (let count = 0; count < 24_000; count += 7)
          writer.take({ type: `${kind}-delta`, text: passage.repeat(2).slice(count % 69, (count % 69) + 7) });
      };
      expect(write).toThrow("The model repeats itself");
      await place.transcript.complete(info);
    },
  );
});

describe("another attempt", () => {
  test("that repeats the written text adds only the rest", async () => {
    expect(await written(["text Hello| wor"], ["text Hel|lo w|orld|!"])).toEqual({
      streamed: "Hello world!",
      texts: ["text Hello world!"],
    });
  });

  test("that repeats everything adds nothing", async () => {
    expect(await written(["text Hello"], ["text Hel|lo"])).toEqual({
      streamed: "Hello",
      texts: ["text Hello"],
    });
  });

  test("repeats the leading whitespace of an attempt that had no word", async () => {
    await using place = await storedTranscript();
    const { transcript, events } = place;
    const info = assistantInfo(transcript.sessionId);
    transcript.addMessage(info);
    const writer = writerOf(transcript, info.id);
    writer.take({ type: "text-delta", text: "\n" });
    writer.restart();
    writer.take({ type: "text-delta", text: "\n" });
    writer.take({ type: "text-delta", text: "Hello" });
    writer.finish();
    await transcript.complete(info);
    expect(events.flatMap((event) => (event.type === "delta" ? event.delta : []))).toEqual(["\nHello"]);
    expect(transcript.find(info.id)?.parts).toMatchObject([{ type: "text", text: "\nHello" }]);
  });

  test("that is shorter leaves the written text", async () => {
    expect(await written(["text Hello world"], ["text Hello"])).toEqual({
      streamed: "Hello world",
      texts: ["text Hello world"],
    });
  });

  test("that differs is added, and the model sees only the new text", async () => {
    expect(await written(["text Hello wor"], ["text Hel|p is near"])).toEqual({
      streamed: "Hello worHelp is near",
      texts: ["text Hello wor (ignored)", "text Help is near"],
    });
  });

  test("that is empty removes the written text", async () => {
    expect(await written(["text Hello wor"], [])).toEqual({
      streamed: "Hello wor",
      texts: ["text Hello wor (ignored)"],
    });
  });

  test("is compared with each part of its kind", async () => {
    const first: Piece[] = ["reasoning Hm, a", "text Hello", "text Good b"];
    expect(await written(first, ["reasoning Hm, a file", "text Hello", "text Good bye"])).toEqual({
      streamed: "Hm, aHelloGood b fileye",
      texts: ["reasoning Hm, a file", "text Hello", "text Good bye"],
    });
  });

  test("with another thought keeps the thought and repeats the text", async () => {
    expect(await written(["reasoning Hm", "text Hello wor"], ["reasoning So", "text Hello world"])).toEqual({
      streamed: "HmHello worSold",
      texts: ["reasoning Hm", "text Hello world", "reasoning So"],
    });
  });

  test("is compared with all earlier text, also if one attempt ended early", async () => {
    expect(await written(["text Hello wor"], [], ["text Hel"], ["text Hello world"])).toEqual({
      streamed: "Hello world",
      texts: ["text Hello world"],
    });
  });
});

test("stores the provider's data at the end of a thought, with text or without", async () => {
  await using place = await storedTranscript();
  const { transcript } = place;
  const info = assistantInfo(transcript.sessionId);
  transcript.addMessage(info);
  transcript.putPart(info.id, { id: newPartId(), type: "step-start" });
  const writer = writerOf(transcript, info.id);
  writer.take({ type: "reasoning-delta", text: "Hm" });
  const from = { provider: "anthropic", model: "claude", api: "messages" };
  const signed = { ...from, data: { signature: "abc" } };
  writer.take({ type: "reasoning-end", metadata: signed });
  const redacted = { ...from, data: { redactedData: "xyz" } };
  writer.take({ type: "reasoning-end", metadata: redacted });
  const time = { start: expect.any(Number), end: expect.any(Number) };
  expect(transcript.find(info.id)?.parts.slice(1)).toMatchObject([
    { type: "reasoning", text: "Hm", providerMetadata: signed, time },
    { type: "reasoning", text: "", providerMetadata: redacted, time },
  ]);
  await transcript.complete(info);
});

test("passes calls on, and drops events after the abort", async () => {
  await using place = await storedTranscript();
  const { transcript, events } = place;
  const info = assistantInfo(transcript.sessionId);
  transcript.addMessage(info);
  const aborting = new AbortController();
  const { signal } = aborting;
  const calls: string[] = [];
  const takeCall = ({ providerCallId }: CallEvent) => void calls.push(providerCallId);
  const writer = new AnswerWriter({ transcript, messageId: info.id, signal, takeCall });
  writer.take({ type: "text-delta", text: "Hel" });
  writer.take({ type: "call-start", providerCallId: "one", tool: "read" });
  aborting.abort();
  writer.take({ type: "text-delta", text: "lo" });
  writer.take({ type: "call-start", providerCallId: "two", tool: "read" });
  expect(events.flatMap((event) => (event.type === "delta" ? event.delta : []))).toEqual(["Hel"]);
  expect([calls, writer.hasVisibleText]).toEqual([["one"], true]);
  await transcript.complete(info);
});
