import type { Quirks } from "./quirks.ts";

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

const isRecord = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
