import { createHash } from "node:crypto";
import { z } from "zod";

/** The consent that a person gave for one folder: to what, by the hash of its content, and when (milliseconds since 1970). */
export const trustedFolderSchema = z.object({
  folder: z.string(),
  consents: z.array(z.object({ hash: z.string(), time: z.number() })),
});
export type TrustedFolder = z.infer<typeof trustedFolderSchema>;

/** Where consent is kept, outside of every project. */
export interface TrustStore {
  load(id: string): Promise<TrustedFolder | undefined>;
  /** Changes what is stored, undefined removes it; no other session or process changes it meanwhile. */
  update(id: string, change: (known: TrustedFolder | undefined) => TrustedFolder | undefined): Promise<void>;
  ids(): Promise<string[]>;
}

/** Contents remembered of one folder, as branches differ; the oldest is forgotten first. */
const consentLimit = 50;

/** Which folders' own configuration counts in full, each for the content that the person saw. */
export class Trust {
  readonly #store: TrustStore;

  constructor(store: TrustStore) {
    this.#store = store;
  }

  /** `new` where nothing in the folder was ever consented to, `changed` where something else was. */
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

  /** Whether there was something to take back. */
  async revoke(folder: string): Promise<boolean> {
    let isStored = false;
    await this.#store.update(hashFolder(folder), (known) => {
      isStored = known !== undefined;
      return undefined;
    });
    return isStored;
  }

  /** By the folder's name. */
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
  return createHash("sha256").update(folder).digest("hex").slice(0, 32);
}
