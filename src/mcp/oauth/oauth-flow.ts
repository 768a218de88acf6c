import { randomBytes } from "node:crypto";
import {
  auth,
  computeScopeUnion,
  discoverOAuthProtectedResourceMetadata,
  type FetchLike,
  IssuerMismatchError,
  OAuthError,
  RegistrationRejectedError,
} from "@modelcontextprotocol/client";
import { messageOf, UserError } from "../../base/errors.ts";
import { showInvisible } from "../../base/text/invisible.ts";
import { type Callback, type CallbackAnswer, listenForCallback } from "./oauth-callback.ts";
import { OAuthFlowClient } from "./oauth-client.ts";
import { checkEndpoint, hostOf, createOAuthFetch, createServerFetch } from "./oauth-requests.ts";
import { getCallbackPlace, getOAuthSettings, timeoutOf } from "./oauth-settings.ts";
import type { AuthorizationStore } from "./oauth-store.ts";
import type { Challenge } from "./oauth-challenge.ts";
import { challengeOf } from "./oauth-tokens.ts";
import type { OAuthSettings, RemoteServer } from "../server-settings.ts";

/** Opens or shows the authorization URL. Resolves as declined if the user refuses. */
export type ShowAddress = (address: string, signal: AbortSignal) => Promise<"shown" | "declined">;

export interface AuthorizeDeps {
  readonly store: AuthorizationStore;
  readonly fetch: FetchLike;
  readonly show: ShowAddress;
  /** Timeout for the user in milliseconds (5 minutes). */
  readonly waitMs?: number;
}

export type AuthorizeOutcome =
  | { outcome: "authorized" }
  /** The server requires no authorization. */
  | { outcome: "notNeeded" }
  | { outcome: "declined" }
  | { outcome: "cancelled" }
  | { outcome: "failed"; reason: string };

const personWaitMs = 5 * 60_000;
const timedOutText = "The authorization timed out. Start it again when you are ready.";
/** Maximum length of a server's reason, in characters. */
const reasonLimit = 300;

/**
 * Asks the user to authorize this program at the server, and stores the tokens. Never rejects. `challenge` is the server's
 * challenge; without it the server is queried.
 */
export async function authorize(
  server: RemoteServer,
  deps: AuthorizeDeps,
  signal: AbortSignal,
  challenge?: Challenge,
): Promise<AuthorizeOutcome> {
  try {
    const config = getOAuthSettings(server);
    if (config === undefined) throw new UserError(withoutOAuth(server));
    const known =
      challenge ??
      (await askForChallenge(server, deps, signal)) ??
      (await findOfferedChallenge(server, deps, signal));
    if (known === undefined) return { outcome: "notNeeded" };
    return await runFlow({ server, config, challenge: known }, deps, signal);
  } catch (thrown) {
    if (signal.aborted) return { outcome: "cancelled" };
    return { outcome: "failed", reason: toReason(thrown) };
  }
}

interface Wanted {
  server: RemoteServer;
  config: OAuthSettings;
  challenge: Challenge;
}

async function runFlow(wanted: Wanted, deps: AuthorizeDeps, signal: AbortSignal): Promise<AuthorizeOutcome> {
  const { server, config } = wanted;
  const stored = await deps.store.load(server.url);
  const state = randomBytes(32).toString("base64url");
  const callback = await listenForCallback(getCallbackPlace(config, stored?.redirectUrl), state);
  try {
    const { redirectUrl } = callback;
    const client = new OAuthFlowClient({ server, store: deps.store, redirectUrl, state, stored });
    const options = createAuthOptions({ ...wanted, granted: stored?.tokens?.scope }, deps.fetch, signal);
    const run = (code?: CallbackCode) =>
      auth(client, { ...options, authorizationCode: code?.code, iss: code?.issuer }).catch(
        (thrown: unknown) => Promise.reject(explainRejection(thrown, client, server)),
      );
    await run();
    const answer = await askUser(wanted, { client, callback }, deps, signal);
    // The registration may be unknown to the server: the next attempt registers again.
    if (answer === "timedOut" && stored?.tokens === undefined) await deps.store.forget(server.url);
    if (answer === "timedOut") throw new UserError(timedOutText);
    if (answer.outcome !== "code") return answer;
    await run(answer);
    return { outcome: "authorized" };
  } finally {
    await callback.close();
  }
}

/** Returns the options of the SDK's flow. Without a code it runs up to the authorization URL, with one up to the tokens. */
function createAuthOptions(
  { server, config, challenge, granted }: Wanted & { granted: string | undefined },
  fetch: FetchLike,
  signal: AbortSignal,
) {
  // Overrides the SDK, which prefers the scopes that the server offers.
  const required = challenge.scope && computeScopeUnion(granted, challenge.scope);
  return {
    serverUrl: server.url,
    scope: config.scope ?? required,
    resourceMetadataUrl: challenge.resourceMetadataUrl,
    fetchFn: createOAuthFetch(createServerFetch(fetch, server), { timeoutMs: timeoutOf(server), signal }),
    // The client checks the issuer, tolerating a missing final slash.
    skipIssuerMetadataValidation: true,
  };
}

type CallbackCode = Extract<CallbackAnswer, { outcome: "code" }>;
type PersonAnswer = CallbackCode | AuthorizeOutcome | "timedOut";

