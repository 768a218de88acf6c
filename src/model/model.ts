import type { Api } from "../config/api.ts";
import type { Message, AgentError, FinishReason, ModelRef } from "../message/message.ts";
import type { ProviderMetadata, Tokens } from "../message/part.ts";

/** A usable model and its properties. */
export interface Model {
  readonly ref: ModelRef;
  /** The API it is called with; "chat" if undefined. */
  readonly api?: Api;
  readonly name: string;
  /** Chooses the system prompt: that of a vendor, of large open models, or of small ones. */
  readonly family: Family;
  /** Which built-in tools it is offered: all, or the few that small models use well; all if undefined. */
  readonly toolSet?: ToolSet;
  /** Whether its tool calls are exchanged as text, because its server does not recognize them. */
  readonly callsAsText?: true;
  /** Which tools it edits files with: `apply_patch`, or `edit`, `multiedit` and `write`. */
  readonly editsBy: "patch" | "replacement";
  /** In tokens; undefined if unknown. */
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
  /** The effort if the user chose none; undefined to leave it to the server. */
  readonly defaultEffort?: string;
  /** How its prompts are cached; undefined if unknown. */
  readonly cache?: CacheKind;
  /** Features that the model supports, but not over chat completions of its provider. */
  readonly lostOverChat?: readonly ("thinking" | "tools")[];
}

export const families = ["claude", "gpt", "codex", "gemini", "open", "small"] as const;
export type Family = (typeof families)[number];
export type ToolSet = "all" | "small";

/** Caching by the server, caching of marked parts, or no caching. */
export type CacheKind = "automatic" | "marks" | "none";

/** A kind of media that a model may accept in addition to text. */
export type Medium = "images" | "pdf" | "audio";

/** US dollars per million tokens. An unknown cache price equals the input price. */
export interface Price extends Rate {
  /** Rates for calls whose input exceeds `tokens`, in ascending order. They apply to the whole call. */
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
  /** The visible transcript, not yet converted for the provider. */
  messages: readonly Message[];
  tools: readonly ToolSpec[];
  /** Names by which other programs know the tools, in lower case, with the tools' own names. Not sent. */
  otherToolNames?: ReadonlyMap<string, string>;
  /** Tools that are not sent, but that a call written as text may name. */
  unsentTools?: readonly ToolSpec[];
  /** Asks the model to call no tool; the tools are still sent, so that prompt caches stay valid. */
  toolChoice?: "none";
  temperature?: number;
  topP?: number;
  maxOutputTokens?: number;
  /** Prompt tokens from the provider's earlier counts; undefined to estimate them. */
  promptTokens?: number | undefined;
  /** Provider options of the agent. */
  options?: Record<string, unknown>;
  /** Additional HTTP headers. */
  headers?: Record<string, string>;
  /** Whether a tool call that the provider rejects is emitted as a failed call. False fails the step. */
  returnsRefusedCalls?: boolean;
  /** Awaited after each network read, so that a client that does not read stops the reading from the provider. */
  waitUntilReady?: () => Promise<void>;
  signal: AbortSignal;
}

export interface ToolSpec {
  name: string;
  description: string;
  /** JSON Schema of the input. */
  schema: Record<string, unknown>;
}

/** An event of a streaming model call. A block of text or reasoning begins with its first text, and may be data alone. */
export type StepEvent =
  | { type: "text-delta" | "reasoning-delta"; text: string }
  | { type: "text-end" | "reasoning-end"; metadata?: ProviderMetadata }
  /** The model began a call; its arguments are still streaming. */
  | {
      type: "call-start";
      providerCallId: string;
      tool: string;
      metadata?: ProviderMetadata;
      /** The part of the answer that contains the call, if it was written as text. */
      markup?: string;
    }
  /** The call is complete; `input` is the parsed JSON. With a `problem` (a text for the model) it must not be run. */
  | {
      type: "call";
      providerCallId: string;
      tool: string;
      input: unknown;
      raw: string;
      problem?: string;
      /** Whether the arguments are complete but no JSON object. */
      isMalformed?: boolean;
    };

/** How a model call ended; an abort is `failed` with code `cancelled`. */
export type StepEnd =
  /** `estimated` if the provider sent no usage. The provider wants `metadata` back with the calls. */
  | {
      type: "finish";
      reason: FinishReason;
      tokens: Tokens;
      estimated?: boolean;
      /** Whether the provider rejected a call, which was emitted with a problem. */
      refusedCall?: boolean;
      /** Whether the provider rejected earlier thoughts, which were omitted. */
      omitsThoughts?: boolean;
      metadata?: ProviderMetadata;
    }
  | { type: "failed"; error: AgentError; metadata?: ProviderMetadata };

export interface Models {
  /** Returns all usable models: configured, with a key or without need of one. */
  list(): readonly Model[];
  find(ref: ModelRef): Model | undefined;
  /**
   * Calls the model. `take` receives the events in order. Resolves after the last event. Rejects only with an error
   * that `take` throws, which ends the call.
   */
  call(request: ModelRequest, take: (event: StepEvent) => void): Promise<StepEnd>;
  /** Records that the model rejects these kinds of media. They are no longer sent to it. */
  refuses(model: Model, media: readonly Medium[]): void;
  /** Returns the cost in US dollars; 0 if prices are unknown. */
  costOf(model: Model, tokens: Tokens): number;
}
