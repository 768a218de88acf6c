import type { AgentError } from "../../message/message.ts";
import { omitMedia } from "./media.ts";
import type { Medium, Model } from "../model.ts";

/** Statuses with which providers reject the content of a request. */
const refusals: ReadonlySet<number | undefined> = new Set([400, 415, 422]);

const mediaWords = /\b(image|vision|audio|pdf|media|modalit|multi-?modal)/i;

/**
 * Returns whether the request may have been rejected because of its media. OpenRouter answers 404 if no provider of the
 * model accepts images (https://openrouter.ai/docs/features/multimodal/images); others send an error in the stream.
 */
export function mayRejectMedia({ code, status, message }: AgentError): boolean {
  if (code === "bad-request") return refusals.has(status) || mediaWords.test(message);
  return code === "not-found" && mediaWords.test(message);
}

const unsupportedWords =
  /unsupported|unknown variant|(not|n't) (currently )?support|\bno (image|vision|audio|pdf)|(only|just) (supports? )?text|text[- ]only/i;

/** Returns whether the model accepts no media of this kind. Otherwise these files, or their number, may be the problem. */
export function rejectsAllMedia({ code, status, message }: AgentError): boolean {
  return code === "not-found" || status === 415 || unsupportedWords.test(message);
}

/** The kinds of media that models have rejected. */
export class RefusedMedia {
  readonly #refused = new Map<string, ReadonlySet<Medium>>();

  /** Returns the model without the media that it rejected at this base URL. */
  applyTo(model: Model, baseURL = ""): Model {
    const refused = this.#refused.get(nameOf(model, baseURL));
    return refused === undefined ? model : omitMedia(model, [...refused]);
  }

  add(model: Model, media: readonly Medium[], baseURL = ""): void {
    const name = nameOf(model, baseURL);
    this.#refused.set(name, new Set([...(this.#refused.get(name) ?? []), ...media]));
  }
}

const nameOf = ({ ref }: Model, baseURL: string): string =>
  JSON.stringify([ref.provider, ref.model, baseURL]);