async function askUser(
  { server }: Wanted,
  { client, callback }: { client: OAuthFlowClient; callback: Callback },
  { show, waitMs = personWaitMs }: AuthorizeDeps,
  signal: AbortSignal,
): Promise<PersonAnswer> {
  const address = checkEndpoint(server.url, client.address.href).href;
  const end = AbortSignal.any([signal, AbortSignal.timeout(waitMs)]);
  const answer = await waitForFirst(callback, show(address, end), end);
  switch (answer) {
    case "declined":
      return { outcome: "declined" };
    case "ended":
      return signal.aborted ? { outcome: "cancelled" } : "timedOut";
    default:
      return answer.outcome === "refused" ? refusal(server, answer) : answer;
  }
}

/** Resolves with the first of: the redirect, the user's refusal, the timeout. */
function waitForFirst(
  callback: Callback,
  shown: Promise<"shown" | "declined">,
  end: AbortSignal,
): Promise<CallbackAnswer | "declined" | "ended"> {
  return new Promise((resolve, reject) => {
    end.addEventListener("abort", () => resolve("ended"), { once: true });
    if (end.aborted) resolve("ended");
    callback.answer.then(resolve, reject);
    shown.then((how) => {
      if (how === "declined") resolve(how);
    }, reject);
  });
}

function refusal(
  { url }: RemoteServer,
  { error, description }: Extract<CallbackAnswer, { outcome: "refused" }>,
): AuthorizeOutcome {
  if (error === "access_denied") return { outcome: "declined" };
  const reason = description === undefined ? error : `${error}: ${description}`;
  return { outcome: "failed", reason: sanitize(`${hostOf(url)} denied access: ${reason}`) };
}

/** Sends a request without a token and returns the challenge; undefined if the server answers. */
async function askForChallenge(
  server: RemoteServer,
  { fetch }: AuthorizeDeps,
  signal: AbortSignal,
): Promise<Challenge | undefined> {
  const send = createOAuthFetch(discardBody(createServerFetch(fetch, server)), {
    timeoutMs: timeoutOf(server),
    signal,
  });
  const response = await send(server.url, { ...askRequest, redirect: "manual" });
  if (response.status === 401) return challengeOf(response);
  if (response.ok) return undefined;
  // Servers of the older transport do not accept this request.
  const listened = await send(server.url, { headers: { accept: "text/event-stream" }, redirect: "manual" });
  if (listened.status === 401) return challengeOf(listened);
  if (listened.ok) return undefined;
  throw new UserError(
    `${hostOf(server.url)} answered with HTTP ${response.status}; is ${server.url} the address of an MCP server?`,
  );
}

/** Checks the metadata of a server that answers without a token: its tools may still require one. */
async function findOfferedChallenge(
  server: RemoteServer,
  { fetch }: AuthorizeDeps,
  signal: AbortSignal,
): Promise<Challenge | undefined> {
  const fetchFn = createOAuthFetch(createServerFetch(fetch, server), {
    timeoutMs: timeoutOf(server),
    signal,
  });
  try {
    await discoverOAuthProtectedResourceMetadata(server.url, undefined, fetchFn);
    return {};
  } catch {
    // Most servers without authorization have no such metadata.
    return undefined;
  }
}

const askRequest = {
  method: "POST",
  headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
  body: JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "fairlead", version: "1" },
    },
  }),
};

/** Cancels the body: only status and headers matter, and an event stream does not end. */
function discardBody(fetch: FetchLike): FetchLike {
  return async (url, init) => {
    const { body, status, headers } = await fetch(url, init);
    await body?.cancel();
    return new Response(null, { status, headers });
  };
}

/** Explains a rejected registration; returns other errors unchanged. */
function explainRejection(thrown: unknown, client: OAuthFlowClient, { url, name }: RemoteServer): unknown {
  if (!(thrown instanceof RegistrationRejectedError)) return thrown;
  const host = hostOf(client.discoveryState()?.authorizationServerUrl ?? url);
  const answer = sanitize(thrown.body);
  return new UserError(
    `${host} did not register this program (HTTP ${thrown.status}${answer === "" ? "" : `: ${answer}`}). Register one there by hand and set "oauth.clientId" of the server "${name}".`,
  );
}

function withoutOAuth({ name, oauth }: RemoteServer): string {
  return oauth === false
    ? `Authorization is switched off for the MCP server "${name}" ("oauth": false).`
    : `The MCP server "${name}" has an Authorization header in the configuration; fix or remove it to authorize here.`;
}

function toReason(thrown: unknown): string {
  if (thrown instanceof IssuerMismatchError && thrown.kind === "authorization_response")
    return "The browser returned from a different authorization server. Nothing was sent there; start again.";
  if (thrown instanceof OAuthError)
    return sanitize(`The authorization server returned ${thrown.code}: ${thrown.message}`);
  return sanitize(messageOf(thrown));
}

/** Formats text of a server as one line with escaped control characters. */
function sanitize(text: string): string {
  const line = showInvisible(text.replaceAll(/\s+/g, " ").trim());
  return line.length <= reasonLimit ? line : `${line.slice(0, reasonLimit)}…`;
}
