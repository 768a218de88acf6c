import { excerpt } from "../base/text/excerpt.ts";
import type { Agent } from "../agent/agent.ts";
import type { Emit } from "../message/event.ts";
import { newMessageId, newPartId, type SessionId } from "../message/ids.ts";
import type { Message } from "../message/message.ts";
import type { Part } from "../message/part.ts";
import type { Sampling, SamplingMessage, SamplingOutcome } from "../message/sampling.ts";
import type { Model, Models } from "../model/model.ts";
import type { RetryPolicy } from "../model/retry.ts";
import type { Decider } from "../permission/gate.ts";
import type { Decision } from "../permission/rule.ts";
import { askModel, type ModelAnswer } from "../context/model-answer.ts";
import { noTokens } from "../conversation/turn-result.ts";
import { InternalPrompt } from "../tool-calls/internal-prompt.ts";
import { omitEffort } from "./session-title.ts";
import type { UsageTracker } from "./usage-tracker.ts";

/** Tool name and permission of the question. */
const samplingTool = "mcp_sampling";
/** Maximum tokens of an answer, whatever the server asks for. */
const outputLimit = 8_192;
/** Maximum characters of the request, and of the answer, that the user sees. */
const shownLength = 8_000;

export interface ServerSamplingDeps {
  readonly sessionId: SessionId;
  readonly gate: Decider;
  readonly emit: Emit;
  readonly usageTracker: Pick<UsageTracker, "allows" | "countChild">;
  readonly models: Models;
  readonly retryPolicy: RetryPolicy;
  /** The model for the next message. */
  readonly model: Model | undefined;
  readonly agent: Pick<Agent, "name" | "rules">;
}

/** Lets the session's model answer a server's request, if the user allows it. Never rejects. */
export async function sampleForServer(
  deps: ServerSamplingDeps,
  sampling: Sampling,
  signal: AbortSignal,
): Promise<SamplingOutcome> {
  const { sessionId, gate, emit, agent, model } = deps;
  if (model === undefined) return { outcome: "refused", reason: "no model is selected" };
  const { server, identity } = sampling;
  const maxTokens = Math.max(1, Math.min(sampling.maxTokens, outputLimit, model.limit.output ?? outputLimit));
  const prompt = new InternalPrompt(
    { sessionId, agent: agent.name, gate, emit },
    {
      tool: samplingTool,
      title: `Let the MCP server ${server} ask ${model.name}?`,
      input: { server, model: model.name, maxTokens },
      text: describeRequest(sampling, model, maxTokens),
      subject: identity,
      remember: {
        rules: agent.rules,
        reason: `the MCP server ${server} wants to use your model, which may cost money`,
      },
    },
  );
  const refusal = describeRefusal(await prompt.ask(signal));
  if (refusal !== undefined) {
    prompt.fail(refusal.end, refusal.text);
    return { outcome: "refused", reason: refusal.reason };
  }
  if ((await deps.usageTracker.allows(signal)) !== "yes") {
    prompt.fail("rejected", "The model was not asked because of the cost limit.");
    return { outcome: "refused", reason: "the cost limit of the session is reached" };
  }
  const answer = await askModel(deps, createRequest(model, sampling, { ...deps, maxTokens }, signal));
  if (answer.outcome === "failed") {
    prompt.fail(signal.aborted ? "cancelled" : "failed", answer.error.message);
    return { outcome: "refused", reason: `the model could not be asked: ${answer.error.message}` };
  }
  await deps.usageTracker.countChild(noTokens, answer.cost);
  const result = toResult(answer, model, sampling.stopSequences);
  prompt.complete(excerpt(result.text, shownLength));
  return result;
}

function createRequest(
  model: Model,
  { system, messages, temperature }: Sampling,
  { sessionId, agent, maxTokens }: Pick<ServerSamplingDeps, "sessionId" | "agent"> & { maxTokens: number },
  signal: AbortSignal,
) {
  return {
    model: omitEffort(model),
    system: system === undefined ? [] : [system],
    messages: messages.map((message) => toMessage(message, { sessionId, agent: agent.name, model })),
    tools: [],
    maxOutputTokens: maxTokens,
    signal,
    ...(model.abilities.temperature && temperature !== undefined && { temperature }),
  };
}

function toMessage(
  { role, text, attachments }: SamplingMessage,
  { sessionId, agent, model }: { sessionId: SessionId; agent: string; model: Model },
): Message {
  const parts: Part[] = [
    { id: newPartId(), type: "text", text },
    ...attachments.map(({ mime, url, filename }): Part => ({
      id: newPartId(),
      type: "file",
      mime,
      url,
      ...(filename !== undefined && { filename }),
    })),
  ];
  const created = Date.now();
  const id = newMessageId();
  if (role === "user") return { info: { id, sessionId, role, time: { created }, agent }, parts };
  const answer = { parentId: id, model: model.ref, cost: 0, tokens: noTokens, finish: "stop" as const };
  return { info: { id, sessionId, role, time: { created, completed: created }, agent, ...answer }, parts };
}

/** Ends the text at the first stop sequence, because not every provider knows them. */
function toResult(
  { text, reason }: Extract<ModelAnswer, { outcome: "answered" }>,
  model: Model,
  stopSequences: readonly string[],
) {
  const stops = stopSequences
    .map((stop) => (stop === "" ? -1 : text.indexOf(stop)))
    .filter((at) => at !== -1);
  const isStopped = stops.length > 0;
  const end = isStopped ? "stopSequence" : reason === "length" ? "maxTokens" : "endTurn";
  const shown = isStopped ? text.slice(0, Math.min(...stops)) : text;
  return { outcome: "answered", text: shown, model: model.ref.model, end } as const;
}

/** Describes why the model is not asked; undefined if it may be asked. */
function describeRefusal(
  decision: Decision,
): { end: "failed" | "rejected" | "cancelled"; text: string; reason: string } | undefined {
  switch (decision.outcome) {
    case "allowed":
      return undefined;
    case "denied":
      return {
        end: "rejected",
        text: "A rule denies it.",
        reason: "a rule of the user denies requests to the model",
      };
    case "rejected":
      return {
        end: "rejected",
        text: "You did not allow it.",
        reason: "the user rejected the request to the model",
      };
    case "unasked":
      return {
        end: "failed",
        text: `You could not be asked: ${decision.problem}`,
        reason: "the user could not be asked about the request to the model",
      };
    case "cancelled":
      return { end: "cancelled", text: "It was cancelled.", reason: "the call was cancelled" };
  }
}

function describeRequest({ server, system, messages }: Sampling, model: Model, maxTokens: number): string {
  const texts = messages.map(({ role, text }) => `[${role}]\n${text}`);
  const request = [...(system === undefined ? [] : [`[system]\n${system}`]), ...texts].join("\n\n");
  return [
    `The MCP server ${server} asks ${model.name} for an answer of up to ${maxTokens} tokens, at your cost. The model sees only this text, not your conversation; the server gets the answer.`,
    excerpt(request, shownLength),
  ].join("\n\n");
}
