import { once } from "node:events";
import { PassThrough } from "node:stream";
import { setImmediate as tick } from "node:timers/promises";
import { expect, test } from "vitest";
import { BoundedMessageReader } from "../../../src/lsp/connection/message-reader.ts";
import { CountingMessageWriter } from "../../../src/lsp/connection/message-writer.ts";

const body = JSON.stringify({
  jsonrpc: "2.0",
  method: "window/logMessage",
  params: { type: 4, message: "x" },
});
const message = `Content-Length: ${body.length}\r\n\r\n${body}`;

test("a language server that sends too much is read later, without loss", async () => {
  const stream = new PassThrough();
  const reader = new BoundedMessageReader(stream, { drained: undefined });
  const some = Promise.withResolvers<void>();
  const all = Promise.withResolvers<void>();
  let received = 0;
  const count = 3_000;
  reader.listen(() => {
    received++;
    if (received === 2_000) some.resolve();
    if (received === count) all.resolve();
  });
  for (let number = 0; number < 30; number++) stream.write(message.repeat(count / 30));
  await some.promise;
  for (let round = 0; round < 100; round++) await tick();
  expect(received).toBeLessThan(count);
  await all.promise;
});

test("the output of a language server waits until the server reads its responses", async () => {
  const [input, output] = [new PassThrough({ highWaterMark: 64 }), new PassThrough()];
  const writer = new CountingMessageWriter(input);
  const all = Promise.withResolvers<void>();
  const count = 1_900;
  const answers: Promise<void>[] = [];
  new BoundedMessageReader(output, writer).listen(() => {
    answers.push(writer.write({ jsonrpc: "2.0" }));
    if (answers.length === count) all.resolve();
  });
  for (let number = 0; number < count; number++)
    if (!output.write(message)) await Promise.race([once(output, "drain"), tick()]);
  for (let round = 0; round < 100; round++) await tick();
  expect(answers.length).toBeGreaterThan(1_000);
  expect(answers.length).toBeLessThan(1_900);
  input.resume();
  await all.promise;
  await Promise.all(answers);
});
