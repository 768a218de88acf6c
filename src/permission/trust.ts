import { z } from "zod";
import { sha256 } from "../base/text/hash.ts";

/** The user's consents for one folder: the hash of the content, and the time in milliseconds since 1970. */
export const trustedFolderSchema = z.object({
  folder: z.string(),
  consents: z.array(z.object({ hash: z.string(), time: z.number() })),
});
export type TrustedFolder = z.infer<typeof trustedFolderSchema>;

/** Storage of consents, outside every project. */
export interface TrustStore {
  load(id: string): Promise<TrustedFolder | undefined>;
  /** Changes the stored value under a lock shared by all processes; undefined removes it. */
  update(id: string, change: (known: TrustedFolder | undefined) => TrustedFolder | undefined): Promise<void>;
  ids(): Promise<string[]>;
}

/** Maximum number of consents per folder, as branches differ; the oldest are dropped. */
const consentLimit = 50;

/** The folders whose own configuration is trusted, each for the content that the user saw. */
export class Trust {
  readonly #store: TrustStore;

  constructor(store: TrustStore) {
    this.#store = store;
  }

  /** Returns `new` without any consent for the folder, `changed` if the consent is for other content. */
  async check(folder: string, hash: string): Promise<"trusted" | "changed" | "new"> {
    const known = await this.#store.load(hashFolder(folder));
    if (known === undefined || known.folder !== folder) return "new";
    return known.consents.some((consent) => consent.hash === hash) ? "trusted" : "changed";
  }

  async add(folder: string, hash: string): Promise<void> {
    await this.#store.update(hashFolder(folder), (known) => {
      const others = (known?.consents ?? []).filter((consent) => consent.hash !== hash);
      return { folder, consents: [...others, { hash, time: Date.now() }].slice(-consentLimit) };
    });
  }

  /** Returns whether the folder was trusted. */
  async revoke(folder: string): Promise<boolean> {
    let isStored = false;
    await this.#store.update(hashFolder(folder), (known) => {
      isStored = known !== undefined;
      return undefined;
    });
    return isStored;
  }

  /** Sorted by folder. */
  async list(): Promise<TrustedFolder[]> {
    const folders: TrustedFolder[] = [];
    for (const id of await this.#store.ids()) {
      const trusted = await this.#store.load(id);
      if (trusted !== undefined) folders.push(trusted);
    }
    return folders.sort((one, other) => (one.folder < other.folder ? -1 : 1));
  }
}

function hashFolder(folder: string): string {
  return sha256(folder).slice(0, 32);
}
