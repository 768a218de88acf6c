import { isRecord } from "../../base/text/record.ts";

type Json = Record<string, unknown>;

/** JSON Schema keywords that OpenAPI 3.0, and therefore Gemini, rejects. */
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

/** Converts a schema without references to the subset of JSON Schema that OpenAPI 3.0 supports. */
export function toOpenApiSchema(schema: Json): Json {
  const result: Json = {};
  for (const [key, value] of Object.entries(schema)) {
    if (!refusedKeys.has(key)) result[key] = convertKey(key, value);
  }
  if ("const" in schema) result.enum = [String(schema.const)];
  if (Array.isArray(result.enum)) Object.assign(result, { type: "string", enum: result.enum.map(String) });
  if (Array.isArray(result.type)) Object.assign(result, singleType(result.type));
  if (typeof result.format === "string" && !knownFormats.has(result.format)) delete result.format;
  if (result.type === "array" && !isRecord(result.items)) result.items = { type: "string" };
  if (Array.isArray(result.required) && isRecord(result.properties)) {
    const known = result.properties;
    result.required = result.required.filter(
      (name) => typeof name === "string" && Object.hasOwn(known, name),
    );
  }
  return result;
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
