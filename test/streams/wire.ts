import type { Api } from "../../src/config/api.ts";
import type { AgentError } from "../../src/message/message.ts";
import type { Tokens } from "../../src/message/part.ts";
import type { Answer } from "./answer.ts";
import { canWrite, type ChatForm, writeChat } from "./forms/chat-form.ts";
import { hostedForms } from "./forms/hosted-forms.ts";
import { canWriteMessages, type MessagesForm, writeMessages } from "./forms/messages-form.ts";
import { messagesForms } from "./forms/messages-forms.ts";
import { canWriteResponses, eventText, type ResponsesForm, writeResponses } from "./forms/responses-form.ts";
import { responsesForms } from "./forms/responses-forms.ts";
import { serverForms } from "./forms/server-forms.ts";

/** One server's way of streaming answers over a wire. */
export interface StreamShape {
  readonly name: string;
  readonly api: Api;
  /** Undefined if it reports no usage. */
  readonly tokens: Tokens | undefined;
  readonly hasTags: boolean;
  canWrite(answer: Answer): boolean;
  write(answer: Answer): string;
}

/** Errors in a stream, and their expected meaning. */
export interface ErrorFrame {
  readonly name: string;
  readonly frame: string;
  readonly code: AgentError["code"];
  readonly retryable: boolean;
  readonly words: string;
}

/** A response with an error status, and its expected meaning. */
export interface Refusal {
  readonly name: string;
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
  readonly error: Partial<AgentError>;
}

/** An API over which models stream. */
export interface Wire {
  readonly name: string;
  readonly api: Api;
  readonly shapes: readonly StreamShape[];
  /** A stream that has sent "Hello" and continues. */
  readonly begun: string;
  /** An unfinished call whose arguments are incomplete. */
  readonly openCall: string;
  /** The end of an answer, without usage. */
  readonly ended: string;
  readonly errors: readonly ErrorFrame[];
  readonly refusals: readonly Refusal[];
}

const data = (json: unknown): string => `data: ${JSON.stringify(json)}\n\n`;
const event = (json: Readonly<Record<string, unknown>>): string => eventText(json, String(json.type));

const failed = { code: "server", retryable: true } as const;
const chatErrors: readonly ErrorFrame[] = [
  {
    name: "an error with a status (OpenRouter)",
    frame: data({
      id: "gen-1",
      provider: "X",
      error: { code: 502, message: "Upstream went away" },
      choices: [{ index: 0, delta: { content: "" }, finish_reason: "error", native_finish_reason: "error" }],
    }),
    ...failed,
    words: "Upstream went away",
  },
  {
    name: "an event of the type error (gateways)",
    frame: 'event: error\ndata: {"message":"No more workers","code":503}\n\n',
    code: "overloaded",
    retryable: true,
    words: "No more workers",
  },
  {
    name: "a field error (llama.cpp)",
    frame: 'error: {"code":500,"message":"Compute error","type":"server_error"}\n\n',
    ...failed,
    words: "Compute error",
  },
  {
    name: "an object of the type error (vLLM)",
    frame: data({ object: "error", message: "The engine died", type: "InternalServerError", code: 500 }),
    ...failed,
    words: "The engine died",
  },
  {
    name: "words alone (FastAPI)",
    frame: data({ detail: "The worker was killed" }),
    ...failed,
    words: "The worker was killed",
  },
  {
    name: "a base response (MiniMax)",
    frame: data({
      base_resp: { status_code: 1002, status_msg: "Too many requests in a minute, rate limit" },
    }),
    code: "rate-limit",
    retryable: true,
    words: "Too many requests",
  },
  {
    name: "no credit (OpenAI)",
    frame: data({
      error: {
        message: "You exceeded your current quota",
        type: "insufficient_quota",
        param: null,
        code: "insufficient_quota",
      },
    }),
    code: "rate-limit",
    retryable: false,
    words: "exceeded your current quota",
  },
  {
    name: "a key that was withdrawn",
    frame: data({
      error: {
        message: "Incorrect API key provided",
        type: "invalid_request_error",
        code: "invalid_api_key",
      },
    }),
    code: "auth",
    retryable: false,
    words: "Incorrect API key",
  },
  {
    name: "an error whose words quote the conversation",
    frame: data({
      error: {
        message: "The filter stopped this",
        code: "content_filter",
        quoted: 'prompt is too long: {"code": 401}, overloaded',
      },
    }),
    code: "content-filter",
    retryable: false,
    words: "The filter stopped this",
  },
];

