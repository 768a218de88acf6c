import { orWhenAborted, sleep } from "../base/async.ts";
import type { Secrets } from "../base/secrets/secrets.ts";
import type { Config } from "../config/schema.ts";
import type { Elicit } from "../message/elicitation.ts";
import type { Attachment } from "../message/part.ts";
import type { Tool } from "../tool/tool.ts";
import { Authorizations } from "./authorizations.ts";
import type { ServerPrompt } from "./tools/prompts.ts";
import type { McpServer } from "./server.ts";
import { describeSettings, type GivenServers, keysOf, nothingGiven, serverList } from "./server-settings.ts";
import { ServerTools } from "./tools/server-tools.ts";
import type { Servers } from "./servers.ts";

/** How long after its start a server is waited for by a prompt; what takes longer joins in later. */
const waitMs = 5_000;
/** Prompts of servers among the commands of a session. */
const promptsLimit = 100;

export interface SessionServersDeps {
  readonly servers: Servers;
  readonly cwd: string;
  /** Folders of the session that its servers are told of; absolute paths. */
  readonly roots: readonly string[];
  readonly elicit: Elicit;
  /** Learns the keys of the servers, to be kept out of what others see. */
  readonly secrets: Pick<Secrets, "add">;
  /** Whether the editor opens addresses. */
  canVisit(): boolean;
  /** The editor is told that the person is done with an address. */
  onVisited(elicitationId: string): void;
  /** Something the person should know of a server, once. Must not throw. */
  report(text: string, severity?: "info" | "warning"): void;
  /** Called when the prompts changed. Must not throw. */
  onPrompts(): void;
  /** Called when the tools of the server with this name changed. Must not throw. */
  onTools(server: string): void;
}

/** What a session remembers of a server that it uses. */
interface UsedServer {
  forget(): void;
  /** The failure that the user was told of. */
  reported: string | undefined;
  readonly notes: Set<string>;
  /** Names and descriptions of its tools; undefined until it was connected. */
  tools: string | undefined;
}

/** One server of a session, for those who look. */
export type ListedServer =
  | { readonly name: string; readonly server: McpServer; readonly place: string }
  | { readonly name: string; readonly server?: undefined };

/**
 * The servers of one session, those of its configuration and those that the editor gave. What is made of their offers
 * is loaded with the first of them: most sessions open without.
 */
export class SessionServers {
  readonly #deps: SessionServersDeps;
  readonly #used = new Map<McpServer, UsedServer>();
  #config: Pick<Config, "mcp" | "experimental"> = {};
  #given: GivenServers = nothingGiven;
  #disabled: readonly string[] = [];
  #problems: readonly string[] = [];
  #isStarted = false;
  #isClosed = false;
  /** The first prompt came: from now on a server that wants authorization is offered it at once. */
  #hasPrompt = false;
  readonly #tools: ServerTools;
  readonly #authorizations: Authorizations;
  #prompts: readonly ServerPrompt[] = [];
  #noting: Promise<void> = Promise.resolve();

  constructor(deps: SessionServersDeps) {
    this.#deps = deps;
    this.#tools = new ServerTools(deps);
    this.#authorizations = new Authorizations(deps);
  }

  /** Takes the servers of the configuration as it is now; those that stay the same go on. */
  configure(config: Pick<Config, "mcp" | "experimental">): void {
    this.#config = config;
    this.#apply();
  }

  /** Takes the servers that the editor gives, in place of those that it gave before. */
  give(given: GivenServers): void {
    this.#given = given;
    this.#apply();
  }

