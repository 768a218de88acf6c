import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import { client, methods, type ClientContext } from "@agentclientprotocol/sdk/experimental/v2/unstable";
import type * as draft from "@agentclientprotocol/sdk/experimental/v2/unstable";
import { AgentProcess } from "../program/agent-process.ts";
import { environment } from "../program/environment.ts";
import { isObject, toList, toObject, type JsonObject } from "../json.ts";
import { startModelServer, type ModelServer } from "../model/model-server.ts";
import { findLeftoversWith } from "../program/processes.ts";
import { gitRepository, temporaryFolder, writeConfig, type Files, type GitRepository } from "../temp.ts";
import { within } from "../waiting.ts";
import { wireViolations } from "../wire/wire-checks.ts";
import type { WireEntry } from "../wire/wire-log.ts";

const fairlead = fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url));
const answerDeadlineMs = 20_000;
const exitDeadlineMs = 5_000;

export interface DraftStoryContext {
  editor: DraftEditor;
  model: ModelServer;
  repository: GitRepository;
  home: string;
}

export interface DraftOptions {
  files?: Files;
  config?: Record<string, unknown>;
  capabilities?: draft.ClientCapabilities;
  /** Answers permission requests; without it a request fails the test. */
  permission?: (request: draft.RequestPermissionRequest) => draft.RequestPermissionOutcome | "never";
  elicit?: (request: draft.CreateElicitationRequest) => draft.CreateElicitationResponse;
  initialize?: boolean;
  env?: Record<string, string>;
}

/** A scripted editor that uses the draft of version 2 with a real agent. Checks all messages. */
export class DraftEditor {
  readonly permissionRequests: draft.RequestPermissionRequest[] = [];
  readonly #process: AgentProcess;
  readonly #agent: ClientContext;
  #options: DraftOptions;
  #isClosed = false;

  constructor(options: DraftOptions & { home: string }) {
    this.#options = options;
    const { home } = options;
    this.#process = new AgentProcess([process.execPath, fairlead, "acp"], {
      env: { ...environment(home), ...options.env },
      cwd: home,
    });
    this.#agent = this.#connect();
  }

  get isOpen(): boolean {
    return !this.#isClosed;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get wire() {
    return this.#process.wire;
  }

  get stderr(): string {
    return this.#process.stderr;
  }

  initialize(more: JsonObject = {}): Promise<JsonObject> {
    const info = { name: "draft-editor", version: "1.0.0" };
    const { capabilities = {} } = this.#options;
    return this.request("initialize", { protocolVersion: 2, info, capabilities, ...more });
  }

  async request(method: string, params: JsonObject = {}): Promise<JsonObject> {
    const answer = this.#agent.request<unknown, JsonObject, string>(method, params);
    return toObject(await within(answer, `the answer to ${method}`, answerDeadlineMs));
  }

  notify(method: string, params: JsonObject): Promise<void> {
    return this.#agent.notify<JsonObject, string>(method, params);
  }

  /** Writes bytes to the agent's stdin unchanged. */
  async write(text: string): Promise<void> {
    await this.#process.write(Buffer.from(text));
  }

  /** Sends a prompt, and waits for the turn's end. */
  async turn(sessionId: string, text: string): Promise<{ messageId: unknown; idle: JsonObject }> {
    const before = this.updates(sessionId).length;
    const prompt = [{ type: "text", text }];
    const { messageId } = await this.request("session/prompt", { sessionId, prompt });
    const idle = await this.waitFor(sessionId, isTurnEnd, before);
    return { messageId, idle };
  }

  updates(sessionId: string): JsonObject[] {
    return this.wire.updates
      .filter((item) => item.sessionId === sessionId)
      .map(({ update }) => toObject(update));
  }

  kinds(sessionId: string, from = 0): unknown[] {
    return this.updates(sessionId)
      .slice(from)
      .map(({ sessionUpdate }) => sessionUpdate);
  }

  /** Resolves to the first matching update from this one on. */
  waitFor(sessionId: string, isWanted: (update: JsonObject) => boolean, from = 0): Promise<JsonObject> {
    const probe = () => this.updates(sessionId).slice(from).find(isWanted);
    return this.wire.bell.until(probe, `an update that satisfies ${isWanted.toString()}`);
  }

  waitForEntry(isWanted: (entry: WireEntry) => boolean, what: string): Promise<WireEntry> {
    return this.wire.bell.until(() => this.wire.entries.find(isWanted), what);
  }

  /** Reuses the running agent with a new record, which contains only the connection's beginning. */
  renew(options: DraftOptions): void {
    this.#options = options;
    this.permissionRequests.length = 0;
    this.#process.renewRecord();
  }

  /** Deletes every session that the agent lists, which ends their work. */
  async deleteSessions(): Promise<void> {
    const list = async () => toList((await this.request("session/list")).sessions).map(toObject);
    for (let sessions = await list(); sessions.length > 0; sessions = await list())
      await Promise.all(
        sessions.map(({ sessionId }) => this.request("session/delete", { sessionId: String(sessionId) })),
      );
  }

  /** All problems, as sentences. */
  problems(): string[] {
    return wireViolations(this.wire).map(({ rule, order, text }) => `[${rule}] line ${order}: ${text}`);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#process.endInput();
    await within(this.#process.exited, "the agent to exit", exitDeadlineMs).catch((error: unknown) => {
      this.#process.kill();
      throw error;
    });
  }

  #connect(): ClientContext {
    const app = client({ name: "draft-editor" });
    app.onNotification(methods.client.session.update, () => {});
    app.onRequest(methods.client.session.requestPermission, async ({ params, signal }) => {
      this.permissionRequests.push(params);
      this.wire.bell.ring();
      const outcome = this.#options.permission?.(params) ?? { outcome: "cancelled" };
      if (outcome !== "never") return { outcome };
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return { outcome: { outcome: "cancelled" } };
    });
    if (this.#options.elicit)
      app.onRequest(
        methods.client.elicitation.create,
        ({ params }) => this.#options.elicit?.(params) ?? { action: "decline" },
      );
    return app.connect(this.#process.stream).agent;
  }
}

