import { expect, test } from "vitest";
import type { Api } from "../../../../src/config/api.ts";
import { newMessageId, newPartId, newSessionId } from "../../../../src/message/ids.ts";
import type { AssistantInfo, Message } from "../../../../src/message/message.ts";
import type { Part, ToolState } from "../../../../src/message/part.ts";
import { describeModel } from "../../../../src/model/catalog/catalog.ts";
import type { Model } from "../../../../src/model/model.ts";
import { type Quirks, quirksOf } from "../../../../src/model/quirks.ts";
import { toPrompt } from "../../../../src/model/prompt/prompt.ts";

const sessionId = newSessionId();
const ref = { provider: "test", model: "m" };
const model = describeModel(ref, undefined);
const seeing: Model = { ...model, abilities: { ...model.abilities, images: true, pdf: true } };
const time = { start: 1, end: 2 };

type PartInput<P = Part> = P extends Part ? Omit<P, "id"> : never;
const part = (fields: PartInput): Part => ({ id: newPartId(), ...fields });
const text = (text: string, more: { synthetic?: boolean; ignored?: boolean } = {}) =>
  part({ type: "text", text, ...more });
const call = (state: ToolState, callId = "c1", providerCallId?: string) =>
  part({ type: "tool", callId, providerCallId, tool: "read", state });
const user = (...parts: Part[]): Message => ({
  info: { id: newMessageId(), sessionId, role: "user", time: { created: 1 }, agent: "build" },
  parts,
});
const assistant = (parts: Part[], more: Partial<AssistantInfo> = {}): Message => ({
  info: {
    id: newMessageId(),
    sessionId,
    role: "assistant",
    parentId: newMessageId(),
    time: { created: 1 },
    agent: "build",
    model: ref,
    cost: 0,
    tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
    ...more,
  },
  parts,
});
/** Converts messages that follow a question, for a model over an API. */
function convert(messages: Message[], of = model, quirks?: Quirks) {
  return convertAll([user(text("Go.")), ...messages], of, quirks).slice(1);
}
function convertAll(messages: Message[], of: Model, quirks?: Quirks, api: Api = "chat") {
  const { provider, model: id } = of.ref;
  const owner = { provider, model: id, api };
  return toPrompt(messages, {
    model: of,
    owner,
    quirks: quirks ?? quirksOf(provider, "", id),
    isRefused: () => false,
  });
}
const completed = (
  output: string,
  more: Partial<Extract<ToolState, { status: "completed" }>> = {},
): ToolState => ({
  status: "completed",
  input: { path: "a" },
  output,
  time,
  ...more,
});

test("synthetic text is sent and ignored text is not", () => {
  const messages = [
    user(text("a"), text("b", { synthetic: true }), text("c", { ignored: true })),
    user(text("", {})),
  ];
  expect(convert(messages)).toEqual([
    {
      role: "user",
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
    },
  ]);
});

test("an unfinished compaction is omitted", () => {
  const compaction = user(part({ type: "compaction", auto: false }));
  const next = user(text("Go on"));
  for (const failed of [[], [assistant([], { summary: true, finish: "error" })]])
    expect(convert([compaction, ...failed, next])).toEqual([
      { role: "user", content: [{ type: "text", text: "Go on" }] },
    ]);
});

test("a compaction becomes a question whose answer is the summary", () => {
  expect(
    convert([user(part({ type: "compaction", auto: true })), assistant([text("We built it.")])]),
  ).toEqual([
    { role: "user", content: [{ type: "text", text: "What did we do so far?" }] },
    { role: "assistant", content: [{ type: "text", text: "We built it." }] },
  ]);
});

test("each call is followed by its result, in any state", () => {
  const states: ToolState[] = [
    completed("content"),
    completed("long ago", { compactedAt: 3 }),
    { status: "error", input: {}, error: "no such file", reason: "failed" },
    { status: "running", input: { path: "b" }, time },
    { status: "pending", input: undefined },
  ];
  const converted = convert([
    assistant([text("Look:"), ...states.map((state, index) => call(state, `c${index}`))]),
  ]);
  const outputs = [
    { type: "text", value: "content" },
    { type: "text", value: "[Old tool result content cleared]" },
    { type: "error-text", value: "no such file" },
    { type: "error-text", value: "[Tool execution was interrupted]" },
    { type: "error-text", value: "[Tool execution was interrupted]" },
  ];
  const inputs = [{ path: "a" }, { path: "a" }, {}, { path: "b" }, {}];
  expect(converted).toEqual([
    {
      role: "assistant",
      content: [
        { type: "text", text: "Look:" },
        ...inputs.map((input, n) => ({ type: "tool-call", toolCallId: `c${n}`, toolName: "read", input })),
      ],
    },
    {
      role: "tool",
      content: outputs.map((output, n) => ({
        type: "tool-result",
        toolCallId: `c${n}`,
        toolName: "read",
        output,
      })),
    },
  ]);
});

