import { randomUUID } from "node:crypto";
import type { Room } from "../base/async.ts";
import { isRecord } from "../base/record.ts";
import {
  argumentsText,
  callIndexOf,
  callsIn,
  type Chunk,
  countsIn,
  deltaOf,
  failOnError,
  firstChoice,
  parseChunk,
  type Piece,
  pieceOf,
  signatureOf,
} from "./chunk.ts";
import { invalidResponse, ProviderFailure } from "./failure.ts";

/** Stands for the name of a call that the provider never named, so that the call is answered and not lost. */
const unnamedTool = "unnamed";

/** Whoever reads a stream beside the SDK. */
export interface StreamWatch {
  /** Text that goes around the SDK. Reading on waits for the room that it asks for. */
  readonly onText: (kind: "text" | "reasoning", text: string) => Room;
  /** What goes wrong inside the stream. */
  readonly onFailure: (thrown: unknown) => void;
  /** The thought signature of a call, told before the call itself. */
  readonly onSignature: (providerCallId: string, signature: string) => void;
  /** Pieces of the provider's own record of what was thought, as they come. */
  readonly onReasoningDetails: (details: readonly unknown[]) => void;
}

/** Collects chunks, joins neighbours that only add text to the same thing, and writes them as events. */
export class ChunkMerger {
  isDone = false;
  /** The answer is whole: whatever happens to the connection now, it stands. */
  hasFinish = false;
  /** Whether anything of an answer came. */
  hasOutput = false;
  #output: string[] = [];
  #key: string | undefined;
  #texts: string[] = [];
  /** Whether something went to the SDK that text must not overtake. */
  #isThroughSdk = false;
  #room: Room;
  /** Whether the choice came that is the answer where there are several. */
  #hasFirstChoice = false;
  /** Calls by index: whether they have a name yet. */
  readonly #named = new Map<number, boolean>();
  readonly #watch: StreamWatch;

  constructor(watch: StreamWatch) {
    this.#watch = watch;
  }

  /** What the text that was told since the last call asks for. */
  takeRoom(): Room {
    const room = this.#room;
    this.#room = undefined;
    return room;
  }

  push(data: string): void {
    const text = data.trim();
    if (text === "" || this.isDone) return;
    if (text === "[DONE]") {
      this.isDone = true;
      return;
    }
    const value = this.#withOneChoice(parseChunk(text));
    const details = deltaOf(firstChoice(value)).reasoning_details;
    if (Array.isArray(details)) this.#watch.onReasoningDetails(details);
    const piece = pieceOf(value);
    if (piece === undefined) this.#write(this.#mend(value));
    else this.#append(piece);
  }

