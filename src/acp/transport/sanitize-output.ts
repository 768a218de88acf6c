import { removeControls } from "../../base/text/controls.ts";
import { toJson } from "../../base/text/json.ts";

/** Fields in which the client is told something in our words, whoever chose them: providers, servers, models, projects. */
const sanitizedFields: ReadonlySet<string> = new Set(["message", "title", "name", "description", "hint"]);

/** Fields that stay as they are: what the client called it, what tools were given and what they returned. */
const unchangedFields: ReadonlySet<string> = new Set(["sessionId", "rawInput", "rawOutput", "content"]);

/** In a JSON text that may hold a control character or a sign that turns the direction of writing. */
const controlPattern = /\\u00[01]|\\[bfr]|[\u{7f}-\u{9f}\u{202a}-\u{202e}\u{2066}-\u{2069}]/u;

/**
 * The JSON of what goes to the client. In errors, titles, names and what explains them there is nothing that a
 * terminal would obey or that turns writing around.
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
