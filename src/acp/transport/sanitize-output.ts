import { removeControls } from "../../base/text/controls.ts";
import { toJson } from "../../base/text/json.ts";

/** Display fields; their texts may come from providers, servers, models and projects. */
const sanitizedFields: ReadonlySet<string> = new Set(["message", "title", "name", "description", "hint"]);

/** Fields that are never changed: ids of the client, and inputs and outputs of tools. */
const unchangedFields: ReadonlySet<string> = new Set(["sessionId", "rawInput", "rawOutput", "content"]);

/** Matches JSON that may contain a control character or a bidirectional control character. */
const controlPattern = /\\u00[01]|\\[bfr]|[\u{7f}-\u{9f}\u{202a}-\u{202e}\u{2066}-\u{2069}]/u;

/**
 * Serializes a message to the client. Removes terminal and bidirectional control characters from errors, titles, names
 * and descriptions.
 */
export function toWireJson(value: unknown): string {
  const text = toJson(value);
  return controlPattern.test(text) ? toJson(sanitize(value, undefined, false)) : text;
}

function sanitize(value: unknown, field: string | undefined, isError: boolean): unknown {
  if (typeof value === "string")
    return isError || (field !== undefined && sanitizedFields.has(field)) ? removeControls(value) : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => sanitize(one, undefined, isError));
  const fields = Object.entries(value).map(([key, one]) => [
    key,
    unchangedFields.has(key) ? one : sanitize(one, key, isError || key === "error"),
  ]);
  return Object.fromEntries(fields);
}
