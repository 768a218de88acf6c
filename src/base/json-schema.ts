import { lazy } from "./lazy.ts";
import { isRecord } from "./text/record.ts";

export type Check = (value: unknown) => boolean;
type Fields = Readonly<Record<string, unknown>>;
/** Returns the check of a referenced schema. */
type Resolve = (reference: string) => Check;
/** Compiles one keyword; undefined if the keyword restricts nothing. */
type Keyword = (wanted: unknown, schema: Fields, resolve: Resolve) => Check | undefined;

/**
 * Compiles a JSON schema that was generated from a zod schema. Supports the keywords below; a schema with another
 * keyword matches nothing.
 */
export function compileSchema(schema: unknown, resolve: Resolve = () => matchesNothing): Check {
  if (!isRecord(schema)) return matchesNothing;
  const checks = Object.entries(schema).map(([name, wanted]) => {
    const keyword = keywords.get(name);
    return keyword === undefined ? matchesNothing : keyword(wanted, schema, resolve);
  });
  return joinChecks(checks.filter((check) => check !== undefined));
}

/** Returns the check of one schema in a file of generated schemas that refer to each other; compiled on first use. */
export function generatedCheck(file: unknown, name: string): Check {
  const schemas = fieldsOf(isRecord(file) ? file["schemas"] : undefined);
  const shared = fieldsOf(fieldsOf(schemas["__shared"])["$defs"]);
  const compiled = new Map<string, Check>();
  const resolve: Resolve = (reference) => {
    const known = compiled.get(reference);
    if (known !== undefined) return known;
    const [, definition] = reference.split("/$defs/");
    const check = compileOnUse(definition === undefined ? schemas[reference] : shared[definition], resolve);
    compiled.set(reference, check);
    return check;
  };
  return resolve(name);
}

/** Compiles a schema when a value is checked: it may refer to itself, and many options are never used. */
function compileOnUse(schema: unknown, resolve: Resolve): Check {
  const check = lazy(() => compileSchema(schema, resolve));
  return (value) => check()(value);
}

const matchesNothing: Check = () => false;

function joinChecks(checks: readonly Check[]): Check {
  const [first, second, ...others] = checks;
  if (first === undefined) return () => true;
  if (second === undefined) return first;
  if (others.length === 0) return (value) => first(value) && second(value);
  return (value) => checks.every((check) => check(value));
}

const ignored: Keyword = () => undefined;

/** Creates a keyword for values of one type. Other values pass, as the JSON Schema standard says. */
function limit<T>(
  isOfType: (value: unknown) => value is T,
  isWithin: (value: T, limit: number) => boolean,
): Keyword {
  return (wanted) => {
    const bound = Number(wanted);
    return (value) => !isOfType(value) || isWithin(value, bound);
  };
}

const isNumber = (value: unknown): value is number => typeof value === "number";
const isText = (value: unknown): value is string => typeof value === "string";
const isList = (value: unknown): value is unknown[] => Array.isArray(value);

const keywords: ReadonlyMap<string, Keyword> = new Map<string, Keyword>([
  ["$schema", ignored],
  ["$id", ignored],
  ["title", ignored],
  ["description", ignored],
  ["$ref", (wanted, _, resolve) => (typeof wanted === "string" ? resolve(wanted) : matchesNothing)],
  [
    "type",
    // The check of the properties includes the type of the object.
    (wanted, { properties }) =>
      wanted === "object" && properties !== undefined ? undefined : compileType(wanted),
  ],
  ["const", (wanted) => (value) => value === wanted],
  ["enum", (wanted) => (Array.isArray(wanted) ? (value) => wanted.includes(value) : matchesNothing)],
  ["anyOf", (wanted, _, resolve) => compileUnion(wanted, resolve)],
  // Generated for discriminated unions, whose options exclude each other.
  ["oneOf", (wanted, _, resolve) => compileUnion(wanted, resolve)],
  ["minimum", limit(isNumber, (value, least) => value >= least)],
  ["maximum", limit(isNumber, (value, most) => value <= most)],
  ["exclusiveMinimum", limit(isNumber, (value, bound) => value > bound)],
  // Like zod, counts UTF-16 units.
  ["minLength", limit(isText, (value, least) => value.length >= least)],
  ["maxLength", limit(isText, (value, most) => value.length <= most)],
  ["pattern", (wanted) => compilePattern(wanted)],
  ["minItems", limit(isList, (value, least) => value.length >= least)],
  ["items", (wanted, _, resolve) => compileItems(wanted, resolve)],
  ["required", (wanted, { properties }) => (properties === undefined ? compileRequired(wanted) : undefined)],
  ["propertyNames", (wanted, _, resolve) => compileNames(wanted, resolve)],
  ["properties", (_, schema, resolve) => compileProperties(schema, resolve)],
  ["additionalProperties", (_, schema, resolve) => compileOthers(schema, resolve)],
]);

