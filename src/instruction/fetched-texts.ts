import { messageOf } from "../base/errors.ts";

/** URLs of one session; further ones are left out. */
const urlsLimit = 20;

export type FetchedText = { readonly text: string } | { readonly problem: string };

/** Texts of configured URLs, each fetched once and kept, failures too, for as long as a session lives. */
export class FetchedTexts {
  readonly #fetch: (url: string) => Promise<string>;
  readonly #kept = new Map<string, Promise<FetchedText>>();

  /** `fetch` ends in good time and rejects with what went wrong. */
  constructor(fetch: (url: string) => Promise<string>) {
    this.#fetch = fetch;
  }

  begin(urls: readonly string[]): void {
    for (const url of urls) void this.get(url);
  }

  get(url: string): Promise<FetchedText> {
    const kept = this.#kept.get(url) ?? this.#fetchNew(url);
    this.#kept.set(url, kept);
    return kept;
  }

  async #fetchNew(url: string): Promise<FetchedText> {
    if (this.#kept.size >= urlsLimit) return { problem: `only ${urlsLimit} addresses are fetched` };
    try {
      return { text: await this.#fetch(url) };
    } catch (thrown) {
      return { problem: messageOf(thrown) };
    }
  }
}
