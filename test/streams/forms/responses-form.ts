import type { Answer, AnswerCall } from "../answer.ts";
import type { Frame, Json } from "./chat-form.ts";
import { isObject } from "../../support/json.ts";
import type { UsageForm } from "../usage.ts";

/** An event of an output item, without what all events have. */
export type ItemEvent = readonly [type: string, fields: Json];

/** The item that events are about. */
export interface Place {
  readonly index: number;
  /** Its id; another one at each call where the server rotates ids. */
  readonly id: (prefix: string) => string;
}
export type WriteItem<T> = (given: T, place: Place) => readonly ItemEvent[];

/** How one server streams the Responses API: which fields come in which order, and how items are cut. */
export interface ResponsesForm {
  readonly provider: string;
  /** Where the form was seen. */
  readonly source: string;
  /** Adds what all events have. */
  readonly envelope: (type: string, fields: Json, number: number) => Json;
  /** False without `event:` lines. */
  readonly namesEvents?: boolean;
  /** The response object around the status, the output, the usage and why it is incomplete. */
  readonly response: (state: Json) => Json;
  readonly opening?: readonly string[];
  readonly before?: readonly Frame[];
  /** An item that was not asked for, before the others. */
  readonly first?: WriteItem<undefined>;
  readonly reasoning?: WriteItem<readonly string[]>;
  readonly message?: WriteItem<readonly string[]>;
  readonly call?: WriteItem<AnswerCall>;
  readonly rotatesIds?: boolean;
  /** Puts the events of items in order; one item after the other unless given. */
  readonly arrange?: (items: readonly (readonly ItemEvent[])[]) => readonly ItemEvent[];
  /** Sent after each event. */
  readonly between?: Frame;
  readonly usage?: UsageForm;
  /** False if an answer that was cut off ends like any other. */
  readonly saysLength?: boolean;
  /** Whether `[DONE]` ends the stream. */
  readonly done?: boolean;
  readonly lineEnd?: "\n" | "\r\n" | "\r";
}

export function canWriteResponses(form: ResponsesForm, answer: Answer): boolean {
  return answer.reasoning.length === 0 || form.reasoning !== undefined;
}

/** The bytes of an answer in a server's form. */
export function writeResponses(form: ResponsesForm, answer: Answer): string {
  const { envelope, namesEvents = true, lineEnd = "\n", before = [], between, done = false } = form;
  const frames = eventsOf(form, answer).map(([type, fields], number) =>
    eventText(envelope(type, fields, number), namesEvents ? type : undefined),
  );
  const text = [
    ...before.map((frame) => frameText(frame)),
    ...frames.flatMap((frame) => (between === undefined ? [frame] : [frame, frameText(between)])),
    ...(done ? ["data: [DONE]\n\n"] : []),
  ].join("");
  return lineEnd === "\n" ? text : text.replaceAll("\n", lineEnd);
}

