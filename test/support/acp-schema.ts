import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import stable from "@agentclientprotocol/sdk/schema/v1/schema.json" with { type: "json" };
import unstable from "@agentclientprotocol/sdk/schema/v1/schema.unstable.json" with { type: "json" };
import draft from "@agentclientprotocol/sdk/schema/v2/schema.json" with { type: "json" };
import draftUnstable from "@agentclientprotocol/sdk/schema/v2/schema.unstable.json" with { type: "json" };
import { isObject, listOf, objectOf, type JsonObject } from "./json.ts";

/** The published schemas of version 1 and the draft of version 2, each also with its unstable part. */
const published = { stable, unstable, draft, draftUnstable };
export type SchemaName = keyof typeof published;

/** Checks messages of the agent against a published schema of ACP. */
export class AcpSchema {
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: false });
  readonly #compiled = new Map<string, ValidateFunction>();
  readonly #definitions: JsonObject;

  constructor(name: SchemaName) {
    const { $defs, ...schema } = published[name];
    this.#definitions = $defs;
    this.#ajv.addSchema({ ...schema, $defs }, "acp");
  }

  /** Whether the agent has this method. */
  hasMethod(method: string): boolean {
    return definitionOf(this.#definitions, method, ["agent"], /Response$/) !== undefined;
  }

  /** Problems of what a request or notification of the agent carries. Methods beginning with `_` are extensions. */
  ofCall(method: string, params: unknown): string[] {
    if (method.startsWith("_")) return [];
    const name = definitionOf(this.#definitions, method, ["client", "protocol"], /Request$|Notification$/);
    return name ? this.#problems(name, params) : [`${method} is no method of ACP`];
  }

  /** Problems of the agent's result for a request of the client. */
  ofResult(method: string, result: unknown): string[] {
    const name = definitionOf(this.#definitions, method, ["agent"], /Response$/);
    return name ? this.#problems(name, result) : [];
  }

  ofError(error: unknown): string[] {
    return this.#problems("Error", error);
  }

  #problems(name: string, value: unknown): string[] {
    const validate = this.#validator(name);
    const unknown = unknownKeys(objectOf(this.#definitions[name]), value).map(
      (key) => `${name} has no ${key}`,
    );
    if (validate(value)) return unknown;
    const [first] = validate.errors ?? [];
    return [...unknown, `${name}${first?.instancePath ?? ""} ${first?.message ?? "is wrong"}`];
  }

  #validator(name: string): ValidateFunction {
    const validate = this.#compiled.get(name) ?? this.#ajv.compile({ $ref: `acp#/$defs/${name}` });
    this.#compiled.set(name, validate);
    return validate;
  }
}

function definitionOf(
  definitions: JsonObject,
  method: string,
  sides: string[],
  ending: RegExp,
): string | undefined {
  return Object.keys(definitions).find((name) => {
    const definition = objectOf(definitions[name]);
    return (
      definition["x-method"] === method && sides.includes(String(definition["x-side"])) && ending.test(name)
    );
  });
}

/** Keys at the root that the schema does not know; unions name theirs in their branches, so they are let be. */
function unknownKeys(definition: JsonObject, value: unknown): string[] {
  const isUnion = listOf(definition.anyOf).length > 0 || listOf(definition.oneOf).length > 0;
  if (isUnion || !isObject(value)) return [];
  return Object.keys(value).filter((key) => !(key in objectOf(definition.properties)));
}
