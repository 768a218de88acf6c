import { expect, test } from "vitest";
import { SchemaCheck } from "../../../src/mcp/offers/input-schema.ts";

const check = (schema: object) => new SchemaCheck().check(schema);

test("schemas of older drafts, which servers still write, are converted", () => {
  const point = {
    type: "array",
    items: [{ type: "number" }, { type: "string" }],
    additionalItems: false,
    minItems: 2,
    maxItems: 2,
  };
  const properties = {
    point,
    nothing: { type: "array", items: [] },
    over: { type: "number", minimum: 0, exclusiveMinimum: true },
    under: { type: "number", maximum: 9, exclusiveMaximum: false },
    items: { type: "string", default: null },
    kind: { enum: [null, "a"], description: null },
  };
  const given = { $schema: "http://json-schema.org/draft-07/schema#", type: "object", properties };
  expect(check({ ...given, required: null })).toEqual({
    schema: {
      type: "object",
      properties: {
        point: {
          type: "array",
          items: { anyOf: [{ type: "number" }, { type: "string" }] },
          minItems: 2,
          maxItems: 2,
        },
        nothing: { type: "array" },
        over: { type: "number", exclusiveMinimum: 0 },
        under: { type: "number", maximum: 9 },
        items: { type: "string", default: null },
        kind: { enum: [null, "a"] },
      },
    },
  });
});

test("schemas of the current draft are unchanged", () => {
  const schema = {
    type: "object",
    properties: {
      minimum: { type: "number", exclusiveMinimum: 3, minimum: 1 },
      pair: { type: "array", prefixItems: [{ type: "string" }], items: false },
      any: true,
    },
    required: ["pair"],
    $defs: { a: { const: null } },
  };
  expect(check(schema)).toEqual({ schema });
});
