import { z } from "zod";
import { sha256 } from "../../base/text/hash.ts";
import { sleep } from "../../base/async.ts";
import type { Secrets } from "../../base/secrets/secrets.ts";
import type { JsonStore } from "../../storage/json/json-store.ts";
import { acquireStoreLease } from "../../storage/json/lock.ts";

/** Client registration at an authorization server. Unknown fields are stored unchanged. */
const clientSchema = z.looseObject({
  client_id: z.string(),
  client_secret: z.string().optional(),
  /** Seconds since 1970; 0 means never. */
  client_secret_expires_at: z.number().optional(),
  issuer: z.string().optional(),
});
export type OAuthClient = z.infer<typeof clientSchema>;

const tokensSchema = z.looseObject({
  access_token: z.string(),
  token_type: z.string(),
  /** Lifetime in seconds. */
  expires_in: z.number().optional(),
  refresh_token: z.string().optional(),
  scope: z.string().optional(),
  issuer: z.string().optional(),
});

const authorizationSchema = z.object({
  serverUrl: z.string(),
  client: clientSchema.optional(),
  /** Redirect URI of the registration. */
  redirectUrl: z.string().optional(),
  tokens: tokensSchema.optional(),
  /** Resource identifier of the tokens, as in the server's metadata. */
  resource: z.string().optional(),
  /** Expiry of the access token in milliseconds since 1970; undefined if unknown. */
  expiresAt: z.number().optional(),
});

/** Stored authorization of a remote server. */
export type StoredAuthorization = z.infer<typeof authorizationSchema>;

export interface AuthorizationStoreDeps {
  files(): Promise<JsonStore>;
  /** Registers each token for redaction in logs, commands and texts for the model. */
  secrets: Secrets;
}

const folder = "mcp-authorization";

/** How long to wait for another process that refreshes the same tokens. */
const leaseWaitMs = 20_000;
const leasePauseMs = 50;

/** Tokens and registrations of remote servers, one file per address. Only the user can read them. */
export class AuthorizationStore {
  readonly #deps: AuthorizationStoreDeps;

  constructor(deps: AuthorizationStoreDeps) {
    this.#deps = deps;
  }

  async load(serverUrl: string): Promise<StoredAuthorization | undefined> {
    const files = await this.#deps.files();
    const stored = await files.read(keyOf(serverUrl), authorizationSchema);
    // Ignores files of another address: they were copied.
    if (stored === undefined || stored.serverUrl !== normalizeUrl(serverUrl)) return undefined;
    return this.#known(stored);
  }

  /** Updates the given fields of a server's entry. */
  async save(serverUrl: string, change: Omit<StoredAuthorization, "serverUrl">): Promise<void> {
    const files = await this.#deps.files();
    await files.update(keyOf(serverUrl), authorizationSchema, (before) =>
      this.#known({ ...before, ...change, serverUrl: normalizeUrl(serverUrl) }),
    );
  }

  /** Deletes an entry. Returns false if there was none. */
  async forget(serverUrl: string): Promise<boolean> {
    const files = await this.#deps.files();
    let isStored = false;
    await files.update(keyOf(serverUrl), authorizationSchema, (stored) => {
      isStored = stored?.serverUrl === normalizeUrl(serverUrl);
      return undefined;
    });
    return isStored;
  }

  /** Returns all entries by address. */
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
   * Runs the work under a lock on the tokens of this server, since a refresh token can be used once. Runs without the lock
   * after a long wait.
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
  return [folder, sha256(normalizeUrl(serverUrl)).slice(0, 32)];
}

/** Normalizes a URL by removing its fragment. Throws for invalid URLs. */
function normalizeUrl(serverUrl: string): string {
  const url = new URL(serverUrl);
  url.hash = "";
  return url.href;
}
