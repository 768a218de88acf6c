import * as fc from "fast-check";
import { expect, test } from "vitest";
import { quirksOf } from "../../../src/model/quirks.ts";
import { toolSchema } from "../../../src/model/request/tool-schema.ts";
import { isObject, toList, toObject } from "../../support/json.ts";

const kimi = quirksOf("moonshotai", "api.moonshot.ai", "kimi-k3");

const type = fc.constantFrom("object", "array", "string", "number", "integer", "boolean", "null");
const leaf = fc.record(
  {
    type: fc.oneof(type, fc.array(type, { maxLength: 3 })),
    enum: fc.array(fc.oneof(fc.string(), fc.integer(), fc.constant(null)), { maxLength: 3 }),
    const: fc.oneof(fc.string(), fc.boolean()),
    $ref: fc.constantFrom("#", "#/$defs/a", "#/properties/b", "http://elsewhere"),
    description: fc.string(),
    pattern: fc.string(),
    minimum: fc.integer(),
  },
  { requiredKeys: [] },
);

/** Generates nested schemas up to this depth. */
function schemaOf(levels: number): fc.Arbitrary<Record<string, unknown>> {
  if (levels === 0) return leaf;
  const inner = schemaOf(levels - 1);
  const choices = fc.array(inner, { maxLength: 2 });
  const places = fc.record(
    {
      properties: fc.dictionary(fc.constantFrom("a", "b"), inner, { maxKeys: 2 }),
      required: fc.array(fc.constantFrom("a", "b", "gone"), { maxLength: 2 }),
      items: inner,
      additionalProperties: fc.oneof(fc.boolean(), inner),
      anyOf: choices,
      oneOf: choices,
      allOf: choices,
    },
    { requiredKeys: [] },
  );
  return fc.tuple(leaf, places).map(([one, other]) => ({ ...one, ...other }));
}
const schema = schemaOf(3);

const known =
  "type properties required items additionalProperties anyOf enum title description default minLength maxLength minimum maximum minItems maxItems".split(
    " ",
  );

/** Describes what exceeds the subset of https://github.com/MoonshotAI/walle. */
function violations(place: Record<string, unknown>): string[] {
  const { type: kind, properties, required, items, additionalProperties, anyOf, enum: values } = place;
  const beside = Object.keys(place).filter((key) => !["anyOf", "title", "description"].includes(key));
  const kinds = new Set(toList(values).map((value) => typeof value));
  const nested = [
    ...Object.values(toObject(properties ?? {})),
    items,
    additionalProperties,
    ...toList(anyOf),
  ];
  const names = toList(required).map(String);
  const wrong = Object.keys(place).filter((key) => !known.includes(key));
  if (kind !== undefined && typeof kind !== "string") wrong.push("several types");
  if (anyOf !== undefined && beside.length > 0) wrong.push(`beside anyOf: ${beside.join()}`);
  if (kinds.size > 1) wrong.push("values of several kinds");
  wrong.push(...names.filter((name) => !Object.hasOwn(toObject(properties ?? {}), name)));
  return wrong.concat(nested.filter(isObject).flatMap(violations));
}

test("Kimi gets a valid schema with an object at its root for any tool", () => {
  fc.assert(
    fc.property(schema, schema, (root, definition) => {
      const sent = toolSchema({ ...root, $defs: { a: definition } }, kimi);
      expect(sent.type).toBe("object");
      expect(isObject(sent.properties)).toBe(true);
      expect(sent.anyOf).toBeUndefined();
      expect(violations(sent)).toEqual([]);
    }),
  );
});
