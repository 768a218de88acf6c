import { isRecord, recordOf, recordsIn } from "../../base/text/record.ts";

type Json = Record<string, unknown>;

/** Keywords that are copied unchanged. */
const plainKeys = [
  "title",
  "description",
  "default",
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "minItems",
  "maxItems",
];
/** Keywords that apply to one type only. */
const keysOfType: Readonly<Record<string, readonly string[]>> = {
  object: ["properties", "required", "additionalProperties"],
  array: ["items", "minItems", "maxItems"],
  string: ["enum", "const", "minLength", "maxLength"],
  number: ["enum", "const", "minimum", "maximum"],
  integer: ["enum", "const", "minimum", "maximum"],
};

/**
 * Converts a schema without references to the subset of JSON Schema that Moonshot accepts for tools: one type per
 * subschema, choices as `anyOf` with the type inside, an object at the root. The result accepts all that the schema
 * accepts, and possibly more.
 * Source: https://github.com/MoonshotAI/walle/blob/main/docs/mfjs-walle-vs-draft-2020-12.md
 */
export function toMoonshotSchema(schema: Json): Json {
  const whole = mergeAllOf(schema);
  const root = toSingleType(mergeBranches(whole, choicesOf(whole)));
  return { ...root, type: "object", properties: propertiesOf(root) };
}

function toSubset(schema: Json): Json {
  const whole = mergeAllOf(schema);
  const choices = choicesOf(whole);
  if (choices.length > 0) {
    return choices.every(({ type }) => type === undefined || type === whole.type)
      ? toSingleType(mergeBranches(whole, choices))
      : toChoice(whole, choices.map(toSubset));
  }
  if (!Array.isArray(whole.type)) return toSingleType(whole);
  const types = whole.type.filter((type) => typeof type === "string");
  return types.length === 1
    ? toSingleType({ ...whole, type: types[0] })
    : toChoice(
        whole,
        types.map((type) => toSingleType({ ...pick(whole, keysOfType[type] ?? []), type })),
      );
}

/** Builds an `anyOf` with only a title and a description next to it. Nested choices are flattened. */
function toChoice(schema: Json, branches: readonly Json[]): Json {
  return {
    ...pick(schema, ["title", "description"]),
    anyOf: branches.flatMap((branch) => (branch.anyOf === undefined ? [branch] : recordsIn(branch.anyOf))),
  };
}

/** Converts a subschema with one type. */
function toSingleType(schema: Json): Json {
  const { type, items, additionalProperties: further } = schema;
  const values = "const" in schema ? [schema.const] : schema.enum;
  return {
    ...pick(schema, plainKeys),
    ...(typeof type === "string" && { type }),
    ...(isUniform(values) && { enum: values }),
    ...(isRecord(schema.properties) && convertProperties(schema.properties, schema.required)),
    ...(isNonEmptyRecord(items) && { items: toSubset(items) }),
    ...(typeof further === "boolean" && { additionalProperties: further }),
    ...(isRecord(further) && { additionalProperties: toSubset(further) }),
  };
}

/** Converts properties. Only declared properties may be required. */
function convertProperties(properties: Json, required: unknown): Json {
  const names = namesOf(required).filter((name) => Object.hasOwn(properties, name));
  const members = Object.entries(properties).map(([name, one]) => [name, isRecord(one) ? toSubset(one) : {}]);
  return { properties: Object.fromEntries(members), ...(names.length > 0 && { required: names }) };
}

/** Merges the branches of one object: all properties, and the required names that all branches share. */
function mergeBranches(whole: Json, [first, ...others]: readonly Json[]): Json {
  const { anyOf: _, oneOf: __, ...schema } = whole;
  if (first === undefined) return schema;
  const common = others.reduce<string[]>(
    (names, { required }) => names.filter((name) => namesOf(required).includes(name)),
    namesOf(first.required),
  );
  const properties = Object.assign({}, ...[first, ...others, schema].map(propertiesOf));
  const required = [...new Set([...namesOf(schema.required), ...common])];
  return { ...schema, ...(Object.keys(properties).length > 0 && { properties }), required };
}

function mergeAllOf({ allOf, ...schema }: Json): Json {
  return recordsIn(allOf).reduce<Json>((whole, one) => {
    const part = mergeAllOf(one);
    const properties = { ...propertiesOf(whole), ...propertiesOf(part) };
    const required = [...new Set([...namesOf(whole.required), ...namesOf(part.required)])];
    return {
      ...part,
      ...whole,
      ...(Object.keys(properties).length > 0 && { properties }),
      ...(required.length > 0 && { required }),
    };
  }, schema);
}

/** Returns whether all values of an enum are strings, or all are numbers. */
function isUniform(values: unknown): boolean {
  if (!Array.isArray(values) || values.length === 0) return false;
  const kinds = new Set(values.map((value) => typeof value));
  return kinds.size === 1 && (kinds.has("string") || kinds.has("number"));
}

const choicesOf = ({ anyOf, oneOf }: Json): Json[] => [...recordsIn(anyOf), ...recordsIn(oneOf)];

const propertiesOf = ({ properties }: Json): Json => recordOf(properties);

const namesOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((name) => typeof name === "string") : [];

const pick = (schema: Json, keys: readonly string[]): Json =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => keys.includes(key)));

const isNonEmptyRecord = (value: unknown): value is Json => isRecord(value) && Object.keys(value).length > 0;
