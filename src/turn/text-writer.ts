import { type MessageId, newPartId } from "../message/ids.ts";
import type { ProviderMetadata, ReasoningPart, TextPart } from "../message/part.ts";
import type { Transcript } from "../conversation/transcript.ts";

type Kind = "text" | "reasoning";
type StreamedPart = TextPart | ReasoningPart;

/**
 * Writes the text and reasoning of one model call into its message. When the call is retried, text that is already in
 * the message is not written twice: the new text is compared with it and only the rest is appended.
 */
export class TextWriter {
  readonly #transcript: Transcript;
  readonly #messageId: MessageId;
  readonly #parts = new Set<StreamedPart>();
  #earlierParts: StreamedPart[] = [];
  #open: OpenPart | undefined;

  constructor(transcript: Transcript, messageId: MessageId) {
    this.#transcript = transcript;
    this.#messageId = messageId;
  }

  append(kind: Kind, text: string): void {
    if (text === "") return;
    const open = this.#open;
    if (open?.kind !== kind) this.#openPart(kind, text);
    else if (open.part === undefined) this.#appendWhileRepeating(open, text);
    else this.#transcript.append(this.#messageId, open.part.id, text);
  }

  /** Ends the open part. `metadata` is stored with it. */
  end(metadata?: ProviderMetadata): void {
    const open = this.#open;
    this.#open = undefined;
    const part = open?.part ?? (metadata && open?.repeats);
    if (part === undefined) return;
    part.time = { start: part.time?.start ?? Date.now(), end: Date.now() };
    if (metadata !== undefined) part.providerMetadata = metadata;
    this.#transcript.putPart(this.#messageId, part);
  }

  /** Ends reasoning. Metadata is stored even if the reasoning has no text. */
  endReasoning(metadata: ProviderMetadata | undefined): void {
    if (metadata !== undefined && this.#open?.kind !== "reasoning") this.#openPart("reasoning", "");
    this.end(metadata);
  }

  /** Prepares for a retry of the call, which streams from the beginning. */
  restart(): void {
    this.end();
    this.#earlierParts = [...this.#parts, ...this.#earlierParts];
    this.#parts.clear();
  }

  /** Completes the answer: retracts parts that only an earlier attempt wrote. */
  finish(): void {
    this.end();
    for (const part of this.#earlierParts.splice(0)) this.#retract(part);
  }

  #openPart(kind: Kind, text: string): void {
    this.end();
    this.#open = { kind, text: "", repeats: this.#takeEarlierPart(kind), part: undefined };
    this.#appendWhileRepeating(this.#open, text);
  }

  #takeEarlierPart(kind: Kind): StreamedPart | undefined {
    const index = this.#earlierParts.findIndex((part) => part.type === kind);
    return index === -1 ? undefined : this.#earlierParts.splice(index, 1)[0];
  }

  #appendWhileRepeating(open: OpenPart, text: string): void {
    open.text += text;
    const { repeats } = open;
    if (repeats === undefined) return this.#createPart(open);
    if (repeats.text.startsWith(open.text)) {
      this.#parts.add(repeats);
      return;
    }
    if (open.text.startsWith(repeats.text)) {
      open.part = repeats;
      this.#parts.add(repeats);
      return this.#transcript.append(this.#messageId, repeats.id, open.text.slice(repeats.text.length));
    }
    this.#retract(repeats);
    this.#createPart(open);
  }

  /** Hides a part from the model; the user still sees it. */
  #retract(part: StreamedPart): void {
    this.#parts.delete(part);
    if (part.type === "text") part.ignored = true;
    else if (part.providerMetadata !== undefined) delete part.providerMetadata;
    else return;
    this.#transcript.putPart(this.#messageId, part);
  }

  #createPart(open: OpenPart): void {
    const part: StreamedPart = { id: newPartId(), type: open.kind, text: "", time: { start: Date.now() } };
    open.part = part;
    this.#parts.add(part);
    this.#transcript.putPart(this.#messageId, part);
    if (open.text !== "") this.#transcript.append(this.#messageId, part.id, open.text);
  }
}

interface OpenPart {
  kind: Kind;
  /** Text streamed by this attempt while it repeats the earlier part. */
  text: string;
  /** The part of an earlier attempt that this one is compared with. */
  repeats: StreamedPart | undefined;
  /** The part to append to; undefined while the text only repeats. */
  part: StreamedPart | undefined;
}