const responsesErrors: readonly ErrorFrame[] = [
  {
    name: "an error event with an error inside (OpenAI)",
    frame: event({
      type: "error",
      sequence_number: 9,
      error: { type: "server_error", code: "server_error", message: "Something broke", param: null },
    }),
    ...failed,
    words: "Something broke",
  },
  {
    name: "an error event as it is documented",
    frame: event({
      type: "error",
      code: "server_error",
      message: "Something broke",
      param: null,
      sequence_number: 9,
    }),
    ...failed,
    words: "Something broke",
  },
  {
    name: "a failed response (OpenAI)",
    frame: event({
      type: "response.failed",
      sequence_number: 9,
      response: {
        id: "resp_1",
        object: "response",
        created_at: 1_790_000_000,
        model: "m",
        status: "failed",
        error: { code: "server_error", message: "Something broke" },
        incomplete_details: null,
        output: [],
        usage: null,
      },
    }),
    ...failed,
    words: "Something broke",
  },
  {
    name: "an error event and a failed response (OpenAI, no credit)",
    frame:
      event({
        type: "error",
        sequence_number: 9,
        error: {
          type: "insufficient_quota",
          code: "insufficient_quota",
          message: "The credit is used up",
          param: null,
        },
      }) +
      event({
        type: "response.failed",
        sequence_number: 10,
        response: {
          status: "failed",
          error: { code: "insufficient_quota", message: "The credit is used up" },
        },
      }),
    code: "rate-limit",
    retryable: false,
    words: "The credit is used up",
  },
  {
    name: "a failed response, too many requests",
    frame: event({
      type: "response.failed",
      response: {
        id: "resp_1",
        status: "failed",
        error: { code: "rate_limit_exceeded", message: "Rate limit reached for m. Try again in 1.5s." },
      },
    }),
    code: "rate-limit",
    retryable: true,
    words: "Rate limit reached",
  },
  {
    name: "a failed response, overloaded",
    frame: event({
      type: "response.failed",
      sequence_number: 9,
      response: {
        status: "failed",
        error: { code: "server_is_overloaded", message: "Our servers are overloaded. Try again later." },
      },
    }),
    code: "overloaded",
    retryable: true,
    words: "overloaded",
  },
  {
    name: "a failed response, a full context",
    frame: event({
      type: "response.failed",
      sequence_number: 9,
      response: {
        status: "failed",
        error: {
          code: "context_length_exceeded",
          message: "Your input exceeds the context window of this model. Adjust it and try again.",
        },
      },
    }),
    code: "context-length",
    retryable: false,
    words: "context window",
  },
  {
    name: "an error without a type (vLLM, OmniRoute)",
    frame: data({ error: { message: "The engine died", type: "InternalServerError", code: 500 } }),
    ...failed,
    words: "The engine died",
  },
  {
    name: "a field error (llama.cpp)",
    frame: 'error: {"code":500,"message":"Compute error","type":"server_error"}\n\n',
    ...failed,
    words: "Compute error",
  },
];

/** An error body from OpenAI. */
const openaiError = (code: string | null, message: string, type = "invalid_request_error") => ({
  error: { message, type, param: null, code },
});
/** An error body from Anthropic. */
const anthropicError = (type: string, message: string) => ({
  type: "error",
  error: { type, message },
  request_id: "req_1",
});

