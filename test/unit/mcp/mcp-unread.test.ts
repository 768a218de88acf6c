import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { setImmediate as tick } from "node:timers/promises";
import { expect, test } from "vitest";
import { StdioTransport } from "../../../src/mcp/connection/stdio-transport.ts";
import type { PipedProcess } from "../../../src/workspace/process/piped-process.ts";

const questions = 1_900;
const question = (id: number) => `${JSON.stringify({ jsonrpc: "2.0", id, method: "roots/list" })}\n`;

test("is not read further while a server asks without reading the answers", async () => {
  const [input, output, errors] = [
    new PassThrough({ highWaterMark: 64 }),
    new PassThrough(),
    new PassThrough(),
  ];
  const exit = Promise.withResolvers<{ code: number | null; signalName: string | null }>();
  const process: PipedProcess = {
    input,
    output,
    errors,
    exited: exit.promise,
    end: async () => {
      for (const pipe of [input, output, errors]) pipe.destroy();
    },
  };
  const transport = new StdioTransport(
    { command: "server", args: [], cwd: "/", env: {} },
    {
      processes: { start: async () => process, endAll: async () => {}, killAll: () => {} },
      onNoise: (line) => expect.unreachable(line),
    },
  );
  let requested = 0;
  const all = Promise.withResolvers<void>();
  const answers: Promise<void>[] = [];
  const take = (message: JSONRPCMessage) => {
    requested++;
    if ("id" in message && message.id !== undefined)
      answers.push(transport.send({ jsonrpc: "2.0", id: message.id, result: { roots: [] } }));
    if (requested === questions) all.resolve();
  };
  Object.assign(transport, { onmessage: take });
  await transport.start();
  for (let id = 0; id < questions; id++)
    if (!output.write(question(id))) await Promise.race([once(output, "drain"), tick()]);
  for (let round = 0; round < 100; round++) await tick();
  expect(requested).toBeGreaterThan(1_000);
  expect(requested).toBeLessThan(questions);
  expect(input.listenerCount("drain")).toBeLessThan(5);
  input.resume();
  await all.promise;
  await Promise.all(answers);
  await transport.close();
});
