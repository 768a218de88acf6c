import * as fc from "fast-check";
import { expect, test } from "vitest";
import { SerializedPrefixCache } from "../../src/model/request/serialized-prefix-cache.ts";

const message = fc.record(
  {
    role: fc.constantFrom("user", "assistant"),
    content: fc.oneof(
      fc.string({ unit: "binary", maxLength: 40 }),
      fc.constant(null),
      fc.array(fc.record({ type: fc.constant("text"), text: fc.string({ maxLength: 5 }) }), { maxLength: 2 }),
    ),
    tool_calls: fc.array(fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue()), { maxLength: 2 }),
  },
  { requiredKeys: ["role"] },
);

/** How a conversation goes on: so much of it stays, and this comes. */
const change = fc.record({ kept: fc.nat({ max: 6 }), added: fc.array(message, { maxLength: 4 }) });

test("what is sent is what the messages are as JSON, and stays that for who has not sent it yet", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 8 }), (changes) => {
      const sent = new SerializedPrefixCache();
      const requests: { bytes: Uint8Array; text: string }[] = [];
      let messages: unknown[] = [];
      for (const { kept, added } of changes) {
        // The SDK makes new messages for each request.
        messages = [...messages.slice(0, kept), ...added].map((one) => structuredClone(one));
        requests.push({ bytes: sent.encode(messages), text: JSON.stringify(messages) });
      }
      for (const { bytes, text } of requests) expect(`[${Buffer.from(bytes).toString()}]`).toBe(text);
    }),
  );
});

test("a conversation beyond the limit is sent all the same, and again", () => {
  const sent = new SerializedPrefixCache();
  const image = { role: "user", content: "é".repeat(5 * 1024 * 1024) };
  for (let round = 0; round < 2; round++) {
    const messages = [{ role: "system", content: "s" }, image, { role: "user", content: `${round}` }];
    expect(
      Buffer.from(sent.encode(messages)).equals(Buffer.from(JSON.stringify(messages).slice(1, -1))),
    ).toBe(true);
  }
});
