import { isDeepStrictEqual } from "node:util";
import { fromJson, nestsDeeper } from "../../base/text/json.ts";

/** Maximum nesting depth; the parser below is recursive. */
const nestingLimit = 100;
/** Maximum number of times that JSON text inside a JSON text is decoded. */
const encodingLimit = 2;

export interface TolerantJson {
  readonly value: unknown;
  /** The repaired faults; empty if the text is valid JSON. */
  readonly problems: readonly string[];
}

export interface TolerantOptions {
  /** Whether a fence or prose may surround the JSON. */
  readonly mayHaveProse?: boolean;
  /** Whether closing brackets may be missing at the end. */
  readonly mayComplete?: boolean;
  /** Whether `\$` and a backslash before a backquote, which have two meanings, are read as written. */
  readonly mayGuessEscapes?: boolean;
}

/**
 * Parses JSON with the faults that models make: a fence or prose around it, trailing commas, other quotes, raw line
 * breaks, unknown escapes, Python literals, bare keys, extra brackets. Returns undefined if the text has more than one
 * meaning, such as an inner quote that is not escaped, or was cut inside a value.
 */
export function parseTolerantJson(text: string, options: TolerantOptions = {}): TolerantJson | undefined {
  if (nestsDeeper(nestingLimit, text)) return undefined;
  try {
    return { value: fromJson(text), problems: [] };
  } catch {
    // Not strict JSON: that is what the parser below is for.
  }
  try {
    return new TolerantParser(text, options).parse();
  } catch (error) {
    if (error instanceof AmbiguousJson) return undefined;
    throw error;
  }
}

/** Decodes arguments that are JSON text inside a JSON text. */
export function decodeText(value: unknown): unknown {
  let decoded = value;
  for (let level = 0; level < encodingLimit && typeof decoded === "string"; level++) {
    const inner = parseTolerantJson(decoded);
    if (inner === undefined || typeof inner.value === "number" || typeof inner.value === "boolean") break;
    decoded = inner.value;
  }
  return decoded;
}

/** The text has no single meaning. */
class AmbiguousJson extends Error {}

const closingQuotes: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ["'", "'"],
  ["\u201c", "\u201d"],
]);

const simpleEscapes: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ["\\", "\\"],
  ["/", "/"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
]);

const literals: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["null", null],
  ["None", null],
  ["undefined", null],
]);

class TolerantParser {
  readonly #text: string;
  readonly #options: TolerantOptions;
  readonly #problems = new Set<string>();
  #at = 0;

  constructor(text: string, options: TolerantOptions) {
    this.#text = text;
    this.#options = options;
  }

