import { expect, test } from "vitest";
import { quirksOf } from "../../src/model/quirks.ts";
import { adaptBody } from "../../src/model/request-body.ts";
import { toolSchema } from "../../src/model/tool-schema.ts";

const plain = quirksOf("mine", "localhost", "m");
const gemini = quirksOf("google", "generativelanguage.googleapis.com", "gemini-3-pro-preview");

test("a schema is an object at its root and names no dialect", () => {
  expect(toolSchema({ $schema: "http://x", additionalProperties: false }, plain)).toEqual({
    type: "object",
    properties: {},
    additionalProperties: false,
  });
});

test("for Gemini a schema is what OpenAPI knows, at any depth", () => {
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

test("a schema that refers to itself ends", () => {
  const schema = { properties: { child: { $ref: "#" } } };
  expect(JSON.stringify(toolSchema(schema, gemini)).length).toBeLessThan(10_000);
});

test("OpenAI's limit and OpenRouter's effort go by other names", () => {
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

test("the prompt of Claude at OpenRouter is marked for the cache at its beginning and end", () => {
  const messages = ["system", "user", "assistant", "user"].map((role) => ({ role, content: role }));
  const marked = (text: string) => ({
    role: text,
    content: [{ type: "text", text, cache_control: { type: "ephemeral" } }],
  });
  const quirks = quirksOf("openrouter", "openrouter.ai", "anthropic/claude-x");
  expect(adaptBody({ messages }, quirks)).toEqual({
    messages: [marked("system"), messages[1], marked("assistant"), marked("user")],
  });
});

test("quirks follow the host where a provider goes by another name", () => {
  expect(quirksOf("work", "api.mistral.ai", "x")).toMatchObject({ asksForUsage: false, answersTools: true });
  expect(quirksOf("openai", "localhost", "gemini-2.5-pro")).toMatchObject({ schema: "openapi" });
});
