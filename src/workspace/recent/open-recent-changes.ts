import { once } from "../../base/async.ts";
import type {
  Author,
  AuthorChanges,
  RecentChange,
  RecentChanges,
  RecentChangesOptions,
} from "./recent-changes.ts";
import type { SharedChanges } from "./shared-changes.ts";

/** Loads nothing before the first change or question. */
export function openRecentChanges(options: RecentChangesOptions): RecentChanges {
  const load = once(async () => {
    const { SharedChanges } = await import("./shared-changes.ts");
    return new SharedChanges(options);
  });
  return { openFor: (author) => new SessionChanges(load, author) };
}

class SessionChanges implements AuthorChanges {
  readonly #load: () => Promise<SharedChanges>;
  readonly #author: () => Author;
  readonly #startedAt = Date.now();
  /** Times of the changes that were returned as news, by author and path. */
  #returned = new Map<string, number>();

  constructor(load: () => Promise<SharedChanges>, author: () => Author) {
    this.#load = load;
    this.#author = author;
  }

  async note(changes: readonly Pick<RecentChange, "path" | "after">[]): Promise<void> {
    if (changes.length === 0) return;
    await (await this.#load()).note(changes, this.#author());
  }

  async list(): Promise<RecentChange[]> {
    const { id } = this.#author();
    return (await (await this.#load()).list()).filter(({ author }) => author.id !== id);
  }

  async find(path: string): Promise<RecentChange | undefined> {
    return (await this.list()).find((change) => change.path === path);
  }

  async takeNews(): Promise<RecentChange[]> {
    const others = (await this.list()).filter(({ time }) => time >= this.#startedAt);
    const news = others.filter((change) => this.#returned.get(keyOf(change)) !== change.time);
    this.#returned = new Map(others.map((change) => [keyOf(change), change.time]));
    return news;
  }
}

const keyOf = ({ author, path }: RecentChange): string => `${author.id} ${path}`;