  parse(): TolerantJson {
    this.#skipProse();
    this.#skipDoubledBraces();
    const value = this.#value(0);
    this.#checkRest(value);
    return { value: fromJson(JSON.stringify(value)), problems: [...this.#problems] };
  }

  /** Skips a fence or a sentence before the first bracket. */
  #skipProse(): void {
    const start = /^\s*["'\u201c]/.test(this.#text) ? 0 : this.#text.search(/[{[]/);
    if (start === -1) throw new AmbiguousJson();
    if (this.#text.slice(0, start).trim() !== "") this.#addProse();
    this.#at = start;
    this.#skipBlanks();
  }

  /** Skips all but the last of the braces that a template doubles: `{{"a": 1}}`. */
  #skipDoubledBraces(): void {
    while (/^\{\s*\{/.test(this.#text.slice(this.#at, this.#at + 40))) {
      this.#at++;
      this.#skipBlanks();
      this.#problems.add("a bracket too many");
    }
  }

  /** Accepts after the value: nothing, extra brackets, the same value again, or a text without brackets. */
  #checkRest(value: unknown): void {
    const rest = this.#text.slice(this.#at).trim();
    if (rest === "") return;
    if (/^[}\]\s]+$/.test(rest)) {
      this.#problems.add("a bracket too many");
      return;
    }
    if (/^[{[]/.test(rest) && this.#isRepeated(value)) return;
    if (/["'{}[\]:]/.test(rest)) throw new AmbiguousJson();
    this.#addProse();
  }

  #addProse(): void {
    if (this.#options.mayHaveProse !== true) throw new AmbiguousJson();
    this.#problems.add("text around the JSON");
  }

  #isRepeated(value: unknown): boolean {
    this.#skipBlanks();
    const again = this.#value(0);
    if (this.#text.slice(this.#at).trim() !== "" || !isDeepStrictEqual(value, again))
      throw new AmbiguousJson();
    this.#problems.add("the same arguments twice");
    return true;
  }

  #value(depth: number): unknown {
    const sign = this.#text[this.#at] ?? "";
    if (depth > nestingLimit) throw new AmbiguousJson();
    if (sign === "{") return this.#object(depth);
    if (sign === "[") return this.#list(depth);
    if (closingQuotes.has(sign)) return this.#string();
    const word = /^[^\s,:{}[\]"']+/.exec(this.#text.slice(this.#at, this.#at + 400))?.[0] ?? "";
    this.#at += word.length;
    if (literals.has(word)) {
      if (/^[A-Zu]/.test(word)) this.#problems.add("a literal of another language");
      return literals.get(word);
    }
    if (!/^-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/.test(word)) throw new AmbiguousJson();
    return Number(word);
  }

  #object(depth: number): unknown {
    const entries: [string, unknown][] = [];
    this.#at++;
    while (!this.#closes("}", entries.length > 0)) {
      const key = this.#key();
      if (!this.#take(":") || entries.some(([other]) => other === key)) throw new AmbiguousJson();
      entries.push([key, this.#value(depth + 1)]);
    }
    return Object.fromEntries(entries);
  }

  #list(depth: number): unknown {
    const items: unknown[] = [];
    this.#at++;
    while (!this.#closes("]", items.length > 0)) items.push(this.#value(depth + 1));
    return items;
  }

  /** Whether the object or list ends here. Otherwise takes the comma before the next entry. */
  #closes(bracket: string, hasEntries: boolean): boolean {
    this.#skipBlanks();
    if (this.#at >= this.#text.length) return this.#complete(hasEntries);
    const hasComma = hasEntries && this.#take(",");
    if (hasComma && this.#at >= this.#text.length) return this.#complete(hasEntries);
    if (this.#text[this.#at] === bracket) {
      if (hasComma) this.#problems.add("a trailing comma");
      this.#at++;
      return true;
    }
    if (hasEntries && !hasComma) throw new AmbiguousJson();
    return false;
  }

  #complete(hasEntries: boolean): true {
    if (this.#options.mayComplete !== true || !hasEntries) throw new AmbiguousJson();
    this.#problems.add("a missing bracket at the end");
    return true;
  }

  #key(): string {
    if (closingQuotes.has(this.#text[this.#at] ?? "")) return this.#string();
    const key = /^[A-Za-z_][\w-]{0,99}(?=\s*:)/.exec(this.#text.slice(this.#at, this.#at + 200))?.[0];
    if (key === undefined) throw new AmbiguousJson();
    this.#at += key.length;
    this.#problems.add("a key without quotes");
    return key;
  }

  #string(): string {
    const open = this.#text[this.#at] ?? "";
    const close = closingQuotes.get(open) ?? '"';
    if (open !== '"') this.#problems.add("other quotes");
    const parts: string[] = [];
    for (this.#at++; this.#text[this.#at] !== close; this.#at++) {
      if (this.#at >= this.#text.length) throw new AmbiguousJson();
      const sign = this.#text[this.#at] ?? "";
      if (sign < " ") this.#problems.add("a line break or tab in a text");
      parts.push(sign === "\\" ? this.#escape(close) : sign);
    }
    this.#at++;
    return parts.join("");
  }

  #escape(close: string): string {
    const sign = this.#text[++this.#at] ?? "";
    const simple = simpleEscapes.get(sign);
    if (simple !== undefined) return simple;
    const hex =
      sign === "u" ? /^[\da-fA-F]{4}/.exec(this.#text.slice(this.#at + 1, this.#at + 5))?.[0] : undefined;
    if (hex !== undefined) {
      this.#at += 4;
      return String.fromCharCode(Number.parseInt(hex, 16));
    }
    this.#problems.add("an unknown escape");
    if (sign === close || sign === "'") return sign;
    // "\$" may be meant with or without the backslash.
    if (/[$`\s]/.test(sign) && this.#options.mayGuessEscapes !== true) throw new AmbiguousJson();
    return `\\${sign}`;
  }

  #take(sign: string): boolean {
    this.#skipBlanks();
    if (this.#text[this.#at] !== sign) return false;
    this.#at++;
    this.#skipBlanks();
    return true;
  }

  #skipBlanks(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at++;
  }
}