test("separates the steps of one message, so that results precede what follows", () => {
  const step = () => part({ type: "step-start" });
  const roles = convert([assistant([step(), call(completed("x")), step(), text("Done.")])]).map(
    ({ role }) => role,
  );
  expect(roles).toEqual(["assistant", "tool", "assistant"]);
});

test("omits a failed answer without useful content, and keeps one with text or calls", () => {
  const error = { code: "network" as const, message: "reset", retryable: true };
  const reasoning = part({ type: "reasoning", text: "hm" });
  expect(convert([assistant([reasoning, text(" \n")], { error }), assistant([])])).toEqual([]);
  expect(convert([assistant([text("Half")], { error })])).toHaveLength(1);
});

const image = { mime: "image/png", url: "data:image/png;base64,AAAA", filename: "a.png" };

test("sends media to models that accept them, and a description to others", () => {
  const files = [
    image,
    { mime: "text/plain", url: "file:///a.txt" },
    { mime: "application/x-directory", url: "file:///d" },
    { mime: "application/pdf", url: "file:///b.pdf", filename: "b.pdf" },
  ].map((file) => part({ type: "file", ...file }));
  expect(convert([user(...files)], seeing)).toEqual([
    {
      role: "user",
      content: [
        { type: "file", data: { type: "data", data: "AAAA" }, mediaType: "image/png", filename: "a.png" },
        { type: "text", text: '[Attached application/pdf "b.pdf": its content is not available]' },
      ],
    },
  ]);
  expect(convert([user(...files)])).toEqual([
    {
      role: "user",
      content: [
        { type: "text", text: '[Attached image/png "a.png": this model cannot see it]' },
        { type: "text", text: '[Attached application/pdf "b.pdf": this model cannot see it]' },
      ],
    },
  ]);
});

test("media that tools returned follow all results in a user message", () => {
  const parts = [call(completed("see", { attachments: [image] }), "c1"), call(completed("y"), "c2")];
  const converted = convert([assistant(parts)], seeing);
  expect(converted.map(({ role }) => role)).toEqual(["assistant", "tool", "user"]);
  expect(converted[2]).toEqual({
    role: "user",
    content: [
      { type: "text", text: "What read returned:" },
      { type: "file", data: { type: "data", data: "AAAA" }, mediaType: "image/png", filename: "a.png" },
    ],
  });
});

test("a provider's own call ids are used if they are valid and unique", () => {
  const ids = ["call_1", "call_1", "bad id", "x".repeat(100)];
  const parts = ids.map((id, index) => call(completed("x"), `own${index}`, id));
  const sent = (quirks = quirksOf("test", "", "m")) =>
    convert([assistant(parts)], model, quirks).flatMap(({ role, content }) =>
      role === "tool" ? content.map((one) => ("toolCallId" in one ? one.toolCallId : "")) : [],
    );
  expect(sent()).toEqual(["call_1", "own1", "own2", "own3"]);
  const short = sent(quirksOf("mistral", "api.mistral.ai", "x"));
  expect(short.every((id) => /^[a-z0-9]{9}$/.test(id))).toBe(true);
  expect(new Set(short).size).toBe(4);
});

test("returns reasoning if the provider wants it, to the same model", () => {
  const thinking = (more: Partial<AssistantInfo>) =>
    assistant([part({ type: "reasoning", text: "hm" }), call(completed("x"))], more);
  const glm = describeModel({ provider: "zai", model: "glm-4.7" }, undefined);
  const other = thinking({ model: ref });
  const same = thinking({ model: glm.ref });
  const kinds = (messages: Message[], of: Model) =>
    convert(messages, of).map(({ content }) =>
      typeof content === "string" ? [] : content.map(({ type }) => type),
    );
  expect(kinds([user(text("a")), same, user(text("b")), same, other], glm)).toEqual([
    ["text"],
    ["reasoning", "tool-call"],
    ["tool-result"],
    ["text"],
    ["reasoning", "tool-call"],
    ["tool-result"],
    ["tool-call"],
    ["tool-result"],
  ]);
  expect(kinds([other], model)).toEqual([["tool-call"], ["tool-result"]]);
});

