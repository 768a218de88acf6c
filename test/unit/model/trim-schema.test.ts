import { expect, test } from "vitest";
import builtInSchemas from "../../../schema/tools.json" with { type: "json" };
import { toolSchema } from "../../../src/model/request/tool-schema.ts";
import { quirksOf } from "../../../src/model/quirks.ts";

const plain = quirksOf("mine", "localhost", "m");

test("a sent schema has no keywords that restrict nothing", () => {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: {
      offset: { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
      change: { type: "integer", minimum: Number.MIN_SAFE_INTEGER },
      words: { type: "array", minItems: 0, items: { type: "string", minLength: 0 } },
      labels: { type: "object", propertyNames: { type: "string" }, additionalProperties: { type: "string" } },
    },
  };
  expect(toolSchema(schema, plain)).toEqual({
    type: "object",
    properties: {
      offset: { type: "integer", minimum: 1 },
      change: { type: "integer" },
      words: { type: "array", items: { type: "string" } },
      labels: { type: "object", additionalProperties: { type: "string" } },
    },
  });
});

test("a sent schema has no limit that llama.cpp cannot compile into a grammar", () => {
  const limits = JSON.stringify(Object.values(builtInSchemas).map((schema) => toolSchema(schema, plain)));
  const lengths = [...limits.matchAll(/"max(?:Length|Items)":(\d+)/g)].map(([, length]) => Number(length));
  expect(lengths.length).toBeGreaterThan(0);
  expect(Math.max(...lengths)).toBeLessThan(1_000);
  const nested = { anyOf: [{ type: "array", maxItems: 5_000, items: { type: "string", maxLength: 2_000 } }] };
  expect(toolSchema({ properties: { nested } }, plain)).toMatchObject({
    properties: { nested: { anyOf: [{ type: "array", items: { type: "string" } }] } },
  });
});

test("names of properties and values are not treated as keywords", () => {
  const schema = {
    type: "object",
    properties: {
      maxLength: { type: "integer", description: "How long." },
      $schema: { type: "string", enum: ["a", "b"] },
      shape: { type: "object", default: { minLength: 0 } },
    },
    required: ["maxLength"],
  };
  expect(toolSchema(schema, plain)).toEqual(schema);
});
