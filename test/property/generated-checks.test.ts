import { isDeepStrictEqual } from "node:util";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { z } from "zod";
import checks from "../../schema/checks.json" with { type: "json" };
import { compileSchema, generatedCheck } from "../../src/base/json-schema.ts";
import { fastValidator } from "../../src/base/validator.ts";
import { sessionInfoSchema } from "../../src/message/message.ts";
import { credentialsSchema } from "../../src/model/keys/credentials.ts";
import { storedApprovalsSchema } from "../../src/permission/approvals.ts";
import { projectSchema } from "../../src/project/records.ts";
import { changeSchema, storedMessageSchema } from "../../src/storage/change.ts";
import { tries } from "../support/run-length.ts";

const schemas: Readonly<Record<string, z.ZodType>> = {
  approvals: storedApprovalsSchema,
  change: changeSchema,
  credentials: credentialsSchema,
  message: storedMessageSchema,
  project: projectSchema,
  session: sessionInfoSchema,
};

type Json = Readonly<Record<string, unknown>>;

const definitions: Readonly<Record<string, unknown>> = checks.schemas.__shared.$defs;

const asRecord = (value: unknown): Json =>
  typeof value === "object" && value !== null ? Object.fromEntries(Object.entries(value)) : {};
const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const asNumber = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

const idSuffix = fc.stringMatching(/^[0-9A-Za-z]{1,64}$/);

/** Generates values that match a generated JSON schema. */
function arbitraryFor(schema: unknown, depth = 0): fc.Arbitrary<unknown> {
  const { $ref, type, properties, required, items, additionalProperties, ...rest } = asRecord(schema);
  const {
    anyOf,
    oneOf,
    const: constant,
    enum: values,
    pattern,
    minimum,
    maximum,
    minLength,
    minItems,
  } = rest;
  if (typeof $ref === "string") {
    const name = $ref.split("/").at(-1) ?? "";
    // Recursive schemas accept any JSON.
    return depth > 12
      ? fc.constant(null)
      : arbitraryFor(definitions[name] ?? asRecord(checks.schemas)[$ref], depth + 1);
  }
  const options = [...asList(anyOf), ...asList(oneOf)];
  if (options.length > 0) return fc.oneof(...options.map((option) => arbitraryFor(option, depth + 1)));
  if (constant !== undefined) return fc.constant(constant);
  if (values !== undefined) return fc.constantFrom(...asList(values));
  if (Array.isArray(type))
    return fc.oneof(...type.map((one) => arbitraryFor({ ...asRecord(schema), type: one }, depth)));
  switch (type) {
    case "string":
      return typeof pattern === "string"
        ? idSuffix.map((suffix) => pattern.slice(1, 5) + suffix)
        : fc.string({ minLength: asNumber(minLength) ?? 0, maxLength: 8 });
    case "number":
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    case "integer":
      return fc.integer({ min: asNumber(minimum) ?? 0, max: Math.min(asNumber(maximum) ?? 1_000, 1_000) });
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "array":
      return fc.array(arbitraryFor(items, depth + 1), {
        minLength: asNumber(minItems) ?? 0,
        maxLength: depth > 6 ? 1 : 3,
      });
    case "object": {
      if (properties === undefined)
        return fc.dictionary(fc.string({ maxLength: 5 }), arbitraryFor(additionalProperties, depth + 1), {
          maxKeys: 2,
        });
      const names = new Set(asList(required));
      const fields = Object.entries(asRecord(properties)).map(([name, field]) => {
        const value = arbitraryFor(field, depth + 1);
        return fc
          .tuple(value, names.has(name) ? fc.constant(true) : fc.boolean())
          .map(([one, isPresent]): [string, unknown][] => (isPresent ? [[name, one]] : []));
      });
      return fc.tuple(...fields).map((entries) => Object.fromEntries(entries.flat()));
    }
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

/** A change at one place of a value: another value, a removed field, or an additional field. */
interface Damage {
  readonly where: number;
  readonly name: string;
  readonly value: unknown;
  readonly kind: "replace" | "remove" | "add";
}

const damage: fc.Arbitrary<Damage> = fc.record({
  where: fc.nat(),
  name: fc.constantFrom("__proto__", "id", "type", "error", "attachments", "toString", "time"),
  value: fc.oneof(
    fc.constantFrom<unknown>(null, -1, 0, 1.5, 2 ** 53, "", "user", "tool", "msg_", "prt_1", {}, [], true),
    fc.jsonValue({ maxDepth: 2 }),
  ),
  kind: fc.constantFrom("replace", "remove", "add"),
});

function applyDamage(whole: unknown, { where, name, value, kind }: Damage): unknown {
  const copy: unknown = JSON.parse(JSON.stringify(whole));
  const places = listPlaces(copy);
  const place = places[where % places.length];
  if (place === undefined) return copy;
  const { holder, key } = place;
  if (kind === "remove" && Array.isArray(holder)) holder.splice(Number(key), 1);
  else if (kind === "remove") Reflect.deleteProperty(holder, key);
  else
    Object.defineProperty(holder, kind === "add" && !Array.isArray(holder) ? name : key, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  return copy;
}

function listPlaces(value: unknown): { holder: object; key: string }[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [{ holder: value, key }, ...listPlaces(inner)]);
}

/** Whether the schema accepts the value and does not change it. */
function isAcceptedUnchanged(schema: z.ZodType, value: unknown): boolean {
  const parsed = schema.safeParse(value);
  return parsed.success && isDeepStrictEqual(parsed.data, value);
}

describe.each(Object.entries(schemas))("the generated check of %s", (name, schema) => {
  const check = generatedCheck(checks, name);
  const valid = arbitraryFor(asRecord(checks.schemas)[name]).map((value): unknown =>
    JSON.parse(JSON.stringify(value)),
  );

  test("accepts unchanged what its schema accepts", () => {
    fc.assert(
      fc.property(valid, (value) => {
        expect(check(value)).toBe(isAcceptedUnchanged(schema, value));
      }),
      { numRuns: tries(300) },
    );
  });

  test("rejects what its schema rejects or changes", () => {
    fc.assert(
      fc.property(valid, fc.array(damage, { minLength: 1, maxLength: 2 }), (value, damages) => {
        const damaged = damages.reduce<unknown>(applyDamage, value);
        expect(check(damaged)).toBe(isAcceptedUnchanged(schema, damaged));
      }),
      { numRuns: tries(700) },
    );
  });

  test("accepts at least half of the generated values", () => {
    const values = fc.sample(valid, 100);
    expect(values.filter(check).length).toBeGreaterThanOrEqual(50);
  });
});

test("a schema with an unknown keyword or reference matches nothing", () => {
  expect(compileSchema({ type: "string", format: "email" })("a@b.c")).toBe(false);
  expect(compileSchema({ $ref: "other" })("a")).toBe(false);
  expect(generatedCheck(checks, "other")({})).toBe(false);
});

test("a value that passes the check is returned unchanged, without the schema", () => {
  const value = { approvals: [] };
  const schema = { safeParse: () => ({ success: false, error: { issues: [] } }) as const };
  const parsed = fastValidator(generatedCheck(checks, "approvals"), schema).safeParse(value);
  expect(parsed).toEqual({ success: true, data: value });
});
