import { toList, toObject, toText, type JsonObject } from "../json.ts";

const endStates = new Set(["completed", "failed", "cancelled"]);

/** What the draft of version 2 requires of the lists of background work in a session's states. */
export class BackgroundWatch {
  /** Terminals and calls that the client knows, and whether they have ended. */
  readonly #hasEnded = new Map<string, boolean>();
  /** The terminals of calls. */
  readonly #terminals = new Map<string, string[]>();
  #listed: readonly string[] = [];
  /** All work that was listed since the session was opened. */
  readonly #jobs = new Set<string>();

  /** Returns problems of an update. */
  see(kind: string, update: JsonObject): string[] {
    if (kind === "terminal_update") this.#note(`terminal ${String(update.terminalId)}`, update.exitStatus);
    if (kind === "tool_call_update") this.#seeCall(update);
    return kind === "state_update" ? this.#seeState(update) : [];
  }

  /** Whether the update is about listed work, or about the list. */
  isOfJob(kind: string, { terminalId, toolCallId }: JsonObject): boolean {
    if (kind === "state_update") return this.#jobs.size > 0;
    if (kind !== "tool_call_update") return this.#jobs.has(`terminal ${String(terminalId)}`);
    const name = `tool_call ${String(toolCallId)}`;
    const terminals = this.#terminals.get(name) ?? [];
    return this.#jobs.has(name) || terminals.some((terminal) => this.#jobs.has(`terminal ${terminal}`));
  }

  #note(name: string, end: unknown): void {
    this.#hasEnded.set(name, this.#hasEnded.get(name) === true || (end !== undefined && end !== null));
  }

  #seeCall({ toolCallId, status, content }: JsonObject): void {
    const name = `tool_call ${String(toolCallId)}`;
    this.#note(name, endStates.has(String(status)) ? status : undefined);
    const terminals = toList(content).flatMap((item) => toText(toObject(item).terminalId) ?? []);
    if (terminals.length > 0) this.#terminals.set(name, terminals);
  }

  #seeState({ background }: JsonObject): string[] {
    if (!Array.isArray(background)) return ["A state does not list the background work"];
    const before = this.#listed;
    const listed = background.map(toObject).map(toName);
    this.#listed = listed;
    for (const name of listed) this.#jobs.add(name);
    const unknown = listed.filter((name) => !this.#hasEnded.has(name));
    const lost = before.filter((name) => !listed.includes(name) && this.#hasEnded.get(name) !== true);
    const twice = listed.filter(
      (name, at) =>
        listed.indexOf(name) !== at ||
        this.#terminals.get(name)?.some((terminal) => listed.includes(`terminal ${terminal}`)),
    );
    return [
      ...unknown.map((name) => `The background work ${name} was not announced`),
      ...lost.map((name) => `The background work ${name} is no longer listed, and its end was not reported`),
      ...twice.map((name) => `The background work ${name} is listed twice`),
    ];
  }
}

const toName = ({ type, terminalId, toolCallId }: JsonObject): string =>
  type === "terminal" ? `terminal ${String(terminalId)}` : `${String(type)} ${String(toolCallId)}`;
