import type { AgentError } from "../../message/message.ts";
import { withoutMedia } from "./media.ts";
import type { Medium, Model } from "../model.ts";

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

const unsupportedWords =
  /unsupported|unknown variant|(not|n't) (currently )?support|\bno (image|vision|audio|pdf)|(only|just) (supports? )?text|text[- ]only/i;

/** Whether the model takes no such media at all; else it may be just these that it does not take, or so many. */
export function takesNone({ code, status, message }: AgentError): boolean {
  return code === "not-found" || status === 415 || unsupportedWords.test(message);
}

/** Which media models have refused. */
export class RefusedMedia {
  readonly #refused = new Map<string, ReadonlySet<Medium>>();

  /** The model, at its provider's address where that counts, as it is asked from now on. */
  applyTo(model: Model, baseURL = ""): Model {
    const refused = this.#refused.get(nameOf(model, baseURL));
    return refused === undefined ? model : withoutMedia(model, [...refused]);
  }

  add(model: Model, media: readonly Medium[], baseURL = ""): void {
    const name = nameOf(model, baseURL);
    this.#refused.set(name, new Set([...(this.#refused.get(name) ?? []), ...media]));
  }
}

const nameOf = ({ ref }: Model, baseURL: string): string =>
  JSON.stringify([ref.provider, ref.model, baseURL]);
