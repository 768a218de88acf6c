import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { text as readText } from "node:stream/consumers";
import { serveChat } from "./chat-server.ts";
import { isObject, parseJson, type JsonObject } from "../json.ts";
import { serveMessages } from "./messages-server.ts";
import { type Bill, countTokensIn } from "./prompt-cache.ts";
import { failure, Gate, say, type Step, type Usage } from "./reply.ts";
import { usualUsage, writeReply } from "./reply-writer.ts";
import { serveResponses } from "./responses-server.ts";
import type { RequestView, ServedWire } from "./served-wire.ts";
import { Bell } from "../waiting.ts";

/** One answer: text, a step, or steps in any nesting. */
export type Reply = string | Step | readonly Reply[];
export type ReplyFunction = (request: ModelRequest) => Reply | Promise<Reply>;

/** A request for an answer, as the server received it. */
export interface ModelRequest extends RequestView {
  /** Counts from 1; requests for titles have their own numbers. */
  readonly number: number;
  readonly headers: IncomingHttpHeaders;
  /** The API that was asked. */
  readonly api: ServedWire["api"];
  readonly body: JsonObject;
  /** The price of the prompt with the vendor's cache. */
  readonly bill: Bill;
  /** The end of the exchange: the complete answer was sent, or either side closed the connection. */
  readonly ended: Promise<"answered" | "cut">;
}

/** The title that the scripted model gives each conversation by default. */
export const usualTitle = "A scripted title";

/**
 * Starts a local model server that sends the answers of the test and checks the requests. It serves chat completions,
 * OpenAI's Responses API and Anthropic's Messages API.
 */
