import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import {
  AccessDeniedError,
  InvalidGrantError,
  InvalidTokenError,
  ServerError,
} from "@modelcontextprotocol/sdk/server/auth/errors.js";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import type {
  AuthorizationParams,
  OAuthServerProvider,
} from "@modelcontextprotocol/sdk/server/auth/provider.js";
import {
  getOAuthProtectedResourceMetadataUrl,
  mcpAuthRouter,
} from "@modelcontextprotocol/sdk/server/auth/router.js";
import { createMcpExpressApp } from "@modelcontextprotocol/sdk/server/express.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { OAuthClientInformationFull, OAuthTokens } from "@modelcontextprotocol/sdk/shared/auth.js";
import { z } from "zod";
import { Bell } from "../waiting.ts";

/** The server's faults from now on. */
export interface OAuthFaults {
  registration?: "refused" | "absent";
  /** Query parameters with which the browser returns. */
  callback?: "denied" | "wrong state" | "no state" | "other issuer";
  token?: "hangs" | "fails" | "huge" | "refused" | "redirects";
  refresh?: "refused" | "fails" | "hangs";
  /** Lifetime of access tokens in seconds (default: an hour). */
  tokenSeconds?: number;
  /** Whether responses omit the lifetime of tokens. */
  silentExpiry?: boolean;
  /** The resource that the metadata names for the tokens. */
  resource?: string;
  /** The authorization server that the metadata names. */
  authorizationServer?: string;
  /** The authorization endpoint in the metadata. */
  authorizationEndpoint?: string;
  tokenEndpoint?: string;
  /** Only older servers have none at all. */
  metadata?: "absent";
  /** A scope that requests need additionally. */
  wantedScope?: string;
  /** Whether all tokens are rejected. */
  access?: "refused";
  /** MCP methods that need no token. */
  open?: readonly string[];
}

export interface SeenRequest {
  method: string;
  path: string;
  authorization: string | undefined;
  body: string;
}

/** An MCP server over HTTP that requires authorization, and its authorization server, at one address. */
export interface OAuthServer extends AsyncDisposable {
  /** The MCP endpoint. */
  readonly url: string;
  readonly origin: string;
  readonly faults: OAuthFaults;
  readonly requests: readonly SeenRequest[];
  /** Notified at each request. */
  readonly bell: Bell;
  /** The number of requests for each of these paths. */
  count(path: string): number;
  /** Rejects all issued access tokens from now on. */
  expireTokens(): void;
  /** Forgets all registered clients. */
  forgetClients(): void;
}

