import { isRecord } from "../../base/text/record.ts";
import { parseTolerantJson } from "./json-text.ts";
import { type Aliases, findParameter } from "./keys.ts";
import { quoteValue, type Repairs } from "./repairs.ts";
import { getProperty, getRequired, hasType, type Schema } from "./schema.ts";

/** Keys under which models put the arguments. */
const wrappers: ReadonlySet<string> = new Set([
  "arguments",
  "parameters",
  "params",
  "input",
  "args",
  "kwargs",
  "tool_input",
]);

/** Keys next to a wrapper that describe the call. */
const companions: ReadonlySet<string> = new Set(["name", "tool", "tool_name", "function", "type", "id"]);

/** Returns the arguments inside `{ arguments: { … } }` if no key outside is a parameter. */
export function unwrapArguments(
  value: Readonly<Record<string, unknown>>,
  schema: Schema,
  aliases: Aliases,
  repairs: Repairs,
): Readonly<Record<string, unknown>> {
  const keys = Object.keys(value);
  const found = keys.filter((key) => wrappers.has(key) && getProperty(schema, key) === undefined);
  const [wrapper] = found;
  if (wrapper === undefined || found.length > 1) return value;
  const others = keys.filter((key) => key !== wrapper);
  const isCall = others.every(
    (key) => companions.has(key) && findParameter(key, schema, aliases) === undefined,
  );
  const inner = toRecord(value[wrapper]);
  if (!isCall || inner === undefined) return value;
  repairs.add("unwrapped", "the arguments", `them in ${wrapper}`);
  return inner;
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> | undefined {
  const parsed = typeof value === "string" ? parseTolerantJson(value)?.value : value;
  return isRecord(parsed) ? parsed : undefined;
}

/** Makes arguments of a bare text or list for a tool with a single required parameter. */
export function wrapBareValue(value: unknown, schema: Schema, repairs: Repairs): unknown {
  const [key, ...others] = getRequired(schema);
  const property = key === undefined || others.length > 0 ? undefined : getProperty(schema, key);
  if (key === undefined || property === undefined || isRecord(value) || !hasType(value, property))
    return value;
  repairs.add("unwrapped", key, quoteValue(value));
  return { [key]: value };
}
