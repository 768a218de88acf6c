import { excerpt } from "../../base/text/excerpt.ts";
import { parseJson } from "../../base/text/json.ts";
import { isRecord } from "../../base/text/record.ts";
import type { ProviderMetadata, Tokens } from "../../message/part.ts";
import { parseRefusedCall } from "../answer/refused-call.ts";
import { toTokens } from "../answer/usage.ts";
import { invalidResponse, parseErrorAnswer, ProviderFailure } from "../failure.ts";
import type { EventReader } from "../streams/connection.ts";
import type { StreamPart } from "./wire.ts";

/** An unvalidated JSON object of a provider. */
export type Json = Record<string, unknown>;

export type Data = ProviderMetadata["data"];

export type DeltaType = "text-delta" | "reasoning-delta" | "tool-input-delta";

/** Reads the events of one answer in the forms of all vendors. Adjacent texts of one network read become one part. */
export abstract class AnswerReader implements EventReader<StreamPart> {
  isDone = false;
  hasOutput = false;
  /** Data about the whole answer that the provider wants back. */
  protected data: Data | undefined;
  /** Whether an answer without a finish reason is complete if the provider said that it is done. */
  protected readonly mayLackReason: boolean = true;
  /** Whether the model refused to answer. */
  protected hasRefusal = false;
  #reason = "";
  #usage: Tokens | undefined;
  readonly #parts: StreamPart[] = [];

  get hasFinish(): boolean {
    return this.#reason !== "";
  }

  push(data: string): void {
    const text = data.trim();
    if (text === "" || this.isDone) return;
    if (text === "[DONE]") {
      this.isDone = true;
      return;
    }
    const value = parseJson(text);
    if (!isRecord(value)) {
      const message = `The provider sent something that is not a JSON object: ${excerpt(text, 200)}`;
      throw new ProviderFailure(invalidResponse(message, true));
    }
    this.read(value);
  }

  end(): void {
    const isComplete = this.hasFinish || (this.mayLackReason && this.isDone && this.hasOutput);
    if (!isComplete) {
      const what = this.hasOutput ? "broke off before its answer was complete" : "answered with nothing";
      throw new ProviderFailure(invalidResponse(`The provider ${what}.`, true));
    }
    this.endCalls();
    this.#finish();
  }

  fail(error: unknown): void {
    this.#parts.push({ type: "error", error });
    this.#finish();
  }

  take(): StreamPart[] {
    return this.#parts.splice(0);
  }

  protected abstract read(event: Json): void;

  /** Emits the remaining calls when the answer is complete. */
  protected endCalls(): void {}

  protected append(type: DeltaType, id: string, delta: string, data?: Data): void {
    if (delta === "") return;
    this.hasOutput = true;
    const last = this.#parts.at(-1);
    if (last !== undefined && "delta" in last && last.type === type && last.id === id) last.delta += delta;
    else this.#parts.push({ type, id, delta, ...withData(data) });
  }

  protected startCall(id: string, name: unknown, data?: Data): void {
    this.#parts.push({ type: "tool-input-start", id, toolName: textOf(name).trim(), ...withData(data) });
  }

  /** Ends a call. The arguments count only if none were streamed. */
  protected endCall(id: string, name: unknown, input: string): void {
    this.#parts.push({ type: "tool-call", toolCallId: id, toolName: textOf(name).trim(), input });
  }

  /** Ends a block of text or reasoning that has data. */
  protected endBlock(type: "text" | "reasoning", data: Data): void {
    this.#parts.push({ type: `${type}-end`, id: type, ...withData(data) });
  }

  /** Sets the finish reason, unless it is empty. */
  protected stop(reason: unknown): void {
    this.#reason = textOf(reason) || this.#reason;
  }

  /** Replaces the usage, but not its input by none: some servers report the input first and the output last. */
  protected reportUsage(usage: unknown): void {
    const tokens = toTokens(usage);
    if (tokens === undefined) return;
    const hasInput = tokens.input + tokens.cache.read + tokens.cache.write > 0;
    const { input, cache } = hasInput ? tokens : (this.#usage ?? tokens);
    this.#usage = { ...tokens, input, cache };
  }

  #finish(): void {
    const { input, output, reasoning, cache } = this.#usage ?? {};
    const usage = {
      inputTokens: { total: undefined, noCache: input, cacheRead: cache?.read, cacheWrite: cache?.write },
      outputTokens: { total: undefined, text: output, reasoning },
    };
    const finishReason = { unified: "other", raw: this.#reason || "stop" } as const;
    this.#parts.push({ type: "finish", finishReason, usage, ...withData(this.data) });
  }
}

/** The name under which data is passed through the SDK's parts. */
const sdkName = "fairlead";

const withData = (data: Data | undefined) => data && { providerMetadata: { [sdkName]: data } };

/** Throws the failure that an event reports, in the forms of all vendors, of vLLM, FastAPI servers and MiniMax. */
export function failOnError(event: Json): void {
  const { error, type, choices, output, object, message, detail, base_resp: base } = event;
  // Some servers send an empty error with each event.
  const hasError = isRecord(error) ? Object.values(error).some(Boolean) : Boolean(error);
  const isRefusal = isRecord(base) && Boolean(base.status_code);
  const hasMessage = isSet(message) && type !== "message_start";
  const isErrorBody = object === "error" || hasMessage || isSet(detail) || isRefusal;
  if (!hasError && type !== "error" && (isSet(choices) || isSet(output) || !isErrorBody)) return;
  const body = JSON.stringify(hasError ? { error } : event);
  const parsed = parseErrorAnswer({ status: undefined, header: () => null, body, now: 0 });
  throw new ProviderFailure(parsed, parseRefusedCall(body));
}

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

export const isSet = (value: unknown): boolean => value !== undefined && value !== null;
