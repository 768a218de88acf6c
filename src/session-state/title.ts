import type { Agent } from "../agent/agent.ts";
import { beginningOf } from "../base/text/excerpt.ts";
import { newMessageId, newPartId, type SessionId } from "../message/ids.ts";
import type { Message } from "../message/message.ts";
import type { Tokens } from "../message/part.ts";
import { shortenTitle } from "../message/title.ts";
import type { Model, Models } from "../model/model.ts";
import type { RetryPolicy } from "../model/retry.ts";
import { askModel } from "../context/model-answer.ts";
import { noTokens } from "../conversation/turn-result.ts";

/** Characters of the message that are used for the title. */
const maxMaterial = 4_000;
/** Maximum length of a user's title in UTF-16 units. */
const maxUserTitle = 256;

/** Returns a user's title on one line; empty if the text is blank. */
export function normalizeTitle(text: string): string {
  return beginningOf(text.replace(/\s+/g, " ").trim(), maxUserTitle).trimEnd().toWellFormed();
}

/** Asks a model for a title; undefined if it returns none or fails. */
export async function generateTitle(
  deps: { models: Models; retryPolicy: RetryPolicy; model: Model; agent: Agent },
  input: { sessionId: SessionId; text: string },
  signal: AbortSignal,
): Promise<{ title: string | undefined; tokens: Tokens; cost: number }> {
  const { models, retryPolicy, model, agent } = deps;
  const request = {
    model,
    system: [agent.prompt ?? ""],
    messages: [userMessage(input.sessionId, agent.name, input.text)],
    tools: [],
    signal,
    ...(model.abilities.temperature && agent.temperature !== undefined && { temperature: agent.temperature }),
  };
  const answer = await askModel({ models, retryPolicy }, request);
  if (answer.outcome === "failed") return { title: undefined, tokens: noTokens, cost: 0 };
  return { title: firstLine(answer.text), tokens: answer.tokens, cost: answer.cost };
}

function firstLine(text: string): string | undefined {
  const line = text.split("\n").find((candidate) => candidate.trim() !== "");
  if (line === undefined) return undefined;
  return shortenTitle(line.replace(/^(?:["'#*\s]|title:)+|["'*\s]+$/gi, "")) || undefined;
}

function userMessage(sessionId: SessionId, agent: string, text: string): Message {
  const question = `Write a title for a conversation that begins like this:\n\n${text.slice(0, maxMaterial)}`;
  return {
    info: { id: newMessageId(), sessionId, role: "user", time: { created: Date.now() }, agent },
    parts: [{ id: newPartId(), type: "text", text: question }],
  };
}
