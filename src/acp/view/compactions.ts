import type { SessionUpdate, ToolCall } from "@agentclientprotocol/sdk/unstable";
import { beginningOf } from "../../base/text/excerpt.ts";
import type { AgentError } from "../../message/message.ts";
import type { Log } from "../../base/log.ts";
import type { ClientFeatures } from "../client-capabilities.ts";

/** Maximum characters of a summary that are shown; the model gets all of it. */
const summaryLength = 60_000;

/**
 * Shows that a conversation is being summarized: as a compaction update if the client supports it, otherwise as a tool
 * call. The summary is never shown as an agent message.
 */
export class Compactions {
  readonly #client: ClientFeatures;
  readonly #send: (update: SessionUpdate) => void;
  readonly #log: Log;
  readonly #open = new Set<string>();
  /** Open compactions of a replay that are not sent yet. */
  readonly #unshown = new Set<string>();

  constructor(deps: { client: ClientFeatures; log: Log; send(update: SessionUpdate): void }) {
    this.#client = deps.client;
    this.#log = deps.log;
    this.#send = (update) => deps.send(update);
  }

  /** Ids of the unfinished compactions, oldest first. */
  get open(): readonly string[] {
    return [...this.#open];
  }

  /** Clears all state before a replay. */
  forget(): void {
    this.#open.clear();
    this.#unshown.clear();
  }

  begin(id: string): void {
    if (this.#open.has(id)) return;
    this.#open.add(id);
    this.#sendBeginning(id);
  }

  /** Begins a replayed compaction, which is sent as one update when its end is known. */
  beginReplayed(id: string): void {
    this.#open.add(id);
    this.#unshown.add(id);
  }

  /** Sends the replayed compactions that have not ended. */
  showUnended(): void {
    for (const id of this.#unshown) this.#sendBeginning(id);
    this.#unshown.clear();
  }

  #sendBeginning(id: string): void {
    return this.#send(
      this.#client.compaction
        ? { sessionUpdate: "compaction_update", compactionId: id, status: "in_progress" }
        : { sessionUpdate: "tool_call", ...card(id), status: "in_progress" },
    );
  }

  /** Sends more of a summary while the model writes it. */
  add(id: string, text: string): void {
    if (!this.#client.compaction || !this.#open.has(id)) return;
    this.#send({
      sessionUpdate: "compaction_summary_chunk",
      compactionId: id,
      content: { type: "text", text },
    });
  }

  /** Ends a compaction. Clients that show compactions replace the streamed text by `summary`. */
  end(id: string, error: AgentError | undefined, summary = ""): void {
    if (!this.#open.delete(id)) return;
    const isUnshown = this.#unshown.delete(id);
    if (this.#client.compaction) return this.#send(compactionEnd(id, error, this.#truncate(id, summary)));
    const end = callEnd(error);
    return this.#send(
      isUnshown
        ? { sessionUpdate: "tool_call", ...card(id), ...end }
        : { sessionUpdate: "tool_call_update", toolCallId: id, ...end },
    );
  }

  #truncate(id: string, summary: string): string {
    const more = summary.length - summaryLength;
    if (more <= 0) return summary;
    this.#log.warn("long summary truncated for the client", { id, shown: summaryLength, more });
    return `${beginningOf(summary, summaryLength)}\n… (${more} characters more, which the model has)`;
  }

  /** Ends compactions that were cancelled before the summary was complete. */
  cancel(ids: readonly string[]): void {
    const error = { code: "cancelled", message: "The compaction was cancelled.", retryable: false } as const;
    for (const id of ids) this.end(id, error);
  }
}

const card = (toolCallId: string) =>
  ({ toolCallId, title: "Summarizing the conversation", kind: "other" }) as const;

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
