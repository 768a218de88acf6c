import { isAbsolute } from "node:path";
import { isObject, toList, toObject, toText, type JsonObject } from "../json.ts";
import { BackgroundWatch } from "./background-rules.ts";
import type { RuleName, Violation } from "./violation.ts";
import { type Call, isUpdate, getSessionId, type Traffic } from "./wire-traffic.ts";

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const endStates = new Set(["completed", "failed", "cancelled"]);
const wholeOf = new Map([
  ["user_message_chunk", "user_message"],
  ["agent_message_chunk", "agent_message"],
  ["agent_thought_chunk", "agent_thought"],
]);

/** The rules for a connection that uses the draft of version 2. */
export function draftRules(traffic: readonly Traffic[]): Violation[] {
  const sessions = new Map<string, DraftWatch>();
  let capabilities: JsonObject = {};
  return traffic.flatMap((item) => {
    if (item.type === "call" && item.method === "initialize")
      capabilities = toObject(item.params.capabilities);
    if (item.type === "call" && item.by === "toAgent")
      for (const session of sessions.values()) session.quiet = undefined;
    const id = getSessionId(item);
    if (id === undefined) return [];
    const watch = sessions.get(id) ?? new DraftWatch();
    if (isUpdate(item) && watch.isReplaying) {
      const { sessionUpdate, sessionId } = toObject(item.params.update);
      // The replay of a session announces its child sessions again.
      if (sessionUpdate === "subagent_update") sessions.get(String(sessionId))?.forget();
    }
    sessions.set(id, watch);
    return watch
      .see(item, capabilities)
      .map(([rule, text]) => ({ rule, order: item.order, text: `${text} (session ${id}).` }));
  });
}

type Problem = [RuleName, string];

/** The client's knowledge of one session while the messages pass. */
class DraftWatch {
  quiet: string | undefined;
  readonly #whole = new Set<string>();
  readonly #tools = new Map<string, { ended: boolean; name: unknown }>();
  readonly #folders = new Map<string, unknown>();
  readonly #background = new BackgroundWatch();
  readonly #open = new Set<Call>();
  #firstMessage: unknown;
  #state: unknown = "idle";
  #isCancelled = false;

  see(item: Traffic, capabilities: JsonObject): Problem[] {
    if (item.by === "toAgent") {
      if (item.type === "call") this.#open.add(item);
      if (item.type === "call" && item.method === "session/prompt") this.#isCancelled = false;
      return [];
    }
    if (item.type === "answer") {
      if (item.call) this.#open.delete(item.call);
      const isReplay = item.call?.method === "session/resume" && isObject(item.call.params.replayFrom);
      const isIdle = this.#open.size === 0 && this.#state === "idle";
      if (isReplay && isIdle && !item.error) this.quiet = "a resume with replay";
      return [];
    }
    if (isUpdate(item)) return this.#seeUpdate(toObject(item.params.update));
    if (item.method === "elicitation/create" && !isObject(toObject(capabilities.elicitation).form))
      return [["capability", "The client has no forms"]];
    if (item.method === "session/request_permission" && toList(item.params.options).length === 0)
      return [["selection", "A permission has no options"]];
    return [];
  }

  /**
   * A replay begins with the session's first message, or with the one that its request names, in the order of
   * requests.
   */
  #seeMessage(id: unknown): void {
    this.#firstMessage ??= id;
    const beginnings = [...this.#open].flatMap(({ method, params }) =>
      method === "session/resume" && isObject(params.replayFrom)
        ? [params.replayFrom.messageId ?? this.#firstMessage]
        : [],
    );
    if (beginnings.includes(id)) this.forget();
  }

  get isReplaying(): boolean {
    return [...this.#open].some(
      ({ method, params }) => method === "session/resume" && isObject(params.replayFrom),
    );
  }

  /** Forgets the messages and calls, which a replay announces again. */
  forget(): void {
    this.#whole.clear();
    this.#tools.clear();
    this.#folders.clear();
  }

  #seeUpdate(update: JsonObject): Problem[] {
    const kind = String(update.sessionUpdate);
    const quiet: Problem[] =
      this.quiet && kind !== "notice" && !this.#background.isOfJob(kind, update)
        ? [["silence", `${kind} came after ${this.quiet}`]]
        : [];
    const background = this.#background.see(kind, update).map((text): Problem => ["background", text]);
    return [...quiet, ...background, ...this.#seeKind(kind, update)];
  }

  #seeKind(kind: string, update: JsonObject): Problem[] {
    const whole = wholeOf.get(kind);
    if (whole !== undefined) {
      const known = this.#whole.has(`${whole} ${String(update.messageId)}`);
      return known ? [] : [["turn", `A ${kind} came before its ${whole}`]];
    }
    const isWhole = [...wholeOf.values()].includes(kind);
    if (isWhole) this.#seeMessage(update.messageId);
    if (isWhole) this.#whole.add(`${kind} ${String(update.messageId)}`);
    if (kind === "tool_call_update") return this.#seeTool(update);
    if (kind === "terminal_update") return this.#seeTerminal(update);
    if (kind === "terminal_output_chunk" && !base64.test(String(update.data)))
      return [["line", "A chunk of a terminal is not base64"]];
    return kind === "state_update" ? this.#seeState(update) : [];
  }

  #seeTool(update: JsonObject): Problem[] {
    const id = String(update.toolCallId);
    const before = this.#tools.get(id);
    this.#tools.set(id, {
      ended: before?.ended === true || endStates.has(String(update.status)),
      name: before?.name ?? update.name,
    });
    if (before?.ended) return [["tool", `The call ${id} changed after its end`]];
    if (before === undefined && toText(update.title) === undefined)
      return [["tool", `The call ${id} began without a title`]];
    const hasOtherName =
      before?.name !== undefined && update.name !== undefined && update.name !== before.name;
    return hasOtherName ? [["tool", `The call ${id} has another name`]] : [];
  }

  #seeTerminal(update: JsonObject): Problem[] {
    const id = String(update.terminalId);
    if (update.cwd === undefined) return [];
    const before = this.#folders.get(id) ?? update.cwd;
    this.#folders.set(id, before);
    const isRight = before === update.cwd && isAbsolute(toText(update.cwd) ?? "");
    return isRight ? [] : [["tool", `The terminal ${id} has a wrong folder`]];
  }

  #seeState({ state, stopReason }: JsonObject): Problem[] {
    const before = this.#state;
    this.#state = state;
    // A resume reports the current state.
    if ([...this.#open].some(({ method }) => method === "session/resume")) return [];
    if (this.#isCancelled) return [["silence", `The state ${String(state)} came after a cancelled turn`]];
    const isAsked = [...this.#open].some(({ method }) => method === "session/prompt");
    this.#isCancelled = stopReason === "cancelled" && !isAsked;
    if (state === "idle" && stopReason !== undefined && before === "idle")
      return [["turn", "A turn ended that was not running"]];
    return [];
  }
}
