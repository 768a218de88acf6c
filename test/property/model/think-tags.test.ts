import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ThinkTags } from "../../../src/model/answer/answer-text.ts";

/** Returns thoughts and text of an answer that arrives in these chunks. */
function notice(pieces: readonly string[]) {
  const tags = new ThinkTags();
  const all = [...pieces.flatMap((piece) => tags.add(piece)), ...tags.end()];
  const joined = (kind: "text" | "reasoning") =>
    all.map((piece) => (piece.kind === kind ? piece.text : "")).join("");
  return { text: joined("text"), thoughts: joined("reasoning") };
}

const word = fc.constantFrom(
  "<think>",
  "</think>",
  "[THINK]",
  "[/THINK]",
  "<",
  "</",
  "think>",
  " ",
  "\n",
  "a",
);

test("finds the same thoughts however the text is split", () => {
  fc.assert(
    fc.property(fc.array(word, { maxLength: 12 }), fc.array(fc.nat(60), { maxLength: 8 }), (words, cuts) => {
      const whole = words.join("");
      const ends = [...cuts.filter((at) => at < whole.length).sort((a, b) => a - b), whole.length];
      const pieces = ends.map((end, index) => whole.slice(index === 0 ? 0 : ends[index - 1], end));
      expect(notice(pieces)).toEqual(notice([whole]));
    }),
  );
});

test("a text without a tag at its beginning is unchanged", () => {
  fc.assert(
    fc.property(fc.array(word, { maxLength: 12 }), (words) => {
      expect(notice(["a", ...words])).toEqual({ text: `a${words.join("")}`, thoughts: "" });
    }),
  );
});
