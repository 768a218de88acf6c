import { excerpt } from "../../base/text/excerpt.ts";
import { parseJson } from "../../base/text/json.ts";
import { isRecord } from "../../base/text/record.ts";
import type { ProviderMetadata, Tokens } from "../../message/part.ts";
import { parseRefusedCall } from "../answer/refused-call.ts";
import { toTokens } from "../answer/usage.ts";
import { invalidResponse, parseErrorAnswer, ProviderFailure } from "../failure.ts";
import type { EventReader } from "../streams/answer-stream.ts";
import type { StreamPart } from "./wire.ts";

/** An unvalidated JSON object of a provider. */
export type Json = Record<string, unknown>;

export type Data = ProviderMetadata["data"];

type Delta = StreamPart & { type: "text-delta" | "reasoning-delta" | "tool-input-delta" };

/** Reads the events of one answer in the forms of all vendors. Adjacent texts of one network read become one part. */
export abstract class AnswerReader implements EventReader<StreamPart> {
  isDone = false;
  hasOutput = false;
  /** Data about the whole answer that the provider wants back. */
  protected data: Data | undefined;
  #reason: string | undefined;
  #usage: Tokens | undefined;
  readonly #parts: StreamPart[] = [];
  /** The last part, if more text can be appended to it. */
  #delta: Delta | undefined;

  get hasFinish(): boolean {
    return this.#reason !== undefined;
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
    if (!this.hasFinish) this.endWithoutFinish();
    this.endCalls();
    this.#finish();
  }

  fail(error: unknown): void {
    this.emit({ type: "error", error });
    this.#finish();
  }

  take(): StreamPart[] {
    this.#delta = undefined;
    return this.#parts.splice(0);
  }

  protected abstract read(event: Json): void;

  protected endWithoutFinish(): void {
    const what = this.hasOutput ? "broke off before its answer was complete" : "answered with nothing";
    throw new ProviderFailure(invalidResponse(`The provider ${what}.`, true));
  }

  /** Emits the remaining calls when the answer is complete. */
  protected endCalls(): void {}

  protected emit(part: StreamPart): void {
    this.#parts.push(part);
    this.#delta = undefined;
  }

  protected append(type: Delta["type"], id: string, delta: string, data?: Data): void {
    if (delta === "") return;
    this.hasOutput = true;
    const last = this.#delta;
    if (last?.type === type && last.id === id) {
      last.delta += delta;
      return;
    }
    const part: Delta = { type, id, delta, ...withData(data) };
    this.emit(part);
    this.#delta = part;
  }

  protected startCall(id: string, toolName: string, data?: Data): void {
    this.emit({ type: "tool-input-start", id, toolName, ...withData(data) });
  }

  /** Ends a block of text or reasoning that has data. */
  protected endBlock(type: "text" | "reasoning", data: Data): void {
    this.emit({ type: `${type}-end`, id: type, ...withData(data) });
  }

  protected stop(reason: string): void {
    this.#reason = reason;
  }

  /** Replaces the usage, except for an input that only the earlier one has: some servers report input first, output last. */
  protected reportUsage(usage: unknown): void {
    const tokens = toTokens(usage);
    if (tokens === undefined) return;
    const { input, cache } = tokens;
    const before = this.#usage;
    const hasInput = input + cache.read + cache.write > 0;
    this.#usage =
      hasInput || before === undefined ? tokens : { ...tokens, input: before.input, cache: before.cache };
  }

  #finish(): void {
    const { input, output, reasoning, cache } = this.#usage ?? {};
    const usage = {
      inputTokens: { total: undefined, noCache: input, cacheRead: cache?.read, cacheWrite: cache?.write },
      outputTokens: { total: undefined, text: output, reasoning },
    };
    const finishReason = { unified: "other", raw: this.#reason } as const;
    this.emit({ type: "finish", finishReason, usage, ...withData(this.data) });
  }
}

/** The name under which data is passed through the SDK's parts. */
const sdkName = "fairlead";

const withData = (data: Data | undefined) => data && { providerMetadata: { [sdkName]: data } };

/** Creates the failure for an error in a stream. */
export function streamFailure(error: unknown): ProviderFailure {
  const body = JSON.stringify(error);
  const parsed = parseErrorAnswer({ status: undefined, header: () => null, body, now: 0 });
  return new ProviderFailure(parsed, parseRefusedCall(body));
}

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
