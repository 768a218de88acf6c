import {
  type CreateMessageRequest,
  type CreateMessageResult,
  ProtocolError,
} from "@modelcontextprotocol/client";
import type { Sampling, SamplingMessage, SamplingOutcome } from "../../message/sampling.ts";
import { readBlocks } from "../tools/content.ts";

/** Maximum number of messages, and characters of all texts, in a request to the model. */
const messagesLimit = 100;
const textLimit = 400_000;
/** The code of a request that the user rejected, as in the specification. */
const rejectedCode = -1;
const invalidParamsCode = -32_602;

type Params = CreateMessageRequest["params"];

/** Converts a server's request to the model. Throws an error for the server if it cannot be served. */
export async function toSampling(
  server: { readonly name: string; readonly identity: string },
  params: Params,
  signal: AbortSignal,
): Promise<Sampling> {
  const { messages, systemPrompt: system, maxTokens, temperature, stopSequences = [], tools } = params;
  if (tools !== undefined && tools.length > 0) throw invalid("tools are not supported in sampling");
  if (messages.length === 0 || messages.length > messagesLimit)
    throw invalid(`sampling takes 1 to ${messagesLimit} messages`);
  if (messages.at(-1)?.role !== "user") throw invalid("the last message must be the user's");
  const converted: SamplingMessage[] = [];
  for (const { role, content } of messages) {
    const { text, attachments } = await readBlocks(Array.isArray(content) ? content : [content], signal);
    converted.push({ role, text, attachments });
  }
  const length = converted.reduce((sum, { text }) => sum + text.length, system?.length ?? 0);
  if (length > textLimit) throw invalid(`sampling takes at most ${textLimit} characters`);
  const { name, identity } = server;
  return { server: name, identity, system, messages: converted, maxTokens, temperature, stopSequences };
}

/** Converts the answer. Throws an error for the server if there is none. */
export function toSamplingResult(answer: SamplingOutcome): CreateMessageResult {
  if (answer.outcome === "refused") throw new ProtocolError(rejectedCode, answer.reason);
  const { text, model, end } = answer;
  return { role: "assistant", content: { type: "text", text }, model, stopReason: end };
}

const invalid = (reason: string): ProtocolError => new ProtocolError(invalidParamsCode, reason);