export function isTurnEnd({ sessionUpdate, state, stopReason }: JsonObject): boolean {
  return sessionUpdate === "state_update" && state === "idle" && stopReason !== undefined;
}

/** The text of all chunks of this kind. */
export function draftText(updates: readonly JsonObject[], kind: string): string {
  return updates
    .filter(({ sessionUpdate }) => sessionUpdate === kind)
    .map(({ content }) => (isObject(content) ? String(content.text) : ""))
    .join("");
}

type DraftPlay = (context: DraftStoryContext) => Promise<void>;

/** Plays a story with an editor that uses the draft. Checks the model's requests and all messages. */
async function draftStory(options: DraftOptions, play: DraftPlay): Promise<void> {
  await using repository = await gitRepository(options.files);
  const context = await open(options, repository);
  await playWith(context, async () => {
    if (options.initialize !== false) await context.editor.initialize();
    await play(context);
    await end(context);
  });
  await close(context);
}

/** Plays the stories of a test file like `draftStory`; stories with the same capabilities share one agent. */
export function draftStoriesOfOneAgent(): typeof draftStory {
  const idle = new Map<string, DraftStoryContext>();
  afterAll(async () => {
    for (const context of idle.values()) {
      await playWith(context, () => end(context));
      await close(context);
    }
  });
  return async (options, play) => {
    if (options.initialize === false) {
      await draftStory(options, play);
      return;
    }
    const abilities = JSON.stringify([options.capabilities, options.elicit !== undefined]);
    await using repository = await gitRepository(options.files);
    const before = idle.get(abilities);
    idle.delete(abilities);
    const context = before
      ? await follow(before, options, repository)
      : await openInitialized(options, repository);
    await playWith(context, async () => {
      await play(context);
      if (!context.editor.isOpen) return end(context);
      await context.editor.deleteSessions();
      return assertClean(context, context.editor.pid);
    });
    if (context.editor.isOpen) idle.set(abilities, context);
    else await close(context);
  };
}

async function open(options: DraftOptions, repository: GitRepository): Promise<DraftStoryContext> {
  const { path: home } = await temporaryFolder({}, "fairlead-home-");
  const model = await startModelServer();
  await configure(home, model, options);
  return { editor: new DraftEditor({ ...options, home }), model, repository, home };
}

async function openInitialized(options: DraftOptions, repository: GitRepository): Promise<DraftStoryContext> {
  const context = await open(options, repository);
  await playWith(context, () => context.editor.initialize());
  return context;
}

async function follow(
  { editor, model, home }: DraftStoryContext,
  options: DraftOptions,
  repository: GitRepository,
): Promise<DraftStoryContext> {
  await configure(home, model, options);
  editor.renew(options);
  return { editor, model: model.successor(), repository, home };
}

const configure = (home: string, model: ModelServer, { config }: DraftOptions): Promise<void> =>
  writeConfig(home, model.url, config);

/** A failure ends the agent, and prints the messages. */
async function playWith(context: DraftStoryContext, play: () => Promise<unknown>): Promise<void> {
  try {
    await play();
  } catch (error) {
    console.error(`The wire, its last lines:\n${context.editor.wire.excerpt()}`);
    await close(context);
    throw error;
  }
}

async function end(context: DraftStoryContext): Promise<void> {
  await context.editor.close();
  await assertClean(context);
}

/** Checks the messages, and that no process remains except the agent, if it is still in use. */
async function assertClean({ editor, model, home }: DraftStoryContext, agent?: number): Promise<void> {
  const problems = editor.problems();
  if (problems.length > 0) throw new Error(`The wire log found:\n${problems.join("\n")}`);
  model.assertClean();
  const leftovers = await findLeftoversWith("HOME", home, { but: agent });
  if (leftovers.length > 0) throw new Error("Processes outlived their story.");
}

async function close({ editor, model, home }: DraftStoryContext): Promise<void> {
  await editor.close().catch(() => {});
  await model.close();
  await rm(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