export async function startModelServer(): Promise<ModelServer> {
  const server = createServer();
  const model = new ModelServer(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return model;
}

export class ModelServer {
  readonly requests: ModelRequest[] = [];
  readonly titleRequests: ModelRequest[] = [];
  /** Problems of the requests, one sentence each. Tests of bad requests may clear them. */
  readonly violations: string[] = [];
  readonly #server: Server;
  readonly #bell = new Bell();
  readonly #queue: (Reply | ReplyFunction)[] = [];
  readonly #permanent: { matches: (request: ModelRequest) => boolean; reply: Reply | ReplyFunction }[] = [];
  readonly #gates = new Set<Gate>();
  readonly #pages = new Map<string, unknown>();
  readonly #wires = [serveChat(), serveResponses(), serveMessages()];
  /** Requested paths other than completions. */
  readonly asked: string[] = [];
  #otherwise: Reply | ReplyFunction | undefined;
  #title: Reply | ReplyFunction = usualTitle;
  #callIds = 0;
  #countsTokens = false;

  constructor(server: Server) {
    this.#server = server;
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      this.#answer(request, response).catch((error: unknown) => {
        this.violations.push(`The model's script failed: ${String(error)}`);
        response.destroy();
      });
    });
  }

  /** The provider's base URL, as a configuration has it. */
  get url(): string {
    const address = this.#server.address();
    if (typeof address !== "object" || address === null) throw new Error("The model server is closed.");
    return `http://127.0.0.1:${address.port}/v1`;
  }

  /** Queues an answer for the next request that has no other answer. */
  reply(...reply: Reply[]): this {
    this.#queue.push(reply);
    return this;
  }

  /** Queues an answer that depends on its request. */
  replyWith(reply: ReplyFunction): this {
    this.#queue.push(reply);
    return this;
  }

  /** Answers each matching request, before the queue: for requests without a fixed order. */
  when(matches: (request: ModelRequest) => boolean, reply: Reply | ReplyFunction): this {
    this.#permanent.push({ matches, reply });
    return this;
  }

  /** Answers each request after the end of the queue. */
  otherwise(reply: Reply | ReplyFunction): this {
    this.#otherwise = reply;
    return this;
  }

  /** Answers a path with JSON. */
  page(path: string, body: unknown): this {
    this.#pages.set(path, body);
    return this;
  }

  /** Reports the tokens of each prompt as the vendor's cache counts them, unless the script sets them. */
  countTokens(): this {
    this.#countsTokens = true;
    return this;
  }

  /** Answers requests for a title. */
  title(reply: Reply | ReplyFunction): this {
    this.#title = reply;
    return this;
  }

  /** The n-th request, counted from 1, as soon as it arrives. */
  request(number: number, deadlineMs?: number): Promise<ModelRequest> {
    return this.#bell.until(() => this.requests[number - 1], `request ${number} to the model`, deadlineMs);
  }

  /** The n-th request for a title. */
  titleRequest(number: number, deadlineMs?: number): Promise<ModelRequest> {
    return this.#bell.until(() => this.titleRequests[number - 1], `title request ${number}`, deadlineMs);
  }

  /** Throws if a request broke the provider's rules, or queued answers were not used. */
  assertClean(): void {
    const unused = this.#queue.length;
    const problems =
      unused > 0 ? [...this.violations, `${unused} scripted replies were not used.`] : this.violations;
    if (problems.length > 0)
      throw new Error(`The model server found:\n${problems.map((text) => `- ${text}`).join("\n")}`);
  }

  /** Replaces this server by a new one at the same address, without its requests and scripted answers. */
  successor(): ModelServer {
    for (const gate of this.#gates) gate.release();
    this.#server.removeAllListeners("request");
    return new ModelServer(this.#server);
  }

  async close(): Promise<void> {
    for (const gate of this.#gates) gate.release();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = `${request.method} ${request.url}`;
    const wire = this.#wires.find((one) => path === `POST /v1${one.path}`);
    if (wire !== undefined) return this.#complete(wire, request, response);
    this.asked.push(path);
    const page = this.#pages.get(request.url ?? "");
    if (page !== undefined) return sendJson(response, 200, page);
    if (path === "GET /v1/models") return this.#listModels(response);
    if (windowQuestion.test(path)) return sendJson(response, 404, { error: { message: "Not found" } });
    this.violations.push(`The model server has no ${path}.`);
    response.writeHead(404, { "content-type": "application/json" }).end('{"error":{"message":"Not found"}}');
    return undefined;
  }

  #listModels(response: ServerResponse): void {
    sendJson(response, 200, { object: "list", data: [{ id: "scripted", object: "model", created: 0 }] });
  }

  async #complete(wire: ServedWire, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = parseJson(await readText(incoming));
    if (!isObject(body)) {
      this.violations.push("A request's body is not a JSON object.");
      response.writeHead(400).end();
      return;
    }
    const request = this.#record(wire, incoming, response, body);
    const steps = flatten(await this.#replyTo(request));
    for (const step of steps) if (step instanceof Gate) this.#gates.add(step);
    const model = String(body.model);
    const usage = this.#countsTokens ? computeUsage(request.bill) : usualUsage;
    await writeReply(response, steps, {
      stream: body.stream === true,
      model,
      writer: wire.write(model, usage),
      usage,
      newCallId: () => `${wire.callPrefix}_${++this.#callIds}`,
    });
  }

  #record(
    wire: ServedWire,
    incoming: IncomingMessage,
    response: ServerResponse,
    body: JsonObject,
  ): ModelRequest {
    const { headers } = incoming;
    const view = wire.view(body);
    const list = isTitleRequest(view) ? this.titleRequests : this.requests;
    const request = {
      number: list.length + 1,
      headers,
      api: wire.api,
      body,
      ...view,
      bill: wire.bill(body),
      ended: waitForEnd(response),
    };
    const name = list === this.requests ? `Request ${request.number}` : `Title request ${request.number}`;
    this.violations.push(...wire.violations(body, headers).map((text) => `${name}: ${text}`));
    list.push(request);
    this.#bell.ring();
    return request;
  }

  async #replyTo(request: ModelRequest): Promise<Reply> {
    const reply = this.#replyFor(request);
    return typeof reply === "function" ? reply(request) : reply;
  }

  #replyFor(request: ModelRequest): Reply | ReplyFunction {
    if (isTitleRequest(request)) return this.#title;
    const permanent = this.#permanent.find(({ matches }) => matches(request));
    const reply = permanent?.reply ?? this.#queue.shift() ?? this.#otherwise;
    if (reply !== undefined) return reply;
    this.violations.push(
      `Request ${request.number} has no scripted reply; its user text is: ${request.userText}`,
    );
    return failure(400, "The test's script has no reply for this request.");
  }
}

/** Paths at which local servers report the size of their context. */
const windowQuestion = /^GET \/(?:api\/ps|api\/v0\/models|props)\b|^POST \/api\/show$/;

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function flatten(reply: Reply): Step[] {
  if (typeof reply === "string") return say(reply);
  return "do" in reply ? [reply] : reply.flatMap(flatten);
}

/** Requests for a title have no tools, and a system prompt whose first line mentions titles. */
function isTitleRequest({ system, toolNames }: RequestView): boolean {
  const [opening = ""] = system.split("\n");
  return toolNames.length === 0 && /\btitles?\b/i.test(opening);
}

const computeUsage = (bill: Bill): Usage => ({
  promptTokens: countTokensIn(bill),
  completionTokens: 20,
  cachedTokens: bill.read,
  writtenTokens: bill.write,
});

function waitForEnd(response: ServerResponse): Promise<"answered" | "cut"> {
  return new Promise((resolve) => {
    response.once("close", () => resolve(response.writableFinished ? "answered" : "cut"));
  });
}
