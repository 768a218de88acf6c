import { PassThrough } from "node:stream";
import { setImmediate as tick } from "node:timers/promises";
import { expect, test } from "vitest";
import { BoundedMessageReader } from "../../src/lsp/message-reader.ts";

const body = JSON.stringify({
  jsonrpc: "2.0",
  method: "window/logMessage",
  params: { type: 4, message: "x" },
});
const message = `Content-Length: ${body.length}\r\n\r\n${body}`;

test("a language server that says far too much within a second is heard later, and loses nothing", async () => {
  const stream = new PassThrough();
  const reader = new BoundedMessageReader(stream);
  const some = Promise.withResolvers<void>();
  const all = Promise.withResolvers<void>();
  let heard = 0;
  const count = 3_000;
  reader.listen(() => {
    heard++;
    if (heard === 2_000) some.resolve();
    if (heard === count) all.resolve();
  });
  for (let number = 0; number < 30; number++) stream.write(message.repeat(count / 30));
  await some.promise;
  for (let round = 0; round < 100; round++) await tick();
  expect(heard).toBeLessThan(count);
  await all.promise;
});
