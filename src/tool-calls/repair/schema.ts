import { isRecord } from "../../base/text/record.ts";

/** A JSON Schema of arguments or of one value. */
export type Schema = Readonly<Record<string, unknown>>;

export function getProperties(schema: Schema): Readonly<Record<string, unknown>> {
  return isRecord(schema.properties) ? schema.properties : {};
}

export function getProperty(schema: Schema, key: string): Schema | undefined {
  const properties = getProperties(schema);
  const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
  return isRecord(property) ? property : undefined;
}

export function getRequired(schema: Schema): readonly string[] {
  return Array.isArray(schema.required) ? schema.required.filter((key) => typeof key === "string") : [];
}

export function getItems(schema: Schema): Schema | undefined {
  return isRecord(schema.items) ? schema.items : undefined;
}

/** Returns the types that the schema names; empty if it allows any or combines other schemas. */
export function getTypes({ type }: Schema): readonly string[] {
  if (typeof type === "string") return [type];
  return Array.isArray(type) ? type.filter((one) => typeof one === "string") : [];
}

/** Whether the value has one of the types, or the schema names none. */
export function hasType(value: unknown, schema: Schema): boolean {
  const types = getTypes(schema);
  return types.length === 0 || types.some((type) => isOfType(value, type));
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case "integer":
      return Number.isInteger(value);
    case "array":
      return Array.isArray(value);
    case "object":
      return isRecord(value);
    case "null":
      return value === null;
    default:
      return typeof value === type;
  }
}
