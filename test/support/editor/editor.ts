import { fileURLToPath } from "node:url";
import {
  client,
  methods,
  PROTOCOL_VERSION,
  type ClientCapabilities,
  type ClientContext,
  type ContentBlock,
  type CreateElicitationRequest,
  type InitializeResponse,
  type ListSessionsRequest,
  type NewSessionRequest,
  type NewSessionResponse,
  type PromptResponse,
  type RequestPermissionRequest,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { AgentProcess, type Exit } from "../program/agent-process.ts";
import { plain, serve, type ClientKind } from "./clients.ts";
import { environment } from "../program/environment.ts";
import type { JsonObject } from "../json.ts";
import { ScriptedUser, type PermissionPolicy } from "./scripted-user.ts";
import type { RuleName } from "../wire/violation.ts";
import { within } from "../waiting.ts";
import { wireViolations } from "../wire/wire-checks.ts";
import type { WireEntry, WireId, WireLog } from "../wire/wire-log.ts";

const fairlead = [fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url)), "acp"];

/**
 * Milliseconds for each response of the agent; shorter than the test's own limit, so that the report names
 * the request.
 */
const answerDeadlineMs = 20_000;
const exitDeadlineMs = 5_000;
/** Milliseconds for which a child that outlives the agent may keep its pipes open. */
const pipesDeadlineMs = 1_000;

export type UpdateKind = SessionUpdate["sessionUpdate"];
export type UpdateOf<Kind extends UpdateKind> = Extract<SessionUpdate, { sessionUpdate: Kind }>;

export interface EditorOptions {
  /** The user's home; it outlives restarts. */
  home: string;
  /** The folder of new sessions, unless they name another. */
  cwd: string;
  /** Script and arguments for this Node; the built program unless given. */
  program?: readonly string[];
  /** A whole command line in place of `program`. */
  command?: readonly string[];
  env?: Record<string, string>;
  client?: ClientKind;
  permission?: PermissionPolicy;
}

/** A scripted editor with a real agent process. Records everything on the wire and checks it at the end. */
export class Editor {
  client: ClientKind;
  user: ScriptedUser;
  readonly elicitations: CreateElicitationRequest[] = [];
  #options: EditorOptions;
  readonly #allowed = new Set<RuleName>();
  readonly #problems: string[] = [];
  readonly #finished: WireLog[] = [];
  #process: AgentProcess;
  #agent: ClientContext;
  #closing: Promise<Exit> | undefined;

  constructor(options: EditorOptions) {
    this.#options = options;
    this.client = options.client ?? plain();
    this.user = new ScriptedUser(options.permission);
    this.#process = this.#spawn();
    this.#agent = this.#connect();
  }

  /** The record of the connection now open (or closed last). */
  get wire(): WireLog {
    return this.#process.wire;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get stderr(): string {
    return this.#process.stderr;
  }

  /** Replaces the policy of the user. */
  set permission(policy: PermissionPolicy | undefined) {
    this.user.policy = policy;
  }

  get permissionRequests(): readonly RequestPermissionRequest[] {
    return this.user.requests;
  }

  get exited(): Promise<Exit> {
    return this.#process.exited;
  }

  initialize(capabilities: ClientCapabilities = this.client.capabilities): Promise<InitializeResponse> {
    const params = {
      protocolVersion: PROTOCOL_VERSION,
      clientInfo: this.client.info,
      clientCapabilities: capabilities,
    };
    return this.#answer("initialize", this.#agent.request(methods.agent.initialize, params));
  }

