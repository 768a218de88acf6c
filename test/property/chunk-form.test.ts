import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseChunk, type Piece, pieceOf } from "../../src/model/chunk.ts";
import { ChunkForm } from "../../src/model/chunk-form.ts";

const parse = (chunk: string): Piece | undefined => pieceOf(parseChunk(chunk));

const word = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.constantFrom("content", "any text", '"', "\\", "\n", "\u0000", "}", '"}}]}', "é", "👍", ""),
);
const key = fc.constantFrom("content", "reasoning_content", "reasoning", "role", "refusal", "tool_calls");

/** What stands around the text of a chunk. A server has a few of them. */
const form = fc.record({
  id: fc.constantFrom("c1", "word", "any text"),
  key: fc.oneof({ weight: 3, arbitrary: fc.constantFrom("content", "reasoning") }, key),
  others: fc.oneof(
    { weight: 2, arbitrary: fc.constant({ role: "assistant" }) },
    fc.dictionary(key, fc.oneof(word, fc.constant(null)), { maxKeys: 2 }),
  ),
  usage: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, fc.constant({ prompt_tokens: 1 })),
  finish: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, fc.constant("stop")),
  isSpaced: fc.boolean(),
});
const stream = fc.record({
  forms: fc.array(form, { minLength: 1, maxLength: 3 }),
  chunks: fc.array(
    fc.record({ which: fc.nat(), text: word, noise: fc.option(word, { freq: 4, nil: undefined }) }),
    {
      minLength: 2,
      maxLength: 30,
    },
  ),
});

type Stream = typeof stream extends fc.Arbitrary<infer T> ? T : never;

function chunksOf({ forms, chunks }: Stream): string[] {
  return chunks.flatMap(({ which, text, noise }) => {
    const around = forms[which % forms.length];
    if (around === undefined) return [];
    const delta = { ...around.others, [around.key]: text };
    const choices = [{ index: 0, delta, finish_reason: around.finish }];
    const chunk = { id: around.id, choices, usage: around.usage, obfuscation: noise };
    return [JSON.stringify(chunk, null, around.isSpaced ? 1 : 0)];
  });
}

test("what a learned form finds in a chunk is what parsing finds in it", () => {
  let found = 0;
  fc.assert(
    fc.property(stream, (streamed) => {
      const learned = new ChunkForm(parse);
      for (const text of chunksOf(streamed)) {
        const expected = parse(text);
        const piece = learned.pieceIn(text);
        if (piece !== undefined) {
          found++;
          expect(piece).toEqual(expected);
        }
        if (expected !== undefined) learned.learn(text, expected);
      }
    }),
    { numRuns: 2_000 },
  );
  expect(found).toBeGreaterThan(100);
});

test("of an ordinary stream only the first chunk and those with escapes are parsed", () => {
  let parsed = 0;
  const form = new ChunkForm((text) => {
    parsed++;
    return parse(text);
  });
  const chunkOf = (content: string) =>
    JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content } }], usage: null });
  form.learn(chunkOf("Hel"), { key: "content", text: "Hel" });
  const found = ["lo", " wör", "ld 👍", 'say "x"', "a\nb", ""].map(
    (text) => form.pieceIn(chunkOf(text))?.text,
  );
  expect(found).toEqual(["lo", " wör", "ld 👍", undefined, undefined, undefined]);
  for (const text of ["\n", "more"]) form.learn(chunkOf(text), { key: "content", text });
  expect(parsed).toBe(1);
});
