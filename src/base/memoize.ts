/** Memoizes one value per owner; recomputed when a dependency changes. Dropped together with its owner. */
export function memoizePer<Value>(): (
  owner: object,
  dependencies: readonly unknown[],
  create: () => Value,
) => Value {
  const cache = new WeakMap<object, { readonly dependencies: readonly unknown[]; readonly value: Value }>();
  return (owner, dependencies, create) => {
    const last = cache.get(owner);
    if (last !== undefined && isSame(last.dependencies, dependencies)) return last.value;
    const value = create();
    cache.set(owner, { dependencies, value });
    return value;
  };
}

/** True when both lists have identical items in the same order. */
export function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index]);
}
