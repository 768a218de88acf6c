/**
 * Keeps what is made of an owner and of other things, for as long as each of those is the same one. What is kept goes
 * with its owner.
 */
export function memoizePer<Made>(): (owner: object, on: readonly unknown[], make: () => Made) => Made {
  const known = new WeakMap<object, { readonly on: readonly unknown[]; readonly made: Made }>();
  return (owner, on, make) => {
    const last = known.get(owner);
    if (last !== undefined && isSame(last.on, on)) return last.made;
    const made = make();
    known.set(owner, { on, made });
    return made;
  };
}

/** Whether both have the same things in the same order. */
export function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index]);
}
