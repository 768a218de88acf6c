import { orWhenAborted } from "../../base/async.ts";
import type { Log } from "../../base/log.ts";
import { memoizePer } from "../../base/memoize.ts";
import { estimateText } from "../../message/estimate.ts";
import { estimateRequest } from "../../message/estimate-request.ts";
import type { FinishReason } from "../../message/message.ts";
import type { Tokens } from "../../message/part.ts";
import { formatTools, responseTag } from "../answer/written-calls/call-texts.ts";
import { TextCalls } from "../answer/written-calls/text-calls.ts";
import { cancelled } from "../cancelled.ts";
import { checkBaseUrl, type Endpoint, hostOf, toRedactedError } from "../endpoint.ts";
import { findRefusedCall, ProviderFailure, toAgentError } from "../failure.ts";
import type { ModelRequest, StepEnd, StepEvent } from "../model.ts";
import { quirksOf, type Quirks } from "../quirks.ts";
import { checkContextSize, limitOutput } from "../request/token-limits.ts";
import { toolSchema } from "../request/tool-schema.ts";
import { Connection } from "../streams/connection.ts";
import type { CallParams, StreamPart, WireCall } from "../wires/wire.ts";
import { Wires } from "../wires/wires.ts";
import { toPrompt } from "../prompt/prompt.ts";
import { StepEvents } from "./step-events.ts";

export { Wires };

export interface CallDeps {
  readonly wires: Wires;
  readonly log: Log;
}

/**
 * Makes one model call. Resolves and rejects as `call` of `Models` does.
 *
 * - Ends soon after an abort, even if the provider or the SDK ignores it.
 * - After a failure, text that was already emitted remains; incomplete calls are not emitted.
 */
export async function callModel(
  request: ModelRequest,
  endpoint: Endpoint,
  { wires, log }: CallDeps,
  take: (event: StepEvent) => void,
): Promise<StepEnd> {
  const call = toWireCall(request, endpoint, wires);
  const mayCall = request.model.callsAsText && request.toolChoice !== "none";
  const events = new StepEvents(call.owner, take, mayCall ? new TextCalls(request) : undefined);
  const connection = new Connection(request.signal, endpoint.stallMs);
  const open = () => openStream(request, call, wires, connection);
  const failure = await readAnswer(request, connection, open, events);
  events.close();
  const { metadata, endReason = "unknown", tokens } = events;
  const finish = (reason: FinishReason): StepEnd & { type: "finish" } => ({
    type: "finish",
    reason,
    tokens: tokens ?? estimate(events.output, request),
    ...(tokens === undefined && { estimated: true }),
    ...(call.isRefused("thoughts") && { omitsThoughts: true }),
    ...(metadata && { metadata }),
  });
  if (failure === undefined) return finish(endReason);
  const refused = findRefusedCall(failure);
  if (refused !== undefined && request.returnsRefusedCalls !== false && !request.signal.aborted) {
    log.debug("provider refused a call", { provider: endpoint.provider, tool: refused.tool });
    events.emitRefusedCall(refused);
    return { ...finish("tool-calls"), refusedCall: true };
  }
  const error = request.signal.aborted ? cancelled() : toRedactedError(failure, endpoint);
  const { code, status } = error;
  log.debug("model call failed", { provider: endpoint.provider, code, status });
  // Complete calls remain and are sent back with their reasoning.
  return { type: "failed", error, ...(metadata && { metadata }) };
}

