import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { z } from "zod";

/** The answer to one request, streamed word by word. */
export interface ScriptedStep {
  thought?: string;
  text?: string;
  calls?: readonly { tool: string; input: unknown }[];
  /** Milliseconds between words. */
  paceMs?: number;
}

/** The facts about a request that a script can use. */
export interface ScriptedRequest {
  /** The user's latest message. */
  question: string;
  /** Index of the answer to that message, from 0. */
  step: number;
  /** Requests for a title have no tools. */
  hasTools: boolean;
}

export interface ScriptedModel {
  /** Base URL for the provider configuration. */
  readonly url: string;
  close(): void;
}

const requestSchema = z.object({
  messages: z.array(z.object({ role: z.string(), content: z.unknown() })),
  tools: z.array(z.unknown()).optional(),
});

/** Starts an OpenAI-compatible server on a loopback port that answers from a script. */
export async function startScriptedModel(
  script: (request: ScriptedRequest) => ScriptedStep,
): Promise<ScriptedModel> {
  const server = createServer((request, response) => {
    respond(request, response, script).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  script: (request: ScriptedRequest) => ScriptedStep,
): Promise<void> {
  const { messages, tools } = requestSchema.parse(await json(request));
  const lastQuestion = messages.findLastIndex(({ role }) => role === "user");
  const step = script({
    question: contentText(messages[lastQuestion]?.content),
    step: messages.slice(lastQuestion).filter(({ role }) => role === "assistant").length,
    hasTools: (tools?.length ?? 0) > 0,
  });
  response.writeHead(200, { "content-type": "text/event-stream" });
  const promptTokens = Math.ceil(JSON.stringify(messages).length / 4);
  for (const delta of deltasOf(step)) {
    if (response.destroyed) return;
    response.write(`data: ${JSON.stringify(chunk(delta))}\n\n`);
    if (step.paceMs !== undefined) await new Promise((resolve) => setTimeout(resolve, step.paceMs));
  }
  const finish = step.calls === undefined ? "stop" : "tool_calls";
  const usage = { prompt_tokens: promptTokens, completion_tokens: 40, total_tokens: promptTokens + 40 };
  response.write(`data: ${JSON.stringify({ ...chunk({}, finish), usage })}\n\n`);
  response.end("data: [DONE]\n\n");
}

function deltasOf({ thought, text, calls }: ScriptedStep): Record<string, unknown>[] {
  return [
    ...words(thought).map((word) => ({ reasoning_content: word })),
    ...words(text).map((word) => ({ content: word })),
    ...(calls ?? []).map(({ tool, input }, index) => ({
      tool_calls: [
        {
          index,
          id: `call_${index}`,
          type: "function",
          function: { name: tool, arguments: JSON.stringify(input) },
        },
      ],
    })),
  ];
}

function words(text = ""): string[] {
  return text.match(/\s*\S+/g) ?? [];
}

function chunk(delta: Record<string, unknown>, finish: string | null = null) {
  return {
    id: "scripted",
    object: "chat.completion.chunk",
    created: 0,
    model: "scripted",
    choices: [{ index: 0, delta, finish_reason: finish }],
  };
}

function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part: unknown) => (isTextPart(part) ? part.text : "")).join("\n");
}

function isTextPart(part: unknown): part is { text: string } {
  return typeof part === "object" && part !== null && "text" in part && typeof part.text === "string";
}