export const eventText = (json: Json, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(json)}\n\n`;

const frameText = (frame: Frame): string => (typeof frame === "string" ? frame : eventText(frame));

function eventsOf(form: ResponsesForm, answer: Answer): readonly ItemEvent[] {
  const { opening = ["response.created", "response.in_progress"], usage, saysLength = true } = form;
  const { arrange = (items) => items.flat() } = form;
  const items = itemsOf(form, answer);
  const output = items.flatMap((events) => events.at(-1)?.[1].item ?? []);
  const isCut = answer.end === "length" && saysLength;
  const status = isCut ? "incomplete" : "completed";
  const last = {
    status,
    output,
    incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
    usage: usage?.counts ?? null,
  };
  const first = { status: "in_progress", output: [], incomplete_details: null, usage: null };
  return [
    ...opening.map((type): ItemEvent => [type, { response: form.response(first) }]),
    ...arrange(items),
    [`response.${status}`, { response: form.response(last) }],
  ];
}

function itemsOf(form: ResponsesForm, { reasoning, text, calls }: Answer): (readonly ItemEvent[])[] {
  const { first, message = messageItem(), call = callItem() } = form;
  const written: ((place: Place) => readonly ItemEvent[])[] = [
    ...(first === undefined ? [] : [(place: Place) => first(undefined, place)]),
    ...(reasoning.length === 0 ? [] : [(place: Place) => form.reasoning?.(reasoning, place) ?? []]),
    ...(text.length === 0 ? [] : [(place: Place) => message(text, place)]),
    ...calls.map((one) => (place: Place) => call(one, place)),
  ];
  return written.map((write, index) => write(placeAt(index, form.rotatesIds === true)));
}

function placeAt(index: number, rotates: boolean): Place {
  let asked = 0;
  return { index, id: (prefix) => `${prefix}_${index}${rotates ? `_${++asked}` : ""}` };
}

/** Fields that name the place of an event. */
const at = ({ index, id }: Place, prefix: string, inner?: string): Json => ({
  item_id: id(prefix),
  output_index: index,
  ...(inner !== undefined && { [inner]: 0 }),
});

interface MessageManner {
  /** More fields of the item. */
  readonly item?: Json;
  /** More fields of the content part. */
  readonly part?: Json;
  /** More fields of deltas and of the done text. */
  readonly delta?: (piece: string) => Json;
  /** Events between the deltas and their end. */
  readonly afterDeltas?: (place: Place) => readonly ItemEvent[];
  readonly contentIndex?: number;
}

/** A message with one part of text. */
export const messageItem =
  (manner: MessageManner = {}): WriteItem<readonly string[]> =>
  (pieces, place) => {
    const { item = {}, delta = () => ({ logprobs: [] }), afterDeltas = () => [], contentIndex = 0 } = manner;
    const { part = { annotations: [], logprobs: [] } } = manner;
    const text = pieces.join("");
    const here = (): Json => ({ ...at(place, "msg"), content_index: contentIndex });
    const whole = { type: "output_text", ...part, text };
    const message = { id: place.id("msg"), type: "message", ...item, role: "assistant" };
    return [
      [
        "response.output_item.added",
        { output_index: place.index, item: { ...message, status: "in_progress", content: [] } },
      ],
      ["response.content_part.added", { ...here(), part: { ...whole, text: "" } }],
      ...pieces.map((piece): ItemEvent => [
        "response.output_text.delta",
        { ...here(), delta: piece, ...delta(piece) },
      ]),
      ...afterDeltas(place),
      ["response.output_text.done", { ...here(), text, ...delta("") }],
      ["response.content_part.done", { ...here(), part: whole }],
      [
        "response.output_item.done",
        { output_index: place.index, item: { ...message, status: "completed", content: [whole] } },
      ],
    ];
  };

interface CallManner {
  readonly item?: Json;
  /** The argument deltas; the pieces unless given. */
  readonly deltas?: (call: AnswerCall) => readonly string[];
  /** The item without an id. */
  readonly hasId?: boolean;
}

/** A function call whose arguments come in pieces. */
export const callItem =
  ({ item = {}, deltas = ({ pieces }) => pieces, hasId = true }: CallManner = {}): WriteItem<AnswerCall> =>
  (call, place) => {
    const text = call.pieces.join("");
    const id = hasId ? { id: place.id("fc") } : {};
    const begun = { ...id, type: "function_call", ...item, call_id: call.id, name: call.tool };
    return [
      [
        "response.output_item.added",
        { output_index: place.index, item: { ...begun, status: "in_progress", arguments: "" } },
      ],
      ...deltas(call).map((delta): ItemEvent => [
        "response.function_call_arguments.delta",
        { ...at(place, "fc"), delta },
      ]),
      ["response.function_call_arguments.done", { ...at(place, "fc"), arguments: text }],
      [
        "response.output_item.done",
        { output_index: place.index, item: { ...begun, status: "completed", arguments: text } },
      ],
    ];
  };

interface SummaryManner {
  /** What the item has while it begins. */
  readonly begun?: Json;
  /** What the finished item has. */
  readonly done?: Json;
  /** How many parts the summary has. */
  readonly parts?: number;
  /** False without the events of the parts. */
  readonly namesParts?: boolean;
}

/** Thoughts as a summary. */
export const summaryItem =
  ({ begun = {}, done = begun, parts = 1, namesParts = true }: SummaryManner = {}): WriteItem<
    readonly string[]
  > =>
  (pieces, place) => {
    const size = Math.ceil(pieces.length / parts);
    const texts = Array.from({ length: parts }, (_, part) => pieces.slice(part * size, (part + 1) * size));
    const given = texts.filter((one) => one.length > 0);
    const events = given.flatMap((part, index): ItemEvent[] => {
      const here = (): Json => ({ ...at(place, "rs"), summary_index: index });
      const text = part.join("");
      const ofPart = (kind: string, text: string): ItemEvent[] =>
        namesParts
          ? [[`response.reasoning_summary_part.${kind}`, { ...here(), part: { type: "summary_text", text } }]]
          : [];
      return [
        ...ofPart("added", ""),
        ...part.map((delta): ItemEvent => ["response.reasoning_summary_text.delta", { ...here(), delta }]),
        ["response.reasoning_summary_text.done", { ...here(), text }],
        ...ofPart("done", text),
      ];
    });
    const item = { id: place.id("rs"), type: "reasoning" };
    const summary = given.map((part) => ({ type: "summary_text", text: part.join("") }));
    return [
      ["response.output_item.added", { output_index: place.index, item: { ...item, ...begun, summary: [] } }],
      ...events,
      ["response.output_item.done", { output_index: place.index, item: { ...item, ...done, summary } }],
    ];
  };

interface ThoughtManner {
  readonly begun?: Json;
  readonly done?: Json;
  /** The name of the events of the part; none if undefined. */
  readonly part?: string;
}

/** Thoughts as they are. */
export const thoughtItem =
  ({ begun = {}, done = begun, part }: ThoughtManner = {}): WriteItem<readonly string[]> =>
  (pieces, place) => {
    const text = pieces.join("");
    const here = (): Json => at(place, "rs", "content_index");
    const ofPart = (kind: string, text: string): ItemEvent[] =>
      part === undefined ? [] : [[`${part}.${kind}`, { ...here(), part: { type: "reasoning_text", text } }]];
    const item = { type: "reasoning", id: place.id("rs"), summary: [] };
    return [
      ["response.output_item.added", { output_index: place.index, item: { ...item, ...begun } }],
      ...ofPart("added", ""),
      ...pieces.map((delta): ItemEvent => ["response.reasoning_text.delta", { ...here(), delta }]),
      ["response.reasoning_text.done", { ...here(), text }],
      ...ofPart("done", text),
      [
        "response.output_item.done",
        {
          output_index: place.index,
          item: { ...item, ...done, content: [{ type: "reasoning_text", text }] },
        },
      ],
    ];
  };

/** An item that comes whole. */
export const wholeItem =
  <T>(prefix: string, write: (given: T) => Json): WriteItem<T> =>
  (given, place) => {
    const item = { id: place.id(prefix), ...write(given) };
    return [
      ["response.output_item.added", { output_index: place.index, item }],
      ["response.output_item.done", { output_index: place.index, item }],
    ];
  };

/** Only the finished item. */
export const doneOnly =
  <T>(write: WriteItem<T>): WriteItem<T> =>
  (given, place) =>
    write(given, place).slice(-1);

/** All items begin, then their events come in turns, and those that are done early wait for none. */
export const inTurns = (items: readonly (readonly ItemEvent[])[]): ItemEvent[] => {
  const rounds = Math.max(0, ...items.map((events) => events.length));
  return Array.from({ length: rounds }, (_, round) =>
    items.flatMap((events) => events.slice(round, round + 1)),
  ).flat();
};

/** Fields in the order of the alphabet, at each depth. */
export const sortFields = (json: Json): Json =>
  Object.fromEntries(
    Object.entries(json)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, inner]) => [name, sortInner(inner)]),
  );

function sortInner(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortInner);
  return isObject(value) ? sortFields(value) : value;
}
