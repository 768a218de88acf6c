import { KeyedSerial } from "../base/async.ts";
import type { Log } from "../base/log.ts";
import { isSessionId, type SessionId } from "../message/ids.ts";
import type { Session } from "../session/session.ts";
import type { Sessions } from "../session/sessions.ts";
import type { EditorBuffers } from "../workspace/files/editor-files.ts";
import type { Account } from "./methods/account.ts";
import type { ClientRequests } from "./client/client-requests.ts";
import { type ClientFeatures, noFeatures } from "./client-capabilities.ts";
import { ClientPaths } from "./client-paths.ts";
import { PendingPrompts } from "./pending-prompts.ts";
import { internalError, sessionNotFound } from "./errors.ts";
import type { Outbox } from "./transport/outbox.ts";
import { type Channel, SessionView } from "./view/session-view.ts";

export interface ConnectionDeps {
  sessions: Sessions;
  outbox: Outbox;
  account: Account;
  log: Log;
}

/** The client's side, in the version of the protocol that it speaks. */
export interface Peer {
  requests: ClientRequests;
  buffers(sessionId: SessionId): EditorBuffers;
  /** Says that the turns which still run are over, where their prompts' answers do not. */
  endTurns?(reason: string): Promise<void>;
}

const reopeningMessage =
  "The session is being opened anew with other folders. Send this again when that is answered.";

/** What the handlers of one client's requests share: its abilities, and its views of sessions. */
export class AcpConnection {
  readonly sessions: Sessions;
  readonly outbox: Outbox;
  readonly account: Account;
  /** One setup (load, resume, close, delete) or choice of a session at a time, in the order of arrival. */
  readonly setupQueue = new KeyedSerial();
  readonly pendingPrompts = new PendingPrompts(this.setupQueue);
  client: ClientFeatures = noFeatures;
  /** Undefined before the library is connected. */
  peer: Peer | undefined;
  /** Opens the way on which a session's updates go. */
  createChannel: (session: Session) => Channel;
  readonly #log: Log;
  readonly #views = new Map<string, SessionView>();
  readonly #closingViews = new WeakSet<SessionView>();

  constructor(deps: ConnectionDeps) {
    this.sessions = deps.sessions;
    this.outbox = deps.outbox;
    this.account = deps.account;
    this.#log = deps.log;
    this.createChannel = () => ({
      send: (update, under) => deps.outbox.update(under, update),
      beginReplay: () => {},
      userMessage: () => {},
    });
  }

  /** The view of a session that this client opened. Throws when it did not, closes it, or opens it anew just now. */
  getView(sessionId: string): SessionView {
    const view = this.findOpenView(sessionId);
    if (view === undefined) throw sessionNotFound(sessionId);
    // What is given to the one before would be lost.
    if (this.sessions.live(view.session.id) !== view.session) throw internalError(reopeningMessage);
    return view;
  }

  /** Whether a prompt has to wait until the session is as earlier requests will leave it. */
  isBeingSetUp(sessionId: string): boolean {
    if (!this.setupQueue.isBusy(sessionId)) return false;
    const session = this.findOpenView(sessionId)?.session;
    const isReady = session !== undefined && this.sessions.live(session.id) === session;
    return !isReady || this.pendingPrompts.has(sessionId);
  }

  /** The same, undefined where there is none. */
  findOpenView(sessionId: string): SessionView | undefined {
    const view = this.#views.get(sessionId);
    return view === undefined || this.#closingViews.has(view) ? undefined : view;
  }

  /** Closes the session's view by what ends the session: nothing more is asked of it, but its end is still shown. */
  async closeView(sessionId: string, end: () => Promise<void>): Promise<void> {
    const mark = () => {
      const view = this.#views.get(sessionId);
      if (view !== undefined) this.#closingViews.add(view);
    };
    mark();
    await this.setupQueue.run(sessionId, async () => {
      // Loads that came before this have made another one.
      mark();
      try {
        await end();
      } finally {
        this.#views.get(sessionId)?.updates.end();
        this.#views.delete(sessionId);
      }
    });
  }

  /** Those that the client has open, or that are being closed. */
  get openSessions(): Session[] {
    return [...this.#views.values()].map(({ session }) => session);
  }

  /** The view that shows the session, also while it is closed. */
  findView(sessionId: string): SessionView | undefined {
    return this.#views.get(sessionId);
  }

  /** Ends on the wire what runs in any session, for a program that cannot wait. */
  async abortTurns(reason: string): Promise<void> {
    await Promise.all([...this.#views.values()].map((view) => view.abortTurn()));
    await this.peer?.endTurns?.(reason);
  }

  /** How the client names the files of a session, or of one that works for it. */
  getPaths(sessionId: string): ClientPaths {
    return this.findView(sessionId)?.paths ?? new ClientPaths();
  }

  /** A child session that works for a task of one that this client opened. */
  findChild(sessionId: string): Session | undefined {
    return isSessionId(sessionId) ? this.sessions.child(sessionId) : undefined;
  }

  /** The view that the client has of this session, or a new one; with the names that the client gives its files now. */
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
    });
    this.#views.set(session.id, view);
    return view;
  }

  /** Holds the session's updates back until this request is answered; what may begin only then comes behind them. */
  holdUntilAnswered(view: SessionView, requestId: string | number | null, then?: () => void): void {
    view.updates.holdUntilAnswered();
    this.outbox.afterResponse(requestId, () => {
      view.updates.responded();
      view.session.claim();
      then?.();
    });
  }
}
