import { orWhenAborted, sleep } from "../base/async.ts";
import type { Secrets } from "../base/secrets/secrets.ts";
import type { Config } from "../config/schema.ts";
import type { ServerAnswers } from "../message/sampling.ts";
import type { Attachment } from "../message/part.ts";
import type { ConfineProgram } from "../sandbox/project-sandbox.ts";
import type { Tool } from "../tool/tool.ts";
import { Authorizations } from "./authorizations.ts";
import type { ServerPrompt } from "./tools/prompts.ts";
import type { McpServer } from "./server.ts";
import {
  describeSettings,
  type GivenServers,
  listSecrets,
  noGivenServers,
  createServerList,
} from "./server-settings.ts";
import { type ChangedResource, ReadResources } from "./read-resources.ts";
import { ServerTools } from "./tools/server-tools.ts";
import type { Servers } from "./servers.ts";

/** How long a prompt waits for a server after its start. Slower servers are added later. */
const waitMs = 5_000;
/** Maximum number of server prompts among the commands of a session. */
const promptsLimit = 100;

export interface SessionServersDeps {
  readonly servers: Servers;
  readonly cwd: string;
  /** Folders of the session that are sent to its servers; absolute paths. */
  readonly roots: readonly string[];
  readonly confine: ConfineProgram;
  readonly answers: ServerAnswers;
  /** Registers the keys of the servers for redaction. */
  readonly secrets: Pick<Secrets, "add">;
  /** Whether the editor can open URLs. */
  canVisit: () => boolean;
  /** Notifies the editor that the user completed an address. */
  onVisited: (elicitationId: string) => void;
  /** Shows a message about a server to the user. Must not throw. */
  report: (text: string, severity?: "info" | "warning") => void;
  /** Called when the prompts changed. Must not throw. */
  onPrompts(): void;
  /** Called when the tools of the server with this name changed. Must not throw. */
  onTools(server: string): void;
}

/** State of a server in a session. */
interface UsedServer {
  forget(): void;
  /** The failure that was reported to the user. */
  reported: string | undefined;
  readonly notes: Set<string>;
  /** Whether a notice has named it as still starting. */
  isLate: boolean;
  /** Names and descriptions of its tools; undefined until connected. */
  tools: string | undefined;
}

/** A server of a session for display; without `server` if disabled. */
export type ListedServer =
  | { readonly name: string; readonly server: McpServer; readonly location: string }
  | { readonly name: string; readonly server?: undefined };

/**
 * The servers of one session, from its configuration and from the editor. Code for their tools and prompts loads with the
 * first server: most sessions have none.
 */
export class SessionServers {
  readonly #deps: SessionServersDeps;
  readonly #used = new Map<McpServer, UsedServer>();
  #config: Pick<Config, "mcp" | "mcp_tools" | "experimental"> = {};
  #given: GivenServers = noGivenServers;
  #disabled: readonly string[] = [];
  #problems: readonly string[] = [];
  #isStarted = false;
  #isClosed = false;
  /** Set with the first prompt. Servers that need authorization then ask the user immediately. */
  #hasPrompt = false;
  readonly #tools: ServerTools;
  readonly #authorizations: Authorizations;
  readonly #resources = new ReadResources();
  #prompts: readonly ServerPrompt[] = [];
  #noting: Promise<void> = Promise.resolve();

