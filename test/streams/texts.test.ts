import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { tries } from "../support/run-length.ts";
import type { Answer } from "./answer.ts";
import { cuts, Replay } from "./replay.ts";
import { wires } from "./wire.ts";

let replay: Replay;
beforeAll(async () => {
  replay = await Replay.start();
});
afterAll(() => replay[Symbol.asyncDispose]());

/** Texts that are syntax in JSON or in an event stream, but not in an answer. */
const tokens = [
  ",",
  ":",
  '"',
  "\\",
  "{",
  "}",
  "[",
  "]",
  '","',
  '":"',
  '"}}]}',
  "\\n",
  "\n",
  "\r\n",
  "\r",
  "\u2028",
];
const lines = [
  "data: ",
  "[DONE]",
  "data: [DONE]\n\n",
  "event: error\n",
  ": ",
  '{"error":"no"}',
  "null",
  "\u0000",
  "\ufeff",
];
/** The halves arrive in two chunks, or one of them is missing. */
const halves = ["\ud83d", "\udc4d", "👍", "größe", "你"];
const piece = fc.oneof(
  fc.constantFrom(...tokens, ...lines, ...halves),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 6 }),
);
const pieces = fc.array(piece, { minLength: 1, maxLength: 8 });

/** The input's JSON in chunks, as the server sends it. */
const input = fc
  .tuple(
    fc.dictionary(
      fc.constantFrom("a", "b,", 'c"'),
      pieces.map((texts) => texts.join("").toWellFormed()),
    ),
    fc.nat(),
  )
  .map(([given, at]) => {
    const text = JSON.stringify(given);
    const middle = at % text.length;
    return {
      input: given,
      pieces: [text.slice(0, middle), text.slice(middle)].filter((part) => part !== ""),
    };
  });

const answer: fc.Arbitrary<Answer> = fc
  .record({
    reasoning: fc.oneof(fc.constant([]), pieces),
    text: pieces,
    calls: fc.array(input, { maxLength: 1 }),
  })
  .map(({ reasoning, text, calls }) => ({
    name: "any",
    // Texts that begin with blanks or a tag may be thoughts, which another test covers.
    reasoning: reasoning.length === 0 ? [] : ["Hm", ...reasoning],
    text: ["So", ...text],
    calls: calls.map((call) => ({ tool: "read", id: "call_1", ...call })),
    end: "stop",
  }));

/** Half of a surrogate pair is not text: it may be omitted, kept or replaced. */
const withoutHalves = (text: string): string => text.toWellFormed().replaceAll("\ufffd", "");

describe.each(wires)("any text over $name", ({ shapes }) => {
  test.each(shapes.filter(({ hasTags }) => !hasTags))("$name", async (shape) => {
    await fc.assert(
      fc.asyncProperty(answer, fc.constantFrom(...Object.values(cuts)), async (given, cut) => {
        fc.pre(shape.canWrite(given));
        const { text, reasoning, calls, end } = await replay.play(shape.api, shape.write(given), cut);
        expect(withoutHalves(text)).toBe(withoutHalves(given.text.join("")));
        expect(withoutHalves(reasoning)).toBe(withoutHalves(given.reasoning.join("")));
        expect(calls.map((call) => call.input)).toEqual(given.calls.map((call) => call.input));
        expect(end.type).toBe("finish");
      }),
      { numRuns: tries(40) },
    );
  });
});