  /** Begins to connect, in the background. */
  start(): void {
    if (this.#isStarted || this.#isClosed) return;
    this.#isStarted = true;
    for (const problem of this.#problems) this.#deps.report(problem);
    for (const server of this.#used.keys()) this.#begin(server);
  }

  /** Waits for servers that still connect, not longer than 5 s after their start; invites to authorize who wants it. */
  async settle(signal: AbortSignal): Promise<void> {
    this.start();
    await this.#connected(signal);
    await this.#noting;
    this.#hasPrompt = true;
    if (!signal.aborted) for (const server of this.#used.keys()) this.#authorizations.invite(server);
  }

  async #connected(signal: AbortSignal): Promise<void> {
    const open = [...this.#used.keys()].filter(({ status }) => status.state === "connecting");
    if (open.length === 0) return;
    const newest = Math.max(...open.map(({ startedMs }) => startedMs));
    const leftMs = newest + waitMs - performance.now();
    if (leftMs <= 0) return;
    const enough = new AbortController();
    const either = AbortSignal.any([signal, enough.signal]);
    const all = Promise.all(open.map((server) => server.settled()));
    await Promise.race([orWhenAborted(all, either, undefined), sleep(leftMs, either)]);
    enough.abort();
  }

  /** The tools that the servers offer now, under names that none of `taken` has. */
  tools(taken: readonly string[]): Promise<readonly Tool[]> {
    return this.#tools.build([...this.#used.keys()], taken);
  }

  /** What the servers' prompts can be called by. */
  get prompts(): readonly ServerPrompt[] {
    return this.#prompts;
  }

  /** The resource that somebody named, with `server:` before its URI or without; undefined where it is none. */
  async resource(
    written: string,
    signal: AbortSignal,
  ): Promise<{ text: string; attachments: readonly Attachment[] } | { problem: string } | undefined> {
    const found = this.#find(written);
    if (found === undefined) return undefined;
    const { readResource } = await import("./tools/resource-tools.ts");
    return readResource(found.server, found.uri, { signal, elicit: this.#deps.elicit });
  }

  /** Whether {@link resource} would find something. */
  hasResource(written: string): boolean {
    return this.#find(written) !== undefined;
  }

  /**
   * Has the person authorize a server. Resolves with how it went; where the editor cannot bring the person to the
   * address, at once with the address, and how it went is reported later.
   */
  authorize(server: McpServer, signal: AbortSignal): Promise<string> {
    return this.#authorizations.ask(server, signal);
  }

  list(): readonly ListedServer[] {
    const used = [...this.#used.keys()].map((server) => {
      return { name: server.settings.name, server, place: describeSettings(server.settings) };
    });
    return [...used, ...this.#disabled.map((name) => ({ name }))];
  }

  /** Lets go of all servers; those that nobody else uses end. */
  close(): void {
    this.#isClosed = true;
    this.#authorizations.close();
    for (const server of this.#used.keys()) this.#leave(server);
  }

  #apply(): void {
    if (this.#isClosed) return;
    const { cwd, roots, servers } = this.#deps;
    const { servers: wanted, disabled, problems } = serverList(this.#config, this.#given, cwd);
    this.#disabled = disabled;
    this.#deps.secrets.add(keysOf(wanted));
    const known = new Set(this.#problems);
    this.#problems = problems;
    if (this.#isStarted)
      for (const text of problems.filter((one) => !known.has(one))) this.#deps.report(text);
    const next = wanted.map((settings) => servers.join(settings, roots, this));
    for (const server of this.#used.keys()) if (!next.includes(server)) this.#leave(server);
    for (const server of next) this.#enter(server);
    this.#note();
  }

  #enter(server: McpServer): void {
    if (this.#used.has(server)) return;
    const forget = server.onChange(() => this.#onChange(server));
    this.#used.set(server, { forget, reported: undefined, notes: new Set(), tools: undefined });
    if (this.#isStarted) this.#begin(server);
  }

  #begin(server: McpServer): void {
    server.start();
    this.#onChange(server);
  }

  #leave(server: McpServer): void {
    this.#used.get(server)?.forget();
    this.#used.delete(server);
    this.#tools.forget(server);
    this.#deps.servers.leave(server, this);
  }

  #onChange(server: McpServer): void {
    if (server.status.state === "connected") this.#authorizations.forget(server);
    if (this.#hasPrompt) this.#authorizations.invite(server);
    this.#reportOnce(server);
    this.#noteTools(server);
    this.#note();
  }

  #noteTools(server: McpServer): void {
    const used = this.#used.get(server);
    if (used === undefined || server.status.state !== "connected") return;
    const tools = JSON.stringify(server.offers.tools.map(({ name, description }) => [name, description]));
    const hasChanged = used.tools !== undefined && used.tools !== tools;
    used.tools = tools;
    if (hasChanged) this.#deps.onTools(server.settings.name);
  }

  /** A failure is told once, until the server was connected again; so is each thing that is left out of its offers. */
  #reportOnce(server: McpServer): void {
    const used = this.#used.get(server);
    if (used === undefined || !this.#isStarted) return;
    const { status, offers, settings } = server;
    for (const note of offers.notes.filter((one) => !used.notes.has(one))) {
      used.notes.add(note);
      this.#deps.report(`MCP server "${settings.name}": ${note}.`);
    }
    if (status.state === "connected") used.reported = undefined;
    const problem = problemOf(server, this.#deps.canVisit());
    if (problem === undefined || used.reported !== undefined) return;
    used.reported = problem;
    this.#deps.report(problem);
  }

  #note(): void {
    this.#noting = this.#notePrompts();
  }

  async #notePrompts(): Promise<void> {
    const offering = () => [...this.#used.keys()].filter(({ offers }) => offers.prompts.length > 0);
    if (offering().length === 0 && this.#prompts.length === 0) return;
    const { serverPrompt } = await import("./tools/prompts.ts");
    const { elicit } = this.#deps;
    const all = offering().flatMap((server) =>
      server.offers.prompts.map((offered) => serverPrompt(server, offered, elicit)),
    );
    const prompts = all.slice(0, promptsLimit);
    const isNew = describePrompts(prompts) !== describePrompts(this.#prompts);
    this.#prompts = prompts;
    if (isNew) this.#deps.onPrompts();
  }

  #find(written: string): { server: McpServer; uri: string } | undefined {
    for (const server of this.#used.keys()) {
      const prefix = `${server.settings.name}:`;
      if (!server.offers.hasResources) continue;
      if (written.startsWith(prefix) && isOffered(server, written.slice(prefix.length)))
        return { server, uri: written.slice(prefix.length) };
      if (isOffered(server, written)) return { server, uri: written };
    }
    return undefined;
  }
}

function describePrompts(prompts: readonly ServerPrompt[]): string {
  return JSON.stringify(prompts.map(({ name, description, hint }) => ({ name, description, hint })));
}

/** What the person is told of a server that does not work. */
function problemOf({ status, settings: { name } }: McpServer, canVisit: boolean): string | undefined {
  if (status.state === "needs authorization")
    return canVisit
      ? undefined
      : `The MCP server "${name}" wants to be authorized. Say /mcp auth ${name} here, or run in a terminal: fairlead mcp auth ${name}`;
  if (status.state !== "failed") return undefined;
  const next = status.isPassing
    ? "It is tried again in the background; /mcp shows how it goes."
    : `Its tools are missing. /mcp reconnect ${name} tries it again.`;
  return `The MCP server "${name}" failed: ${status.reason}. ${next}`;
}

/** Listed, or what one of the templates could stand for: it begins as that begins. */
function isOffered({ offers: { resources, templates } }: McpServer, uri: string): boolean {
  if (resources.some((resource) => resource.uri === uri)) return true;
  return templates.some(({ uriTemplate }) => {
    const start = uriTemplate.split("{", 1)[0] ?? "";
    return start.length >= 3 && uri.length > start.length && uri.startsWith(start);
  });
}