  constructor(deps: SessionServersDeps) {
    this.#deps = deps;
    this.#tools = new ServerTools({
      answers: deps.answers,
      onRead: (server, uri) => this.#resources.noteRead(server, uri),
      report: deps.report,
    });
    this.#authorizations = new Authorizations({
      elicit: deps.answers.elicit,
      canVisit: deps.canVisit,
      onVisited: deps.onVisited,
      report: deps.report,
    });
  }

  /** Applies a new configuration. Unchanged servers keep running. */
  configure(config: Pick<Config, "mcp" | "mcp_tools" | "experimental">): void {
    this.#config = config;
    this.#apply();
  }

  /** Replaces the servers from the editor. */
  give(given: GivenServers): void {
    this.#given = given;
    this.#apply();
  }

  /** Starts connecting in the background. */
  start(): void {
    if (this.#isStarted || this.#isClosed) return;
    this.#isStarted = true;
    for (const problem of this.#problems) this.#deps.report(problem);
    for (const server of this.#used.keys()) this.#begin(server);
  }

  /** Waits for connecting servers up to 5 s after their start, names the slower ones, and offers authorization. */
  async settle(signal: AbortSignal): Promise<void> {
    this.start();
    await this.#connected(signal);
    await this.#noting;
    this.#hasPrompt = true;
    if (signal.aborted) return;
    for (const [server, used] of this.#used) {
      this.#reportLate(server, used);
      this.#authorizations.invite(server);
    }
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

  /** Builds the tools of the servers, with names that differ from `taken`. */
  tools(taken: readonly string[]): Promise<readonly Tool[]> {
    return this.#tools.build([...this.#used.keys()], taken, this.#config.mcp_tools);
  }

  /** Usage instructions of the servers, by name. */
  get instructions(): readonly { name: string; text: string }[] {
    return [...this.#used.keys()]
      .map(({ settings, instructions }) => ({ name: settings.name, text: instructions.trim() }))
      .filter(({ text }) => text !== "")
      .toSorted((left, right) => (left.name < right.name ? -1 : 1));
  }

  /** Prompts of the servers. */
  get prompts(): readonly ServerPrompt[] {
    return this.#prompts;
  }

  /** Reads a resource by its URI, with or without a `server:` prefix. Undefined if there is none. */
  async resource(
    written: string,
    signal: AbortSignal,
  ): Promise<{ text: string; attachments: readonly Attachment[] } | { problem: string } | undefined> {
    const found = this.#find(written);
    if (found === undefined) return undefined;
    this.#resources.noteRead(found.server, found.uri);
    const { readResource } = await import("./tools/resource-tools.ts");
    return readResource(found.server, found.uri, { ...this.#deps.answers, signal });
  }

  /** Returns the resources that have changed since they were read, each once until it is read again. */
  takeChangedResources(): readonly ChangedResource[] {
    return this.#resources.takeChanged();
  }

  /** Returns whether {@link resource} would find a resource. */
  hasResource(written: string): boolean {
    return this.#find(written) !== undefined;
  }

  /**
   * Asks the user to authorize a server and resolves with the result. If the editor cannot open the address, resolves
   * immediately with the address and reports the result later.
   */
  authorize(server: McpServer, signal: AbortSignal): Promise<string> {
    return this.#authorizations.ask(server, signal);
  }

  list(): readonly ListedServer[] {
    const used = [...this.#used.keys()].map((server) => {
      return { name: server.settings.name, server, location: describeSettings(server.settings) };
    });
    return [...used, ...this.#disabled.map((name) => ({ name }))];
  }

  /** Releases all servers. Those without other users close. */
  close(): void {
    this.#isClosed = true;
    this.#authorizations.close();
    for (const server of this.#used.keys()) this.#leave(server);
  }

  #apply(): void {
    if (this.#isClosed) return;
    const { cwd, servers } = this.#deps;
    const { servers: wanted, disabled, problems } = createServerList(this.#config, this.#given, cwd);
    this.#disabled = disabled;
    this.#deps.secrets.add(listSecrets(wanted));
    const known = new Set(this.#problems);
    this.#problems = problems;
    if (this.#isStarted)
      for (const text of problems.filter((one) => !known.has(one))) this.#deps.report(text);
    const next = wanted.map((settings) => servers.join(settings, this.#deps, this));
    for (const server of this.#used.keys()) if (!next.includes(server)) this.#leave(server);
    for (const server of next) this.#enter(server);
    this.#note();
  }

  #enter(server: McpServer): void {
    if (this.#used.has(server)) return;
    const forget = server.onChange(() => this.#onChange(server));
    this.#used.set(server, {
      forget,
      reported: undefined,
      notes: new Set(),
      isLate: false,
      tools: undefined,
    });
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
    this.#resources.forget(server);
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

  /** Reports a failure once until the server reconnects, and each omitted capability once. */
  #reportOnce(server: McpServer): void {
    const used = this.#used.get(server);
    if (used === undefined || !this.#isStarted) return;
    const { status, offers, settings } = server;
    for (const note of offers.notes.filter((one) => !used.notes.has(one))) {
      used.notes.add(note);
      this.#deps.report(`MCP server "${settings.name}": ${note}.`);
    }
    if (status.state === "connected") used.reported = undefined;
    const problem = describeProblem(server, this.#deps.canVisit());
    if (problem === undefined || used.reported !== undefined) return;
    used.reported = problem;
    this.#deps.report(problem);
  }

  #reportLate({ status, settings: { name } }: McpServer, used: UsedServer): void {
    if (status.state !== "connecting" || used.isLate || used.reported !== undefined) return;
    used.isLate = true;
    this.#deps.report(`The MCP server "${name}" is still starting. Its tools are added when it has.`, "info");
  }

  #note(): void {
    this.#noting = this.#notePrompts();
  }

  async #notePrompts(): Promise<void> {
    const offering = () => [...this.#used.keys()].filter(({ offers }) => offers.prompts.length > 0);
    if (offering().length === 0 && this.#prompts.length === 0) return;
    const { createServerPrompt } = await import("./tools/prompts.ts");
    const { answers } = this.#deps;
    const all = offering().flatMap((server) =>
      server.offers.prompts.map((offered) => createServerPrompt(server, offered, answers)),
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

/** Returns a message for the user about a failed server. */
function describeProblem({ status, settings: { name } }: McpServer, canVisit: boolean): string | undefined {
  if (status.state === "needs authorization")
    return canVisit
      ? undefined
      : `The MCP server "${name}" needs authorization. Enter /mcp auth ${name} here, or run in a terminal: fairlead mcp auth ${name}`;
  if (status.state !== "failed") return undefined;
  const next = status.isPassing
    ? "It is retried in the background; /mcp shows its status."
    : `Its tools are not available. To retry: /mcp reconnect ${name}`;
  return `The MCP server "${name}" failed: ${status.reason}. ${next}`;
}

/** Returns whether the URI is listed, or begins like one of the templates. */
function isOffered({ offers: { resources, templates } }: McpServer, uri: string): boolean {
  if (resources.some((resource) => resource.uri === uri)) return true;
  return templates.some(({ uriTemplate }) => {
    const start = uriTemplate.split("{", 1)[0] ?? "";
    return start.length >= 3 && uri.length > start.length && uri.startsWith(start);
  });
}
