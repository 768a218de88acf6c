/** Maximum nesting of lists and objects. */
const nestingLimit = 50;

/** Quotes without escapes: tokens of Gemma's templates, Python's triple quotes. */
const rawQuotes = ['<|"|>', "<escape>", '"""', "'''"] as const;

const escapes: ReadonlyMap<string, string> = new Map([
  ["n", "\n"],
  ["t", "\t"],
  ["r", "\r"],
  ["\n", ""],
]);

const words: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ["True", true],
  ["true", true],
  ["False", false],
  ["false", false],
  ["None", null],
  ["null", null],
]);

/** The text has no single meaning. */
class AmbiguousLiteral extends Error {}

/**
 * Parses named arguments in brackets: `(path="a", limit=3)` of Python, `{path:<|"|>a<|"|>,limit:3}` of Gemma. Returns
 * undefined if they have no single meaning or are not complete.
 */
export function parseNamedArguments(
  text: string,
  at: number,
): { input: Record<string, unknown>; end: number } | undefined {
  const reader = new LiteralReader(text, at);
  try {
    return { input: reader.readEntries(0), end: reader.at };
  } catch (error) {
    if (error instanceof AmbiguousLiteral) return undefined;
    throw error;
  }
}

class LiteralReader {
  readonly #text: string;
  at: number;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  readEntries(depth: number): Record<string, unknown> {
    const close = this.#text[this.at] === "(" ? ")" : "}";
    this.#expect(/[({]\s*/y);
    const entries: [string, unknown][] = [];
    while (this.#take(close) === undefined) {
      const key = this.#readKey();
      this.#expect(/\s*[=:]\s*/y);
      if (entries.some(([other]) => other === key)) throw new AmbiguousLiteral();
      entries.push([key, this.#readValue(depth + 1)]);
      this.#readSeparator(close);
    }
    return Object.fromEntries(entries);
  }

  #readKey(): string {
    const quote = this.#text[this.at];
    if (quote === '"' || quote === "'") return this.#readQuoted(quote);
    return this.#readRaw() ?? this.#expect(/[A-Za-z_][\w-]{0,99}/y);
  }

  #readValue(depth: number): unknown {
    if (depth > nestingLimit) throw new AmbiguousLiteral();
    const raw = this.#readRaw();
    if (raw !== undefined) return raw;
    const sign = this.#text[this.at] ?? "";
    if (sign === '"' || sign === "'") return this.#readQuoted(sign);
    if (sign === "[") return this.#readList(depth);
    if (sign === "{") return this.readEntries(depth);
    const word = this.#expect(/[^,(){}[\]\n"'<>]+/y).trim();
    if (words.has(word)) return words.get(word);
    if (word === "") throw new AmbiguousLiteral();
    return /^-?\d+(?:\.\d+)?$/.test(word) ? Number(word) : word;
  }

  #readList(depth: number): unknown[] {
    this.#expect(/\[\s*/y);
    const items: unknown[] = [];
    while (this.#take("]") === undefined) {
      items.push(this.#readValue(depth + 1));
      this.#readSeparator("]");
    }
    return items;
  }

  /** Reads the comma between entries. None is needed before the closing bracket. */
  #readSeparator(close: string): void {
    this.#expect(/\s*/y);
    if (this.#text[this.at] !== close) this.#expect(/,\s*/y);
  }

  #readRaw(): string | undefined {
    const quote = rawQuotes.find((one) => this.#text.startsWith(one, this.at));
    if (quote === undefined) return undefined;
    const start = this.at + quote.length;
    const end = this.#text.indexOf(quote, start);
    if (end === -1) throw new AmbiguousLiteral();
    this.at = end + quote.length;
    return this.#text.slice(start, end);
  }

  #readQuoted(quote: string): string {
    const characters: string[] = [];
    for (this.at++; this.#text[this.at] !== quote; this.at++) {
      const sign = this.#text[this.at];
      if (sign === undefined) throw new AmbiguousLiteral();
      if (sign !== "\\") characters.push(sign);
      else {
        const escaped = this.#text[++this.at] ?? "";
        const known = escapes.get(escaped) ?? (/[\\"']/.test(escaped) ? escaped : `\\${escaped}`);
        characters.push(known);
      }
    }
    this.at++;
    return characters.join("");
  }

  #take(sign: string): string | undefined {
    if (this.#text[this.at] !== sign) return undefined;
    this.at++;
    return sign;
  }

  #expect(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined) throw new AmbiguousLiteral();
    this.at += found.length;
    return found;
  }
}
