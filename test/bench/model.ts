import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";

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
  const floods = new Map<number, string>();
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    onRequest?.();
    const body = await text(request);
    const asked = [...body.matchAll(/deltas (\d+)/g)].at(-1)?.[1];
    const isTitle = body !== "{}" && !body.includes('"tools"');
    const count = isTitle ? 1 : Number(asked ?? process.env["BENCH_DELTAS"] ?? 1);
    const flood =
      floods.get(count) ??
      Array.from({ length: count }, (_, index) => event(delta(`word${index} `))).join("");
    floods.set(count, flood);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(flood + ending(body.length / 4));
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  const url = `http://127.0.0.1:${port}/v1`;
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
