import { expect, test } from "vitest";
import { quirksOf } from "../../../src/model/quirks.ts";
import { adaptBody } from "../../../src/model/request/chat-body.ts";
import { toolSchema } from "../../../src/model/request/tool-schema.ts";

const plain = quirksOf("mine", "localhost", "m");
const gemini = quirksOf("google", "generativelanguage.googleapis.com", "gemini-3-pro-preview");
const kimi = quirksOf("moonshotai", "api.moonshot.ai", "kimi-k3");

test("a schema is an object at its root and names no dialect", () => {
  expect(toolSchema({ $schema: "http://x", additionalProperties: false }, plain)).toEqual({
    type: "object",
    properties: {},
    additionalProperties: false,
  });
});

test("for Gemini a schema has only keywords of OpenAPI, at any depth", () => {
  const schema = {
    $schema: "http://x",
    type: "object",
    additionalProperties: false,
    required: ["a", "gone"],
    $defs: { path: { type: "string", format: "uri", default: "x" } },
    properties: {
      a: { $ref: "#/$defs/path", description: "A path." },
      b: { type: ["integer", "null"], exclusiveMinimum: 0 },
      c: { type: "integer", enum: [1, 2] },
      d: { const: "x" },
      e: { type: "array" },
      f: { anyOf: [{ type: "object", properties: { default: { type: "string" } }, propertyNames: {} }] },
    },
  };
  expect(toolSchema(schema, gemini)).toEqual({
    type: "object",
    required: ["a"],
    properties: {
      a: { type: "string", description: "A path." },
      b: { type: "integer", nullable: true },
      c: { type: "string", enum: ["1", "2"] },
      d: { type: "string", enum: ["x"] },
      e: { type: "array", items: { type: "string" } },
      f: { anyOf: [{ type: "object", properties: { default: { type: "string" } } }] },
    },
  });
});

test("for Kimi a schema has one type per place and an object at its root", () => {
  const schema = {
    type: "object",
    $defs: { path: { type: "string", format: "uri", pattern: "^/" } },
    properties: {
      a: { $ref: "#/$defs/path", description: "A path." },
      b: { type: ["integer", "null"], exclusiveMinimum: 0, minimum: 1, description: "A number." },
      c: { enum: ["x", 1] },
      d: { const: "x" },
      e: {
        type: ["string", "array"],
        description: "One or many.",
        anyOf: [
          { type: "array", items: { type: "string" } },
          { oneOf: [{ type: "string" }, { type: "null" }] },
        ],
      },
      f: {
        type: "array",
        uniqueItems: true,
        items: {
          type: "object",
          properties: { id: { type: "string" }, name: { type: "string" } },
          anyOf: [{ required: ["id"] }, { required: ["name"] }],
        },
      },
      g: { allOf: [{ type: "object", properties: { x: { type: "number" } } }, { required: ["x"] }] },
    },
    required: ["a", "gone"],
    additionalProperties: false,
    anyOf: [
      { type: "object", properties: { file: { type: "string" }, size: {} }, required: ["file", "size"] },
      { type: "object", properties: { url: { type: "string" }, size: {} }, required: ["url", "size"] },
    ],
  };
  expect(toolSchema(schema, kimi)).toEqual({
    type: "object",
    properties: {
      a: { type: "string", description: "A path." },
      b: { anyOf: [{ type: "integer", minimum: 1 }, { type: "null" }], description: "A number." },
      c: {},
      d: { enum: ["x"] },
      e: {
        anyOf: [{ type: "array", items: { type: "string" } }, { type: "string" }, { type: "null" }],
        description: "One or many.",
      },
      f: {
        type: "array",
        items: { type: "object", properties: { id: { type: "string" }, name: { type: "string" } } },
      },
      g: { type: "object", properties: { x: { type: "number" } }, required: ["x"] },
      file: { type: "string" },
      url: { type: "string" },
      size: {},
    },
    required: ["a", "size"],
    additionalProperties: false,
  });
});

test.each([
  ["Gemini", gemini],
  ["Kimi", kimi],
])("for %s a schema that refers to itself is finite", (_name, quirks) => {
  const chain = { properties: { child: { $ref: "#" } } };
  const tree = {
    $defs: { node: { type: "object", properties: { left: { $ref: "#/$defs/node" }, right: { $ref: "#" } } } },
    properties: { root: { $ref: "#/$defs/node" }, other: { $ref: "#/$defs/none" } },
  };
  // Each of these names references the next one twice, so that the last would occur 2^30 times.
  const doubled = Object.fromEntries(
    Array.from({ length: 30 }, (_, n) => {
      const next = { $ref: `#/$defs/d${n + 1}` };
      return [
        `d${n}`,
        { type: "object", properties: { a: next, b: next }, anyOf: [next, { type: "string" }] },
      ];
    }),
  );
  const laughs = { $defs: doubled, properties: { root: { $ref: "#/$defs/d0" } } };
  for (const schema of [chain, tree, laughs]) {
    expect(JSON.stringify(toolSchema(schema, quirks)).length).toBeLessThan(300_000);
  }
});

test("OpenAI's limit and OpenRouter's effort have other field names", () => {
  const body = { model: "m", max_tokens: 5, reasoning_effort: "low" };
  expect(adaptBody(body, plain)).toEqual(body);
  expect(adaptBody(body, quirksOf("openai", "api.openai.com", "gpt-5"))).toEqual({
    model: "m",
    max_completion_tokens: 5,
    reasoning_effort: "low",
  });
  expect(adaptBody(body, quirksOf("openrouter", "openrouter.ai", "x/y"))).toEqual({
    model: "m",
    max_tokens: 5,
    reasoning: { effort: "low" },
  });
});

test("marks the start, the end of the previous request and the end for the cache", () => {
  const messages = ["system", "user", "assistant", "user"].map((role) => ({ role, content: role }));
  const marked = (text: string) => ({
    role: text,
    content: [{ type: "text", text, cache_control: { type: "ephemeral" } }],
  });
  const quirks = quirksOf("openrouter", "openrouter.ai", "anthropic/claude-x");
  expect(adaptBody({ messages }, quirks)).toEqual({
    messages: [marked("system"), marked("user"), messages[2], marked("user")],
  });
});

test("quirks follow the host if a provider has another name", () => {
  expect(quirksOf("work", "api.mistral.ai", "x")).toMatchObject({ asksForUsage: false, answersTools: true });
  expect(quirksOf("openai", "localhost", "gemini-2.5-pro")).toMatchObject({ schema: "openapi" });
});

test("a tool's inputs may have names of schema keywords", () => {
  const properties = Object.fromEntries(
    ["definitions", "$defs", "properties", "items"].map((name) => [name, { type: "string" }]),
  );
  const schema = { type: "object", properties, required: Object.keys(properties) };
  for (const quirks of [gemini, kimi]) expect(toolSchema(schema, quirks)).toEqual(schema);
});