test("omits reasoning of turns before outputs are cleared, from then on and not later", () => {
  const glm = describeModel({ provider: "zai", model: "glm-4.7" }, undefined);
  const step = (created: number, more: object = {}) =>
    assistant([part({ type: "reasoning", text: `${created}` }), call(completed("x", more))], {
      model: glm.ref,
      time: { created },
    });
  const asked = (created: number): Message => {
    const { info, parts } = user(text("a"));
    return { info: { ...info, time: { created } }, parts };
  };
  const thoughts = (messages: Message[]) =>
    convert(messages, glm).flatMap(({ content }) =>
      typeof content === "string" ? [] : content.flatMap((one) => (one.type === "reasoning" ? one.text : [])),
    );
  const turns = (more: object) => [asked(1), step(2), asked(3), step(4, more), step(5)];
  expect(thoughts(turns({}))).toEqual(["2", "4", "5"]);
  const cleared = turns({ compactedAt: 6 });
  expect(thoughts(cleared)).toEqual(["4", "5"]);
  expect(thoughts([...cleared, step(7), asked(8), step(9)])).toEqual(["4", "5", "7", "9"]);
});

test("sends reasoning or a blank with each call if a provider requires it", () => {
  const thought = (text: string) => part({ type: "reasoning", text });
  const deepseek = describeModel({ provider: "deepseek", model: "deepseek-flash" }, undefined);
  const own = assistant([thought("hm"), call(completed("x"))], { model: deepseek.ref });
  const others = assistant([thought("not yours"), call(completed("x"), "c2")]);
  const talk = assistant([thought("hm"), text("Hello")], { model: deepseek.ref });
  const sent = convert([own, others, talk, user(text("a"))], deepseek).flatMap(({ role, content }) =>
    role === "assistant" && typeof content !== "string"
      ? [content.flatMap((one) => (one.type === "reasoning" ? one.text : []))]
      : [],
  );
  expect(sent).toEqual([["hm"], [" "], []]);
});

test("returns signatures of Gemini's calls, and a placeholder for other models' calls", () => {
  const gemini = describeModel({ provider: "google", model: "gemini-3-pro-preview" }, undefined);
  const signed = (signature?: string, owner = gemini.ref) =>
    part({
      type: "tool",
      callId: `c${signature}`,
      ...(signature !== undefined && {
        providerMetadata: { ...owner, api: "chat", data: { thoughtSignature: signature } },
      }),
      tool: "read",
      state: completed("x"),
    });
  const own = { model: gemini.ref };
  const sent = (messages: Message[]) =>
    convert(messages, gemini).flatMap(({ role, content }) =>
      role === "assistant" && typeof content !== "string"
        ? [content.map((one) => ("providerOptions" in one ? one.providerOptions : undefined))]
        : [],
    );
  const carrying = (thoughtSignature: string) => ({ google: { thoughtSignature } });
  expect(sent([assistant([signed("s1"), signed()], own)])).toEqual([[carrying("s1"), undefined]]);
  const missing = carrying("skip_thought_signature_validator");
  expect(sent([assistant([signed("s1", ref), signed()])])).toEqual([[missing, undefined]]);
  expect(sent([assistant([signed()], own)])).toEqual([[missing]]);
});

test.each<Api>(["chat", "responses", "messages"])(
  "over %s, begins with a user message if the first one was lost",
  (api) => {
    const lost = {
      role: "user",
      content: [{ type: "text", text: "[This message could not be read from disk.]" }],
    };
    const answer = assistant([text("We built it.")]);
    const [opening, ...others] = convertAll([answer, user(text("Go on."))], model, undefined, api);
    expect(opening).toEqual(lost);
    expect(others.map(({ role }) => role)).toEqual(["assistant", "user"]);
    expect(convertAll([user(text("Go.")), answer], model, undefined, api)).not.toContainEqual(lost);
    expect(convertAll([], model, undefined, api)).toEqual([]);
  },
);

test("sends an answer between a result and a user message if a provider requires it", () => {
  const messages = [assistant([call(completed("x"))]), user(text("Go on."))];
  const roles = (quirks: Quirks) => convert(messages, model, quirks).map(({ role }) => role);
  expect(roles(quirksOf("mistral", "", "x"))).toEqual(["assistant", "tool", "assistant", "user"]);
  expect(roles(quirksOf("mine", "", "m"))).toEqual(["assistant", "tool", "user"]);
});
