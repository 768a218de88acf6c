import { isRecord } from "../../base/text/record.ts";

type Json = Record<string, unknown>;

/** Keys of JSON Schema that OpenAPI 3.0, and so Gemini, refuses. */
const refusedKeys = new Set([
  "$schema",
  "$id",
  "$ref",
  "$comment",
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

const knownFormats = new Set(["enum", "date-time", "int32", "int64", "float", "double"]);

/** The part of JSON Schema that OpenAPI 3.0 knows, of a schema without references. */
export function toOpenApiSchema(schema: Json): Json {
  const kept: Json = {};
  for (const [key, value] of Object.entries(schema)) {
    if (!refusedKeys.has(key)) kept[key] = convertKey(key, value);
  }
  if ("const" in schema) kept.enum = [String(schema.const)];
  if (Array.isArray(kept.enum)) Object.assign(kept, { type: "string", enum: kept.enum.map(String) });
  if (Array.isArray(kept.type)) Object.assign(kept, singleType(kept.type));
  if (typeof kept.format === "string" && !knownFormats.has(kept.format)) delete kept.format;
  if (kept.type === "array" && !isRecord(kept.items)) kept.items = { type: "string" };
  if (Array.isArray(kept.required) && isRecord(kept.properties)) {
    const known = kept.properties;
    kept.required = kept.required.filter((name) => typeof name === "string" && Object.hasOwn(known, name));
  }
  return kept;
}

function convertKey(key: string, value: unknown): unknown {
  if (key === "properties" && isRecord(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, isRecord(one) ? toOpenApiSchema(one) : {}]),
    );
  }
  if (key === "items" && isRecord(value)) return toOpenApiSchema(value);
  if (["anyOf", "oneOf", "allOf"].includes(key) && Array.isArray(value)) {
    return value.map((one) => (isRecord(one) ? toOpenApiSchema(one) : {}));
  }
  return value;
}

function singleType(types: unknown[]): Json {
  const type = types.find((one) => one !== "null") ?? "string";
  return types.includes("null") ? { type, nullable: true } : { type };
}
