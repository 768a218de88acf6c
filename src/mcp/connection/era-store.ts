import { z } from "zod";
import { sha256 } from "../../base/text/hash.ts";
import type { JsonStore } from "../../storage/json/json-store.ts";
import type { ServerSettings } from "../server-settings.ts";

/** Generation of the protocol: `legacy` begins with `initialize` (until 2025-11-25), `modern` has no handshake. */
export type Era = "legacy" | "modern";

const foundSchema = z.object({
  era: z.enum(["legacy", "modern"]),
  /** Name and version of the server, as it reported them. */
  server: z.string(),
  /** Milliseconds since 1970. */
  foundAt: z.number(),
});
const fileSchema = z.record(z.string(), foundSchema);

const fileKey = ["mcp-eras"];
/** Maximum number of stored servers. The oldest are removed. */
const serversLimit = 200;
/** After this time a server is asked again: it may have been updated. */
const lifeMs = 7 * 24 * 60 * 60_000;

/** The generations of the protocol that servers speak, by settings. */
export class EraStore {
  readonly #files: () => Promise<JsonStore>;

  constructor(files: () => Promise<JsonStore>) {
    this.#files = files;
  }

  async load(settings: ServerSettings): Promise<Era | undefined> {
    const files = await this.#files();
    const found = (await files.read(fileKey, fileSchema))?.[keyOf(settings)];
    return found !== undefined && isFresh(found) ? found.era : undefined;
  }

  /** Stores the generation. If another version of the server was stored, removes it, so that the server is asked again. */
  async save(settings: ServerSettings, era: Era, server: string): Promise<void> {
    await this.#update((all) => {
      const key = keyOf(settings);
      const { [key]: before, ...others } = all;
      if (before !== undefined && before.era === era && before.server === server && isFresh(before))
        return all;
      const isOtherVersion = before !== undefined && isFresh(before) && before.server !== server;
      if (isOtherVersion && era === "legacy") return others;
      return { ...others, [key]: { era, server, foundAt: Date.now() } };
    });
  }

  async forget(settings: ServerSettings): Promise<void> {
    await this.#update((all) => {
      const { [keyOf(settings)]: before, ...others } = all;
      return before === undefined ? all : others;
    });
  }

  async #update(change: (all: z.infer<typeof fileSchema>) => z.infer<typeof fileSchema>): Promise<void> {
    const files = await this.#files();
    await files.update(fileKey, fileSchema, (stored) => {
      const all = stored ?? {};
      const changed = change(all);
      if (changed === all) return stored;
      const newest = Object.entries(changed).toSorted(([, one], [, other]) => other.foundAt - one.foundAt);
      return Object.fromEntries(newest.slice(0, serversLimit));
    });
  }
}

function isFresh({ foundAt }: z.infer<typeof foundSchema>): boolean {
  return Math.abs(Date.now() - foundAt) < lifeMs;
}

/** Identifies the server by its settings, without values that may be secret. */
function keyOf(settings: ServerSettings): string {
  const { name } = settings;
  const where =
    settings.type === "local"
      ? [settings.command, settings.args, settings.cwd, Object.keys(settings.environment)]
      : [settings.url, settings.transport, Object.keys(settings.headers)];
  return sha256(JSON.stringify([name, where])).slice(0, 32);
}
