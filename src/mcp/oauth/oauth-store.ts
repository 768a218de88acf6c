import { createHash } from "node:crypto";
import { z } from "zod";
import { sleep } from "../../base/async.ts";
import type { Secrets } from "../../base/secrets/secrets.ts";
import type { JsonStore } from "../../storage/json/json-store.ts";
import { acquireStoreLease } from "../../storage/json/lock.ts";

/** What an authorization server gave this program as its name. More fields than these are kept as they came. */
const clientSchema = z.looseObject({
  client_id: z.string(),
  client_secret: z.string().optional(),
  /** Seconds since 1970; 0 for never. */
  client_secret_expires_at: z.number().optional(),
  issuer: z.string().optional(),
});
export type OAuthClient = z.infer<typeof clientSchema>;

const tokensSchema = z.looseObject({
  access_token: z.string(),
  token_type: z.string(),
  /** Seconds from when they were given. */
  expires_in: z.number().optional(),
  refresh_token: z.string().optional(),
  scope: z.string().optional(),
  issuer: z.string().optional(),
});

const authorizationSchema = z.object({
  serverUrl: z.string(),
  client: clientSchema.optional(),
  /** Where the browser was to return to when the client was registered. */
  redirectUrl: z.string().optional(),
  tokens: tokensSchema.optional(),
  /** What the tokens are for, as the server's metadata writes it. */
  resource: z.string().optional(),
  /** Milliseconds since 1970 after which the access token is refused; undefined where nobody said. */
  expiresAt: z.number().optional(),
});

/** What is kept of the right to use one remote server. */
export type StoredAuthorization = z.infer<typeof authorizationSchema>;

export interface AuthorizationStoreDeps {
  files(): Promise<JsonStore>;
  /** Learns every token that is read or written, so that none reaches a log, a command or the model. */
  secrets: Secrets;
}

const folder = "mcp-authorization";

/** How long one process waits for another one that renews the same tokens. */
const leaseWaitMs = 20_000;
const leasePauseMs = 50;

/** Tokens and registrations of remote servers, a file for each address, readable by this person only. */
export class AuthorizationStore {
  readonly #deps: AuthorizationStoreDeps;

  constructor(deps: AuthorizationStoreDeps) {
    this.#deps = deps;
  }

  async load(serverUrl: string): Promise<StoredAuthorization | undefined> {
    const files = await this.#deps.files();
    const stored = await files.read(keyOf(serverUrl), authorizationSchema);
    // Tokens are for one address; a file that was copied to another name counts for none.
    if (stored === undefined || stored.serverUrl !== addressOf(serverUrl)) return undefined;
    return this.#known(stored);
  }

  /** Changes what is stored of a server; what is left out stays. */
  async save(serverUrl: string, change: Omit<StoredAuthorization, "serverUrl">): Promise<void> {
    const files = await this.#deps.files();
    await files.update(keyOf(serverUrl), authorizationSchema, (before) =>
      this.#known({ ...before, ...change, serverUrl: addressOf(serverUrl) }),
    );
  }

  /** False where nothing was stored. */
  async forget(serverUrl: string): Promise<boolean> {
    const files = await this.#deps.files();
    let isStored = false;
    await files.update(keyOf(serverUrl), authorizationSchema, (stored) => {
      isStored = stored?.serverUrl === addressOf(serverUrl);
      return undefined;
    });
    return isStored;
  }

  /** Everything that is stored, by address. */
  async list(): Promise<StoredAuthorization[]> {
    const files = await this.#deps.files();
    const names = (await files.entries([folder])).map(({ name }) => name);
    const found: StoredAuthorization[] = [];
    for await (const { value } of files.readEach([folder], names, authorizationSchema)) {
      if (value !== undefined) found.push(this.#known(value));
    }
    return found.sort((one, other) => (one.serverUrl < other.serverUrl ? -1 : 1));
  }

  /**
   * Runs the work while no other process changes the tokens of this server: a refresh token counts once. After a long
   * wait it runs nevertheless.
   */
  async exclusively<T>(serverUrl: string, work: () => Promise<T>): Promise<T> {
    const lease = await this.#lease(serverUrl);
    try {
      return await work();
    } finally {
      await lease?.release();
    }
  }

  async #lease(serverUrl: string) {
    const files = await this.#deps.files();
    const last = performance.now() + leaseWaitMs;
    while (performance.now() < last) {
      const lease = await acquireStoreLease(files, keyOf(serverUrl).join("-"));
      if (lease.status === "held") return lease;
      await sleep(leasePauseMs);
    }
    return undefined;
  }

  #known(stored: StoredAuthorization): StoredAuthorization {
    const { client, tokens } = stored;
    const secrets = [client?.client_secret, tokens?.access_token, tokens?.refresh_token];
    this.#deps.secrets.add(secrets.filter((value) => value !== undefined));
    return stored;
  }
}

function keyOf(serverUrl: string): string[] {
  return [folder, createHash("sha256").update(addressOf(serverUrl)).digest("hex").slice(0, 32)];
}

/** The address without what the server never sees. Throws for what is no address. */
function addressOf(serverUrl: string): string {
  const url = new URL(serverUrl);
  url.hash = "";
  return url.href;
}
