import { isRecord } from "../base/text/record.ts";
import type { Config } from "./schema.ts";

/** Lists that add up over the layers; every other list is replaced. */
export const listsThatAddUp: ReadonlySet<string> = new Set(["instructions", "plugin"]);

/** The lower configuration with the higher laid over it: objects merge deeply, all else is replaced. */
export function mergeConfigs(lower: Config, higher: Config): Config {
  const merged = mergeRecords(lower, higher);
  for (const key of listsThatAddUp) {
    const lists = [Reflect.get(lower, key), Reflect.get(higher, key)].filter((list) => Array.isArray(list));
    if (lists.length > 0) merged[key] = [...new Set(lists.flat())];
  }
  return merged;
}

function mergeRecords(lower: object, higher: object): Record<string, unknown> {
  const merged = new Map<string, unknown>(Object.entries(lower));
  for (const [key, value] of Object.entries(higher)) {
    if (value === undefined) continue;
    if (key === "permission") {
      merged.set(key, mergeRules(merged.get(key), value));
      continue;
    }
    const below = merged.get(key);
    // A rule that is written again is written last: the order of keys is the order of rules.
    if (!isRecord(below) || !isRecord(value)) merged.delete(key);
    merged.set(key, isRecord(below) && isRecord(value) ? mergeRecords(below, value) : value);
  }
  return Object.fromEntries(merged);
}

/** Rules in a short form ("ask") and in a long one ({"rm *": "deny"}) meet in the long one. */
function mergeRules(lower: unknown, higher: unknown): unknown {
  if (lower === undefined) return higher;
  const merged = new Map<string, unknown>(Object.entries(inLongForm(lower)));
  for (const [permission, rules] of Object.entries(inLongForm(higher))) {
    const below = merged.get(permission);
    merged.delete(permission);
    merged.set(permission, below === undefined ? rules : mergeRecords(inLongForm(below), inLongForm(rules)));
  }
  return Object.fromEntries(merged);
}

const inLongForm = (rules: unknown): Record<string, unknown> => (isRecord(rules) ? rules : { "*": rules });
