import type { IncomingHttpHeaders } from "node:http";
import type { JsonObject } from "../json.ts";
import type { Bill } from "./prompt-cache.ts";
import type { Usage } from "./reply.ts";

/** An event of a stream; its name comes before it where the API names events. */
export interface ServedEvent {
  readonly name?: string;
  readonly data: JsonObject;
}

/** The parts of a request that tests look at. */
export interface RequestView {
  readonly messages: readonly JsonObject[];
  /** The system texts, joined. */
  readonly system: string;
  /** The text of the last user message. */
  readonly userText: string;
  readonly toolNames: readonly string[];
  /** The tool results at the end of the request, in order. */
  readonly toolResults: readonly string[];
}

/** Writes one answer, event by event. */
export interface AnswerWriter {
  text(text: string): readonly ServedEvent[];
  reasoning(text: string): readonly ServedEvent[];
  /** A piece of a call's input; the first piece has the name, and an id unless it is left out. */
  call(
    index: number,
    piece: string,
    started?: { name: string; id: string | undefined },
  ): readonly ServedEvent[];
  /** `reason` is one of chat completions, or the API's own; undefined for an answer without an end. */
  end(reason: string | undefined, usage: Usage): readonly ServedEvent[];
  /** What follows the events of an answer that is whole. */
  readonly done: string;
}

/** An API under which the scripted model can be asked. */
export interface ServedWire {
  readonly api: "chat" | "responses" | "messages";
  /** Its path under the base URL. */
  readonly path: string;
  view(body: JsonObject): RequestView;
  /** Describes what a real server would refuse. */
  violations(body: JsonObject, headers: IncomingHttpHeaders): string[];
  /** `usage` is what is known of the prompt when the answer begins. */
  write(model: string, usage: Usage): AnswerWriter;
  /** What the ids of calls begin with. */
  readonly callPrefix: string;
  /** Accounts for the prompt as the vendor's cache does. */
  bill(body: JsonObject): Bill;
}
