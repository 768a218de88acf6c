import { errorFields } from "../base/error-fields.ts";
import type { Log } from "../base/log.ts";
import type { Emit } from "../message/event.ts";
import type { SessionId } from "../message/ids.ts";
import { fallbackTitle } from "../message/title.ts";
import { omitDefaultEffort } from "../model/catalog/efforts.ts";
import type { Model } from "../model/model.ts";
import type { Project } from "../conversation/project.ts";
import type { SessionInfoStore } from "../conversation/session-info-store.ts";
import type { UsageTracker } from "./usage-tracker.ts";
import { generateTitle } from "./title.ts";

export interface SessionTitleDeps {
  sessionId: SessionId;
  infoStore: SessionInfoStore;
  usageTracker: UsageTracker;
  emit: Emit;
  log: Log;
  project(): Project;
  /** The model for the next message. */
  model(): Model | undefined;
  /** Shows the user a warning. */
  warn(text: string): void;
}

/** Sets and generates the title of a session. */
export class SessionTitle {
  readonly #deps: SessionTitleDeps;
  readonly #closed = new AbortController();

  constructor(deps: SessionTitleDeps) {
    this.#deps = deps;
  }

  /** Sets the title. Only the user can replace a title that the user gave. */
  async set(title: string, source: "fallback" | "generated" | "person"): Promise<void> {
    const { sessionId, infoStore, emit } = this.#deps;
    if (infoStore.info.titleSource === "person" && source !== "person") return;
    await infoStore.save({ title, titleSource: source });
    emit({ sessionId, type: "title", title, updatedAt: infoStore.info.time.updated });
  }

  /** Sets a fallback title and asks a model for a better one, without waiting for it. */
  async generate(text: string, signal: AbortSignal): Promise<void> {
    const { sessionId, infoStore, usageTracker, log } = this.#deps;
    if (infoStore.info.title !== undefined || text === "") return;
    await this.set(fallbackTitle(text), "fallback");
    const { agents, models, retryPolicy } = this.#deps.project();
    const agent = agents.get("title");
    const model = await this.#modelForTitle();
    if (agent === undefined || model === undefined) return;
    const either = AbortSignal.any([signal, this.#closed.signal]);
    void generateTitle({ models, retryPolicy, model, agent }, { sessionId, text }, either)
      .then(async ({ title, tokens, cost }) => {
        if (either.aborted) return;
        await usageTracker.countTitle({ model: model.ref, tokens, cost, time: Date.now() });
        if (title !== undefined) await this.set(title, "generated");
      })
      .catch((error: unknown) => log.warn("title generation failed", { sessionId, ...errorFields(error) }));
  }

  /** Cancels a running title request. */
  close(): void {
    this.#closed.abort();
  }

  #currentModel(): Model | undefined {
    const model = this.#deps.model();
    return model && omitEffort(model);
  }

  /** Returns the small model if configured, without falling back to another one. */
  async #modelForTitle(): Promise<Model | undefined> {
    const { config, models } = this.#deps.project();
    if (config.small_model === undefined) return this.#currentModel();
    const choice = models.chooseByName(config.small_model);
    if (choice.outcome === "found") return omitDefaultEffort(choice.model);
    this.#deps.warn(`No title is written. ${choice.error.message} It is "small_model" in the configuration.`);
    return undefined;
  }
}

/** Returns the model without a reasoning effort, for short texts. */
export function omitEffort(model: Model): Model {
  const { provider, model: id } = model.ref;
  return { ...omitDefaultEffort(model), ref: { provider, model: id } };
}
