import { isRecord } from "../base/text/record.ts";
import type { Config } from "./schema.ts";

/** Lists that are concatenated over the layers; every other list is replaced. */
export const concatenatedLists: ReadonlySet<string> = new Set(["instructions", "plugin"]);

/** Merges objects deeply; other values of `higher` replace those of `lower`. */
export function mergeConfigs(lower: Config, higher: Config): Config {
  const merged = mergeRecords(lower, higher);
  for (const key of concatenatedLists) {
    const lists = [Reflect.get(lower, key), Reflect.get(higher, key)].filter((list) => Array.isArray(list));
    if (lists.length > 0) merged[key] = [...new Set(lists.flat())];
  }
  if (isRecord(lower.hooks) && isRecord(higher.hooks))
    merged["hooks"] = appendLists(lower.hooks, higher.hooks);
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
    // The key order is the rule order, so a rule that is set again moves to the end.
    if (!isRecord(below) || !isRecord(value)) merged.delete(key);
    merged.set(key, isRecord(below) && isRecord(value) ? mergeRecords(below, value) : value);
  }
  return Object.fromEntries(merged);
}

/** Hooks of all layers run. */
function appendLists(lower: Record<string, unknown>, higher: Record<string, unknown>): object {
  const lists = Object.entries(higher).map(([key, list]) => [key, [lower[key] ?? [], list].flat()]);
  return { ...lower, ...Object.fromEntries(lists) };
}

/** Merges permission rules; the short form ("ask") is expanded first. */
function mergeRules(lower: unknown, higher: unknown): unknown {
  if (lower === undefined) return higher;
  const merged = new Map<string, unknown>(Object.entries(expandShortForm(lower)));
  for (const [permission, rules] of Object.entries(expandShortForm(higher))) {
    const below = merged.get(permission);
    merged.delete(permission);
    merged.set(
      permission,
      below === undefined ? rules : mergeRecords(expandShortForm(below), expandShortForm(rules)),
    );
  }
  return Object.fromEntries(merged);
}

const expandShortForm = (rules: unknown): Record<string, unknown> =>
  isRecord(rules) ? rules : { "*": rules };
