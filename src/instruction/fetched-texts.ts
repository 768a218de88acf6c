import { messageOf } from "../base/errors.ts";

/** Maximum number of URLs per session; the rest is ignored. */
const urlsLimit = 20;

export type FetchedText = { readonly text: string } | { readonly problem: string };

/** Contents of configured URLs, fetched once per session. Failures are cached too. */
export class FetchedTexts {
  readonly #fetch: (url: string) => Promise<string>;
  readonly #cache = new Map<string, Promise<FetchedText>>();

  /** `fetch` must time out by itself and reject on failure. */
  constructor(fetch: (url: string) => Promise<string>) {
    this.#fetch = fetch;
  }

  begin(urls: readonly string[]): void {
    for (const url of urls) void this.get(url);
  }

  get(url: string): Promise<FetchedText> {
    const text = this.#cache.get(url) ?? this.#fetchNew(url);
    this.#cache.set(url, text);
    return text;
  }

  async #fetchNew(url: string): Promise<FetchedText> {
    if (this.#cache.size >= urlsLimit) return { problem: `only ${urlsLimit} addresses are fetched` };
    try {
      return { text: await this.#fetch(url) };
    } catch (thrown) {
      return { problem: messageOf(thrown) };
    }
  }
}
