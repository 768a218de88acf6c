/** Made when it is first asked for, and one and the same from then on: for what is constant, but not needed by each start. */
export function lazy<T extends object>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}
