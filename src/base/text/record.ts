/** True for an object that is not an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns an object; an empty one for anything else. */
export const recordOf = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {});

/** Returns the objects in a list; none for anything else. */
export const recordsIn = (list: unknown): Record<string, unknown>[] =>
  Array.isArray(list) ? list.filter(isRecord) : [];

/** True for an array of strings. */
export function isStringArray(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}
