import type { SessionUpdate, ToolCall } from "@agentclientprotocol/sdk/unstable";
import type { Backpressure } from "../../base/async.ts";
import { beginningOf } from "../../base/text/excerpt.ts";
import type { AgentError } from "../../message/message.ts";
import type { Log } from "../../base/log.ts";
import type { ClientFeatures } from "../client-capabilities.ts";

/** Characters of a summary that are shown; the model has all of it. */
const summaryLength = 60_000;

/**
 * Shows that a conversation is summed up: as the protocol's own update where the client takes it, else as a quiet
 * call. The summary itself is never shown as an answer.
 */
export class Compactions {
  readonly #client: ClientFeatures;
  readonly #send: (update: SessionUpdate) => Backpressure;
  readonly #log: Log;
  readonly #open = new Set<string>();
  /** Those of the open ones that are not shown yet. */
  readonly #unshown = new Set<string>();

  constructor(deps: { client: ClientFeatures; log: Log; send(update: SessionUpdate): Backpressure }) {
    this.#client = deps.client;
    this.#log = deps.log;
    this.#send = (update) => deps.send(update);
  }

  /** Those that have begun, oldest first. */
  get open(): readonly string[] {
    return [...this.#open];
  }

  /** What was shown so far is shown again. */
  forget(): void {
    this.#open.clear();
    this.#unshown.clear();
  }

  async begin(id: string): Promise<void> {
    if (this.#open.has(id)) return;
    this.#open.add(id);
    await this.#sendBeginning(id);
  }

  /** One of a conversation that is shown again: it is shown when its end is known, as one update. */
  beginReplayed(id: string): void {
    this.#open.add(id);
    this.#unshown.add(id);
  }

  /** Shows those whose end is still to come. */
  async showUnended(): Promise<void> {
    for (const id of this.#unshown) await this.#sendBeginning(id);
    this.#unshown.clear();
  }

  #sendBeginning(id: string): Backpressure {
    return this.#send(
      this.#client.compaction
        ? { sessionUpdate: "compaction_update", compactionId: id, status: "in_progress" }
        : { sessionUpdate: "tool_call", ...card(id), status: "in_progress" },
    );
  }

  /** More of the summary, while it is written. */
  async add(id: string, text: string): Promise<void> {
    if (!this.#client.compaction || !this.#open.has(id)) return;
    await this.#send({
      sessionUpdate: "compaction_summary_chunk",
      compactionId: id,
      content: { type: "text", text },
    });
  }

  /** `summary` is shown in the place of what was shown while it was written; only for who shows compactions. */
  async end(id: string, error: AgentError | undefined, summary = ""): Promise<void> {
    if (!this.#open.delete(id)) return;
    const isHeld = this.#unshown.delete(id);
    if (this.#client.compaction) return this.#send(compactionEnd(id, error, this.#truncate(id, summary)));
    const end = callEnd(error);
    return this.#send(
      isHeld
        ? { sessionUpdate: "tool_call", ...card(id), ...end }
        : { sessionUpdate: "tool_call_update", toolCallId: id, ...end },
    );
  }

  #truncate(id: string, summary: string): string {
    const more = summary.length - summaryLength;
    if (more <= 0) return summary;
    this.#log.warn("a long summary is not shown whole", { id, shown: summaryLength, more });
    return `${beginningOf(summary, summaryLength)}\n… (${more} characters more, which the model has)`;
  }

  /** Ends what was cut off before its summary was written. */
  async cancel(ids: readonly string[]): Promise<void> {
    const error = { code: "cancelled", message: "It was cut off.", retryable: false } as const;
    for (const id of ids) await this.end(id, error);
  }
}

const card = (toolCallId: string) =>
  ({ toolCallId, title: "Summing up the conversation", kind: "other" }) as const;

function callEnd(error: AgentError | undefined): Pick<ToolCall, "status" | "content"> {
  if (error === undefined) return { status: "completed" };
  return { status: "failed", content: [{ type: "content", content: { type: "text", text: error.message } }] };
}

function compactionEnd(id: string, error: AgentError | undefined, summary: string): SessionUpdate {
  const update = { sessionUpdate: "compaction_update", compactionId: id } as const;
  if (error?.code === "cancelled") return { ...update, status: "cancelled" };
  if (error !== undefined) return { ...update, status: "failed", error: error.message };
  return {
    ...update,
    status: "completed",
    ...(summary !== "" && { summary: [{ type: "text", text: summary }] }),
  };
}
