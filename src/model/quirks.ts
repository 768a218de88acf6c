/** Deviations of a provider or model family from the common API. */
export interface Quirks {
  /** The request's field for the limit of output tokens. */
  readonly maxTokensField: "max_tokens" | "max_completion_tokens";
  readonly effort: EffortStyle;
  /** The effort sent with tools if none was chosen. If set, no other effort is accepted with tools. */
  readonly effortWithTools?: string | undefined;
  /** Whether the effort can be chosen. */
  readonly hasEfforts: boolean;
  /** Whether tools are accepted. */
  readonly acceptsTools: boolean;
  /** Whether a request can forbid calls (`tool_choice: "none"`). */
  readonly takesToolChoice: boolean;
  /** Whether usage must be requested. False if the provider rejects the option. */
  readonly asksForUsage: boolean;
  /** Accepted call ids. */
  readonly callId: RegExp;
  /**
   * Which messages are sent with their reasoning: none; those of the running turn, and of earlier turns until old outputs
   * are cleared; or all with calls, because the provider rejects calls without it.
   */
  readonly returnsReasoning: "never" | "turn" | "calls";
  /** Whether `reasoning_details` are sent back with the calls instead of the reasoning text. */
  readonly returnsReasoningDetails: boolean;
  /** Full JSON Schema, or the subset of OpenAPI 3.0 or Moonshot. */
  readonly schema: "full" | "openapi" | "moonshot";
  /** Whether an assistant message is required between a tool result and a user message. */
  readonly answersTools: boolean;
  /** Set if thought signatures must be sent back; `missing` is the placeholder for a missing one. */
  readonly thoughtSignature?: { readonly missing?: string };
  /** Whether prompt caching requires `cache_control` marks. */
  readonly marksCache: boolean;
  /** Whether Messages takes a number of tokens to think with, instead of an effort. */
  readonly thinksByBudget: boolean;
  /** Whether `prompt_cache_key` is documented. */
  readonly takesCacheKey: boolean;
  /** Whether the input of tools can be streamed as the model writes it, by a field of each tool. */
  readonly streamsToolInput: boolean;
  /** Which of temperature and top_p are accepted. */
  readonly samplers: "both" | "one" | "none";
  /** Whether parallel calls must be requested. */
  readonly asksForParallelCalls: boolean;
}

/**
 * The request field for the effort: `reasoning_effort`; `reasoning: {effort}`; `thinking: {type}` (on or off only);
 * `thinking` for off and `reasoning_effort` otherwise; or `enable_thinking` (on or off only).
 */
export type EffortStyle =
  | "reasoning_effort"
  | "reasoning"
  | "thinking"
  | "thinking-or-effort"
  | "enable_thinking";

const common: Quirks = {
  maxTokensField: "max_tokens",
  effort: "reasoning_effort",
  hasEfforts: true,
  acceptsTools: true,
  takesToolChoice: true,
  asksForUsage: true,
  callId: /^[A-Za-z0-9_.:-]{1,64}$/,
  returnsReasoning: "never",
  returnsReasoningDetails: false,
  schema: "full",
  answersTools: false,
  marksCache: false,
  thinksByBudget: true,
  takesCacheKey: false,
  streamsToolInput: false,
  samplers: "both",
  asksForParallelCalls: false,
};

interface Case {
  readonly provider?: RegExp;
  readonly model?: RegExp;
  readonly quirks: Partial<Quirks>;
  /** Page that documents it. */
  readonly source: string;
}

const openai = /(^openai$|\.openai\.com$)/;
const anthropic = /(^anthropic$|\.anthropic\.com$)/;
const google = /(^google$|\.googleapis\.com$)/;
const openrouter = /(^openrouter$|(^|\.)openrouter\.ai$)/;
const mistral = /(^mistral$|\.mistral\.ai$)/;
const deepseek = /(^deepseek$|\.deepseek\.com$)/;
const moonshot = /(^moonshotai$|\.moonshot\.(ai|cn)$)/;
const zai = /(^zai$|\.z\.ai$|\.bigmodel\.cn$)/;
const alibaba = /(^alibaba$|\.aliyuncs\.com$)/;

