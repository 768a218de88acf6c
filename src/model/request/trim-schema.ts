import { isRecord } from "../../base/text/record.ts";

type Json = Record<string, unknown>;

/**
 * Longer texts and lists are unlimited for the model; the tool still checks them. llama.cpp compiles a limit into a
 * grammar and rejects the whole request from 2,000 repetitions on (https://github.com/ggml-org/llama.cpp/issues/27087).
 */
const repetitionLimit = 1_000;

/** Keywords whose value is a schema, a list of schemas, or schemas by name. Other values are copied unchanged. */
const schemaKeys: ReadonlySet<string> = new Set(["items", "additionalProperties", "not", "contains"]);
const listKeys: ReadonlySet<string> = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const nameKeys: ReadonlySet<string> = new Set(["properties", "patternProperties", "$defs", "definitions"]);

/** Returns the schema without keywords that restrict nothing or that models cannot use. They cost tokens in each request. */
export function trimSchema(schema: Json): Json {
  const kept = Object.entries(schema).filter(([key, value]) => !isWasteful(key, value));
  return Object.fromEntries(kept.map(([key, value]) => [key, trimValue(key, value)]));
}

function trimValue(key: string, value: unknown): unknown {
  if (schemaKeys.has(key)) return trimIfSchema(value);
  if (listKeys.has(key) && Array.isArray(value)) return value.map(trimIfSchema);
  if (!nameKeys.has(key) || !isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, trimIfSchema(inner)]));
}

const trimIfSchema = (value: unknown): unknown => (isRecord(value) ? trimSchema(value) : value);

function isWasteful(key: string, value: unknown): boolean {
  switch (key) {
    case "$schema":
    case "$comment":
      return true;
    case "minimum":
    case "maximum":
      // The bounds of every integer in JavaScript, which generators of schemas add.
      return Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER;
    case "minLength":
    case "minItems":
      return value === 0;
    case "maxLength":
    case "maxItems":
      return typeof value === "number" && value >= repetitionLimit;
    case "propertyNames":
      return isRecord(value) && Object.keys(value).length === 1 && value.type === "string";
    default:
      return false;
  }
}
