import { toList, toObject, toText, type JsonObject } from "../json.ts";
import type { RuleName, Violation } from "./violation.ts";
import { isUpdate, getSessionId, type Answer, type Call, type Notice, type Traffic } from "./wire-traffic.ts";

const kindsOfTurns = new Set([
  "user_message_chunk",
  "agent_message_chunk",
  "agent_thought_chunk",
  "tool_call",
  "tool_call_update",
  "plan",
]);

const opening = new Set(["session/new", "session/fork", "session/load", "session/resume"]);
const closing = new Set(["session/close", "session/delete"]);

/** The rules about the order of a session's updates. */
export function sessionRules(traffic: readonly Traffic[]): Violation[] {
  const sessions = new Map<string, SessionWatch>();
  const watch = (id: string) => {
    const found = sessions.get(id) ?? new SessionWatch(id);
    sessions.set(id, found);
    return found;
  };
  return traffic.flatMap((item) => {
    if (item.type === "call" && item.by === "toAgent")
      for (const session of sessions.values()) session.quiet = undefined;
    const ids = new Set([getSessionId(item), createdSession(item)]);
    return [...ids].flatMap((id) => (id === undefined ? [] : watch(id).see(item)));
  });
}

/** New sessions get their id with the response; a fork's response is about its source too. */
function createdSession(item: Traffic): string | undefined {
  return item.type === "answer" ? toText(toObject(item.result).sessionId) : undefined;
}

const afterLoad = "the answer to session/load";

/** The client's knowledge of one session while the messages pass. */
class SessionWatch {
  /** Why no update may come before the next request. */
  quiet: string | undefined;
  readonly #id: string;
  readonly #open = new Set<Call>();
  readonly #tools = new Map<string, "open" | "ended">();
  /** Open calls whose work continues after their turn. */
  readonly #background = new Set<string>();
  #hasJobEnded = false;
  /** The calls that started the child sessions of other calls. */
  readonly #parents = new Map<string, string>();
  /** Updates of background calls after a cancelled turn, which only their question may follow. */
  #early: Violation[] = [];
  /**
   * Calls whose cards show the content of a question, in editors that treat a question as an update of its
   * call.
   */
  readonly #asked = new Set<string>();
  /**
   * A load waits for earlier setup requests, and a turn may continue meanwhile: its replay begins with this
   * message.
   */
  #firstMessage: unknown;
  /** Calls that the newest load may announce again. */
  #toReplay = new Set<string>();
  /** Whether a turn of another client runs. */
  #joined = false;
  #known = false;
  #knownBeforeLoad = false;

  constructor(id: string) {
    this.#id = id;
  }

