import { toObject, toList, toText, type JsonObject } from "../json.ts";
import type { ModelRequest, ModelServer, Reply } from "./model-server.ts";
import * as reply from "./reply.ts";

/** Counts tokens differently from the program's estimate: runs of letters, digits and symbols. */
export function countTokens(text: string): number {
  return text.match(/ ?\p{L}{1,7}|\p{N}{1,3}|[^\s\p{L}\p{N}]{1,2}|\s*\n\s*/gu)?.length ?? 0;
}

/** Additional tokens per message. */
const messageTokens = 4;

/** Counts the prompt tokens of a request. */
export function promptTokens({ messages, tools }: JsonObject): number {
  const texts = toList(messages).map(toObject).flatMap(listTexts);
  return texts.reduce(
    (sum, text) => sum + countTokens(text) + messageTokens,
    countTokens(JSON.stringify(tools ?? [])),
  );
}

function listTexts({ content, tool_calls: calls }: JsonObject): string[] {
  const texts =
    typeof content === "string"
      ? [content]
      : toList(content).map((part) => toText(toObject(part).text) ?? "");
  const called = toList(calls).map((one) => toObject(toObject(one).function));
  return [...texts, ...called.map(({ name, arguments: input }) => `${String(name)} ${String(input)}`)];
}

export const isSummaryRequest = (request: ModelRequest): boolean =>
  request.userText.includes("Summarise our conversation");

export const getRequestText = (request: ModelRequest | undefined): string =>
  JSON.stringify(request?.messages);

/** Requests to a server with a small context window. */
export interface SmallWindow {
  /** The requests for summaries. */
  readonly summaries: ModelRequest[];
  /** Tokens of each request that was answered. */
  readonly sizes: number[];
  /** Requests rejected because they exceed the window. */
  readonly refused: ModelRequest[];
}

export interface WindowScript {
  model: ModelServer;
  window: number;
  /** The text of a summary. */
  summary: (request: ModelRequest) => string;
  /** The answer to every other request that fits. */
  answer: (request: ModelRequest) => Reply;
}

/** Serves a model with a small context window: rejects requests that exceed it and counts tokens. */
export function serveWindow({ model, window, summary, answer }: WindowScript): SmallWindow {
  const seen: SmallWindow = { summaries: [], sizes: [], refused: [] };
  model.otherwise((request) => {
    const tokens = promptTokens(request.body);
    const wanted = Number(request.body.max_tokens ?? 0);
    if (tokens + wanted > window) {
      seen.refused.push(request);
      return createTooLongError(window, tokens, wanted);
    }
    seen.sizes.push(tokens);
    const isSummary = isSummaryRequest(request);
    if (isSummary) seen.summaries.push(request);
    const replyText = isSummary ? summary(request) : answer(request);
    return [replyText, reply.usage({ promptTokens: tokens, completionTokens: 40 })];
  });
  return seen;
}

const createTooLongError = (window: number, tokens: number, wanted: number): Reply =>
  reply.status(400, {
    object: "error",
    message: `This model's maximum context length is ${window} tokens. However, you requested ${tokens + wanted} tokens (${tokens} in the messages, ${wanted} in the completion). Please reduce the length of the messages or completion.`,
    type: "BadRequestError",
    code: 400,
  });
