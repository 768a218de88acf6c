import { KeyedSerial } from "../base/async.ts";
import type { Log } from "../base/log.ts";
import { isSessionId } from "../message/ids.ts";
import type { Session } from "../session/session.ts";
import type { Sessions } from "../session/sessions.ts";
import type { Account } from "./methods/account.ts";
import { createClientRequests, type Peer, type Requester } from "./client/requester.ts";
import { editorBuffers } from "./client/editor-files.ts";
import type { Client } from "./client/client-host.ts";
import { type ClientFeatures, noFeatures } from "./client-capabilities.ts";
import { ClientPaths } from "./client-paths.ts";
import { PendingPrompts } from "./pending-prompts.ts";
import { internalError, sessionNotFound } from "./errors.ts";
import type { Outbox } from "./transport/outbox.ts";
import { type Channel, SessionView } from "./view/session-view.ts";

export interface ConnectionDeps {
  openSessions: (client: Client) => Sessions;
  outbox: Outbox;
  requester: Requester;
  account: Account;
  /** Aborts when the client's input has ended. */
  gone: AbortSignal;
  log: Log;
  /** Called when the client was answered that a session is open. */
  onOpened?: ((sessionId: string) => void) | undefined;
  explainDefaults?: ExplainDefaults | undefined;
}

export type ExplainDefaults = (view: SessionView, client: ClientFeatures) => Promise<void>;

const reopeningMessage =
  "The session is being reopened with other folders. Retry after that request is answered.";

/** State shared by the request handlers of one client: its features and its session views. */
export class AcpConnection {
  readonly sessions: Sessions;
  readonly outbox: Outbox;
  readonly account: Account;
  /** Runs one setup (load, resume, close, delete) or option change of a session at a time, in order of arrival. */
  readonly setupQueue = new KeyedSerial();
  readonly pendingPrompts = new PendingPrompts(this.setupQueue);
  client: ClientFeatures = noFeatures;
  peer: Peer;
  createChannel: (session: Session) => Channel;
  readonly #log: Log;
  readonly #onOpened: (sessionId: string) => void;
  #explainDefaults: ExplainDefaults | undefined;
  readonly #views = new Map<string, SessionView>();

  constructor(deps: ConnectionDeps) {
    const { requester, gone } = deps;
    this.outbox = deps.outbox;
    this.account = deps.account;
    this.#log = deps.log;
    this.#explainDefaults = deps.explainDefaults;
    this.#onOpened = deps.onOpened ?? (() => {});
    this.peer = {
      requests: createClientRequests(requester),
      buffers: (sessionId) => {
        const pathOf = (path: string) => this.getPaths(sessionId).pathToOpen(path);
        return editorBuffers({ requester, gone, sessionId, pathOf }, this.client);
      },
    };
    this.sessions = deps.openSessions(this);
    this.createChannel = () => deps.outbox;
  }

  /** Returns the view of a session. Throws if the client did not open it, is closing it or is reopening it. */
  getView(sessionId: string): SessionView {
    const view = this.findOpenView(sessionId);
    if (view === undefined) throw sessionNotFound(sessionId);
    // Changes to the replaced session would be lost.
    if (this.sessions.live(view.session.id) !== view.session) throw internalError(reopeningMessage);
    return view;
  }

  /** Whether a prompt must wait for earlier setup requests of the session. */
  isBeingSetUp(sessionId: string): boolean {
    if (!this.setupQueue.isBusy(sessionId)) return false;
    const session = this.findOpenView(sessionId)?.session;
    const isReady = session !== undefined && this.sessions.live(session.id) === session;
    return !isReady || this.pendingPrompts.has(sessionId);
  }

  /** Returns undefined if the session is not open or is closing. */
  findOpenView(sessionId: string): SessionView | undefined {
    const view = this.#views.get(sessionId);
    return view?.state.isOpen === true ? view : undefined;
  }

  /** Closes a session's view after `end` has run. New requests fail at once; updates are sent until the end. */
  async closeView(sessionId: string, end: () => Promise<void>): Promise<void> {
    this.#views.get(sessionId)?.state.beginClosing();
    await this.setupQueue.run(sessionId, async () => {
      // An earlier load may have replaced the view.
      this.#views.get(sessionId)?.state.beginClosing();
      try {
        await end();
      } finally {
        const view = this.#views.get(sessionId);
        view?.state.close();
        view?.session.events.hide(view);
        this.#views.delete(sessionId);
      }
    });
  }

  /** Called with each turn; explains the default permissions with the first one. */
  async explainDefaults(view: SessionView): Promise<void> {
    const explain = this.#explainDefaults;
    this.#explainDefaults = undefined;
    await explain?.(view, this.client);
  }

  /** Whether the client has opened the session or is opening it. */
  holds(sessionId: string): boolean {
    return this.findOpenView(sessionId) !== undefined || this.setupQueue.isBusy(sessionId);
  }

  /** Starts the servers of a session after the response that opens it. */
  startAfterResponse(session: Session, requestId: string | number | null): void {
    this.outbox.afterResponse(requestId, () => this.#start(session));
  }

  #start(session: Session): void {
    session.servers.start();
    this.#onOpened(session.id);
  }

  /** As {@link holdUntilAnswered}, for the response that opens the session. */
  holdUntilOpened(view: SessionView, requestId: string | number | null): void {
    this.holdUntilAnswered(view, requestId, () => this.#start(view.session));
  }

  /** Sessions that are open or closing. */
  get openSessions(): Session[] {
    return [...this.#views.values()].map(({ session }) => session);
  }

  /** Returns the view of an open or closing session. */
  findView(sessionId: string): SessionView | undefined {
    return this.#views.get(sessionId);
  }

  /** Reports all running turns as ended; used when the process must exit. */
  async abortTurns(reason: string): Promise<void> {
    await Promise.all([...this.#views.values()].map((view) => view.abortTurn()));
    await this.peer.endTurns?.(reason);
  }

  /** Returns the path mapping of a session. */
  getPaths(sessionId: string): ClientPaths {
    return this.findView(sessionId)?.paths ?? new ClientPaths();
  }

  /** Finds a child session, which runs a task of a session of this client. */
  findChild(sessionId: string): Session | undefined {
    return isSessionId(sessionId) ? this.sessions.child(sessionId) : undefined;
  }

  /** Returns the session's view with the new path mapping, or adds a view. */
  getOrAddView(session: Session, paths: ClientPaths): SessionView {
    const view = this.#views.get(session.id);
    if (view?.session !== session) return this.addView(session, paths);
    view.paths = paths;
    return view;
  }

  addView(session: Session, paths: ClientPaths): SessionView {
    const view = new SessionView({
      session,
      paths,
      channel: this.createChannel(session),
      client: this.client,
      log: this.#log,
      history: (child) => this.sessions.history(child),
      waitUntilReady: () => this.outbox.waitUntilReady(),
    });
    this.#views.set(session.id, view);
    session.events.showTo(view);
    return view;
  }

  /** Pauses the session's updates until this request is answered; then sends them and calls `then`. */
  holdUntilAnswered(view: SessionView, requestId: string | number | null, then?: () => void): void {
    view.state.pauseUntilAnswered();
    this.outbox.afterResponse(requestId, () => {
      view.state.answered();
      view.session.claim();
      then?.();
    });
  }
}
