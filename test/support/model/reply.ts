import { Bell } from "../waiting.ts";

/** The scripted model's answer to one request, step by step. */
export type Step =
  | { do: "text"; text: string }
  | { do: "reasoning"; text: string }
  | { do: "calls"; calls: readonly CallScript[] }
  | { do: "usage"; usage: Usage }
  | { do: "finish"; reason: string }
  | { do: "end"; done: boolean }
  | { do: "chunk"; chunk: unknown }
  | { do: "bytes"; bytes: Uint8Array }
  | { do: "tiny"; count: number; piece: string }
  | { do: "comments"; everyMs: number }
  | { do: "status"; status: number; body: unknown; headers: Record<string, string> }
  | { do: "headers" }
  | { do: "reset" }
  | { do: "stall" }
  | Gate;

/** One streamed tool call. An undefined id is replaced by a new one, null omits it. */
export interface CallScript {
  name: string;
  id: string | null | undefined;
  /** The text of the arguments, in chunks. */
  pieces: readonly string[];
}

/** Token counts; `promptTokens` includes those read from a cache and written to it. */
export interface Usage {
  promptTokens: number;
  completionTokens: number;
  cachedTokens?: number;
  /** Reported only by the Messages API. */
  writtenTokens?: number;
  reasoningTokens?: number;
}

/** A point at which the model waits until the test releases it. */
export class Gate {
  readonly do = "gate";
  readonly #bell = new Bell();
  readonly #opened = Promise.withResolvers<void>();
  #reached = 0;

  /** Resolves when the model has sent everything before the gate and waits at it. */
  async reached(deadlineMs?: number): Promise<void> {
    await this.#bell.until(() => this.#reached || undefined, "the model to reach the gate", deadlineMs);
  }

  /** Whether the model has sent everything before the gate. */
  get wasReached(): boolean {
    return this.#reached > 0;
  }

  release(): void {
    this.#opened.resolve();
  }

  /** For the server: announces the arrival and waits for the release. */
  pass(): Promise<void> {
    this.#reached++;
    this.#bell.ring();
    return this.#opened.promise;
  }
}

export const gate = (): Gate => new Gate();

/** Text, one delta per chunk. */
export const say = (...pieces: string[]): Step[] => pieces.map((text) => ({ do: "text", text }));

/** Reasoning (`reasoning_content`), one delta per chunk. */
export const think = (...pieces: string[]): Step[] => pieces.map((text) => ({ do: "reasoning", text }));

/**
 * A tool call. Arguments given as a string are sent unchanged, so they may be bad JSON or end in the middle.
 */
export function call(name: string, input: unknown, how: { id?: string | null; pieces?: number } = {}): Step {
  return together(callScript(name, input, how));
}

/** Several calls whose chunks arrive interleaved. */
export const together = (...calls: CallScript[]): Step => ({ do: "calls", calls });

export function callScript(
  name: string,
  input: unknown,
  how: { id?: string | null; pieces?: number } = {},
): CallScript {
  const text = typeof input === "string" ? input : JSON.stringify(input);
  return { name, id: how.id, pieces: cut(text, how.pieces ?? 2) };
}

export const usage = (counts: Usage): Step => ({ do: "usage", usage: counts });

/** The finish reason, if it is not the usual one (`tool_calls` after calls, otherwise `stop`). */
export const finish = (reason: string): Step => ({ do: "finish", reason });

/**
 * Ends the stream here, without a finish reason unless one was given, and without `[DONE]` unless requested.
 */
export const end = (how: { done?: boolean } = {}): Step => ({ do: "end", done: how.done ?? false });

/** Any JSON as one event. */
export const chunk = (value: unknown): Step => ({ do: "chunk", chunk: value });

/** An error as one event inside a good stream. */
export const errorEvent = (message: string, more: Record<string, unknown> = {}): Step =>
  chunk({ error: { message, ...more } });

/** A raw line of the stream. */
export const line = (text: string): Step => ({ do: "bytes", bytes: Buffer.from(`${text}\n`) });

/** A comment in the stream, which does not count as an answer. */
export const comment = (text = "keep-alive"): Step => line(`: ${text}\n`);

/** Only comments from here on, until the client disconnects. */
export const commentsOnly = (everyMs = 20): Step => ({ do: "comments", everyMs });

/**
 * A text delta whose bytes are sent in two parts, split inside its first multi-byte character; the gate
 * separates them.
 */
export function splitCharacter(text: string, between: Gate): Step[] {
  const bytes = Buffer.from(
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`,
  );
  const cutAt = bytes.findIndex((byte) => byte >= 0xc0) + 1;
  if (cutAt === 0) throw new Error("splitCharacter needs a text with a character of several bytes.");
  return [
    { do: "bytes", bytes: bytes.subarray(0, cutAt) },
    between,
    { do: "bytes", bytes: bytes.subarray(cutAt) },
  ];
}

/** Many small text deltas, as fast as the client reads. */
export const tinyDeltas = (count: number, piece = "x"): Step => ({ do: "tiny", count, piece });

/** A response that is not a stream: objects are sent as JSON, strings unchanged. */
export const status = (code: number, body: unknown, headers: Record<string, string> = {}): Step => ({
  do: "status",
  status: code,
  body,
  headers,
});

/** The error body that OpenAI-compatible providers send. */
export const failure = (code: number, message: string, headers: Record<string, string> = {}): Step =>
  status(code, { error: { message, type: "error", code: null } }, headers);

/** The response of a proxy whose provider is down. */
export const htmlPage = (code: number): Step =>
  status(code, `<html><head><title>${code}</title></head><body><h1>Bad gateway</h1></body></html>`, {
    "content-type": "text/html",
  });

/** Sends the response's headers before any content. */
export const headers = (): Step => ({ do: "headers" });

/** Resets the connection. Data sent just before may be lost with it, so put a gate before where it matters. */
export const reset = (): Step => ({ do: "reset" });

/** Sends nothing more and keeps the connection open until the client disconnects. */
export const stall = (): Step => ({ do: "stall" });

function cut(text: string, pieces: number): string[] {
  const size = Math.max(1, Math.ceil(text.length / pieces));
  const cuts = Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
    text.slice(at * size, (at + 1) * size),
  );
  return cuts.length > 0 ? cuts : [""];
}
