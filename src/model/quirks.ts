/** Where a provider or a family of models differs from what all others understand. */
export interface Quirks {
  /** The request's field for the limit of output tokens. */
  readonly maxTokensField: "max_tokens" | "max_completion_tokens";
  /** The request's field for the reasoning effort: a word, or an object that holds it. */
  readonly effortField: "reasoning_effort" | "reasoning";
  /** Whether usage must be asked for; where it comes by itself the question is refused. */
  readonly asksForUsage: boolean;
  /** Call ids that are accepted. */
  readonly callId: RegExp;
  /** Whether the reasoning of the running turn must be sent back. */
  readonly returnsReasoning: boolean;
  /** JSON Schema in full, or the part of it that OpenAPI 3.0 knows. */
  readonly schema: "full" | "openapi";
  /** Whether a user message may not follow a tool's result. */
  readonly answersTools: boolean;
  /** Stands for the signature of a call's reasoning, which is not kept. */
  readonly thoughtSignature?: string;
  /** Whether parts of the prompt must be marked for the provider to cache them. */
  readonly marksCache: boolean;
}

const common: Quirks = {
  maxTokensField: "max_tokens",
  effortField: "reasoning_effort",
  asksForUsage: true,
  callId: /^[A-Za-z0-9_.:-]{1,64}$/,
  returnsReasoning: false,
  schema: "full",
  answersTools: false,
  marksCache: false,
};

interface Case {
  readonly provider?: RegExp;
  readonly model?: RegExp;
  readonly quirks: Partial<Quirks>;
}

/** Later cases beat earlier ones. `provider` is matched against its id and its host. */
const cases: readonly Case[] = [
  // https://platform.openai.com/docs/api-reference/chat/create: max_tokens is refused by reasoning models.
  {
    provider: /(^openai$|\.openai\.com$|\.azure\.com$)/,
    quirks: { maxTokensField: "max_completion_tokens" },
  },
  // Calls are 40 characters at most with OpenAI; longer ids of another provider's turn would be refused.
  { provider: /(^openai$|\.openai\.com$)/, quirks: { callId: /^[A-Za-z0-9_-]{1,40}$/ } },
  { provider: /(^google$|\.googleapis\.com$)/, quirks: { schema: "openapi" } },
  // https://ai.google.dev/gemini-api/docs/thought-signatures: the word that switches the check off.
  {
    provider: /(^google$|\.googleapis\.com$)/,
    model: /gemini-[3-9]/,
    quirks: { thoughtSignature: "skip_thought_signature_validator" },
  },
  { model: /gemini/, quirks: { schema: "openapi" } },
  // Mistral: ids are exactly nine letters or digits, usage comes unasked, a tool's result wants an answer.
  {
    provider: /(^mistral$|\.mistral\.ai$)/,
    quirks: { asksForUsage: false, callId: /^[A-Za-z0-9]{9}$/, answersTools: true },
  },
  { model: /mistral|devstral|codestral/, quirks: { callId: /^[A-Za-z0-9]{9}$/, answersTools: true } },
  // These models lose the thread of a turn, or refuse it, without what they thought before their calls.
  {
    model: /deepseek-(chat|reasoner|v[3-9])|kimi-k2-thinking|glm-4\.[5-9]|glm-[5-9]|minimax-m/,
    quirks: { returnsReasoning: true },
  },
  { provider: /(^openrouter$|(^|\.)openrouter\.ai$)/, quirks: { effortField: "reasoning" } },
  { provider: /(^openrouter$|(^|\.)openrouter\.ai$)/, model: /claude/, quirks: { marksCache: true } },
];

/** The quirks of a model at a provider. `host` is the host name of its base URL. */
export function quirksOf(provider: string, host: string, model: string): Quirks {
  const name = model.toLowerCase();
  const apply = ({ provider: at, model: of }: Case): boolean =>
    (at === undefined || at.test(provider) || at.test(host)) && (of === undefined || of.test(name));
  return cases.filter(apply).reduce<Quirks>((quirks, found) => ({ ...quirks, ...found.quirks }), common);
}

type Json = Record<string, unknown>;

