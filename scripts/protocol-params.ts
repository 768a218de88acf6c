import { isRecord } from "../src/base/text/record.ts";

/** Keywords without an effect on validation. */
const dropped = new Set(["description", "title", "format", "discriminator", "contentEncoding"]);
const reference = "#/$defs/";

/** Returns the schemas of the params of the agent's methods, by method, and of everything that they refer to. */
export function protocolParams({ $defs: all }: { $defs: Record<string, unknown> }): Record<string, unknown> {
  const methods: Record<string, unknown> = {};
  const $defs: Record<string, unknown> = {};
  const reduce = (schema: unknown): unknown => {
    if (Array.isArray(schema)) return schema.map(reduce);
    if (!isRecord(schema)) return schema;
    if (typeof schema["$ref"] === "string") addDefinition(schema["$ref"].slice(reference.length));
    const kept = Object.entries(schema).filter(
      ([key]) => !dropped.has(key) && !/^x-(side|method)$/.test(key),
    );
    return Object.fromEntries(
      kept.map(([key, value]) => [
        key,
        key === "properties" && isRecord(value) ? reduceEach(value) : reduce(value),
      ]),
    );
  };
  const reduceEach = (properties: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, reduce(schema)]));
  const addDefinition = (name: string) => {
    if (Object.hasOwn($defs, name)) return;
    // Before its content, which may refer to it.
    $defs[name] = {};
    $defs[name] = reduce(all[name]);
  };
  for (const [name, schema] of Object.entries(all)) {
    if (!/(Request|Notification)$/.test(name) || !isRecord(schema) || schema["x-side"] !== "agent") continue;
    if (typeof schema["x-method"] === "string") methods[schema["x-method"]] = reduce(schema);
  }
  return { methods, $defs };
}
