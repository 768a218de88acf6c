import { isRecord } from "../../base/text/record.ts";

/** What stands behind these are values, not schemas. */
const valued: ReadonlySet<string> = new Set(["const", "default", "enum", "examples"]);
/** Limits by the word that, true in draft 4, leaves the limit itself out. */
const limits: ReadonlyMap<string, string> = new Map([
  ["exclusiveMinimum", "minimum"],
  ["exclusiveMaximum", "maximum"],
]);

/**
 * A schema of an older draft (4 to 7) in today's words, as far as models and providers need it. What the items of a
 * tuple may be, each may be then, for providers want one schema of all. Words that are null, as some servers write
 * what they leave out, go.
 */
export function toNewerSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(toNewerSchema);
  if (!isRecord(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema).flatMap(([word, value]) => newerWords(schema, word, value)),
  );
}

function newerWords(schema: Record<string, unknown>, word: string, value: unknown): [string, unknown][] {
  if (valued.has(word)) return [[word, value]];
  if (value === null || isReplaced(schema, word)) return [];
  if (word === "items" && Array.isArray(value))
    return value.length === 0 ? [] : [[word, { anyOf: value.map(toNewerSchema) }]];
  if (typeof value !== "boolean" || !limits.has(word)) return [[word, toNewerSchema(value)]];
  const limit = schema[limits.get(word) ?? ""];
  return value && limit !== undefined ? [[word, limit]] : [];
}

/** Whether another word of the schema says it now. */
function isReplaced(schema: Record<string, unknown>, word: string): boolean {
  if (word === "additionalItems") return Array.isArray(schema["items"]);
  return [...limits].some(([exclusive, limit]) => word === limit && schema[exclusive] === true);
}