  see(item: Traffic): Violation[] {
    if (item.by === "toAgent") return this.#seeClient(item);
    if (item.type === "answer") return this.#seeAnswer(item);
    const early = isUpdate(item) ? [] : this.#takeEarly(item);
    const unknown = this.#known
      ? []
      : [this.#violation("session", item, `${describe(item)} is about an unknown session`)];
    return [...early, ...unknown, ...(isUpdate(item) ? this.#seeUpdate(item) : this.#seeQuestion(item))];
  }

  #seeClient(item: Traffic): Violation[] {
    if (item.type !== "call") return [];
    this.#open.add(item);
    if (item.method !== "session/load") return [];
    this.#knownBeforeLoad = this.#known;
    this.#known = true;
    this.#toReplay = new Set(this.#tools.keys());
    return [];
  }

  #seeAnswer(item: Answer): Violation[] {
    const { call, error } = item;
    if (!call) return [];
    this.#open.delete(call);
    if (opening.has(call.method) && !error) this.#known = true;
    if (call.method === "session/load" && error) this.#known = this.#knownBeforeLoad;
    if (closing.has(call.method) && !error) {
      this.#known = this.#isLoading();
      this.#joined = false;
      // A client that opens the session again starts without its cards.
      if (!this.#known) this.#tools.clear();
    }
    if (opening.has(call.method) && !error)
      this.#joined = turnState(toObject(item.result)) === "running" && this.#prompts.length === 0;
    this.#listen(call, item);
    return this.#endsTurn(call) ? this.#endTurn(item) : [];
  }

  /** A prompt that is answered before an older one never ran, and a session may be loaded while a turn runs. */
  #endsTurn({ method, order }: Call): boolean {
    const prompts = this.#prompts;
    if (this.#joined) return false;
    if (method === "session/load") return prompts.length === 0;
    return method === "session/prompt" && prompts.every((prompt) => prompt.order > order);
  }

  #listen(call: Call, { result, error }: Answer): void {
    if (error || this.#open.size > 0 || this.#joined) return;
    if (call.method === "session/load") this.quiet = afterLoad;
    if (toObject(result).stopReason === "cancelled") this.quiet = "a cancelled turn";
  }

  #endTurn(item: Answer | Notice): Violation[] {
    const open = [...this.#tools].filter(([id, state]) => state === "open" && !this.#isBackground(id));
    for (const [id] of open) this.#tools.set(id, "ended");
    return open.map(([id]) =>
      this.#violation("tool", item, `The call ${id} had no terminal status when its turn ended`),
    );
  }

  #seeUpdate(item: Notice): Violation[] {
    const update = toObject(item.params.update);
    const kind = String(update.sessionUpdate);
    const violations: Violation[] = [];
    if (this.quiet && !(this.quiet === afterLoad && this.#isOfJob(kind, update))) {
      const violation = this.#violation("silence", item, `${kind} came after ${this.quiet}`);
      (this.#isOfBackground(update) ? this.#early : violations).push(violation);
    } else if (kindsOfTurns.has(kind) && !this.#inTurn() && !this.#isOfBackground(update)) {
      violations.push(this.#violation("turn", item, `${kind} came outside of a turn`));
    }
    if (this.#joined && turnState(update) === "ended") {
      this.#joined = false;
      violations.push(...this.#endTurn(item));
    }
    if (kind === "user_message_chunk") this.#seeMessage(update.messageId);
    if (kind === "tool_call" || kind === "tool_call_update")
      violations.push(...this.#seeTool(item, kind, update));
    return violations;
  }

  /** Whether the update is about a job, which may continue after a load, or the notice of its end. */
  #isOfJob(kind: string, update: JsonObject): boolean {
    return kind === "notice" ? this.#hasJobEnded : this.#isOfBackground(update);
  }

  /** Whether the update is about a call whose work continues after its turn. */
  #isOfBackground(update: JsonObject): boolean {
    return this.#isBackground(String(update.toolCallId)) || this.#isBackground(parentOf(update));
  }

  #isBackground(id: string): boolean {
    return this.#background.has(id) || this.#background.has(this.#parents.get(id) ?? "");
  }

  /** Returns the updates after a cancelled turn, unless this is the question that they precede. */
  #takeEarly(item: Traffic): Violation[] {
    const early = this.#early;
    this.#early = [];
    const isQuestion = item.type !== "answer" && item.method === "session/request_permission";
    if (isQuestion && early.length > 0) this.quiet = undefined;
    return isQuestion ? [] : early;
  }

  #seeMessage(id: unknown): void {
    this.#firstMessage ??= id;
    if (this.#isLoading() && id === this.#firstMessage) this.#tools.clear();
  }

  #seeTool(item: Notice, kind: string, update: JsonObject): Violation[] {
    const id = String(update.toolCallId);
    const isReplayed = kind === "tool_call" && this.#isLoading() && this.#toReplay.delete(id);
    const before = isReplayed ? undefined : this.#tools.get(id);
    const ended = update.status === "completed" || update.status === "failed";
    if (toObject(update._meta).background !== undefined) this.#background.add(id);
    if (parentOf(update) !== "") this.#parents.set(id, parentOf(update));
    if (ended && this.#background.delete(id)) this.#hasJobEnded = true;
    this.#tools.set(id, ended || before === "ended" ? "ended" : "open");
    if (kind === "tool_call" || Array.isArray(update.content)) this.#asked.delete(id);
    if (ended && this.#asked.delete(id))
      return [this.#violation("tool", item, `The call ${id} ended with what a question about it showed`)];
    if (kind === "tool_call") {
      const problem = before ? "was announced twice" : findTitleProblem(update);
      return problem === undefined ? [] : [this.#violation("tool", item, `The call ${id} ${problem}`)];
    }
    if (!before) return [this.#violation("tool", item, `The call ${id} was updated before it was announced`)];
    return before === "ended"
      ? [this.#violation("tool", item, `The call ${id} changed after its terminal status`)]
      : [];
  }

  #seeQuestion(item: Call | Notice): Violation[] {
    if (item.method !== "session/request_permission") return [];
    const id = String(toObject(item.params.toolCall).toolCallId);
    if (toList(toObject(item.params.toolCall).content).length > 0) this.#asked.add(id);
    const violations: Violation[] = [];
    if (!this.#inTurn() && !this.#isBackground(id))
      violations.push(this.#violation("turn", item, "A permission was asked for outside of a turn"));
    if (!this.#tools.has(id))
      violations.push(this.#violation("tool", item, `The call ${id} asks before it was announced`));
    return violations;
  }

  /** A client that sends a load directly after a close knows the session again. */
  #isLoading(): boolean {
    return [...this.#open].some(({ method }) => method === "session/load");
  }

  #inTurn(): boolean {
    return this.#joined || this.#isLoading() || this.#prompts.length > 0;
  }

  get #prompts(): Call[] {
    return [...this.#open].filter(({ method }) => method === "session/prompt");
  }

  #violation(rule: RuleName, { order }: Traffic, text: string): Violation {
    return { rule, order, text: `${text} (session ${this.#id}).` };
  }
}

function parentOf({ _meta }: JsonObject): string {
  return toText(toObject(toObject(_meta).claudeCode).parentToolUseId) ?? "";
}

/** The state of the turn that a response or an update names. */
function turnState({ _meta }: JsonObject): unknown {
  return toObject(toObject(_meta).turn).state;
}

function describe(item: Call | Notice): string {
  return isUpdate(item) ? `The update ${String(toObject(item.params.update).sessionUpdate)}` : item.method;
}

/** Maximum characters of the title of a tool's call, unless it is a command. */
const titleLength = 80;

/** Describes problems of the title of a card. A backslash may precede each Markdown character. */
function findTitleProblem({ title, kind, name }: JsonObject): string | undefined {
  const text = (toText(title) ?? "").replaceAll(/\\(?=[^\p{L}\p{N}\s])/gu, "");
  if (text.trim() === "") return "has no title";
  const isLong = name !== undefined && kind !== "execute" && text.length > titleLength;
  return isLong ? `has a title of ${text.length} characters` : undefined;
}
