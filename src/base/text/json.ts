/** In a JSON text that may hold half of a surrogate pair. */
const sign = /\\u[dD]/;

/**
 * JSON that strict readers take. Half of a surrogate pair, which a text can hold that was cut or that came in pieces,
 * is written by JavaScript as an escape for which parsers of other languages refuse the whole line: it becomes U+FFFD.
 */
export function toJson(value: unknown): string {
  const text = JSON.stringify(value);
  return sign.test(text) ? JSON.stringify(value, withWholeCharacters) : text;
}

/** The value of a JSON text, with no half of a surrogate pair in it. Throws as `JSON.parse` does. */
export function fromJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return sign.test(text) || !text.isWellFormed() ? JSON.parse(toJson(value)) : value;
}

function withWholeCharacters(_key: string, value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  if (Object.keys(value).every((key) => key.isWellFormed())) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key.toWellFormed(), field]));
}

/** Whether lists and objects of a JSON text stand in more than `limit` others: what is written by recursion has its end. */
export function nestsDeeper(limit: number, text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at + 1);
    else if (character === "[" || character === "{") depth++;
    else if (character === "]" || character === "}") depth--;
    if (depth > limit + 1) return true;
  }
  return false;
}

/** Where the quote stands that ends it. No expression: one that steps over what is escaped has no room for a long string. */
function endOfString(text: string, from: number): number {
  let end = text.indexOf('"', from);
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text[first - 1] === "\\") first--;
  return (at - first) % 2 === 1;
}

/** Undefined for a text that is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
