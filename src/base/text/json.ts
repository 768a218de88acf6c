/** Matches the JSON escape of a possible lone surrogate. */
const surrogateEscape = /\\u[dD]/;

/**
 * Serializes to JSON that strict parsers accept. A lone surrogate, which cut or streamed text can contain, is
 * escaped by `JSON.stringify` in a form that parsers of other languages reject; it becomes U+FFFD.
 */
export function toJson(value: unknown): string {
  const text = JSON.stringify(value);
  return surrogateEscape.test(text) ? JSON.stringify(value, replaceLoneSurrogates) : text;
}

/** Returns a JSON text in which lone surrogates are replaced. */
export function toWellFormedJson(text: string): string {
  return surrogateEscape.test(text) ? toJson(JSON.parse(text)) : text;
}

/** Parses JSON and replaces lone surrogates. Throws as `JSON.parse` does. */
export function fromJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return surrogateEscape.test(text) || !text.isWellFormed() ? JSON.parse(toJson(value)) : value;
}

function replaceLoneSurrogates(_key: string, value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  if (Object.keys(value).every((key) => key.isWellFormed())) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key.toWellFormed(), field]));
}

/** True when arrays and objects in a JSON text nest deeper than `limit`, which could overflow recursive code. */
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

/** Returns the index of the closing quote. Not a regular expression, which overflows the stack on long strings. */
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

/** Parses JSON; returns undefined when the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
