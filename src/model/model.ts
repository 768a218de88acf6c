import type { Backpressure } from "../base/async.ts";
import type { Message, AgentError, FinishReason, ModelRef } from "../message/message.ts";
import type { ReasoningDetail, Tokens } from "../message/part.ts";

/** A model that can be asked, with what is known of it. */
export interface Model {
  readonly ref: ModelRef;
  readonly name: string;
  /** Chooses the system prompt. */
  readonly family: "claude" | "gpt" | "codex" | "gemini" | "other";
  /** Which tools it changes files with: `apply_patch`, or `edit`, `multiedit` and `write`. */
  readonly editsBy: "patch" | "replacement";
  /** Tokens; undefined where unknown. */
  readonly limit: { context?: number; input?: number; output?: number };
  readonly cost?: Price;
  readonly abilities: {
    tools: boolean;
    reasoning: boolean;
    images: boolean;
    pdf: boolean;
    audio: boolean;
    temperature: boolean;
  };
  /** Names of its variants (reasoning efforts), in order. */
  readonly variants: readonly string[];
}

/** A kind of media that a model may take beside text. */
export type Medium = "images" | "pdf" | "audio";

/** US dollars per million tokens. An unknown price of the cache is that of the input. */
export interface Price extends Rate {
  /** Other rates, each for a whole call whose input has more than these tokens; in rising order. */
  readonly over?: readonly (Rate & { readonly tokens: number })[];
}

interface Rate {
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
}

export interface ModelRequest {
  model: Model;
  system: readonly string[];
  /** The visible transcript; turning it into the provider's messages is the model folder's work. */
  messages: readonly Message[];
  tools: readonly ToolSpec[];
  temperature?: number;
  topP?: number;
  maxOutputTokens?: number;
  /** Tokens of the prompt, where the provider's earlier counts say more than an estimate. */
  promptTokens?: number | undefined;
  /** Further provider options of the agent. */
  options?: Record<string, unknown>;
  /** Whether a call that the provider refuses is told as a failed call; otherwise the refusal fails the step. */
  returnsRefusedCalls?: boolean;
  signal: AbortSignal;
}

export interface ToolSpec {
  name: string;
  description: string;
  /** JSON Schema of the input. */
  schema: Record<string, unknown>;
}

/** What a model call tells while it streams. */
export type StepEvent =
  | { type: "text-start"; id: string }
  | { type: "text-delta"; id: string; text: string }
  | { type: "text-end"; id: string }
  | { type: "reasoning-start"; id: string }
  | { type: "reasoning-delta"; id: string; text: string }
  | { type: "reasoning-end"; id: string; metadata?: Record<string, unknown> }
  /** The model began to write a call; its arguments still stream. */
  | { type: "call-start"; providerCallId: string; tool: string; signature?: string }
  /** The call is whole. `input` is the parsed JSON. With a `problem`, a text for the model, it must not be run. */
  | { type: "call"; providerCallId: string; tool: string; input: unknown; raw: string; problem?: string };

/** How a model call ended; an abort is `failed` with code `cancelled`. */
export type StepEnd =
  /** `estimated` where the provider told no usage; the details are what the provider wants back with the calls. */
  | {
      type: "finish";
      reason: FinishReason;
      tokens: Tokens;
      estimated?: boolean;
      /** Whether the provider refused a call, which was told as one with a problem. */
      refusedCall?: boolean;
      reasoningDetails?: ReasoningDetail[];
    }
  | { type: "failed"; error: AgentError; reasoningDetails?: ReasoningDetail[] };

export interface Models {
  /** All models that could be used now: configured, with a key or without need of one. */
  list(): readonly Model[];
  find(ref: ModelRef): Model | undefined;
  /**
   * Calls the model. `take` gets what it tells, one at a time and in order; what follows waits for the room that it asks
   * for. Resolves with how the call ended when all was taken. Rejects only with what `take` threw, which ends the call.
   */
  call(request: ModelRequest, take: (event: StepEvent) => Backpressure): Promise<StepEnd>;
  /** The model refused media of these kinds: from now on it is not sent any. */
  refuses(model: Model, media: readonly Medium[]): void;
  /** US dollars for these tokens; 0 where prices are unknown. */
  costOf(model: Model, tokens: Tokens): number;
}
