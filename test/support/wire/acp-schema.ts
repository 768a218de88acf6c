import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import stable from "@agentclientprotocol/sdk/schema/v1/schema.json" with { type: "json" };
import unstable from "@agentclientprotocol/sdk/schema/v1/schema.unstable.json" with { type: "json" };
import draft from "@agentclientprotocol/sdk/schema/v2/schema.json" with { type: "json" };
import draftUnstable from "@agentclientprotocol/sdk/schema/v2/schema.unstable.json" with { type: "json" };
import { isObject, toList, toObject, toText, type JsonObject } from "../json.ts";

/** The published schemas of version 1 and of the draft of version 2, each also with its unstable part. */
const published = { stable, unstable, draft, draftUnstable };
export type SchemaName = keyof typeof published;

const texts = { type: "array", items: { type: "string" } };

/** Fields of proposals that the published schema of version 2 does not have: `session/inject`, `session/rewind`. */
const proposed: JsonObject = {
  SessionCapabilities: {
    inject: {
      type: "object",
      properties: {
        modes: texts,
        steerInStream: texts,
        pending: {
          type: "object",
          properties: { replace: { type: "boolean" } },
          unevaluatedProperties: false,
        },
      },
      unevaluatedProperties: false,
    },
    rewind: {
      type: "object",
      properties: { edit_prompt: { type: "boolean" } },
      unevaluatedProperties: false,
    },
  },
};

function withProposed(definitions: JsonObject): JsonObject {
  const changed = Object.entries(proposed).map(([name, fields]) => {
    const definition = toObject(definitions[name]);
    const properties = { ...toObject(definition.properties), ...toObject(fields) };
    return [name, { ...definition, properties }];
  });
  return { ...definitions, ...Object.fromEntries(changed) };
}

/**
 * Checks messages of the agent against a published schema of ACP: they may only have known fields, except in
 * `_meta`.
 */
export class AcpSchema {
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: false });
  readonly #compiled = new Map<string, ValidateFunction>();
  readonly #definitions: JsonObject;

  constructor(name: SchemaName) {
    const { $defs: definitions }: { $defs: JsonObject } = published[name];
    this.#definitions = name === "draftUnstable" ? withProposed(definitions) : definitions;
    const $defs = Object.fromEntries(
      Object.entries(this.#definitions).map(([key, schema]) => [key, this.#closedWithin(schema)]),
    );
    this.#ajv.addSchema({ $defs }, "acp");
  }

  /** Whether the agent must implement this method. */
  hasMethod(method: string): boolean {
    return getDefinition(this.#definitions, method, ["agent"], /Response$/) !== undefined;
  }

  /**
   * Describes problems in the parameters of the agent's request or notification. Methods beginning with `_`
   * are extensions.
   */
  ofCall(method: string, params: unknown): string[] {
    if (method.startsWith("_")) return [];
    const name = getDefinition(this.#definitions, method, ["client", "protocol"], /Request$|Notification$/);
    return name ? this.#problems(name, params) : [`${method} is no method of ACP`];
  }

  /** Describes problems in the agent's result for a request of the client. */
  ofResult(method: string, result: unknown): string[] {
    const name = getDefinition(this.#definitions, method, ["agent"], /Response$/);
    return name ? this.#problems(name, result) : [];
  }

  ofError(error: unknown): string[] {
    return this.#problems("Error", error);
  }

  #problems(name: string, value: unknown): string[] {
    const validate = this.#validator(name);
    if (validate(value)) return [];
    const [first] = validate.errors ?? [];
    const unknown = toText(first?.params.unevaluatedProperty);
    const place = `${name}${first?.instancePath ?? ""}`;
    return [
      unknown === undefined ? `${place} ${first?.message ?? "is wrong"}` : `${place} has no ${unknown}`,
    ];
  }

  #validator(name: string): ValidateFunction {
    const known = this.#compiled.get(name);
    if (known !== undefined) return known;
    const validate = this.#ajv.compile(this.#closed({ $ref: `acp#/$defs/${name}` }));
    this.#compiled.set(name, validate);
    return validate;
  }

  /** Closes a schema of a complete value: it has no unnamed fields. */
  #closed(schema: JsonObject): JsonObject {
    const within = this.#closedWithin(schema);
    return this.#namesFields(schema) ? { allOf: [within], unevaluatedProperties: false } : toObject(within);
  }

  /** Closes the schemas of the value's fields; several schemas together may describe the value itself. */
  #closedWithin(schema: unknown): unknown {
    if (Array.isArray(schema)) return schema.map((one) => this.#closedWithin(one));
    if (!isObject(schema)) return schema;
    return Object.fromEntries(
      Object.entries(schema).map(([key, value]) => [key, this.#closedAt(key, value)]),
    );
  }

  #closedAt(key: string, value: unknown): unknown {
    if (key === "items" && isObject(value)) return this.#closed(value);
    if (key === "allOf" || key === "anyOf" || key === "oneOf") return this.#closedWithin(value);
    if (key !== "properties" || !isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, schema]) => [
        name,
        isObject(schema) && !openFields.has(name) ? this.#closed(schema) : schema,
      ]),
    );
  }

  #namesFields(schema: unknown, seen = new Set<unknown>()): boolean {
    if (!isObject(schema) || seen.has(schema)) return false;
    seen.add(schema);
    const { $ref, properties, allOf, anyOf, oneOf } = schema;
    if (isObject(properties)) return true;
    const referred = toText($ref)?.split("/").at(-1);
    const parts = [...toList(allOf), ...toList(anyOf), ...toList(oneOf)];
    if (referred !== undefined) parts.push(this.#definitions[referred]);
    return parts.some((part) => this.#namesFields(part, seen));
  }
}

/** Fields that may contain anything. */
const openFields = new Set(["_meta", "rawInput", "rawOutput", "data"]);

function getDefinition(
  definitions: JsonObject,
  method: string,
  sides: string[],
  ending: RegExp,
): string | undefined {
  return Object.keys(definitions).find((name) => {
    const definition = toObject(definitions[name]);
    return (
      definition["x-method"] === method && sides.includes(String(definition["x-side"])) && ending.test(name)
    );
  });
}
