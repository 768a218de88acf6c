import { isRecord } from "../../base/text/record.ts";

type Json = Record<string, unknown>;

/** What the subset knows and what needs no change. */
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
/** What belongs to values of one type only. */
const keysOfType: Readonly<Record<string, readonly string[]>> = {
  object: ["properties", "required", "additionalProperties"],
  array: ["items", "minItems", "maxItems"],
  string: ["enum", "const", "minLength", "maxLength"],
  number: ["enum", "const", "minimum", "maximum"],
  integer: ["enum", "const", "minimum", "maximum"],
};

/**
 * The part of JSON Schema that Moonshot takes for tools, of a schema without references: one type at each place,
 * choices as `anyOf` with the type inside, an object at the root. What is dropped makes it only more permissive.
 * Source: https://github.com/MoonshotAI/walle/blob/main/docs/mfjs-walle-vs-draft-2020-12.md
 */
export function toMoonshotSchema(schema: Json): Json {
  const whole = withoutAllOf(schema);
  const root = toPlace(fold(whole, choicesOf(whole)));
  return { ...root, type: "object", properties: propertiesOf(root) };
}

function toSubset(schema: Json): Json {
  const whole = withoutAllOf(schema);
  const choices = choicesOf(whole);
  if (choices.length > 0) {
    return choices.every(({ type }) => type === undefined || type === whole.type)
      ? toPlace(fold(whole, choices))
      : toChoice(whole, choices.map(toSubset));
  }
  if (!Array.isArray(whole.type)) return toPlace(whole);
  const types = whole.type.filter((type) => typeof type === "string");
  return types.length === 1
    ? toPlace({ ...whole, type: types[0] })
    : toChoice(
        whole,
        types.map((type) => toPlace({ ...pick(whole, keysOfType[type] ?? []), type })),
      );
}

/** Beside the branches stands nothing but words. A choice among the branches is one of this place too. */
function toChoice(schema: Json, branches: readonly Json[]): Json {
  return {
    ...pick(schema, ["title", "description"]),
    anyOf: branches.flatMap((branch) => (branch.anyOf === undefined ? [branch] : listOf(branch.anyOf))),
  };
}

/** A place with one type. */
function toPlace(schema: Json): Json {
  const { type, items, additionalProperties: further } = schema;
  const values = "const" in schema ? [schema.const] : schema.enum;
  return {
    ...pick(schema, plainKeys),
    ...(typeof type === "string" && { type }),
    ...(isOneKind(values) && { enum: values }),
    ...(isRecord(schema.properties) && toMembers(schema.properties, schema.required)),
    ...(isFilled(items) && { items: toSubset(items) }),
    ...(typeof further === "boolean" && { additionalProperties: further }),
    ...(isRecord(further) && { additionalProperties: toSubset(further) }),
  };
}

/** Only what is named may be required. */
function toMembers(properties: Json, required: unknown): Json {
  const names = namesOf(required).filter((name) => Object.hasOwn(properties, name));
  const members = Object.entries(properties).map(([name, one]) => [name, isRecord(one) ? toSubset(one) : {}]);
  return { properties: Object.fromEntries(members), ...(names.length > 0 && { required: names }) };
}

/** Branches that choose among the members of one object: all their members, and of those that must be there the common ones. */
function fold(whole: Json, [first, ...others]: readonly Json[]): Json {
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

function withoutAllOf({ allOf, ...schema }: Json): Json {
  return listOf(allOf).reduce<Json>((whole, one) => {
    const part = withoutAllOf(one);
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

/** Values of an enum must be all texts or all numbers. */
function isOneKind(values: unknown): boolean {
  if (!Array.isArray(values) || values.length === 0) return false;
  const kinds = new Set(values.map((value) => typeof value));
  return kinds.size === 1 && (kinds.has("string") || kinds.has("number"));
}

const choicesOf = ({ anyOf, oneOf }: Json): Json[] => [...listOf(anyOf), ...listOf(oneOf)];

const propertiesOf = ({ properties }: Json): Json => (isRecord(properties) ? properties : {});

const namesOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((name) => typeof name === "string") : [];

const listOf = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isRecord) : []);

const pick = (schema: Json, keys: readonly string[]): Json =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => keys.includes(key)));

const isFilled = (value: unknown): value is Json => isRecord(value) && Object.keys(value).length > 0;
