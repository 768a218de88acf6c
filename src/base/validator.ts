/** What checks a value: a schema, or something quicker. */
export interface Validator<T> {
  safeParse(value: unknown): { success: true; data: T } | { success: false; error: FormError };
}

interface FormError {
  issues: readonly { path: readonly PropertyKey[]; message: string }[];
}

/** A form whose right values are known at a look; the schema, which takes its time to be built, is asked about others. */
export function fastValidator<T>(
  isRight: (value: unknown) => value is T,
  schema: Validator<T>,
): Validator<T> {
  return {
    safeParse: (value) => (isRight(value) ? { success: true, data: value } : schema.safeParse(value)),
  };
}

/** Whether it is an object with no other fields than these. */
export function hasOnly<Key extends string>(
  value: unknown,
  keys: readonly Key[],
): value is Partial<Record<Key, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const known: readonly string[] = keys;
  return Object.keys(value).every((key) => known.includes(key));
}
