/** Expands a table whose keys list several names, separated by blanks, to a map from each name. */
export function indexByName<T>(table: Readonly<Record<string, T>>): ReadonlyMap<string, T> {
  return new Map(
    Object.entries(table).flatMap(([names, entry]) => names.split(" ").map((name) => [name, entry] as const)),
  );
}
