import type { IncomingHttpHeaders } from "node:http";
import type { JsonObject } from "../json.ts";
import type { Bill } from "./prompt-cache.ts";
import type { Usage } from "./reply.ts";

/** An event of a stream, with its name if the API names events. */
export interface ServedEvent {
  readonly name?: string;
  readonly data: JsonObject;
}

/** The parts of a request that tests read. */
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
  /** A chunk of a call's input; the first chunk has the name, and an id unless it is omitted. */
  call(
    index: number,
    piece: string,
    started?: { name: string; id: string | undefined },
  ): readonly ServedEvent[];
  /** `reason` is one of chat completions, or the API's own; undefined for an answer without an end. */
  end(reason: string | undefined, usage: Usage): readonly ServedEvent[];
  /** Sent after the events of a complete answer. */
  readonly done: string;
}

/** An API of the scripted model. */
export interface ServedWire {
  readonly api: "chat" | "responses" | "messages";
  /** Its path under the base URL. */
  readonly path: string;
  view(body: JsonObject): RequestView;
  /** Describes problems for which a real server would reject the request. */
  violations(body: JsonObject, headers: IncomingHttpHeaders): string[];
  /** `usage` is the part known when the answer begins. */
  write(model: string, usage: Usage): AnswerWriter;
  /** Prefix of call ids. */
  readonly callPrefix: string;
  /** Counts the prompt's tokens like the vendor's cache. */
  bill(body: JsonObject): Bill;
}
