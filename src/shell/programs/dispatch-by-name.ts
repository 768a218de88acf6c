/** A table in which several names share an entry, with blanks between, as a map from each name. */
export function indexByName<T>(table: Readonly<Record<string, T>>): ReadonlyMap<string, T> {
  return new Map(
    Object.entries(table).flatMap(([names, entry]) => names.split(" ").map((name) => [name, entry] as const)),
  );
}