  /** Of several answers side by side the one that is numbered 0 counts, wherever it stands. */
  #withOneChoice(value: Chunk): Chunk {
    const choices: readonly unknown[] = Array.isArray(value.choices) ? value.choices : [];
    const at = choices.findIndex((choice) => isRecord(choice) && choice.index === 0);
    this.#hasFirstChoice ||= at !== -1;
    if (at > 0) return { ...value, choices: [choices[at]] };
    const isOfAnother = at === -1 && this.#hasFirstChoice && typeof firstChoice(value)?.index === "number";
    return isOfAnother ? { ...value, choices: [] } : value;
  }

  /** Closes the answer, or throws where it was cut off. */
  end(): void {
    if (!this.hasFinish) this.#endWithoutReason();
    const unnamed = [...this.#named].filter(([, named]) => !named).map(([index]) => index);
    if (unnamed.length > 0) {
      const calls = unnamed.map((index) => ({ index, function: { name: unnamedTool } }));
      this.#write({ choices: [{ index: 0, delta: { tool_calls: calls } }] });
    }
  }

  /** Ends with an error event, which is nothing but a sign: what went wrong is told elsewhere. */
  fail(): void {
    this.#write({ error: { message: "failed" } });
  }

  /** The events since the last call. */
  take(): string {
    this.#flush();
    const output = this.#output.join("");
    this.#output = [];
    return output;
  }

  /** "[DONE]" says that the answer is whole although no reason was given; a bare end does not. */
  #endWithoutReason(): void {
    if (!this.isDone) {
      const what = this.hasOutput ? "broke off before its answer was complete" : "answered with nothing";
      throw new ProviderFailure(invalidResponse(`The provider ${what}.`, true));
    }
    if (!this.hasOutput)
      throw new ProviderFailure(invalidResponse("The provider answered with nothing.", true));
    this.#write({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  }

  #append({ key, text }: Piece): void {
    if (this.#key !== key) this.#flush();
    this.#key = key;
    this.hasOutput = true;
    this.#texts.push(text);
  }

  #flush(): void {
    const key = this.#key;
    if (key === undefined) return;
    const text = this.#texts.join("");
    this.#key = undefined;
    this.#texts = [];
    if (!this.#isThroughSdk && !key.startsWith("call ")) {
      this.#room = this.#watch.onText(key === "content" ? "text" : "reasoning", text) ?? this.#room;
      return;
    }
    this.#isThroughSdk = true;
    const index = callIndexOf(key);
    const delta =
      index === undefined ? { [key]: text } : { tool_calls: [{ index, function: { arguments: text } }] };
    this.#output.push(eventOf({ choices: [{ index: 0, delta }] }));
  }

  #write(chunk: Chunk): void {
    this.#flush();
    this.#output.push(eventOf(chunk));
  }

  /** The chunk with only what the SDK reads, each field in the form that it expects. */
  #mend(value: Chunk): Chunk {
    failOnError(value);
    const choice = firstChoice(value);
    const usage = isRecord(value.usage) ? { usage: countsIn(value.usage) } : {};
    if (choice === undefined) return { choices: [], ...usage };
    const reason =
      typeof choice.finish_reason === "string" && choice.finish_reason !== "" ? choice.finish_reason : null;
    if (reason !== null) this.hasFinish = true;
    const delta = this.#mendDelta(deltaOf(choice));
    // Many begin with an empty text, which nothing can overtake.
    this.#isThroughSdk ||= reason !== null || Object.values(delta).some((field) => field !== "");
    return { choices: [{ index: 0, delta, finish_reason: reason }], ...usage };
  }

  #mendDelta(delta: Chunk): Chunk {
    const { content, reasoning_content, reasoning, refusal } = delta;
    const calls = callsIn(delta);
    const mended: Chunk = {};
    if (typeof content === "string" || Array.isArray(content)) mended.content = content;
    if (typeof reasoning_content === "string") mended.reasoning_content = reasoning_content;
    else if (typeof reasoning === "string") mended.reasoning = reasoning;
    if (typeof refusal === "string") mended.refusal = refusal;
    if (calls !== undefined) mended.tool_calls = calls.map((call) => this.#mendCall(call));
    if (Object.keys(mended).length > 0) this.hasOutput = true;
    return mended;
  }

  #mendCall(call: Chunk): Chunk {
    const asked = isRecord(call.function) ? call.function : {};
    const name = typeof asked.name === "string" && asked.name.trim() !== "" ? asked.name : null;
    // Google sends no index: whole calls need none.
    const index = typeof call.index === "number" ? call.index : undefined;
    if (index !== undefined) this.#named.set(index, (this.#named.get(index) ?? false) || name !== null);
    return {
      ...(index !== undefined && { index }),
      id: this.#idOf(call),
      function: { name, arguments: argumentsText(asked.arguments) },
    };
  }

  /** A call with a signature gets an id where it has none, so that both are found together again. */
  #idOf(call: Chunk): string | null {
    const id = typeof call.id === "string" || typeof call.id === "number" ? String(call.id) : "";
    const signature = signatureOf(call);
    if (signature === undefined) return id === "" ? null : id;
    const known = id === "" ? `call_${randomUUID()}` : id;
    this.#watch.onSignature(known, signature);
    return known;
  }
}

const eventOf = (chunk: Chunk): string => `data: ${JSON.stringify(chunk)}\n\n`;