/** Reads the answer into events. Resolves with an error of the call; rejects with an error of the consumer. */
async function readAnswer(
  { waitUntilReady }: ModelRequest,
  connection: Connection,
  open: () => Promise<ReadableStream<StreamPart>>,
  events: StepEvents,
): Promise<unknown> {
  const { signal } = connection;
  let failure: unknown;
  try {
    const stream = await open().catch((thrown: unknown) => {
      failure = thrown;
      connection.cut();
    });
    for await (const part of stream ?? []) {
      if (part.type === "error") failure = part.error;
      else if (signal.aborted) failure ??= signal.reason;
      if (failure === undefined) events.add(part);
      else if (part.type === "finish") events.addUsage(part);
      if (signal.aborted || waitUntilReady === undefined) continue;
      connection.hold();
      await waitUntilReady();
      connection.touch();
    }
  } finally {
    connection.close();
  }
  return failure;
}

function toWireCall({ model, messages }: ModelRequest, endpoint: Endpoint, { refused }: Wires): WireCall {
  const cacheKey = messages[0]?.info.sessionId;
  const host = hostOf(endpoint);
  return {
    endpoint,
    model,
    owner: { provider: model.ref.provider, model: model.ref.model, api: endpoint.api ?? "chat", host },
    quirks: quirksOf(endpoint.provider, host, endpoint.modelId),
    // Options come from JSON files, which their type does not express.
    options: JSON.parse(JSON.stringify(endpoint.options)),
    cacheKey,
    isRefused: (field) => refused.has({ ...endpoint, cacheKey }, field),
  };
}

async function openStream(
  request: ModelRequest,
  call: WireCall,
  wires: Wires,
  connection: Connection,
): Promise<ReadableStream<StreamPart>> {
  const { endpoint, cacheKey } = call;
  const problem = checkBaseUrl(endpoint) ?? checkContextSize(request);
  if (problem !== undefined) throw new ProviderFailure(problem);
  const { signal } = connection;
  for (;;) {
    signal.throwIfAborted();
    try {
      const opened = wires.open(call, toCallParams(request, call), connection);
      const stream = await orWhenAborted(opened, signal, undefined);
      if (stream !== undefined) return stream;
    } catch (thrown) {
      signal.throwIfAborted();
      // Sends the request again without the field that the server rejected.
      if (!wires.refused.add({ ...endpoint, cacheKey }, toAgentError(thrown, endpoint))) throw thrown;
    }
  }
}

/** Returns the parameters of the SDK's call, which are the same for all APIs. */
function toCallParams(request: ModelRequest, call: WireCall): CallParams {
  const { quirks, isRefused } = call;
  const { model, messages, tools, toolChoice, temperature, topP } = request;
  const writesCalls = model.callsAsText === true && tools.length > 0;
  const system = [...request.system, ...(writesCalls ? [formatTools(tools)] : [])].join("\n\n");
  const prompt = toPrompt(messages, call);
  const maxOutputTokens = limitOutput(request);
  // A server that cannot be asked to call no tool gets none.
  const takesChoice = toolChoice === undefined || (quirks.takesToolChoice && !isRefused("tool-choice"));
  return {
    prompt: system === "" ? prompt : [{ role: "system", content: system }, ...prompt],
    ...(!model.callsAsText &&
      tools.length > 0 &&
      takesChoice && { tools: toTools(request, quirks), toolChoice: { type: toolChoice ?? "auto" } }),
    ...(writesCalls && { stopSequences: [responseTag] }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(request.headers && { headers: request.headers }),
    ...(model.abilities.temperature && temperature !== undefined && { temperature }),
    ...(model.abilities.temperature && topP !== undefined && { topP }),
  };
}

const cachedTools = memoizePer<NonNullable<CallParams["tools"]>>();

function toTools({ tools }: ModelRequest, quirks: Quirks): NonNullable<CallParams["tools"]> {
  return cachedTools(tools, [quirks.schema], () =>
    tools.map(({ name, description, schema }) => ({
      type: "function",
      name,
      description,
      inputSchema: toolSchema(schema, quirks),
    })),
  );
}

function estimate(written: string, request: ModelRequest): Tokens {
  const [input, output] = [estimateRequest(request), estimateText(written)];
  return { input, output, reasoning: 0, cache: { read: 0, write: 0 } };
}
