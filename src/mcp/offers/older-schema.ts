import { isRecord } from "../../base/text/record.ts";

/** Keywords that contain values, not schemas. */
const valueKeywords: ReadonlySet<string> = new Set(["const", "default", "enum", "examples"]);
/** Limits by the boolean keyword that makes them exclusive in draft 4. */
const limits: ReadonlyMap<string, string> = new Map([
  ["exclusiveMinimum", "minimum"],
  ["exclusiveMaximum", "maximum"],
]);

/**
 * Converts a schema of an older draft (4 to 7) to the current one, as far as models and providers need it.
 *
 * - Tuple items become one schema for all items, as providers require.
 * - Keywords with the value null are removed: some servers write them for missing ones.
 */
export function toNewerSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(toNewerSchema);
  if (!isRecord(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema).flatMap(([word, value]) => convertKeywords(schema, word, value)),
  );
}

function convertKeywords(schema: Record<string, unknown>, word: string, value: unknown): [string, unknown][] {
  if (valueKeywords.has(word)) return [[word, value]];
  if (value === null || isReplaced(schema, word)) return [];
  if (word === "items" && Array.isArray(value))
    return value.length === 0 ? [] : [[word, { anyOf: value.map(toNewerSchema) }]];
  if (typeof value !== "boolean" || !limits.has(word)) return [[word, toNewerSchema(value)]];
  const limit = schema[limits.get(word) ?? ""];
  return value && limit !== undefined ? [[word, limit]] : [];
}

/** Returns whether another keyword replaces this one. */
function isReplaced(schema: Record<string, unknown>, word: string): boolean {
  if (word === "additionalItems") return Array.isArray(schema["items"]);
  return [...limits].some(([exclusive, limit]) => word === limit && schema[exclusive] === true);
}
