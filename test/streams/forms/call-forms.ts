import type { AnswerCall } from "../answer.ts";
import type { CallForm, Json } from "./chat-form.ts";

type WriteCall = (call: AnswerCall, index: number) => readonly Json[];

/** Each call after the other, each delta with one piece of one call; `more` is what else the deltas have. */
const each =
  (write: WriteCall, more: Json = {}): CallForm =>
  (calls) =>
    calls.flatMap((call, index) => write(call, index).map((piece) => ({ ...more, tool_calls: [piece] })));

const start = ({ id, tool }: AnswerCall, index: number, text: unknown = ""): Json => ({
  index,
  id,
  type: "function",
  function: { name: tool, arguments: text },
});
const jsonOf = ({ pieces }: AnswerCall): string => pieces.join("");

/** Id and name first, then the arguments in pieces (OpenAI, DeepSeek, vLLM). */
export const cut = (more?: Json): CallForm =>
  each(
    (call, index) => [
      start(call, index),
      ...call.pieces.map((text) => ({ index, function: { arguments: text } })),
    ],
    more,
  );

/** The first piece comes with the name. */
export const cutFromStart: CallForm = each((call, index) => [
  start(call, index, call.pieces[0]),
  ...call.pieces.slice(1).map((text) => ({ index, function: { arguments: text } })),
]);

/** Each call whole (Groq, Cerebras, xAI, Ollama). */
export const whole = (more?: Json): CallForm =>
  each((call, index) => [start(call, index, jsonOf(call))], more);

/** Whole, with the fields in another order. */
export const wholeWithIndexLast = (more?: Json): CallForm =>
  each(
    (call, index) => [
      { id: call.id, type: "function", function: { name: call.tool, arguments: jsonOf(call) }, index },
    ],
    more,
  );

/** All calls whole in one delta. */
export const wholeTogether: CallForm = (calls) => [
  { tool_calls: calls.map((call, index) => start(call, index, jsonOf(call))) },
];

/** All calls begin, then their pieces come in turns. */
export const interleaved: CallForm = (calls) => {
  const rounds = Math.max(...calls.map(({ pieces }) => pieces.length));
  const turns = Array.from({ length: rounds }, (_, round) =>
    calls.flatMap(({ pieces }, index) => {
      const text = pieces[round];
      return text === undefined ? [] : [{ tool_calls: [{ index, function: { arguments: text } }] }];
    }),
  );
  return [...calls.map((call, index) => ({ tool_calls: [start(call, index)] })), ...turns.flat()];
};

/** Later pieces have an empty id, and an empty one ends the call (Alibaba). */
export const emptyIds: CallForm = each(
  (call, index) => [
    start(call, index),
    ...[...call.pieces, ""].map((text) => ({
      index,
      id: "",
      type: "function",
      function: { arguments: text },
    })),
  ],
  { content: null },
);

/** Later pieces have an empty name (Mistral, LM Studio). */
export const emptyNames: CallForm = each((call, index) => [
  start(call, index),
  ...call.pieces.map((text) => ({ index, type: "function", function: { name: "", arguments: text } })),
]);

/** Later pieces have nulls in place of id, type and name (Writer). */
export const nulls: CallForm = each((call, index) => [
  start(call, index, null),
  ...call.pieces.map((text) => ({ index, id: null, type: null, function: { name: null, arguments: text } })),
]);

/** Each piece repeats id and name. */
export const repeated: CallForm = each((call, index) => call.pieces.map((text) => start(call, index, text)));

/** The id alone, then the name alone, then the arguments. */
export const oneByOne: CallForm = each((call, index) => [
  { index, id: call.id, type: "function" },
  { index, function: { name: call.tool } },
  ...call.pieces.map((text) => ({ index, function: { arguments: text } })),
]);

/** Whole, without an index (Gemini, Mistral). */
export const withoutIndex = (more?: Json): CallForm =>
  each(
    (call) => [{ id: call.id, function: { name: call.tool, arguments: jsonOf(call) }, type: "function" }],
    more,
  );

/** In pieces, none of which has an index (Gemini). */
export const cutWithoutIndex: CallForm = each((call) => [
  { id: call.id, type: "function", function: { name: call.tool, arguments: "" } },
  ...call.pieces.map((text) => ({ function: { arguments: text } })),
]);

/** All calls whole in one delta, without an index. */
export const togetherWithoutIndex: CallForm = (calls) => [
  {
    tool_calls: calls.map(({ id, tool, pieces }) => ({
      id,
      type: "function",
      function: { name: tool, arguments: pieces.join("") },
    })),
  },
];

/** The index of each is 0. */
export const zeroIndex: CallForm = each((call) => [
  start(call, 0),
  ...call.pieces.map((text) => ({ index: 0, function: { arguments: text } })),
]);

/** The index of each is 0 and none has an id. */
export const zeroIndexWithoutIds: CallForm = each((call) => [
  { index: 0, type: "function", function: { name: call.tool, arguments: jsonOf(call) } },
]);

/** No ids. */
export const withoutIds: CallForm = each((call, index) => [
  { index, id: null, type: "function", function: { name: call.tool, arguments: "" } },
  ...call.pieces.map((text) => ({ index, function: { arguments: text } })),
]);

/** The first index is 1, and pieces are empty at first (Anthropic). */
export const fromOne: CallForm = each((call, at) => {
  const index = at + 1;
  return [
    start(call, index),
    { index, function: { arguments: "" } },
    ...call.pieces.map((text) => ({ index, function: { arguments: text } })),
  ];
});

/** The arguments as an object (older Ollama, TGI). */
export const objects: CallForm = each((call, index) => [start(call, index, call.input)]);

/** An empty object before the real arguments. */
export const emptyObjectFirst: CallForm = each((call, index) => [
  start(call, index, "{}"),
  ...(jsonOf(call) === "{}" ? [] : call.pieces.map((text) => ({ index, function: { arguments: text } }))),
]);

/** The field of before there were several calls. */
export const functionCall: CallForm = (calls) =>
  calls.flatMap(({ tool, pieces }) => [
    { function_call: { name: tool, arguments: "" } },
    ...pieces.map((text) => ({ function_call: { arguments: text } })),
  ]);

/** No arguments at all where there is no input. */
export const emptyWithoutInput: CallForm = each((call, index) => [
  start(call, index),
  ...(jsonOf(call) === "{}" ? [] : call.pieces.map((text) => ({ index, function: { arguments: text } }))),
]);