export async function startOAuthServer(faults: OAuthFaults = {}): Promise<OAuthServer> {
  const requests: SeenRequest[] = [];
  const bell = new Bell();
  let answer: RequestListener = (_, response) => void response.writeHead(503).end();
  const server = createServer((request, response) => {
    record(request, (seen) => {
      requests.push(seen);
      bell.ring();
    });
    if (!misbehave(request, response, faults, origin)) answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the server has no address");
  const origin = `http://127.0.0.1:${address.port}`;
  const accounts = new Accounts(faults, origin);
  answer = application(origin, accounts);
  return {
    url: `${origin}/mcp`,
    origin,
    faults,
    requests,
    bell,
    count: (path) => requests.filter((request) => request.path === path).length,
    expireTokens: () => accounts.expireTokens(),
    forgetClients: () => accounts.clients.clear(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function record(request: IncomingMessage, done: (seen: SeenRequest) => void): void {
  const { method = "", url = "", headers } = request;
  const seen = { method, path: url.split("?")[0] ?? "", authorization: headers.authorization, body: "" };
  request.on("data", (chunk: Buffer) => (seen.body += chunk.toString("utf8")));
  done(seen);
}

/** Responds instead of the server if a fault requires it. */
function misbehave(
  request: IncomingMessage,
  response: ServerResponse,
  faults: OAuthFaults,
  origin: string,
): boolean {
  const path = (request.url ?? "").split("?")[0] ?? "";
  const json = (status: number, value: unknown) =>
    void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  if (faults.metadata === "absent" && path.startsWith("/.well-known/")) {
    json(404, {});
    return true;
  }
  const isResource = path === "/.well-known/oauth-protected-resource/mcp";
  if (isResource && (faults.resource !== undefined || faults.authorizationServer !== undefined)) {
    json(200, {
      resource: faults.resource ?? `${origin}/mcp`,
      authorization_servers: [faults.authorizationServer ?? origin],
    });
    return true;
  }
  if (path === "/.well-known/oauth-authorization-server" && hasOwnMetadata(faults)) {
    json(200, metadataOf(faults, origin));
    return true;
  }
  if (path === "/register" && faults.registration === "refused") {
    json(403, { error: "access_denied", error_description: "Only our own programs" });
    return true;
  }
  if (path !== "/token" || faults.token === undefined) return false;
  return breakToken(response, faults.token, json);
}

function breakToken(
  response: ServerResponse,
  fault: NonNullable<OAuthFaults["token"]>,
  json: (status: number, value: unknown) => void,
): boolean {
  if (fault === "fails") json(500, { error: "server_error", error_description: "Out of order" });
  if (fault === "refused") json(400, { error: "invalid_grant", error_description: "Unknown code" });
  if (fault === "huge") json(200, { access_token: "x".repeat(2_000_000), token_type: "bearer" });
  if (fault === "redirects") response.writeHead(307, { location: "http://localhost:9/token" }).end();
  return true;
}

function hasOwnMetadata({
  registration,
  authorizationEndpoint,
  tokenEndpoint,
  callback,
}: OAuthFaults): boolean {
  return (
    registration === "absent" ||
    authorizationEndpoint !== undefined ||
    tokenEndpoint !== undefined ||
    callback === "other issuer"
  );
}

function metadataOf(faults: OAuthFaults, origin: string) {
  return {
    issuer: `${origin}/`,
    authorization_endpoint: faults.authorizationEndpoint ?? `${origin}/authorize`,
    token_endpoint: faults.tokenEndpoint ?? `${origin}/token`,
    ...(faults.registration !== "absent" && { registration_endpoint: `${origin}/register` }),
    response_types_supported: ["code"],
    code_challenge_methods_supported: ["S256"],
  };
}

/** Clients, codes and tokens of the authorization server. */
class Accounts implements OAuthServerProvider {
  readonly clients = new Map<string, OAuthClientInformationFull>();
  readonly clientsStore = {
    getClient: (id: string) => this.clients.get(id) ?? byHand.find(({ client_id }) => client_id === id),
    registerClient: (client: Omit<OAuthClientInformationFull, "client_id" | "client_id_issued_at">) => {
      const registered = { ...client, client_id: `client-${randomUUID()}` };
      this.clients.set(registered.client_id, registered);
      return registered;
    },
  };
  readonly #faults: OAuthFaults;
  readonly #origin: string;
  readonly #codes = new Map<string, AuthorizationParams>();
  readonly #access = new Map<string, { clientId: string; scopes: string[]; expiresAt: number }>();
  readonly #refresh = new Map<string, string[]>();

  constructor(faults: OAuthFaults, origin: string) {
    this.#faults = faults;
    this.#origin = origin;
  }

  expireTokens(): void {
    this.#access.clear();
  }

  async authorize(
    _client: OAuthClientInformationFull,
    params: AuthorizationParams,
    response: ServerResponse,
  ): Promise<void> {
    const { callback } = this.#faults;
    const target = new URL(params.redirectUri);
    const state = callback === "wrong state" ? "made-up" : params.state;
    if (state !== undefined && callback !== "no state") target.searchParams.set("state", state);
    if (callback === "denied") {
      target.searchParams.set("error", new AccessDeniedError("").errorCode);
    } else {
      const code = `code-${randomUUID()}`;
      this.#codes.set(code, params);
      target.searchParams.set("code", code);
    }
    if (callback === "other issuer") target.searchParams.set("iss", "https://elsewhere.example");
    response.writeHead(302, { location: target.href }).end();
  }

  async challengeForAuthorizationCode(_client: OAuthClientInformationFull, code: string): Promise<string> {
    return this.#codeOf(code).codeChallenge;
  }

  async exchangeAuthorizationCode(
    client: OAuthClientInformationFull,
    code: string,
    _verifier?: string,
    redirectUri?: string,
  ): Promise<OAuthTokens> {
    const params = this.#codeOf(code);
    this.#codes.delete(code);
    if (params.redirectUri !== redirectUri) throw new InvalidGrantError("Another redirect_uri");
    return this.#give(client.client_id, params.scopes ?? []);
  }

  /** Each refresh token counts once. */
  async exchangeRefreshToken(client: OAuthClientInformationFull, refreshToken: string): Promise<OAuthTokens> {
    const { refresh } = this.#faults;
    if (refresh === "hangs") await new Promise(() => {});
    if (refresh === "fails") throw new ServerError("Out of order");
    const scopes = this.#refresh.get(refreshToken);
    this.#refresh.delete(refreshToken);
    if (scopes === undefined || refresh === "refused") throw new InvalidGrantError("Used up");
    return this.#give(client.client_id, scopes);
  }

  async verifyAccessToken(token: string) {
    const found = this.#access.get(token);
    if (found === undefined || this.#faults.access === "refused")
      throw new InvalidTokenError("Unknown token");
    return { token, ...found, resource: new URL(`${this.#origin}/mcp`) };
  }

  /** Whether the request needs no token. */
  isOpen(body: unknown): boolean {
    return z.object({ method: z.enum(this.#faults.open ?? []) }).safeParse(body).success;
  }

  /** The scope that the request's token lacks. */
  lackedScope({ headers }: IncomingMessage): string | undefined {
    const { wantedScope } = this.#faults;
    const token = headers.authorization?.split(" ")[1] ?? "";
    const isThere = wantedScope === undefined || this.#access.get(token)?.scopes.includes(wantedScope);
    return isThere ? undefined : wantedScope;
  }

  #give(clientId: string, scopes: string[]): OAuthTokens {
    const { tokenSeconds = 3600, silentExpiry } = this.#faults;
    const tokens = { access_token: `access-${randomUUID()}`, refresh_token: `refresh-${randomUUID()}` };
    this.#access.set(tokens.access_token, { clientId, scopes, expiresAt: Date.now() / 1000 + 3600 });
    this.#refresh.set(tokens.refresh_token, scopes);
    return {
      ...tokens,
      token_type: "Bearer",
      scope: scopes.join(" "),
      ...(!silentExpiry && { expires_in: tokenSeconds }),
    };
  }

  #codeOf(code: string): AuthorizationParams {
    const params = this.#codes.get(code);
    if (params === undefined) throw new InvalidGrantError("Unknown code");
    return params;
  }
}

/** Clients registered manually, the second with a secret. */
export const byHand: readonly OAuthClientInformationFull[] = [
  {
    client_id: "public-by-hand",
    redirect_uris: ["http://localhost/oauth/done"],
    token_endpoint_auth_method: "none",
  },
  {
    client_id: "secret-by-hand",
    client_secret: "s3cret-of-the-client-by-hand",
    redirect_uris: ["http://127.0.0.1/mcp/callback"],
  },
];

/** The used part of the SDK's web application, whose own types are not installed. */
interface WebApplication extends RequestListener {
  use(handler: unknown): void;
  post(path: string, guard: unknown, handler: Handler): void;
  all(path: string, guard: unknown, handler: Handler): void;
}

type WebRequest = IncomingMessage & { body?: unknown };
type Handler = (request: WebRequest, response: ServerResponse) => unknown;

function application(origin: string, accounts: Accounts): RequestListener {
  const app: WebApplication = createMcpExpressApp();
  const resourceServerUrl = new URL(`${origin}/mcp`);
  const unlimited = { rateLimit: false } as const;
  app.use(
    mcpAuthRouter({
      provider: accounts,
      issuerUrl: new URL(origin),
      resourceServerUrl,
      scopesSupported: ["notes:read", "notes:write"],
      authorizationOptions: unlimited,
      tokenOptions: unlimited,
      clientRegistrationOptions: unlimited,
    }),
  );
  const bearer = requireBearerAuth({
    verifier: accounts,
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resourceServerUrl),
  });
  const guard = (request: WebRequest, response: ServerResponse, next: () => void) =>
    accounts.isOpen(request.body) ? next() : bearer(request, response, next);
  app.post("/mcp", guard, (request, response) => {
    const lacked = accounts.lackedScope(request);
    if (lacked !== undefined) return refuseScope(response, lacked);
    serveNotes(request, response).catch((error: unknown) => response.destroy(toError(error)));
  });
  app.all("/mcp", bearer, (_, response) => response.writeHead(405).end());
  return app;
}

function refuseScope(response: ServerResponse, scope: string): void {
  const challenge = `Bearer error="insufficient_scope", scope="${scope}"`;
  response.writeHead(403, { "www-authenticate": challenge }).end();
}

async function serveNotes(request: WebRequest, response: ServerResponse): Promise<void> {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  const server = notesServer();
  response.on("close", () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
}

const toError = (error: unknown) => (error instanceof Error ? error : new Error(String(error)));

function notesServer(): McpServer {
  const server = new McpServer({ name: "notes", version: "1.0.0" });
  server.registerTool("count_notes", { description: "Counts the notes." }, () => ({
    content: [{ type: "text", text: "There are 42 notes." }],
  }));
  return server;
}

/** Follows the address like a browser whose user agrees to everything. Returns the last page's status. */
export async function visit(address: string): Promise<number> {
  const response = await fetch(address);
  await response.body?.cancel();
  return response.status;
}
