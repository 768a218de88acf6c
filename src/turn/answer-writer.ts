import { hasVisibleText } from "../base/text/controls.ts";
import { type MessageId, newPartId } from "../message/ids.ts";
import type { ProviderMetadata, ReasoningPart, TextPart } from "../message/part.ts";
import type { StepEvent } from "../model/model.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { checkEvery, RepeatedTextError, TextLoopDetector } from "./text-loop.ts";

type Kind = "text" | "reasoning";
type StreamedPart = TextPart | ReasoningPart;
/** An event of a tool call in an answer. */
export type CallEvent = StepEvent & { type: "call-start" | "call" };

/**
 * Takes the answer of one model call: writes text and reasoning into its message, and passes tool calls on. When the
 * call is retried, text that is already in the message is not written twice: the new text is compared with it and only
 * the rest is appended. Leading whitespace waits for a word: alone it would show an empty message.
 */
export class AnswerWriter {
  readonly #transcript: Transcript;
  readonly #messageId: MessageId;
  readonly #signal: AbortSignal;
  readonly #takeCall: (event: CallEvent) => void;
  readonly #parts = new Set<StreamedPart>();
  #earlierParts: StreamedPart[] = [];
  #open: OpenPart | undefined;
  /** Text that was not checked for repetition yet. */
  #unchecked = { text: "", reasoning: "" };
  #loops = { text: new TextLoopDetector(), reasoning: new TextLoopDetector() };
  #hasVisibleText = false;

  /** Events after the signal's abort are dropped. */
  constructor(deps: {
    transcript: Transcript;
    messageId: MessageId;
    signal: AbortSignal;
    takeCall: (event: CallEvent) => void;
  }) {
    this.#transcript = deps.transcript;
    this.#messageId = deps.messageId;
    this.#signal = deps.signal;
    this.#takeCall = deps.takeCall;
  }

  /** Whether this attempt wrote text, apart from reasoning, that can be seen. */
  get hasVisibleText(): boolean {
    return this.#hasVisibleText;
  }

  /** Throws {@link RepeatedTextError} after it wrote text that repeats itself. */
  readonly take = (event: StepEvent): void => {
    if (this.#signal.aborted) return;
    switch (event.type) {
      case "text-delta":
        this.#hasVisibleText ||= hasVisibleText(event.text);
        return this.#append("text", event.text);
      case "reasoning-delta":
        return this.#append("reasoning", event.text);
      case "text-end":
        return this.end(event.metadata);
      case "reasoning-end":
        return this.#endReasoning(event.metadata);
      case "call-start":
      case "call":
        return this.#takeCall(event);
    }
  };

  #append(kind: Kind, text: string): void {
    if (text === "") return;
    const open = this.#open;
    if (open?.kind !== kind) this.#openPart(kind, text);
    else if (open.part === undefined) this.#appendUnwritten(open, text);
    else this.#transcript.append(this.#messageId, open.part.id, text);
    this.#unchecked[kind] += text;
    if (this.#unchecked[kind].length >= checkEvery) this.#checkLoop(kind);
  }

  /** Ends the open part. `metadata` is stored with it. */
  end(metadata?: ProviderMetadata): void {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return;
    const part = open.part ?? (open.repeats ? metadata && open.repeats : this.#newPart(open.kind, open.text));
    if (part === undefined) return;
    part.time = { start: part.time?.start ?? Date.now(), end: Date.now() };
    if (metadata !== undefined) part.providerMetadata = metadata;
    this.#transcript.putPart(this.#messageId, part);
  }

  /** Ends reasoning. Metadata is stored even if the reasoning has no text. */
  #endReasoning(metadata: ProviderMetadata | undefined): void {
    if (metadata !== undefined && this.#open?.kind !== "reasoning") this.#openPart("reasoning", "");
    this.end(metadata);
  }

  /** Prepares for a retry of the call, which streams from the beginning. */
  restart(): void {
    const open = this.#open;
    if (open?.part === undefined && open?.repeats === undefined) this.#open = undefined;
    this.end();
    this.#hasVisibleText = false;
    this.#unchecked = { text: "", reasoning: "" };
    this.#loops = { text: new TextLoopDetector(), reasoning: new TextLoopDetector() };
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
    this.#open = { kind, text: "", hasWord: false, repeats: this.#takeEarlierPart(kind), part: undefined };
    this.#appendUnwritten(this.#open, text);
  }

  #takeEarlierPart(kind: Kind): StreamedPart | undefined {
    const index = this.#earlierParts.findIndex((part) => part.type === kind);
    return index === -1 ? undefined : this.#earlierParts.splice(index, 1)[0];
  }

  #appendUnwritten(open: OpenPart, text: string): void {
    open.text += text;
    open.hasWord ||= text.trim() !== "";
    if (open.repeats !== undefined && this.#repeats(open, open.repeats)) return;
    if (!open.hasWord) return;
    const part = this.#newPart(open.kind, "");
    open.part = part;
    this.#transcript.putPart(this.#messageId, part);
    this.#transcript.append(this.#messageId, part.id, open.text);
  }

  #checkLoop(kind: Kind): void {
    const repetition = this.#loops[kind].add(this.#unchecked[kind]);
    this.#unchecked[kind] = "";
    if (repetition !== undefined) throw new RepeatedTextError(repetition);
  }

  /** Whether the text so far is in the part of an earlier attempt or continues it. */
  #repeats(open: OpenPart, earlier: StreamedPart): boolean {
    if (earlier.text.startsWith(open.text)) {
      this.#parts.add(earlier);
      return true;
    }
    if (open.text.startsWith(earlier.text)) {
      open.part = earlier;
      this.#parts.add(earlier);
      this.#transcript.append(this.#messageId, earlier.id, open.text.slice(earlier.text.length));
      return true;
    }
    open.repeats = undefined;
    this.#retract(earlier);
    return false;
  }

  /** Hides a part from the model; the user still sees it. */
  #retract(part: StreamedPart): void {
    this.#parts.delete(part);
    if (part.type === "text") part.ignored = true;
    else if (part.providerMetadata !== undefined) delete part.providerMetadata;
    else return;
    this.#transcript.putPart(this.#messageId, part);
  }

  #newPart(type: Kind, text: string): StreamedPart {
    const part: StreamedPart = { id: newPartId(), type, text, time: { start: Date.now() } };
    this.#parts.add(part);
    return part;
  }
}

interface OpenPart {
  kind: Kind;
  /** Text of this attempt that repeats the earlier part, or leading whitespace. */
  text: string;
  hasWord: boolean;
  /** The part of an earlier attempt that this one is compared with. */
  repeats: StreamedPart | undefined;
  /** The part to append to; undefined until there is something to append. */
  part: StreamedPart | undefined;
}
