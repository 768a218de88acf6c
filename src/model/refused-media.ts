import type { AgentError } from "../message/message.ts";
import { withoutMedia } from "./media.ts";
import type { Medium, Model } from "./model.ts";

/** Statuses with which providers refuse a request for what is in it. */
const refusals: ReadonlySet<number | undefined> = new Set([400, 415, 422]);

const mediaWords = /\b(image|vision|audio|pdf|media|modalit|multi-?modal)/i;

/**
 * Whether a request may have been refused for the media in it. OpenRouter answers 404 where none of a model's providers
 * takes images (https://openrouter.ai/docs/features/multimodal/images), others tell it inside a stream.
 */
export function mayRefuseMedia({ code, status, message }: AgentError): boolean {
  if (code === "bad-request") return refusals.has(status) || mediaWords.test(message);
  return code === "not-found" && mediaWords.test(message);
}

/** Which media models have refused, for as long as the process lives. */
export class RefusedMedia {
  readonly #refused = new Map<string, ReadonlySet<Medium>>();

  /** The model at its provider's address as it is asked from now on. */
  applyTo(model: Model, baseURL: string): Model {
    const refused = this.#refused.get(nameOf(model, baseURL));
    return refused === undefined ? model : withoutMedia(model, [...refused]);
  }

  add(model: Model, baseURL: string, media: readonly Medium[]): void {
    const name = nameOf(model, baseURL);
    this.#refused.set(name, new Set([...(this.#refused.get(name) ?? []), ...media]));
  }
}

const nameOf = ({ ref }: Model, baseURL: string): string =>
  JSON.stringify([ref.provider, ref.model, baseURL]);