/** Keys of JSON Schema that OpenAPI 3.0, and so Gemini, refuses. */
const refusedKeys = new Set([
  "$schema",
  "$id",
  "$ref",
  "$defs",
  "$comment",
  "definitions",
  "additionalProperties",
  "unevaluatedProperties",
  "patternProperties",
  "propertyNames",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "default",
  "examples",
  "const",
  "not",
  "if",
  "then",
  "else",
  "contentEncoding",
  "contentMediaType",
]);

/** How deep a schema is followed; deeper levels accept anything. */
const depthLimit = 40;

/** A tool's input schema as the provider takes it. The root is always an object. */
export function toolSchema(schema: Json, quirks: Quirks): Json {
  const { $schema: _, ...rest } = schema;
  const root: Json = {
    ...rest,
    type: "object",
    properties: isRecord(rest.properties) ? rest.properties : {},
  };
  return quirks.schema === "full" ? root : toOpenApi(root, root, 0);
}

function toOpenApi(schema: Json, root: Json, depth: number): Json {
  if (depth > depthLimit) return {};
  const resolved = resolveRef(schema, root);
  const kept: Json = {};
  for (const [key, value] of Object.entries(resolved)) {
    if (!refusedKeys.has(key)) kept[key] = convertKey(key, value, root, depth);
  }
  if ("const" in resolved) kept.enum = [String(resolved.const)];
  if (Array.isArray(kept.enum)) Object.assign(kept, { type: "string", enum: kept.enum.map(String) });
  if (Array.isArray(kept.type)) Object.assign(kept, singleType(kept.type));
  if (typeof kept.format === "string" && !openApiFormats.has(kept.format)) delete kept.format;
  if (kept.type === "array" && !isRecord(kept.items)) kept.items = { type: "string" };
  if (Array.isArray(kept.required) && isRecord(kept.properties)) {
    const known = kept.properties;
    kept.required = kept.required.filter((name) => typeof name === "string" && Object.hasOwn(known, name));
  }
  return kept;
}

const openApiFormats = new Set(["enum", "date-time", "int32", "int64", "float", "double"]);

function convertKey(key: string, value: unknown, root: Json, depth: number): unknown {
  if (key === "properties" && isRecord(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [
        name,
        isRecord(one) ? toOpenApi(one, root, depth + 1) : {},
      ]),
    );
  }
  if (key === "items" && isRecord(value)) return toOpenApi(value, root, depth + 1);
  if (["anyOf", "oneOf", "allOf"].includes(key) && Array.isArray(value)) {
    return value.map((one) => (isRecord(one) ? toOpenApi(one, root, depth + 1) : {}));
  }
  return value;
}

function singleType(types: unknown[]): Json {
  const type = types.find((one) => one !== "null") ?? "string";
  return types.includes("null") ? { type, nullable: true } : { type };
}

function resolveRef(schema: Json, root: Json): Json {
  const { $ref: ref, ...rest } = schema;
  if (typeof ref !== "string" || !ref.startsWith("#/")) return schema;
  const target = ref
    .slice(2)
    .split("/")
    .reduce<unknown>((at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined), root);
  return isRecord(target) ? { ...target, ...rest } : rest;
}

/** A request's body as the provider takes it. */
export function adaptBody(body: Json, quirks: Quirks): Json {
  const { max_tokens: limit, reasoning_effort: effort, ...rest } = body;
  return {
    ...rest,
    ...(limit !== undefined && { [quirks.maxTokensField]: limit }),
    ...(effort !== undefined && effortOf(effort, quirks)),
    ...(quirks.marksCache && Array.isArray(rest.messages) && { messages: markCache(rest.messages) }),
  };
}

function effortOf(effort: unknown, quirks: Quirks): Json {
  return quirks.effortField === "reasoning" ? { reasoning: { effort } } : { reasoning_effort: effort };
}

/** Marks the system prompt and the last two messages, so that the next call finds all before them in the cache. */
function markCache(messages: unknown[]): unknown[] {
  return messages.map((message, index) => {
    const marked = index === 0 || index >= messages.length - 2;
    return marked && isRecord(message) ? withCacheMark(message) : message;
  });
}

function withCacheMark(message: Json): Json {
  const { content } = message;
  const parts = typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : content;
  if (!Array.isArray(parts)) return message;
  const last: unknown = parts.at(-1);
  if (!isRecord(last)) return message;
  return { ...message, content: [...parts.slice(0, -1), { ...last, cache_control: { type: "ephemeral" } }] };
}

const isRecord = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
