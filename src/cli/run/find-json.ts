/** Places in a text at which an object or array is searched; more are a sign that it has none. */
const attemptLimit = 200;

/**
 * Finds the JSON value in a model's answer: the whole text, the content of a Markdown fence, or else the first object
 * or array.
 */
export function findJson(text: string): { readonly value: unknown } | undefined {
  const whole = parse(text.trim());
  if (whole !== undefined) return whole;
  for (const [, content = ""] of text.matchAll(/^ {0,3}`{3,}[^\n`]*\n(.*?)^ {0,3}`{3,} *$/gms)) {
    const fenced = parse(content.trim());
    if (fenced !== undefined) return fenced;
  }
  let attempts = 0;
  for (const { index } of text.matchAll(/[[{]/g)) {
    if (++attempts > attemptLimit) return undefined;
    const end = findEnd(text, index);
    const found = end === undefined ? undefined : parse(text.slice(index, end));
    if (found !== undefined) return found;
  }
  return undefined;
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** Returns the end of the object or array that begins at `start`; undefined if it is not closed. */
function findEnd(text: string, start: number): number | undefined {
  let depth = 0;
  let isString = false;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (isString) {
      if (character === "\\") at++;
      else if (character === '"') isString = false;
    } else if (character === '"') isString = true;
    else if (character === "{" || character === "[") depth++;
    else if ((character === "}" || character === "]") && --depth === 0) return at + 1;
  }
  return undefined;
}
