import { Ajv2020 } from "ajv/dist/2020.js";
import { isRecord } from "../../base/text/record.ts";
import type { JsonSchema } from "./offers.ts";
import { toNewerSchema } from "./older-schema.ts";

/** Maximum length of a tool's schema, in characters. It is sent with every request. */
const schemaLimit = 64 * 1024;
const depthLimit = 40;

/**
 * Detects schemas for which a provider would reject the whole request: not a JSON schema of an object, with external
 * references, or too large.
 */
export class SchemaCheck {
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false });

  check(schema: unknown): { schema: JsonSchema } | { problem: string } {
    if (!isRecord(schema)) return { problem: "it has no input schema" };
    const { $schema: _, ...own } = schema;
    if (isTooDeep(own, depthLimit)) return { problem: `its schema is nested more than ${depthLimit} levels` };
    const { length } = JSON.stringify(own);
    if (length > schemaLimit)
      return { problem: `its schema has ${length} characters; the limit is ${schemaLimit}` };
    const { type = "object" } = own;
    if (type !== "object") return { problem: "its schema does not describe an object" };
    const newer = toNewerSchema(own);
    const whole = { ...(isRecord(newer) && newer), type };
    return this.#isValid(whole) && refersInside(whole)
      ? { schema: whole }
      : { problem: "its schema is not a valid JSON schema" };
  }

  #isValid(schema: JsonSchema): boolean {
    try {
      return this.#ajv.validateSchema(schema) === true;
    } catch {
      return false;
    }
  }
}

function isTooDeep(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isTooDeep(inner, levels - 1));
}

function refersInside(schema: JsonSchema): boolean {
  const isKnown = (value: unknown): boolean => {
    if (typeof value !== "object" || value === null) return true;
    const ref = "$ref" in value ? value.$ref : undefined;
    if (typeof ref === "string" && !resolvesInside(schema, ref)) return false;
    return Object.values(value).every(isKnown);
  };
  return isKnown(schema);
}

/** Resolves a JSON pointer (RFC 6901) in a fragment. */
function resolvesInside(schema: JsonSchema, ref: string): boolean {
  if (ref === "#") return true;
  if (!ref.startsWith("#/")) return false;
  let node: unknown = schema;
  for (const step of ref.slice(2).split("/")) {
    const key = decodePointer(step).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, key)) return false;
    node = Reflect.get(node, key);
  }
  return true;
}

function decodePointer(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}