  newSession(more: Partial<NewSessionRequest> = {}): Promise<NewSessionResponse> {
    const params = { cwd: this.#options.cwd, mcpServers: [], ...more };
    return this.#answer("session/new", this.#agent.request(methods.agent.session.new, params));
  }

  /** Sends a prompt; resolves at the turn's end. */
  prompt(sessionId: string, prompt: string | ContentBlock[], signal?: AbortSignal): Promise<PromptResponse> {
    const blocks: ContentBlock[] = typeof prompt === "string" ? [{ type: "text", text: prompt }] : prompt;
    const options = signal && { cancellationSignal: signal };
    const params = { sessionId, prompt: blocks };
    return this.#answer("session/prompt", this.#agent.request(methods.agent.session.prompt, params, options));
  }

  /** Cancels the turn and, as the protocol asks of clients, answers its open permission requests with "cancelled". */
  async cancel(sessionId: string): Promise<void> {
    await this.#agent.notify(methods.agent.session.cancel, { sessionId });
    this.user.cancel(sessionId);
  }

  load(sessionId: string, more: Partial<NewSessionRequest> = {}) {
    const params = { sessionId, cwd: this.#options.cwd, mcpServers: [], ...more };
    return this.#answer("session/load", this.#agent.request(methods.agent.session.load, params));
  }

  resume(sessionId: string, more: Partial<NewSessionRequest> = {}) {
    const params = { sessionId, cwd: this.#options.cwd, mcpServers: [], ...more };
    return this.#answer("session/resume", this.#agent.request(methods.agent.session.resume, params));
  }

  list(filter: ListSessionsRequest = {}) {
    return this.#answer("session/list", this.#agent.request(methods.agent.session.list, filter));
  }

  closeSession(sessionId: string) {
    return this.#answer("session/close", this.#agent.request(methods.agent.session.close, { sessionId }));
  }

  delete(sessionId: string) {
    return this.#answer("session/delete", this.#agent.request(methods.agent.session.delete, { sessionId }));
  }

  setMode(sessionId: string, modeId: string) {
    return this.#answer(
      "session/set_mode",
      this.#agent.request(methods.agent.session.setMode, { sessionId, modeId }),
    );
  }

  setConfigOption(sessionId: string, configId: string, value: string | boolean) {
    const params = typeof value === "boolean" ? ({ type: "boolean", value } as const) : { value };
    const request = this.#agent.request(methods.agent.session.setConfigOption, {
      sessionId,
      configId,
      ...params,
    });
    return this.#answer("session/set_config_option", request);
  }

  /** Sends any request through the SDK, with an unchecked result. */
  request(method: string, params: JsonObject = {}): Promise<unknown> {
    return this.#answer(method, this.#agent.request<unknown, JsonObject>(method, params));
  }

  notify(method: string, params: JsonObject = {}): Promise<void> {
    return this.#agent.notify<JsonObject>(method, params);
  }

  /**
   * Writes bytes to the agent's stdin unchanged. Requests among them should have string ids, because the SDK
   * uses numbers.
   */
  async write(bytes: string | Uint8Array): Promise<void> {
    await this.#process.write(typeof bytes === "string" ? Buffer.from(bytes) : bytes);
  }

  writeLine(message: unknown): Promise<void> {
    return this.write(`${JSON.stringify(message)}\n`);
  }

  /** Resolves to the response to a raw request; the id null is for unreadable messages. */
  async response(id: WireId, deadlineMs = answerDeadlineMs): Promise<JsonObject> {
    const isAnswer = ({ direction, message }: WireEntry) =>
      direction === "fromAgent" && message?.kind === "response" && message.id === id;
    const entry = await this.waitForEntry(isAnswer, `the answer to ${JSON.stringify(id)}`, deadlineMs);
    return entry.message?.json ?? {};
  }

  /** The session's updates on this connection, in order; optionally of one kind. */
  updates(sessionId: string): SessionUpdate[];
  updates<Kind extends UpdateKind>(sessionId: string, kind: Kind): UpdateOf<Kind>[];
  updates(sessionId: string, kind?: UpdateKind): SessionUpdate[] {
    return this.wire.updates
      .filter(
        (item) => item.sessionId === sessionId && (kind === undefined || item.update.sessionUpdate === kind),
      )
      .map(({ update }) => update);
  }

