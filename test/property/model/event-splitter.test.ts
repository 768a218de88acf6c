import * as fc from "fast-check";
import { expect, test } from "vitest";
import { EventSplitter } from "../../../src/model/streams/event-splitter.ts";

const lineEnd = fc.constantFrom("\n", "\n", "\n", "\r\n", "\r");
const words = fc.constantFrom("{}", "größer", " ", "", "a b", "data: ", "\ufeff", '{"error":1}', "[DONE]");
const line = fc
  .tuple(
    fc.constantFrom(
      "data: ",
      "data: ",
      "data:",
      "event: ",
      "event: error",
      "error:",
      ": ",
      "id: 1",
      "odd",
      "",
    ),
    words,
    lineEnd,
  )
  .map((parts) => parts.join(""));
const event = fc.oneof(
  { weight: 3, arbitrary: words.map((data) => `data: ${data}\n\n`) },
  fc.tuple(fc.array(line, { maxLength: 3 }), lineEnd).map(([lines, end]) => lines.join("") + end),
);

function split(pieces: readonly string[]) {
  const splitter = new EventSplitter();
  const events = pieces.flatMap((piece) => splitter.push(piece));
  return { events: [...events, ...splitter.end()], odd: splitter.nonEventText };
}

test("the events of a stream are the same however it is split", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 12 }), fc.array(fc.nat()), (events, cuts) => {
      const text = events.join("");
      const places = [0, ...cuts.map((cut) => cut % (text.length + 1)), text.length].sort((a, b) => a - b);
      const pieces = places.map((place, at) => text.slice(place, places[at + 1]));
      const byCharacter = split(Array.from({ length: text.length }, (_, at) => text.charAt(at)));
      expect(split(pieces)).toEqual(byCharacter);
      expect(split(events)).toEqual(byCharacter);
      expect(split([text])).toEqual(byCharacter);
    }),
    { numRuns: 2_000 },
  );
});
