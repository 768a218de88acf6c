import { excerpt } from "../../base/text/excerpt.ts";
import { isRecord } from "../../base/text/record.ts";
import { invalidParams } from "../errors.ts";

/** The keywords of JSON Schema that the protocol's schemas use. Fields that a schema does not name are kept. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema | undefined>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly default?: unknown;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly not?: Schema;
  /** An invalid value counts as absent. */
  readonly "x-deserialize-default-on-error"?: boolean;
  /** Null counts as an empty array. */
  readonly "x-deserialize-default-on-null"?: boolean;
  readonly "x-deserialize-skip-invalid-items"?: boolean;
}

/** Maximum number of faults in a message, and of characters for each. */
const faultsLimit = 3;
const faultLength = 200;

const reference = "#/$defs/";

/** Validates params by a schema, whose type is `Params`, with the protocol's rules about malformed values. */
export class ParamsReader<Params> {
  readonly #schema: Schema;
  readonly #definitions: Readonly<Record<string, Schema>>;

  constructor(schema: Schema, definitions: Readonly<Record<string, Schema>> = {}) {
    this.#schema = schema;
    this.#definitions = definitions;
  }

  /** Returns valid params, or throws an error that names the faults. */
  read(given: unknown): Params {
    const faults: string[] = [];
    const params = this.#read(this.#schema, given, "", faults);
    if (!this.#isValid(params, faults)) throw invalidParams(formatFaults(faults));
    return params;
  }

  #isValid(_params: unknown, faults: readonly string[]): _params is Params {
    return faults.length === 0;
  }

  #read(schema: Schema, given: unknown, path: string, faults: string[]): unknown {
    if (schema.$ref !== undefined) return this.#read(this.#resolve(schema.$ref), given, path, faults);
    const value = given === null && schema["x-deserialize-default-on-null"] ? [] : given;
    if (!schema["x-deserialize-default-on-error"]) return this.#check(schema, value, path, faults);
    const own: string[] = [];
    const checked = this.#check(schema, value, path, own);
    return own.length === 0 ? checked : schema.default;
  }

  #resolve(name: string): Schema {
    const definition = this.#definitions[name.slice(reference.length)];
    if (definition === undefined) throw new Error(`The schema ${name} is missing`);
    return definition;
  }

  #check(schema: Schema, given: unknown, path: string, faults: string[]): unknown {
    const problem = findProblem(schema, given);
    if (problem !== undefined) {
      faults.push(`${path === "" ? "" : `${path}: `}Invalid input: ${problem}`);
      return given;
    }
    let value = given;
    if (Array.isArray(value) && schema.items)
      value = this.#readItems(schema, schema.items, value, path, faults);
    if (isRecord(value)) value = this.#readProperties(schema, value, path, faults);
    for (const part of schema.allOf ?? []) value = this.#read(part, value, path, faults);
    const variants = schema.anyOf ?? schema.oneOf;
    if (variants !== undefined) value = this.#readVariant(variants, value, path, faults);
    if (schema.not !== undefined && this.#matches(schema.not, value)) faults.push(`${path}: Invalid input`);
    return value;
  }

  #readItems(
    schema: Schema,
    itemSchema: Schema,
    items: readonly unknown[],
    path: string,
    faults: string[],
  ): unknown[] {
    const kept = schema["x-deserialize-skip-invalid-items"]
      ? items.filter((item) => this.#matches(itemSchema, item))
      : items;
    return kept.map((item, index) => this.#read(itemSchema, item, joinPath(path, String(index)), faults));
  }

  #readProperties(
    { properties = {}, required = [], additionalProperties }: Schema,
    given: Readonly<Record<string, unknown>>,
    path: string,
    faults: string[],
  ): Record<string, unknown> {
    const value = { ...given };
    for (const [name, schema] of Object.entries(properties)) {
      if (schema === undefined) continue;
      const field = Object.hasOwn(given, name) ? given[name] : undefined;
      if (field === undefined && !required.includes(name)) {
        if (schema.default !== undefined) value[name] = schema.default;
      } else value[name] = this.#read(schema, field, joinPath(path, name), faults);
    }
    if (typeof additionalProperties === "object")
      for (const name of Object.keys(given).filter((key) => !Object.hasOwn(properties, key)))
        value[name] = this.#read(additionalProperties, given[name], joinPath(path, name), faults);
    return value;
  }

  /** Reads the first variant that fits. Otherwise adds the faults of the variant that the value's tag names. */
  #readVariant(variants: readonly Schema[], given: unknown, path: string, faults: string[]): unknown {
    const attempts = variants.map((variant) => {
      const own: string[] = [];
      return { variant, value: this.#read(variant, given, path, own), own };
    });
    const fitting = attempts.find(({ own }) => own.length === 0);
    if (fitting !== undefined) return fitting.value;
    const intended =
      attempts.find(({ variant }) => hasTag(variant, given)) ??
      attempts.find(({ variant }) => findTag(variant) === undefined);
    faults.push(...(intended?.own ?? [`${joinPath(path, "type")}: ${expectedTags(variants)}`]));
    return given;
  }

  #matches(schema: Schema, value: unknown): boolean {
    const faults: string[] = [];
    this.#read(schema, value, "", faults);
    return faults.length === 0;
  }
}

function formatFaults(faults: readonly string[]): string {
  const more = faults.length > faultsLimit ? `; and ${faults.length - faultsLimit} more` : "";
  const named = faults.slice(0, faultsLimit).map((fault) => excerpt(fault, faultLength));
  return `Invalid params: ${named.join("; ")}${more}`;
}

/** Returns how a value violates its type, range or length. Does not check its fields. */
function findProblem(schema: Schema, value: unknown): string | undefined {
  const { type, minimum = -Infinity, maximum = Infinity, minItems = 0 } = schema;
  const types = typeof type === "string" ? [type] : type;
  if (types !== undefined && !types.some((name) => isOfType(value, name)))
    return `expected ${types[0]}, received ${typeName(value)}`;
  if (schema.const !== undefined && value !== schema.const) return `expected ${JSON.stringify(schema.const)}`;
  if (typeof value === "number" && (value < minimum || value > maximum))
    return `expected a number from ${minimum} to ${maximum}`;
  if (Array.isArray(value) && value.length < minItems) return `expected at least ${minItems} items`;
  return undefined;
}

function isOfType(value: unknown, type: string): boolean {
  return type === "integer" ? Number.isInteger(value) : typeName(value) === type;
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** The field that identifies a variant, and its value. */
function findTag({ properties = {} }: Schema): [string, unknown] | undefined {
  for (const [name, schema] of Object.entries(properties))
    if (schema?.const !== undefined) return [name, schema.const];
  return undefined;
}

function hasTag(variant: Schema, value: unknown): boolean {
  const tag = findTag(variant);
  return tag !== undefined && isRecord(value) && value[tag[0]] === tag[1];
}

function expectedTags(variants: readonly Schema[]): string {
  const tags = variants.map((variant) => JSON.stringify(findTag(variant)?.[1]));
  return `Invalid input: expected one of ${tags.join(", ")}`;
}

function joinPath(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}