  /** Resolves to the first past or future update of the session that the predicate accepts. */
  async waitFor<Wanted extends SessionUpdate = SessionUpdate>(
    sessionId: string,
    predicate: (update: SessionUpdate) => update is Wanted,
    deadlineMs?: number,
  ): Promise<Wanted>;
  async waitFor(
    sessionId: string,
    predicate: (update: SessionUpdate) => boolean,
    deadlineMs?: number,
  ): Promise<SessionUpdate>;
  async waitFor(
    sessionId: string,
    predicate: (update: SessionUpdate) => boolean,
    deadlineMs?: number,
  ): Promise<SessionUpdate> {
    const { updates, bell } = this.wire;
    let next = 0;
    const probe = () => {
      for (; next < updates.length; next++) {
        const item = updates[next];
        const update = item?.sessionId === sessionId ? item.update : undefined;
        if (update && predicate(update)) return update;
      }
      return undefined;
    };
    return bell.until(probe, `an update that satisfies ${predicate.toString()}`, deadlineMs);
  }

  /** Resolves to the first update of this kind. */
  waitForKind<Kind extends UpdateKind>(
    sessionId: string,
    kind: Kind,
    deadlineMs?: number,
  ): Promise<UpdateOf<Kind>> {
    const isOfKind = (update: SessionUpdate): update is UpdateOf<Kind> => update.sessionUpdate === kind;
    return this.waitFor(sessionId, isOfKind, deadlineMs);
  }

  /** Resolves to the first past or future line that the predicate accepts. */
  waitForEntry(
    predicate: (entry: WireEntry) => boolean,
    what: string,
    deadlineMs?: number,
  ): Promise<WireEntry> {
    const { entries, bell } = this.wire;
    let next = 0;
    const probe = () => {
      for (; next < entries.length; next++) {
        const entry = entries[next];
        if (entry && predicate(entry)) return entry;
      }
      return undefined;
    };
    return bell.until(probe, what, deadlineMs);
  }

  /** Resolves to the n-th permission request, counted from 1. */
  permissionRequest(number: number, deadlineMs?: number): Promise<RequestPermissionRequest> {
    const probe = () => this.permissionRequests[number - 1];
    return this.wire.bell.until(probe, `permission request ${number}`, deadlineMs);
  }

  /** Closes the reading end of the agent's stderr. */
  closeErrors(): void {
    this.#process.closeErrors();
  }

  /** Stops reading; the agent must tolerate it. */
  pauseReading(): void {
    this.#process.pauseReading();
  }

  resumeReading(): void {
    this.#process.resumeReading();
  }

  /** Clears the problems, for tests that break a rule on purpose. */
  allow(...rules: RuleName[]): void {
    for (const rule of rules) this.#allowed.add(rule);
  }

  /** Ends stdin and waits for the exit; kills an agent that does not exit, which is a problem. */
  close(deadlineMs = exitDeadlineMs): Promise<Exit> {
    this.#closing ??= this.#end(deadlineMs);
    return this.#closing;
  }

  /** Kills the agent immediately. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<Exit> {
    const process = this.#process;
    process.kill(signal);
    this.#closing ??= process.exited;
    await process.closed;
    return this.#closing;
  }

  /** Prepares for a connection that the test breaks in another way. */
  expectCut(): void {
    this.wire.cut = true;
  }

  /** Breaks the connection; the agent may continue. Returns its exit. */
  hangUp(): Promise<Exit> {
    this.#process.hangUp();
    this.#closing ??= this.#process.exited;
    return this.#closing;
  }

  /**
   * Starts a new process on the same home, after the last one was closed or killed. Needs `initialize` again.
   */
  async restart(): Promise<void> {
    await this.close();
    this.#finished.push(this.wire);
    this.#closing = undefined;
    this.#process = this.#spawn();
    this.#agent = this.#connect();
  }