const tooLong = { code: "context-length", retryable: false } as const;
const chatRefusals: readonly Refusal[] = [
  {
    name: "a full context and its window",
    status: 400,
    body: openaiError(
      "context_length_exceeded",
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    ),
    error: { ...tooLong, window: 8192 },
  },
  {
    name: "too many requests and the time to wait",
    status: 429,
    headers: { "retry-after": "7" },
    body: openaiError("rate_limit_exceeded", "Rate limit reached", "requests"),
    error: { code: "rate-limit", retryable: true, retryAfterMs: 7_000 },
  },
];
const responsesRefusals: readonly Refusal[] = [
  {
    name: "a full context",
    status: 400,
    body: openaiError(
      "context_length_exceeded",
      "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    error: tooLong,
  },
  {
    name: "no credit",
    status: 429,
    body: openaiError(
      "insufficient_quota",
      "You exceeded your current quota, please check your plan and billing details.",
      "insufficient_quota",
    ),
    error: { code: "rate-limit", retryable: false },
  },
  {
    name: "too many requests with the time to wait in milliseconds",
    status: 429,
    headers: { "retry-after-ms": "1500" },
    body: openaiError("rate_limit_exceeded", "Rate limit reached", "tokens"),
    error: { code: "rate-limit", retryable: true, retryAfterMs: 1_500 },
  },
  {
    name: "a reasoning item without the item that follows",
    status: 400,
    body: openaiError(
      null,
      "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    error: { code: "bad-request", retryable: false },
  },
  {
    name: "encrypted thoughts of somebody else",
    status: 400,
    body: openaiError("invalid_encrypted_content", "The encrypted content could not be verified."),
    error: { code: "bad-request", retryable: false },
  },
];
const messagesRefusals: readonly Refusal[] = [
  {
    name: "a full context and its window",
    status: 400,
    body: anthropicError("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    error: { ...tooLong, window: 200_000 },
  },
  {
    name: "a prompt and an answer that do not fit together",
    status: 400,
    body: anthropicError(
      "invalid_request_error",
      "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
    ),
    error: tooLong,
  },
  {
    name: "too many bytes",
    status: 413,
    body: anthropicError("request_too_large", "Request exceeds the maximum size"),
    error: tooLong,
  },
  {
    name: "an overloaded server with the time to wait",
    status: 529,
    headers: { "retry-after": "3" },
    body: anthropicError("overloaded_error", "Overloaded"),
    error: { code: "overloaded", retryable: true, retryAfterMs: 3_000 },
  },
  {
    name: "no credit",
    status: 400,
    body: anthropicError(
      "invalid_request_error",
      "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
    ),
    error: { code: "bad-request", retryable: false },
  },
  {
    name: "a signature of somebody else",
    status: 400,
    body: anthropicError(
      "invalid_request_error",
      "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    error: { code: "bad-request", retryable: false },
  },
];

const messagesError = (type: string, message: string): string =>
  event({ type: "error", error: { type, message }, request_id: "req_1" });

const messagesErrors: readonly ErrorFrame[] = [
  {
    name: "overloaded (Anthropic)",
    frame: event({
      type: "error",
      error: { details: null, type: "overloaded_error", message: "Overloaded" },
    }),
    code: "overloaded",
    retryable: true,
    words: "Overloaded",
  },
  {
    name: "an internal error (Anthropic)",
    frame: messagesError("api_error", "Internal server error"),
    ...failed,
    words: "Internal server error",
  },
  {
    name: "a timeout (Anthropic)",
    frame: messagesError("timeout_error", "The request timed out"),
    ...failed,
    words: "timed out",
  },
  {
    name: "too many requests (Anthropic)",
    frame: messagesError("rate_limit_error", "This would exceed your limit of input tokens per minute"),
    code: "rate-limit",
    retryable: true,
    words: "exceed your limit",
  },
  {
    name: "a key that was withdrawn (Anthropic)",
    frame: messagesError("authentication_error", "invalid x-api-key"),
    code: "auth",
    retryable: false,
    words: "invalid x-api-key",
  },
  {
    name: "a full context (Anthropic)",
    frame: messagesError("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    code: "context-length",
    retryable: false,
    words: "prompt is too long",
  },
  {
    name: "a field error (llama.cpp)",
    frame: 'error: {"code":500,"message":"Compute error","type":"server_error"}\n\n',
    ...failed,
    words: "Compute error",
  },
  {
    name: "an error without a type (vLLM)",
    frame: data({ error: { message: "The engine died", type: "InternalServerError", code: 500 } }),
    ...failed,
    words: "The engine died",
  },
];

const toShape = (form: ChatForm): StreamShape => ({
  name: form.provider,
  api: "chat",
  tokens: form.usage?.tokens,
  hasTags: form.hasTags ?? false,
  canWrite: (answer) => canWrite(form, answer),
  write: (answer) => writeChat(form, answer),
});

const toResponsesShape = (form: ResponsesForm): StreamShape => ({
  name: form.provider,
  api: "responses",
  tokens: form.usage?.tokens,
  hasTags: false,
  canWrite: (answer) => canWriteResponses(form, answer),
  write: (answer) => writeResponses(form, answer),
});

const toMessagesShape = (form: MessagesForm): StreamShape => ({
  name: form.provider,
  api: "messages",
  tokens: form.usage.tokens,
  hasTags: false,
  canWrite: (answer) => canWriteMessages(form, answer),
  write: (answer) => writeMessages(form, answer),
});

const responseOf = (status: string): Readonly<Record<string, unknown>> => ({
  id: "resp_1",
  object: "response",
  created_at: 1_790_000_000,
  model: "m",
  status,
  output: [],
});

export const wires: readonly Wire[] = [
  {
    name: "chat completions",
    api: "chat",
    shapes: [...hostedForms, ...serverForms].map(toShape),
    begun: data({ choices: [{ index: 0, delta: { role: "assistant", content: "Hello" } }] }),
    openCall: data({
      choices: [
        {
          index: 0,
          delta: {
            tool_calls: [{ index: 0, id: "a", function: { name: "bash", arguments: '{"command":"rm' } }],
          },
        },
      ],
    }),
    ended: data({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
    errors: chatErrors,
    refusals: chatRefusals,
  },
  {
    name: "responses",
    api: "responses",
    shapes: responsesForms.map(toResponsesShape),
    begun:
      event({ type: "response.created", response: responseOf("in_progress") }) +
      event({
        type: "response.output_item.added",
        output_index: 0,
        item: { type: "message", id: "msg_1", role: "assistant", status: "in_progress", content: [] },
      }) +
      event({
        type: "response.output_text.delta",
        item_id: "msg_1",
        output_index: 0,
        content_index: 0,
        delta: "Hello",
      }),
    openCall:
      event({
        type: "response.output_item.added",
        output_index: 1,
        item: {
          type: "function_call",
          id: "fc_1",
          call_id: "call_1",
          name: "bash",
          arguments: "",
          status: "in_progress",
        },
      }) +
      event({
        type: "response.function_call_arguments.delta",
        item_id: "fc_1",
        output_index: 1,
        delta: '{"command":"rm',
      }),
    ended: event({ type: "response.completed", response: responseOf("completed") }),
    errors: responsesErrors,
    refusals: responsesRefusals,
  },
  {
    name: "messages",
    api: "messages",
    shapes: messagesForms.map(toMessagesShape),
    begun:
      event({
        type: "message_start",
        message: {
          id: "msg_1",
          type: "message",
          role: "assistant",
          model: "m",
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 10, output_tokens: 1 },
        },
      }) +
      event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }) +
      event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } }),
    openCall:
      event({
        type: "content_block_start",
        index: 1,
        content_block: { type: "tool_use", id: "toolu_1", name: "bash", input: {} },
      }) +
      event({
        type: "content_block_delta",
        index: 1,
        delta: { type: "input_json_delta", partial_json: '{"command":"rm' },
      }),
    ended:
      event({ type: "content_block_stop", index: 0 }) +
      event({
        type: "message_delta",
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: { output_tokens: 5 },
      }) +
      event({ type: "message_stop" }),
    errors: messagesErrors,
    refusals: messagesRefusals,
  },
];
