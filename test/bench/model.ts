import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const delta = (content: string, finish: string | null = null) => ({
  id: "c",
  object: "chat.completion.chunk",
  created: 0,
  model: "m",
  choices: [{ index: 0, delta: finish === null ? { content } : {}, finish_reason: finish }],
});
const ending = (tokens: number) =>
  event({
    ...delta("", "stop"),
    usage: { prompt_tokens: tokens, completion_tokens: 10, total_tokens: tokens + 10 },
  }) + "data: [DONE]\n\n";

/** Answers every request at once: "ok", or as many deltas as the last message asks for ("deltas 20000"). */
export async function startBenchModel() {
  let onRequest: (() => void) | undefined;
  const flood = new Map<number, string>();
  const server = createServer(async (request, response) => {
    onRequest?.();
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const asked = [...body.matchAll(/deltas (\d+)/g)].at(-1)?.[1];
    const count = Number(asked ?? process.env["BENCH_DELTAS"] ?? 1);
    const isTitle = body !== "{}" && !body.includes('"tools"');
    response.writeHead(200, { "content-type": "text/event-stream" });
    const wanted = isTitle ? 1 : count;
    const text =
      flood.get(wanted) ??
      Array.from({ length: wanted }, (_, index) => event(delta(`word${index} `))).join("");
    flood.set(wanted, text);
    response.end(text + ending(body.length / 4));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return {
    url,
    /** Resolves when the next request arrives. */
    nextRequest: () => new Promise<void>((resolve) => (onRequest = resolve)),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
