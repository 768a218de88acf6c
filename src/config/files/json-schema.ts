import { isRecord } from "../../base/text/record.ts";

type Fields = Readonly<Record<string, unknown>>;
type Check = (wanted: unknown, value: unknown, schema: Fields) => boolean;

/** Whether a value matches a JSON schema. Supports the keywords below; an unknown keyword matches nothing. */
export function conforms(value: unknown, schema: unknown): boolean {
  if (!isRecord(schema)) return false;
  return Object.entries(schema).every(([keyword, wanted]) => checks.get(keyword)?.(wanted, value, schema));
}

const always: Check = () => true;

/** A keyword that does not apply to the value's type passes, as the JSON Schema standard says. */
const checks: ReadonlyMap<string, Check> = new Map<string, Check>([
  ["$schema", always],
  ["title", always],
  ["description", always],
  ["type", (wanted, value) => isOfType(value, wanted)],
  ["const", (wanted, value) => value === wanted],
  ["enum", (wanted, value) => Array.isArray(wanted) && wanted.includes(value)],
  ["anyOf", (wanted, value) => Array.isArray(wanted) && wanted.some((schema) => conforms(value, schema))],
  ["minimum", (wanted, value) => typeof value !== "number" || value >= Number(wanted)],
  ["maximum", (wanted, value) => typeof value !== "number" || value <= Number(wanted)],
  ["exclusiveMinimum", (wanted, value) => typeof value !== "number" || value > Number(wanted)],
  ["minItems", (wanted, value) => !Array.isArray(value) || value.length >= Number(wanted)],
  ["items", (wanted, value) => !Array.isArray(value) || value.every((item) => conforms(item, wanted))],
  [
    "required",
    (wanted, value) => !isRecord(value) || stringsIn(wanted).every((key) => Object.hasOwn(value, key)),
  ],
  ["properties", (wanted, value) => !isRecord(value) || hasValidProperties(value, wanted)],
  [
    "propertyNames",
    (wanted, value) => !isRecord(value) || Object.keys(value).every((key) => conforms(key, wanted)),
  ],
  [
    "additionalProperties",
    (wanted, value, schema) => !isRecord(value) || hasValidOtherKeys(value, wanted, schema),
  ],
]);

function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case "object":
      // Leave "__proto__" to the stricter zod check.
      return isRecord(value) && !Object.hasOwn(value, "__proto__");
    case "array":
      return Array.isArray(value);
    case "null":
      return value === null;
    case "integer":
      return Number.isInteger(value);
    case "number":
      return Number.isFinite(value);
    default:
      return typeof value === type;
  }
}

function hasValidProperties(value: Fields, properties: unknown): boolean {
  if (!isRecord(properties)) return false;
  return Object.entries(properties).every(
    ([key, schema]) => !Object.hasOwn(value, key) || conforms(value[key], schema),
  );
}

function hasValidOtherKeys(value: Fields, wanted: unknown, { properties }: Fields): boolean {
  const known = isRecord(properties) ? properties : {};
  const others = Object.keys(value).filter((key) => !Object.hasOwn(known, key));
  if (typeof wanted === "boolean") return wanted || others.length === 0;
  return others.every((key) => conforms(value[key], wanted));
}

function stringsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