  /** Whether its first agent still runs, neither closed nor killed. */
  get isOpen(): boolean {
    return this.#closing === undefined && this.#finished.length === 0;
  }

  /**
   * Reuses the running agent in another folder with another scripted user. The record keeps only the connection's
   * beginning. The client must have the capabilities that it sent in `initialize`.
   */
  renew({ cwd, client: kind = plain(), permission }: Omit<EditorOptions, "home">): void {
    this.#options = { ...this.#options, cwd };
    this.client = kind;
    this.user = new ScriptedUser(permission);
    this.elicitations.length = 0;
    this.#allowed.clear();
    this.#process.renewRecord();
    this.#process.renewStream();
    this.#agent = this.#connect();
  }

  /** Deletes every session that the agent lists, which ends their work. */
  async deleteSessions(): Promise<void> {
    this.resumeReading();
    for (let { sessions } = await this.list(); sessions.length > 0; { sessions } = await this.list())
      await Promise.all(sessions.map(({ sessionId }) => this.delete(sessionId)));
  }

  /** All problems on any connection, as sentences. */
  problems(): string[] {
    const violations = [...this.#finished, this.wire].flatMap(wireViolations);
    const counted = violations.filter(({ rule }) => !this.#allowed.has(rule));
    return [
      ...this.user.problems,
      ...this.#problems,
      ...counted.map(({ rule, order, text }) => `[${rule}] line ${order}: ${text}`),
    ];
  }

  assertClean(): void {
    const problems = this.problems();
    if (problems.length > 0)
      throw new Error(`The wire log found:\n${problems.map((text) => `- ${text}`).join("\n")}`);
  }

  #spawn(): AgentProcess {
    const { home, program = fairlead, command = [process.execPath, ...program], env = {} } = this.#options;
    return new AgentProcess(command, {
      env: { ...environment(home), ...env },
      cwd: home,
    });
  }

  #connect(): ClientContext {
    const app = client({ name: this.client.info.name });
    app.onNotification(methods.client.session.update, () => {});
    app.onRequest(methods.client.session.requestPermission, async ({ params, signal }) => {
      const outcome = this.user.ask(params, signal);
      this.wire.bell.ring();
      return { outcome: await outcome };
    });
    serve(app, { ...this.client, ...(this.client.elicit && { elicit: this.#elicit }) });
    return app.connect(this.#process.stream).agent;
  }

  readonly #elicit: ClientKind["elicit"] = async (request) => {
    this.elicitations.push(request);
    return (await this.client.elicit?.(request)) ?? { action: "decline" };
  };

  async #end(deadlineMs: number): Promise<Exit> {
    const agent = this.#process;
    agent.resumeReading();
    agent.endInput();
    const exit = await this.#exitOf(agent, deadlineMs);
    if (exit.code !== 0 && !agent.wire.cut) {
      const how = exit.signal ?? `code ${exit.code}`;
      this.#problems.push(`The agent exited with ${how}; stderr ended with: ${agent.stderr.slice(-2000)}`);
    }
    await within(agent.closed, "the agent's pipes to close", pipesDeadlineMs).catch(() =>
      this.#problems.push("The agent is gone, but a child of it still holds its pipes."),
    );
    return exit;
  }

  async #exitOf(agent: AgentProcess, deadlineMs: number): Promise<Exit> {
    try {
      return await within(agent.exited, "the agent to exit", deadlineMs);
    } catch (error) {
      this.#problems.push(`${String(error)} It was killed.`);
      agent.kill();
      return agent.exited;
    }
  }

  /**
   * Resolves to the response within the deadline. A test that fails earlier never awaits it, which must not
   * count as another failure.
   */
  #answer<T>(method: string, answer: Promise<T>): Promise<T> {
    const timely = within(answer, `the answer to ${method}`, answerDeadlineMs);
    timely.catch(() => {});
    return timely;
  }
}
