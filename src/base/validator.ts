import type { Check } from "./json-schema.ts";

/** Checks a value: a schema, or a faster check with the same result. */
export interface Validator<T> {
  safeParse(value: unknown): { success: true; data: T } | { success: false; error: ValidationError };
}

interface ValidationError {
  issues: readonly { path: readonly PropertyKey[]; message: string }[];
}

/**
 * Returns a validator that tries the check generated from the schema first. The schema, which is slow to build and
 * copies the value, handles only values that it rejects or changes.
 */
export function fastValidator<T>(check: Check, schema: Validator<T>): Validator<T> {
  const isValid = (value: unknown): value is T => check(value);
  return {
    safeParse: (value) => (isValid(value) ? { success: true, data: value } : schema.safeParse(value)),
  };
}

/** True for an object that has no other fields than these. */
export function hasOnly<Key extends string>(
  value: unknown,
  keys: readonly Key[],
): value is Partial<Record<Key, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const known: readonly string[] = keys;
  return Object.keys(value).every((key) => known.includes(key));
}
