import { connect } from "node:net";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Secrets } from "../../../src/base/secrets/secrets.ts";
import { silentLog } from "../../../src/base/log.ts";
import {
  authorize,
  type AuthorizeDeps,
  type AuthorizeOutcome,
  type ShowAddress,
} from "../../../src/mcp/oauth/oauth-flow.ts";
import { checkEndpoint } from "../../../src/mcp/oauth/oauth-requests.ts";
import { AuthorizationStore } from "../../../src/mcp/oauth/oauth-store.ts";
import { AuthorizationNeeded } from "../../../src/mcp/oauth/oauth-challenge.ts";
import { ServerTokens } from "../../../src/mcp/oauth/oauth-tokens.ts";
import type { RemoteServer } from "../../../src/mcp/server-settings.ts";
import { JsonStore } from "../../../src/storage/json/json-store.ts";
import { listen } from "../../support/listen.ts";
import {
  type OAuthFaults,
  type OAuthServer,
  startOAuthServer,
  visit,
} from "../../support/mcp/mcp-oauth-server.ts";
import { shownMode } from "../../support/platform/platform.ts";
import { temporaryFolder, type TemporaryFolder } from "../../support/temp.ts";

const never = new AbortController().signal;
const hello = {
  method: "POST",
  headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
};

let folder: TemporaryFolder;
let secrets: Secrets;
let store: AuthorizationStore;
beforeEach(async () => {
  folder = await temporaryFolder();
  ({ store, secrets } = openStore());
});
afterEach(() => folder.remove());

/** The store as another process would read it. */
function openStore() {
  const known = new Secrets();
  const files = new JsonStore({ root: folder.path, log: silentLog });
  return { store: new AuthorizationStore({ files: async () => files, secrets: known }), secrets: known };
}

interface Scene {
  server: OAuthServer;
  settings: RemoteServer;
  /** The user agrees by default. */
  run: (how?: Partial<AuthorizeDeps>, signal?: AbortSignal) => Promise<AuthorizeOutcome>;
  tokens: ServerTokens;
}

async function scene(
  faults: OAuthFaults,
  play: (scene: Scene) => Promise<void>,
  more: Partial<RemoteServer> = {},
): Promise<void> {
  await using server = await startOAuthServer(faults);
  const settings = { ...remote("notes", server.url), timeoutMs: 2_000, ...more };
  const deps = { store, fetch, show: browse, waitMs: 5_000 };
  await play({
    server,
    settings,
    run: (how, signal = never) => authorize(settings, { ...deps, ...how }, signal),
    tokens: new ServerTokens(settings, { store, fetch }),
  });
}

/** Returns the error with which a request says that the user must authorize. */
async function neededBy(request: Promise<unknown>): Promise<AuthorizationNeeded> {
  const error: unknown = await request.catch((thrown: unknown) => thrown);
  if (error instanceof AuthorizationNeeded) return error;
  throw new Error(`no authorization was needed: ${String(error)}`);
}

const browse: ShowAddress = async (address) => {
  await visit(address);
  return "shown";
};

