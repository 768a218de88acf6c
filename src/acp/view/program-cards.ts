import type { SessionUpdate, ToolCall } from "@agentclientprotocol/sdk/unstable";
import { beginningOf } from "../../base/text/excerpt.ts";
import { removeControls } from "../../base/text/controls.ts";
import type { AgentError } from "../../message/message.ts";
import type { Part } from "../../message/part.ts";
import type { Log } from "../../base/log.ts";
import type { ClientFeatures } from "../client-capabilities.ts";
import { textContent } from "./tool-calls.ts";
import { formatTitle } from "./titles.ts";

/** Estimated tokens of the request before and after a compaction. */
export interface CompactionSizes {
  readonly size?: number | undefined;
  readonly left?: number | undefined;
}

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
  /** Summaries of open compactions whose sizes are not known yet. */
  readonly #summaries = new Map<string, string>();
  /** Sizes of replayed compactions. */
  readonly #sizes = new Map<string, CompactionSizes>();

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
    this.#summaries.clear();
    this.#sizes.clear();
  }

  begin(id: string): void {
    if (this.#open.has(id)) return;
    this.#open.add(id);
    this.#sendBeginning(id);
  }

  /** Begins a replayed compaction, which is sent as one update when its end is known. */
  beginReplayed(id: string, sizes: CompactionSizes): void {
    this.#open.add(id);
    // A compaction that is still running is measured later.
    if (sizes.left !== undefined) this.#sizes.set(id, sizes);
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

  /**
   * Ends a compaction whose summary is written. Clients that show compactions replace the streamed text by `summary`; the
   * card of others waits for the sizes, see {@link measured}.
   */
  end(id: string, error: AgentError | undefined, summary = ""): void {
    if (!this.#open.has(id)) return;
    if (error !== undefined || this.#client.compaction || this.#sizes.has(id))
      return this.#finish(id, error, summary);
    this.#summaries.set(id, summary);
  }

  /** Ends a compaction whose summary has replaced messages. */
  measured(id: string, sizes: CompactionSizes): void {
    const summary = this.#summaries.get(id);
    if (summary === undefined) return;
    this.#sizes.set(id, sizes);
    this.#finish(id, undefined, summary);
  }

  #finish(id: string, error: AgentError | undefined, summary: string): void {
    const sizes = this.#sizes.get(id);
    this.#summaries.delete(id);
    this.#sizes.delete(id);
    if (!this.#open.delete(id)) return;
    const isUnshown = this.#unshown.delete(id);
    const shown = this.#truncate(id, summary);
    if (this.#client.compaction) return this.#send(compactionEnd(id, error, shown));
    const end = callEnd(error, shown, sizes);
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

  /** Ends open compactions; those without a complete summary were cancelled. */
  cancel(ids: readonly string[]): void {
    const error = { code: "cancelled", message: "The compaction was cancelled.", retryable: false } as const;
    for (const id of ids) {
      const summary = this.#summaries.get(id);
      this.#finish(id, summary === undefined ? error : undefined, summary ?? "");
    }
  }
}

const card = (toolCallId: string) =>
  ({ toolCallId, title: "Summarizing the conversation", kind: "other" }) as const;

function callEnd(
  error: AgentError | undefined,
  summary: string,
  { size, left }: CompactionSizes = {},
): Partial<ToolCall> {
  const text = error?.message ?? summary;
  const content: ToolCall["content"] =
    text === "" ? [] : [{ type: "content", content: { type: "text", text } }];
  if (error !== undefined) return { status: "failed", content };
  const sizes =
    size === undefined || left === undefined ? "" : `: ${thousands(size)} → ${thousands(left)} tokens`;
  return { status: "completed", title: `Summarized the conversation${sizes}`, content };
}

const thousands = (tokens: number): string =>
  tokens < 10_000 ? `${(tokens / 1_000).toFixed(1)}k` : `${Math.round(tokens / 1_000)}k`;

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

type RetryPart = Part & { type: "retry" };

/** Shows that a model call failed and is repeated: as a call that ends when the turn continues. */
export class Retries {
  readonly #client: ClientFeatures;
  readonly #send: (update: SessionUpdate) => void;
  /** The running wait. */
  #open: RetryPart | undefined;

  constructor(client: ClientFeatures, send: (update: SessionUpdate) => void) {
    this.#client = client;
    this.#send = send;
  }

  begin(retry: RetryPart): void {
    this.end();
    this.#open = retry;
    this.#send({ sessionUpdate: "tool_call", ...this.#card(retry), status: "in_progress" });
  }

  /** Ends the running wait, if any. */
  end(): void {
    if (this.#open === undefined) return;
    const { id, ...facts } = this.#open;
    const status = "completed" as const;
    this.#send({ sessionUpdate: "tool_call_update", toolCallId: id, status, _meta: createRetryMeta(facts) });
    this.#open = undefined;
  }

  replay(retry: RetryPart): void {
    this.#send({ sessionUpdate: "tool_call", ...this.#card(retry), status: "completed" });
  }

  /** Clears the state before a replay, which shows every wait as ended. */
  forget(): void {
    this.#open = undefined;
  }

  #card(retry: RetryPart): ToolCall {
    const { id, attempt, attempts, error, delayMs } = retry;
    const seconds = Math.max(1, Math.round(delayMs / 1000));
    const text = `${removeControls(error)}\nTrying again in ${seconds} s (attempt ${attempt} of ${attempts}).`;
    return {
      toolCallId: id,
      title: formatTitle(`Wait for the provider (attempt ${attempt} of ${attempts})`, "other", this.#client),
      kind: "other",
      content: [textContent(text)],
      _meta: createRetryMeta(retry),
    };
  }
}

const createRetryMeta = ({ attempt, attempts, delayMs }: Omit<RetryPart, "id">) => ({
  retry: { attempt, attempts, delayMs },
});