function compileType(type: unknown): Check {
  if (Array.isArray(type)) {
    const checks = type.map(compileType);
    return (value) => checks.some((check) => check(value));
  }
  switch (type) {
    case "object":
      // The zod schema drops "__proto__".
      return (value) => isRecord(value) && !Object.hasOwn(value, "__proto__");
    case "array":
      return isList;
    case "null":
      return (value) => value === null;
    case "integer":
      // Like zod, rejects integers that are not exact.
      return Number.isSafeInteger;
    case "number":
      return Number.isFinite;
    default:
      return (value) => typeof value === type;
  }
}

function compilePattern(pattern: unknown): Check {
  if (typeof pattern !== "string") return matchesNothing;
  const expression = new RegExp(pattern, "u");
  return (value) => typeof value !== "string" || expression.test(value);
}

function compileItems(schema: unknown, resolve: Resolve): Check {
  const check = compileSchema(schema, resolve);
  return (value) => !Array.isArray(value) || value.every((item) => check(item));
}

function compileRequired(names: unknown): Check {
  if (!Array.isArray(names)) return matchesNothing;
  const required = names.filter(isText);
  return (value) => !isRecord(value) || required.every((name) => Object.hasOwn(value, name));
}

function compileNames(schema: unknown, resolve: Resolve): Check | undefined {
  if (isRecord(schema) && Object.keys(schema).length === 1 && schema["type"] === "string") return undefined;
  const check = compileSchema(schema, resolve);
  return (value) => !isRecord(value) || Object.keys(value).every((name) => check(name));
}

/** Checks type, required and other fields of an object in one pass. A field's schema is compiled on first use. */
function compileProperties(schema: Fields, resolve: Resolve): Check {
  const fields = fieldsOf(schema["properties"]);
  const checks = new Map<string, Check>([["__proto__", matchesNothing]]);
  const checkOther = compileOther(schema["additionalProperties"], resolve);
  const required = isList(schema["required"]) ? schema["required"].filter(isText) : [];
  const mustBeObject = schema["type"] === "object";
  const findCheck = (name: string): Check => {
    const known = checks.get(name);
    if (known !== undefined) return known;
    if (!Object.hasOwn(fields, name)) return checkOther;
    const check = compileSchema(fields[name], resolve);
    checks.set(name, check);
    return check;
  };
  return (value) => {
    if (!isRecord(value)) return !mustBeObject;
    for (const name of required) if (value[name] === undefined) return false;
    for (const name in value) if (!findCheck(name)(value[name])) return false;
    return true;
  };
}

/** Compiles `additionalProperties` of an object without `properties`. */
function compileOthers({ properties, additionalProperties }: Fields, resolve: Resolve): Check | undefined {
  if (properties !== undefined) return undefined;
  const checkOther = compileOther(additionalProperties, resolve);
  return (value) => !isRecord(value) || Object.values(value).every(checkOther);
}

function compileOther(schema: unknown, resolve: Resolve): Check {
  if (schema === undefined || schema === true) return () => true;
  return schema === false ? matchesNothing : compileSchema(schema, resolve);
}

function compileUnion(options: unknown, resolve: Resolve): Check {
  if (!Array.isArray(options)) return matchesNothing;
  const checks = options.map((option) => compileOnUse(option, resolve));
  const field = findDiscriminator(options);
  if (field === undefined) return (value) => checks.some((check) => check(value));
  const byConstant = new Map(options.map((option, index) => [constantOf(option, field), checks[index]]));
  return (value) => isRecord(value) && byConstant.get(value[field])?.(value) === true;
}

/** Returns the field that has a different constant in each option. */
function findDiscriminator(options: readonly unknown[]): string | undefined {
  const [first] = options;
  const names = isRecord(first) ? Object.keys(fieldsOf(first["properties"])) : [];
  return names.find((name) => {
    const constants = new Set(options.map((option) => constantOf(option, name)));
    return constants.size === options.length && !constants.has(undefined);
  });
}

function constantOf(option: unknown, field: string): unknown {
  const { properties, required } = fieldsOf(option);
  return isList(required) && required.includes(field)
    ? fieldsOf(fieldsOf(properties)[field])["const"]
    : undefined;
}

function fieldsOf(value: unknown): Fields {
  return isRecord(value) ? value : {};
}