/** Later cases override earlier ones. `provider` is matched against the id and the host. */
const cases: readonly Case[] = [
  // Model families, on any provider.
  {
    model: /gemini/,
    quirks: { schema: "openapi" },
    source: "https://ai.google.dev/gemini-api/docs/function-calling",
  },
  {
    // Routers forward Moonshot's validation errors.
    model: /kimi-/,
    quirks: { schema: "moonshot" },
    source: "https://github.com/MoonshotAI/walle/blob/main/docs/mfjs-spec.md",
  },
  {
    model: /mistral|devstral|codestral/,
    quirks: { callId: /^[A-Za-z0-9]{9}$/, answersTools: true },
    source: "https://docs.vllm.ai/en/v0.15.0/api/vllm/tool_parsers/mistral_tool_parser/",
  },
  {
    // Without the reasoning before their calls, these models lose context within a turn.
    model: /deepseek-(chat|reasoner|flash|v[3-9])|kimi-k[2-9]|glm-(4\.[5-9]|4p[5-9]|[5-9])|minimax-m/,
    quirks: { returnsReasoning: "turn" },
    source: "https://docs.fireworks.ai/guides/reasoning",
  },
  {
    // The cookbook asks for the raw reasoning between calls; other thinking models lose context without it too.
    model: /gpt-oss|qwen|grok|nemotron/,
    quirks: { returnsReasoning: "turn" },
    source: "https://developers.openai.com/cookbook/articles/gpt-oss/handle-raw-cot",
  },
  {
    // Gateways want the signed blocks back (`thinking_blocks`, `reasoning_details`).
    model: /claude/,
    quirks: { returnsReasoning: "turn", returnsReasoningDetails: true },
    source: "https://docs.litellm.ai/docs/reasoning_content",
  },
  {
    model: /minimax-m/,
    quirks: { returnsReasoningDetails: true },
    source: "https://platform.minimax.io/docs/guides/text-m2-function-call",
  },
  {
    // Without marks each request costs the full price.
    model: /claude/,
    quirks: { marksCache: true },
    source: "https://docs.litellm.ai/docs/completion/prompt_caching",
  },
  {
    model: /claude-((opus|sonnet|haiku)-4[.-][6-9]|[a-z]+-([5-9]|\d\d))/,
    quirks: { thinksByBudget: false },
    source: "https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking",
  },
  {
    model: /claude-(opus-4[.-][5-9]|sonnet-4[.-][5-9]|haiku-4[.-][5-9]|opus-4[.-]1)/,
    quirks: { samplers: "one" },
    source: "https://platform.claude.com/docs/en/models/haiku-4-5/migration-guide",
  },
  {
    model: /claude-(opus-4[.-][7-9]|(opus|sonnet|haiku|fable)-([5-9]|\d\d))/,
    quirks: { samplers: "none" },
    source: "https://platform.claude.com/docs/en/models/sonnet-5/overview",
  },

  {
    provider: /(^openai$|\.openai\.com$|\.azure\.com$)/,
    quirks: { maxTokensField: "max_completion_tokens", takesCacheKey: true },
    source: "https://platform.openai.com/docs/api-reference/chat/create",
  },
  {
    provider: openai,
    quirks: { callId: /^[A-Za-z0-9_-]{1,40}$/ },
    source: "https://platform.openai.com/docs/api-reference/chat/create",
  },
  {
    // Chat completions accepts tools only without reasoning, which is on by default.
    provider: /(^openai$|\.openai\.com$|\.azure\.com$)/,
    model: /gpt-(5\.[4-9]|[6-9])/,
    quirks: { effortWithTools: "none" },
    source: "https://developers.openai.com/api/docs/guides/deployment-checklist",
  },
  {
    // These have no effort "none" and do not support tools in chat completions.
    provider: /(^openai$|\.openai\.com$|\.azure\.com$)/,
    model: /gpt-6-astra|gpt-6\.[1-9]-(sol|terra)/,
    quirks: { effortWithTools: undefined, acceptsTools: false },
    source: "https://developers.openai.com/api/docs/guides/deployment-checklist",
  },
  {
    // Chat completions ignores the effort and has neither thinking nor a prompt cache.
    provider: anthropic,
    quirks: {
      callId: /^[A-Za-z0-9_-]{1,64}$/,
      hasEfforts: false,
      marksCache: false,
      returnsReasoning: "never",
      returnsReasoningDetails: false,
      streamsToolInput: true,
    },
    source: "https://platform.claude.com/docs/en/api/openai-sdk",
  },
  {
    provider: google,
    quirks: { schema: "openapi", thoughtSignature: {} },
    source: "https://ai.google.dev/gemini-api/docs/thought-signatures",
  },
  {
    provider: google,
    model: /gemini-[3-9]/,
    quirks: { thoughtSignature: { missing: "skip_thought_signature_validator" } },
    source: "https://ai.google.dev/gemini-api/docs/thought-signatures",
  },
  {
    provider: mistral,
    quirks: { asksForUsage: false, callId: /^[A-Za-z0-9]{9}$/, answersTools: true },
    source: "https://docs.mistral.ai/api/endpoint/chat",
  },
  {
    provider: mistral,
    quirks: { takesCacheKey: true },
    source: "https://docs.mistral.ai/studio-api/conversations/advanced/prompt-caching",
  },
  {
    // Ignores the temperature while reasoning; rejects messages with calls but without reasoning.
    provider: deepseek,
    quirks: { effort: "thinking-or-effort", returnsReasoning: "calls", samplers: "none" },
    source: "https://api-docs.deepseek.com/guides/thinking_mode",
  },
  {
    provider: moonshot,
    model: /kimi-/,
    quirks: { maxTokensField: "max_completion_tokens", returnsReasoning: "calls", samplers: "none" },
    source: "https://platform.kimi.ai/docs/api/chat",
  },
  {
    provider: moonshot,
    model: /kimi-k2/,
    quirks: { effort: "thinking" },
    source: "https://platform.kimi.ai/docs/api/chat",
  },
  {
    provider: zai,
    quirks: { effort: "thinking" },
    source: "https://docs.z.ai/guides/capabilities/thinking-mode",
  },
  {
    // Thinking has levels and cannot be switched off.
    provider: zai,
    model: /glm-5\.[3-9]/,
    quirks: { effort: "reasoning_effort" },
    source: "https://docs.together.ai/docs/glm-5.3-quickstart",
  },
  {
    // Takes no reasoning back.
    provider: alibaba,
    quirks: { effort: "enable_thinking", returnsReasoning: "never" },
    source: "https://www.alibabacloud.com/help/en/model-studio/deep-thinking",
  },
  {
    provider: alibaba,
    quirks: { asksForParallelCalls: true },
    source: "https://www.alibabacloud.com/help/en/model-studio/qwen-function-calling",
  },
  {
    provider: alibaba,
    model: /^qwen(3-coder|3-max|-plus|-flash|-max)/,
    quirks: { marksCache: true },
    source: "https://www.alibabacloud.com/help/en/model-studio/context-cache",
  },
  {
    // Ignores the field.
    provider: /^ollama$/,
    quirks: { takesToolChoice: false },
    source: "https://docs.ollama.com/api/openai-compatibility",
  },
  {
    provider: /(^groq$|\.groq\.com$)/,
    quirks: { maxTokensField: "max_completion_tokens", returnsReasoning: "never" },
    source: "https://console.groq.com/docs/api-reference",
  },
  {
    provider: /(^xai$|\.x\.ai$)/,
    quirks: { maxTokensField: "max_completion_tokens" },
    source: "https://docs.x.ai/developers/rest-api-reference",
  },
  {
    provider: /(^cerebras$|\.cerebras\.ai$)/,
    quirks: { maxTokensField: "max_completion_tokens", returnsReasoning: "never" },
    source: "https://inference-docs.cerebras.ai/api-reference/chat-completions",
  },
  {
    provider: /(^github-models$|\.github\.ai$)/,
    model: /(^|\/)(o\d|gpt-[5-9])/,
    quirks: { maxTokensField: "max_completion_tokens" },
    source: "https://docs.github.com/en/rest/models/inference",
  },
  {
    provider: openrouter,
    quirks: { effort: "reasoning", returnsReasoningDetails: true },
    source: "https://openrouter.ai/docs/use-cases/reasoning-tokens",
  },
  {
    provider: openrouter,
    model: /qwen/,
    quirks: { marksCache: true },
    source: "https://openrouter.ai/docs/guides/best-practices/prompt-caching",
  },
];

/** Returns the quirks of a model at a provider. `host` is the host name of its base URL. */
export function quirksOf(provider: string, host: string, model: string): Quirks {
  const name = model.toLowerCase();
  const apply = ({ provider: at, model: of }: Case): boolean =>
    (at === undefined || at.test(provider) || at.test(host)) && (of === undefined || of.test(name));
  return cases.filter(apply).reduce<Quirks>((quirks, found) => ({ ...quirks, ...found.quirks }), common);
}
