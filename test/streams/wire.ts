import type { AgentError } from "../../src/message/message.ts";
import type { Tokens } from "../../src/message/part.ts";
import type { Answer } from "./answer.ts";
import { canWrite, type ChatForm, writeChat } from "./chat-form.ts";
import { hostedForms } from "./hosted-forms.ts";
import { serverForms } from "./server-forms.ts";

/** One server's way to stream answers over a wire. */
export interface StreamShape {
  readonly name: string;
  /** Undefined where it reports no usage. */
  readonly tokens: Tokens | undefined;
  readonly hasTags: boolean;
  canWrite(answer: Answer): boolean;
  write(answer: Answer): string;
}

/** How errors are streamed, and what they mean. */
export interface ErrorFrame {
  readonly name: string;
  readonly frame: string;
  readonly code: AgentError["code"];
  readonly retryable: boolean;
  readonly words: string;
}

/** An API over which models stream. */
export interface Wire {
  readonly name: string;
  readonly shapes: readonly StreamShape[];
  /** A stream that has said "Hello" and goes on. */
  readonly begun: string;
  /** A call that has begun and whose arguments are not whole. */
  readonly openCall: string;
  /** The end of an answer, without usage. */
  readonly ended: string;
  readonly errors: readonly ErrorFrame[];
}

const data = (json: unknown): string => `data: ${JSON.stringify(json)}\n\n`;

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

const toShape = (form: ChatForm): StreamShape => ({
  name: form.provider,
  tokens: form.usage?.tokens,
  hasTags: form.hasTags ?? false,
  canWrite: (answer) => canWrite(form, answer),
  write: (answer) => writeChat(form, answer),
});

export const wires: readonly Wire[] = [
  {
    name: "chat completions",
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
  },
];
