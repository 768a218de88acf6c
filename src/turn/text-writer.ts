import type { Backpressure } from "../base/async.ts";
import { type MessageId, newPartId } from "../message/ids.ts";
import type { ReasoningPart, TextPart } from "../message/part.ts";
import type { Transcript } from "../conversation/transcript.ts";

type Kind = "text" | "reasoning";
type StreamedPart = TextPart | ReasoningPart;

/**
 * Writes the text and reasoning of one model call into its message. When the call is tried again after a failure,
 * what already stands there is not written twice: the new text is held against it and only what goes beyond is added.
 */
export class TextWriter {
  readonly #transcript: Transcript;
  readonly #messageId: MessageId;
  readonly #written = new Set<StreamedPart>();
  #earlier: StreamedPart[] = [];
  #open: OpenPart | undefined;

  constructor(transcript: Transcript, messageId: MessageId) {
    this.#transcript = transcript;
    this.#messageId = messageId;
  }

  append(kind: Kind, streamId: string, text: string): Backpressure {
    if (text === "") return undefined;
    const open = this.#open;
    return open?.streamId === streamId && open.kind === kind
      ? this.#appendToOpen(open, text)
      : this.#openPart(kind, streamId, text);
  }

  /** Ends the part that is being written. */
  async end(metadata?: Record<string, unknown>): Promise<void> {
    const part = this.#open?.part;
    this.#open = undefined;
    if (part === undefined) return;
    part.time = { start: part.time?.start ?? Date.now(), end: Date.now() };
    if (part.type === "reasoning" && metadata !== undefined) part.metadata = metadata;
    await this.#transcript.putPart(this.#messageId, part);
  }

  /** Prepares for the same call being streamed again from its beginning. */
  async restart(): Promise<void> {
    await this.end();
    this.#earlier = [...this.#written, ...this.#earlier];
    this.#written.clear();
  }

  /** The answer is whole: what only an earlier attempt wrote is no part of it. */
  async finish(): Promise<void> {
    await this.end();
    for (const part of this.#earlier.splice(0)) await this.#retract(part);
  }

  async #openPart(kind: Kind, streamId: string, text: string): Promise<void> {
    await this.end();
    this.#open = { kind, streamId, text: "", repeats: this.#takeEarlier(kind), part: undefined };
    await this.#appendToOpen(this.#open, text);
  }

  #takeEarlier(kind: Kind): StreamedPart | undefined {
    const index = this.#earlier.findIndex((part) => part.type === kind);
    return index === -1 ? undefined : this.#earlier.splice(index, 1)[0];
  }

  #appendToOpen(open: OpenPart, text: string): Backpressure {
    return open.part === undefined
      ? this.#appendWhileRepeating(open, text)
      : this.#transcript.append(this.#messageId, open.part.id, text);
  }

  async #appendWhileRepeating(open: OpenPart, text: string): Promise<void> {
    open.text += text;
    const { repeats } = open;
    if (repeats === undefined) return this.#createPart(open);
    if (repeats.text.startsWith(open.text)) {
      this.#written.add(repeats);
      return;
    }
    if (open.text.startsWith(repeats.text)) {
      open.part = repeats;
      this.#written.add(repeats);
      return this.#transcript.append(this.#messageId, repeats.id, open.text.slice(repeats.text.length));
    }
    await this.#retract(repeats);
    await this.#createPart(open);
  }

  /** The model wrote something else this time: what stands stays for the person, the model does not see it again. */
  async #retract(part: StreamedPart): Promise<void> {
    this.#written.delete(part);
    if (part.type !== "text") return;
    part.ignored = true;
    await this.#transcript.putPart(this.#messageId, part);
  }

  async #createPart(open: OpenPart): Promise<void> {
    const part: StreamedPart = { id: newPartId(), type: open.kind, text: "", time: { start: Date.now() } };
    open.part = part;
    this.#written.add(part);
    await this.#transcript.putPart(this.#messageId, part);
    await this.#transcript.append(this.#messageId, part.id, open.text);
  }
}

interface OpenPart {
  kind: Kind;
  streamId: string;
  /** What this attempt has streamed of it while it only repeats. */
  text: string;
  /** What an earlier attempt wrote in its place. */
  repeats: StreamedPart | undefined;
  /** Where it goes; undefined while it only repeats. */
  part: StreamedPart | undefined;
}
