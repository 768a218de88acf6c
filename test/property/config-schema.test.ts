import * as fc from "fast-check";
import { expect, test } from "vitest";
import generatedSchema from "../../schema/config.schema.json" with { type: "json" };
import { compileSchema } from "../../src/base/json-schema.ts";
import { configSchema } from "../../src/config/schema.ts";
import { tries } from "../support/run-length.ts";

const conforms = compileSchema(generatedSchema);

/** All names in the schema, so that generated configurations are often valid. */
const names = fc.constantFrom(...namesIn(generatedSchema));
const leaves = fc.oneof(
  fc.constantFrom<unknown>(
    "allow",
    "ask",
    "deny",
    "local",
    "remote",
    "primary",
    "text",
    "a/b",
    "",
    true,
    false,
    null,
  ),
  fc.constantFrom<unknown>(0, 1, -1, 0.5, 2 ** 53, 30_000),
  fc.string({ maxLength: 5 }),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: "small" }, leaves, fc.array(tie("value"), { maxLength: 3 }), tie("object")),
  object: fc.dictionary(fc.oneof(names, fc.string({ maxLength: 4 })), tie("value"), { maxKeys: 4 }),
}));

test("the schema accepts unchanged what the generated schema accepts", () => {
  fc.assert(
    fc.property(fc.dictionary(names, value, { maxKeys: 3 }), (config) => {
      const parsed = configSchema.safeParse(structuredClone(config));
      expect(conforms(config)).toBe(parsed.success);
      if (parsed.success) expect(parsed.data).toEqual(config);
    }),
    { numRuns: tries(2_000) },
  );
});

test.each([
  { model: "a/b", provider: { a: { options: { baseURL: "http://x", apiKey: "k" }, models: { b: {} } } } },
  { permission: { bash: { "git *": "allow" }, edit: "ask" }, tools: { write: false } },
  { mcp: { files: { type: "local", command: ["x"], environment: { A: "b" } }, off: { enabled: false } } },
  { agent: { mine: { mode: "subagent", steps: 3, temperature: 0.5, anything: [1] } }, theme: "dark" },
  { command: { hi: { template: "say $1" } }, retry: { attempts: 2 }, max_cost: { turn: 0.5 } },
])("a typical configuration needs the generated schema only: %j", (config) => {
  expect(conforms(config)).toBe(true);
  expect(configSchema.parse(config)).toEqual(config);
});

test("a key that could become a prototype is rejected", () => {
  expect(conforms(JSON.parse('{"provider":{"__proto__":{}}}'))).toBe(false);
});

function namesIn(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const own = "properties" in schema && typeof schema.properties === "object" ? schema.properties : {};
  return [...Object.keys(own ?? {}), ...Object.values(schema).flatMap(namesIn)];
}
