import type { Repairs } from "./repairs.ts";
import { getProperties, getProperty, type Schema } from "./schema.ts";

/** Other names of parameters, as a tool's definition declares them. */
export type Aliases = Readonly<Record<string, readonly string[]>>;

/** Returns the key in lower case without `_`, `-` and blanks. */
export const normalizeKey = (key: string): string => key.toLowerCase().replaceAll(/[_\-\s]/g, "");

/**
 * Finds the parameter that a key means: exactly, without case and `_-`, then by alias. Undefined if there is none or
 * more than one.
 */
export function findParameter(key: string, schema: Schema, aliases: Aliases): string | undefined {
  if (getProperty(schema, key) !== undefined) return key;
  const wanted = normalizeKey(key);
  const names = Object.keys(getProperties(schema));
  const same = names.filter((name) => normalizeKey(name) === wanted);
  if (same.length > 0) return same.length === 1 ? same[0] : undefined;
  const aliased = names.filter((name) =>
    getAliases(name, aliases).some((alias) => normalizeKey(alias) === wanted),
  );
  return aliased.length === 1 ? aliased[0] : undefined;
}

function getAliases(name: string, aliases: Aliases): readonly string[] {
  return Object.hasOwn(aliases, name) ? (aliases[name] ?? []) : [];
}

/**
 * Renames keys to parameters. An exact key wins, and two keys for the same parameter are not used. Unknown keys are
 * removed and reported if the schema is closed.
 */
export function repairKeys(
  value: Readonly<Record<string, unknown>>,
  schema: Schema,
  { aliases, isClosed, repairs }: { aliases: Aliases; isClosed: boolean; repairs: Repairs },
): Readonly<Record<string, unknown>> {
  const keys = Object.keys(value);
  if (keys.every((key) => getProperty(schema, key) !== undefined)) return value;
  const targets = new Map(keys.map((key) => [key, findParameter(key, schema, aliases)]));
  const isUsable = (key: string, target: string) =>
    !Object.hasOwn(value, target) && keys.every((other) => other === key || targets.get(other) !== target);
  const repaired: [string, unknown][] = [];
  for (const key of keys) {
    const target = targets.get(key);
    if (target === key) repaired.push([key, value[key]]);
    else if (target !== undefined && isUsable(key, target)) {
      repairs.add("key", target, key);
      repaired.push([target, value[key]]);
    } else if (isClosed) repairs.ignore(key);
    else repaired.push([key, value[key]]);
  }
  return Object.fromEntries(repaired);
}
