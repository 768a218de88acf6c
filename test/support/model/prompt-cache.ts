import { createHash } from "node:crypto";

/** Tokens of a prompt, by price. */
export interface Bill {
  /** Neither read from the cache nor written to it. */
  readonly fresh: number;
  readonly read: number;
  readonly write: number;
}

/** Prices as shares of the price of an input token. */
export interface CachePrice {
  readonly read: number;
  readonly write: number;
}

/** https://platform.claude.com/docs/en/build-with-claude/prompt-caching#pricing, for five minutes. */
export const anthropicPrice: CachePrice = { read: 0.1, write: 1.25 };
/** https://platform.openai.com/docs/guides/prompt-caching; of the GPT-5 family. */
export const openaiPrice: CachePrice = { read: 0.1, write: 1 };

/** Returns the cost of a bill, in fresh input tokens. */
export const computeCost = ({ fresh, read, write }: Bill, price: CachePrice): number =>
  fresh + read * price.read + write * price.write;
export const countTokensIn = ({ fresh, read, write }: Bill): number => fresh + read + write;
export const sumBills = (bills: readonly Bill[]): Bill =>
  bills.reduce(
    (sum, bill) => ({
      fresh: sum.fresh + bill.fresh,
      read: sum.read + bill.read,
      write: sum.write + bill.write,
    }),
    { fresh: 0, read: 0, write: 0 },
  );

/** English text and JSON have about four characters per token. */
const charactersPerToken = 4;
const tokensOf = (characters: number): number => Math.ceil(characters / charactersPerToken);

/** A block of a prompt, in the order tools, system, messages. */
export interface PromptBlock {
  readonly text: string;
  /** Whether it has a cache mark. */
  readonly isMarked: boolean;
}

/** A mark finds entries that end at most this many blocks before, itself counted. */
const lookBackBlocks = 20;
/** Shorter prompts are not cached. */
const minMarkedTokens = 1_024;

/**
 * Anthropic's cache: a request writes one entry for each mark, and reads the longest entry that ends at a mark or up to
 * 20 blocks before it (https://platform.claude.com/docs/en/build-with-claude/prompt-caching). Entries stay for a session.
 */
export class MarkedCache {
  readonly #entries = new Set<string>();

  take(blocks: readonly PromptBlock[]): Bill {
    const prefixes = prefixesOf(blocks);
    const marks = prefixes.flatMap(({ tokens }, at) =>
      blocks[at]?.isMarked === true && tokens >= minMarkedTokens ? [at] : [],
    );
    const found = marks.map((mark) => this.#lookBack(prefixes, mark));
    const read = Math.max(0, ...found.map((at) => prefixes[at]?.tokens ?? 0));
    const written = prefixes[marks.at(-1) ?? -1]?.tokens ?? 0;
    for (const mark of marks) this.#entries.add(prefixes[mark]?.hash ?? "");
    const total = prefixes.at(-1)?.tokens ?? 0;
    return { read, write: Math.max(0, written - read), fresh: total - Math.max(read, written) };
  }

  /** Returns the position of the longest entry within reach of a mark, or -1. */
  #lookBack(prefixes: readonly Prefix[], mark: number): number {
    for (let at = mark; at > mark - lookBackBlocks && at >= 0; at--) {
      if (this.#entries.has(prefixes[at]?.hash ?? "")) return at;
    }
    return -1;
  }
}

interface Prefix {
  readonly hash: string;
  readonly tokens: number;
}

function prefixesOf(blocks: readonly PromptBlock[]): Prefix[] {
  const hash = createHash("sha256");
  let characters = 0;
  return blocks.map(({ text }) => {
    hash.update(JSON.stringify(text));
    characters += text.length;
    return { hash: hash.copy().digest("hex"), tokens: tokensOf(characters) };
  });
}

/** Prefixes are cached from this length on, in steps. */
const minPrefixTokens = 1_024;
const prefixStepTokens = 128;

/**
 * OpenAI's cache: the longest common prefix with an earlier prompt on the same machine, from 1,024 tokens in steps of 128
 * (https://platform.openai.com/docs/guides/prompt-caching). The key and the beginning of the prompt choose the machine.
 */
export class PrefixCache {
  readonly #machines = new Map<string, string[]>();

  take(prompt: string, key: string | undefined): Bill {
    const machine = JSON.stringify([key, key === undefined ? prompt.slice(0, keylessPrefix) : ""]);
    const seen = this.#machines.get(machine) ?? [];
    const shared = Math.floor(
      Math.max(0, ...seen.map((one) => sharedPrefix(one, prompt))) / charactersPerToken,
    );
    const read = shared < minPrefixTokens ? 0 : Math.floor(shared / prefixStepTokens) * prefixStepTokens;
    this.#machines.set(machine, [...seen, prompt]);
    return { read, write: 0, fresh: tokensOf(prompt.length) - read };
  }
}

/** Length of the prompt's beginning that chooses the machine if there is no key. */
const keylessPrefix = 256 * charactersPerToken;

function sharedPrefix(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at++) if (one[at] !== other[at]) return at;
  return length;
}
