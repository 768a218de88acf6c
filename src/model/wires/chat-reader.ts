import { randomUuid } from "../../base/text/hash.ts";
import { parseJson } from "../../base/text/json.ts";
import { isRecord } from "../../base/text/record.ts";
import { unnamedTool } from "../answer/call-arguments.ts";
import { refusedCallForReason } from "../answer/refused-call.ts";
import { invalidResponse, ProviderFailure } from "../failure.ts";
import { AnswerReader, failOnError, type Json } from "./answer-reader.ts";
import { type CallFragment, findUsage, parseContent } from "./chat-chunk.ts";
import { ReasoningDetails } from "./reasoning-details.ts";

/** Reads the chunks of chat completions in the forms of all vendors. */
export class Reader extends AnswerReader {
  /** Whether a choice with index 0 was seen. */
  #hasFirstChoice = false;
  #hasDelta = false;
  /** The field in which the thoughts came. */
  #thoughts: { readonly field: string } | undefined;
  readonly #details = new ReasoningDetails();
  readonly #calls: CallFragment[] = [];

  protected read(chunk: Json): void {
    const choice = this.#findChoice(chunk);
    this.reportUsage(findUsage(chunk, choice));
    const reason = choice?.finish_reason;
    failOnError(reason === "error" ? { ...chunk, type: reason } : chunk);
    if (choice === undefined) return;
    this.#readDelta(choice);
    if (typeof reason === "string") this.#stop(reason);
  }

  protected override endCalls(): void {
    for (const call of this.#calls) {
      if (call.name === "") this.#emitCall({ ...call, name: unnamedTool });
    }
  }

  /** Returns only the choice with index 0 where the provider sends several. */
  #findChoice({ choices }: Json): Json | undefined {
    if (!Array.isArray(choices)) return undefined;
    const first: unknown = choices.find((choice: unknown) => isRecord(choice) && choice.index === 0);
    this.#hasFirstChoice ||= first !== undefined;
    const choice: unknown = first ?? choices[0];
    if (!isRecord(choice)) return undefined;
    const isOfAnother = first === undefined && this.#hasFirstChoice && typeof choice.index === "number";
    return isOfAnother ? undefined : choice;
  }

  /** Reads `delta`, or `message` of servers that do not stream. */
  #readDelta({ delta, message }: Json): void {
    // MiniMax ends a stream with the whole message once more.
    if (this.#hasDelta && !isRecord(delta)) return;
    this.#hasDelta ||= isRecord(delta);
    const content = isRecord(delta) ? delta : isRecord(message) ? message : {};
    this.#details.add(content);
    this.data = this.#details.fields;
    const { reasoning, field, text, refusal, calls } = parseContent(content);
    if (field !== undefined) this.#thoughts ??= { field };
    this.append("reasoning-delta", "reasoning", reasoning, this.#thoughts);
    this.append("text-delta", "text", text + refusal);
    this.hasRefusal ||= refusal !== "";
    for (const fragment of calls) this.#addCall(fragment);
  }

  #addCall(fragment: CallFragment): void {
    this.hasOutput = true;
    const call = this.#findCall(fragment);
    if (call === undefined) return this.#beginCall(fragment);
    const wasNamed = call.name !== "";
    call.name ||= fragment.name;
    call.arguments += fragment.arguments;
    call.signature ||= fragment.signature;
    if (wasNamed) this.append("tool-input-delta", call.id, fragment.arguments);
    else if (call.name !== "") this.#emitCall(call);
  }

  #beginCall(fragment: CallFragment): void {
    const isFree = fragment.id !== "" && this.#calls.every(({ id }) => id !== fragment.id);
    const call = { ...fragment, id: isFree ? fragment.id : `call_${randomUuid()}` };
    this.#calls.push(call);
    if (call.name !== "") this.#emitCall(call);
  }

  #emitCall({ id, name, arguments: text, signature }: CallFragment): void {
    this.startCall(id, name, signature === "" ? undefined : { thoughtSignature: signature });
    this.append("tool-input-delta", id, text);
  }

  /**
   * Returns the call that a fragment continues, or undefined if it begins a new one. Servers differ:
   *
   * - The index may be missing, or 0 for every call.
   * - The id may be missing, repeated with each fragment, or new for each fragment.
   * - The name may come late or more than once.
   */
  #findCall({ index, id, name }: CallFragment): CallFragment | undefined {
    const last =
      index === undefined
        ? (this.#calls.findLast((call) => call.id === id) ?? (id === "" ? this.#calls.at(-1) : undefined))
        : this.#calls.findLast((call) => call.index === index);
    if (last === undefined || name === "" || last.name === "") return last;
    const beginsAnother = (id !== "" && id !== last.id) || parseJson(last.arguments) !== undefined;
    return beginsAnother ? undefined : last;
  }

  #stop(reason: string): void {
    const refused = this.#calls.length === 0 ? refusedCallForReason(reason) : undefined;
    if (refused !== undefined) {
      const message = `The provider could not read a call of the model (${reason}).`;
      throw new ProviderFailure(invalidResponse(message, true), refused);
    }
    this.stop(reason === "stop" && this.hasRefusal ? "refusal" : reason);
  }
}