describe("an authorization", () => {
  test("registers the program, proves with PKCE that it began, and stores the tokens", async () => {
    await scene({}, async ({ server, run, tokens }) => {
      let address = "";
      const show: ShowAddress = (shown, signal) => {
        address = shown;
        return browse(shown, signal);
      };
      expect(await run({ show })).toEqual({ outcome: "authorized" });
      const requested = new URL(address);
      expect([requested.origin, requested.pathname]).toEqual([server.origin, "/authorize"]);
      expect(Object.fromEntries(requested.searchParams)).toEqual({
        response_type: "code",
        client_id: expect.stringMatching(/^client-/),
        code_challenge: expect.stringMatching(/^[\w-]{43}$/),
        code_challenge_method: "S256",
        redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/mcp\/callback$/),
        state: expect.stringMatching(/^[\w-]{43}$/),
        scope: "notes:read notes:write",
        resource: server.url,
      });
      const [file = ""] = await readdir(join(folder.path, "mcp-authorization"));
      expect((await stat(join(folder.path, "mcp-authorization", file))).mode & 0o777).toBe(shownMode(0o600));
      expect((await stat(join(folder.path, "mcp-authorization"))).mode & 0o777).toBe(shownMode(0o700));
      const stored = await store.load(server.url);
      expect(secrets.isIn(stored?.tokens?.access_token ?? "")).toBe(true);
      expect(secrets.isIn(stored?.tokens?.refresh_token ?? "")).toBe(true);
      expect((await tokens.fetch(server.url, hello)).status).toBe(200);
    });
  });

  test("is not requested if the server works without", async () => {
    await using plain = await listen((_, response) => void response.writeHead(200).end());
    const outcome = await authorize(remote("open", plain.url), { store, fetch, show: browse }, never);
    expect([outcome, await store.load(plain.url)]).toEqual([{ outcome: "notNeeded" }, undefined]);
  });

  test("works with servers that have no metadata at all", async () => {
    await scene({ metadata: "absent" }, async ({ run }) => {
      expect(await run()).toEqual({ outcome: "authorized" });
    });
  });

  test("uses a manually registered client with its secret, scope and redirect address", async () => {
    const byHand = { clientId: "public-by-hand", scope: "notes:read", redirectUri: "" };
    const port = await freePort();
    byHand.redirectUri = `http://localhost:${port}/oauth/done`;
    await scene(
      {},
      async ({ server, run }) => {
        expect(await run()).toEqual({ outcome: "authorized" });
        const stored = await store.load(server.url);
        expect([stored?.client?.client_id, stored?.tokens?.scope, stored?.redirectUrl]).toEqual([
          "public-by-hand",
          "notes:read",
          byHand.redirectUri,
        ]);
        expect(server.count("/register")).toBe(0);
      },
      { oauth: byHand },
    );
    const oauth = {
      clientId: "secret-by-hand",
      clientSecret: "s3cret-of-the-client-by-hand",
      callbackPort: port,
    };
    await scene(
      {},
      async ({ server, run }) => {
        expect(await run()).toEqual({ outcome: "authorized" });
        expect((await store.load(server.url))?.redirectUrl).toBe(`http://127.0.0.1:${port}/mcp/callback`);
      },
      { oauth },
    );
  });

  test("registers once for several attempts, and again after an unfinished one", async () => {
    await scene({}, async ({ server, run }) => {
      const declined: ShowAddress = async () => "declined";
      expect(await run({ show: declined })).toEqual({ outcome: "declined" });
      expect(await run({ show: declined })).toEqual({ outcome: "declined" });
      expect(server.count("/register")).toBe(1);
      const ignored: ShowAddress = async () => "shown";
      const late = { outcome: "failed", reason: expect.stringContaining("The authorization timed out") };
      expect(await run({ show: ignored, waitMs: 50 })).toEqual(late);
      // An attempt that finds its port in use registers again too.
      const before = server.count("/register");
      expect(await run()).toEqual({ outcome: "authorized" });
      expect(server.count("/register")).toBe(before + 1);
    });
  });

  test("ends at once when it is cancelled", async () => {
    await scene({}, async ({ run }) => {
      const stop = new AbortController();
      const show: ShowAddress = async () => {
        stop.abort();
        return "shown";
      };
      expect(await run({ show }, stop.signal)).toEqual({ outcome: "cancelled" });
    });
  });

  test.each<[string, OAuthFaults, Partial<RemoteServer>, AuthorizeOutcome]>([
    ["the user denies", { callback: "denied" }, {}, { outcome: "declined" }],
    ["another issuer answers", { callback: "other issuer" }, {}, failed("a different authorization server")],
    [
      "the program is not registered",
      { registration: "refused" },
      {},
      failed('HTTP 403: {"error":"access_denied"'),
    ],
    ["programs cannot register", { registration: "absent" }, {}, failed('set "oauth.clientId"')],
    ["the code is refused", { token: "refused" }, {}, failed("invalid_grant: Unknown code")],
    ["the token endpoint fails", { token: "fails" }, {}, failed("server_error: Out of order")],
    [
      "the token endpoint hangs",
      { token: "hangs" },
      { timeoutMs: 300 },
      failed("did not answer within 0.3 s"),
    ],
    ["the token endpoint answers without end", { token: "huge" }, {}, failed("more than 1048576 bytes")],
    ["the token endpoint leads elsewhere", { token: "redirects" }, {}, failed("HTTP 307")],
    [
      "the metadata is of another server",
      { resource: "https://other.example/mcp" },
      {},
      failed("does not match"),
    ],
    [
      "the page is not a web page",
      { authorizationEndpoint: "file:///etc/passwd" },
      {},
      failed("not a web address"),
    ],
    ["authorization is switched off", {}, { oauth: false }, failed("switched off")],
    [
      "a header does it",
      {},
      { headers: { authorization: "Bearer own" } },
      failed("has an Authorization header in the configuration"),
    ],
    [
      "the address to return to is elsewhere",
      {},
      { oauth: { redirectUri: "https://evil.example/" } },
      failed("must lead to this computer"),
    ],
  ])("reports why it failed and stores no token: %s", async (_, faults, more, outcome) => {
    await scene(
      faults,
      async ({ server, run }) => {
        expect(await run()).toEqual(outcome);
        expect((await store.load(server.url))?.tokens).toBeUndefined();
      },
      more,
    );
  });

  test.each<[string, OAuthFaults]>([
    ["a wrong state", { callback: "wrong state" }],
    ["no state", { callback: "no state" }],
  ])("rejects a code that arrives with %s", async (_, faults) => {
    await scene(faults, async ({ server, run }) => {
      let status = 0;
      const show: ShowAddress = async (address) => {
        status = await visit(address);
        return "shown";
      };
      const outcome = await run({ show, waitMs: 200 });
      expect([status, outcome.outcome, server.count("/token")]).toEqual([400, "failed", 0]);
    });
  });

  test("keeps waiting for the user when others request the redirect address", async () => {
    await scene({}, async ({ run }) => {
      const seen: (number | string)[] = [];
      const show: ShowAddress = async (address) => {
        const back = new URL(address).searchParams.get("redirect_uri") ?? "";
        seen.push(await visit(`${back}?code=stolen`));
        seen.push(await visit(`${back}?code=stolen&state=guessed`));
        seen.push(await visit(`${back}?error=access_denied&state=guessed`));
        seen.push(await visit(new URL("/favicon.ico", back).href));
        const state = new URL(address).searchParams.get("state");
        seen.push(await visit(`${back}?state=${state}`));
        seen.push(await visit(`${back}?code=one&code=two&state=${state}`));
        const posted = await fetch(`${back}?code=stolen&state=${state}`, { method: "POST", body: "x" });
        seen.push(posted.status, await raw(back, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
        seen.push(await raw(back, "\u0000\u0001 nonsense\r\n\r\n"));
        seen.push(await raw(back, `GET /${"x".repeat(100_000)} HTTP/1.1\r\n\r\n`));
        // An open connection without a request.
        const { hostname, port } = new URL(back);
        const idle = connect(Number(port), hostname).on("error", () => {});
        seen.push(await visit(address));
        idle.unref();
        return "shown";
      };
      expect(await run({ show })).toEqual({ outcome: "authorized" });
      expect(seen).toEqual([
        400,
        400,
        400,
        404,
        400,
        400,
        405,
        "HTTP/1.1 403 Forbidden",
        "HTTP/1.1 400 Bad Request",
        // Unread data may discard the response.
        expect.stringMatching(/^(HTTP\/1.1 431 .+)?$/),
        200,
      ]);
    });
  });

  test("listens for the redirect on this computer only, and stops afterwards", async () => {
    await scene({}, async ({ run }) => {
      let back = "";
      const show: ShowAddress = async (address) => {
        back = new URL(address).searchParams.get("redirect_uri") ?? "";
        return browse(address, never);
      };
      await run({ show });
      await expect(fetch(back)).rejects.toThrow("fetch failed");
    });
  });

  test("names the port that is taken", async () => {
    await using other = await listen((_, response) => void response.end());
    const callbackPort = Number(new URL(other.url).port);
    await scene(
      {},
      async ({ run }) => {
        const taken = `Port ${callbackPort}, to which the browser must return, is in use by another program`;
        expect(await run()).toEqual(failed(taken));
      },
      { oauth: { callbackPort } },
    );
  });
});

test.each([
  ["https://notes.example/mcp", "http://notes.example/authorize", "which is not encrypted"],
  ["https://notes.example/mcp", "http://127.0.0.1:8080/token", "which is not encrypted"],
  ["http://notes.example/mcp", "javascript:alert(1)", "which is not a web address"],
  ["https://notes.example/mcp", "notes.example/token", "which is not a web address"],
])("a server at %s cannot send the user or a code to %s", (server, endpoint, reason) => {
  expect(() => checkEndpoint(server, endpoint)).toThrow(reason);
});

describe("tokens of a server", () => {
  test("are renewed before a request if they have expired", async () => {
    await scene({ tokenSeconds: 1 }, async ({ server, run, tokens }) => {
      await run();
      server.faults.tokenSeconds = 3600;
      const before = server.count("/mcp");
      expect((await tokens.fetch(server.url, hello)).status).toBe(200);
      expect(server.count("/mcp")).toBe(before + 1);
      expect((await tokens.fetch(server.url, hello)).status).toBe(200);
      expect(server.count("/token")).toBe(2);
    });
  });

  test("are renewed once for all requests that are refused, in all processes", async () => {
    await scene({ silentExpiry: true }, async ({ server, settings, run, tokens }) => {
      await run();
      server.expireTokens();
      const other = new ServerTokens(settings, { store: openStore().store, fetch });
      const requested = [tokens, tokens, other, other].map((each) => each.fetch(server.url, hello));
      expect((await Promise.all(requested)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      expect(server.count("/token")).toBe(2);
    });
  });

  test("are deleted, and the user must authorize, when the refresh fails", async () => {
    await scene({ refresh: "refused" }, async ({ server, run, tokens }) => {
      await run();
      server.expireTokens();
      const needed = await neededBy(tokens.fetch(server.url, hello));
      expect(needed.message).toContain('run "fairlead mcp auth notes"');
      expect(needed.challenge.resourceMetadataUrl?.href).toBe(
        `${server.origin}/.well-known/oauth-protected-resource/mcp`,
      );
      expect(await store.load(server.url)).toEqual(
        expect.not.objectContaining({ tokens: expect.anything() }),
      );
      server.faults.refresh = undefined;
      expect(await run()).toEqual({ outcome: "authorized" });
      expect((await tokens.fetch(server.url, hello)).status).toBe(200);
    });
  });

  test("are requested again when the authorization server has forgotten this program", async () => {
    await scene({}, async ({ server, run, tokens }) => {
      await run();
      server.expireTokens();
      server.forgetClients();
      await expect(tokens.fetch(server.url, hello)).rejects.toThrow(AuthorizationNeeded);
      expect(await run()).toEqual({ outcome: "authorized" });
      expect(server.count("/register")).toBe(2);
    });
  });

  test.each<[OAuthFaults["refresh"], string]>([
    ["fails", "could not be renewed: Out of order"],
    ["hangs", "did not answer within 0.3 s"],
  ])("are kept if renewing them %s, since it may work later", async (refresh, reason) => {
    await scene(
      {},
      async ({ server, run, tokens }) => {
        await run();
        server.expireTokens();
        server.faults.refresh = refresh;
        await expect(tokens.fetch(server.url, hello)).rejects.toThrow(reason);
        server.faults.refresh = undefined;
        expect((await tokens.fetch(server.url, hello)).status).toBe(200);
      },
      { timeoutMs: 300 },
    );
  });

  test("do not cause a loop if the server rejects new ones too", async () => {
    await scene({}, async ({ server, run, tokens }) => {
      await run();
      server.faults.access = "refused";
      const before = server.count("/mcp");
      await expect(tokens.fetch(server.url, hello)).rejects.toThrow(AuthorizationNeeded);
      expect([server.count("/mcp") - before, server.count("/token")]).toEqual([2, 2]);
    });
  });

  test("are requested with the scope that they lack", async () => {
    await scene({}, async ({ server, settings, run, tokens }) => {
      await run();
      server.faults.wantedScope = "notes:all";
      const { challenge } = await neededBy(tokens.fetch(server.url, hello));
      expect(challenge.scope).toBe("notes:all");
      const deps = { store, fetch, show: browse };
      expect(await authorize(settings, deps, never, challenge)).toEqual({ outcome: "authorized" });
      expect((await store.load(server.url))?.tokens?.scope).toBe("notes:read notes:write notes:all");
      expect((await tokens.fetch(server.url, hello)).status).toBe(200);
    });
  });

  test("go to the server's own origin, as do its configured headers, and nowhere else", async () => {
    const got: unknown[] = [];
    await using elsewhere = await listen(({ headers }, response) => {
      got.push([headers.authorization, headers["x-team"]]);
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
    await scene(
      {},
      async ({ server, settings, run, tokens }) => {
        await run();
        await tokens.fetch(elsewhere.url, hello);
        const away = new ServerTokens({ ...settings, url: elsewhere.url }, { store, fetch });
        await away.fetch(elsewhere.url, hello);
        expect(got).toEqual([
          [undefined, undefined],
          [undefined, "blue"],
        ]);
        server.faults.authorizationServer = elsewhere.url;
        server.expireTokens();
        expect((await tokens.fetch(server.url, hello)).status).toBe(200);
        expect(got).toHaveLength(2);
      },
      { headers: { "x-team": "blue" } },
    );
  });

  test("belong to one configured client, and can be removed", async () => {
    await scene({}, async ({ server, settings, run }) => {
      await run();
      const other = new ServerTokens({ ...settings, oauth: { clientId: "other" } }, { store, fetch });
      await expect(other.fetch(server.url, hello)).rejects.toThrow(AuthorizationNeeded);
      expect((await store.list()).map(({ serverUrl }) => serverUrl)).toEqual([server.url]);
      expect([await store.forget(server.url), await store.forget(server.url)]).toEqual([true, false]);
      expect(await store.list()).toEqual([]);
    });
  });
});

function remote(name: string, url: string): RemoteServer {
  return { type: "remote", name, url, headers: {} };
}

function failed(reason: string): AuthorizeOutcome {
  return { outcome: "failed", reason: expect.stringContaining(reason) };
}

async function freePort(): Promise<number> {
  await using server = await listen(() => {});
  return server.port;
}

/** Returns the first line of the response to these bytes. */
function raw(address: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(address);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    let answer = "";
    socket.setEncoding("utf8").on("data", (text: string) => (answer += text));
    socket.on("error", () => {}).on("close", () => resolve(answer.split("\r\n")[0] ?? ""));
  });
}
