// A part of the bundle, see lazy-schemas.ts.

/** Stands for a value that is built when something is first asked of it. */
export function lazily(build) {
  let built;
  const value = () => (built ??= build());
  return new Proxy(
    {},
    {
      get: (_, key) => Reflect.get(value(), key),
      has: (_, key) => Reflect.has(value(), key),
      ownKeys: () => Reflect.ownKeys(value()),
      getPrototypeOf: () => Reflect.getPrototypeOf(value()),
      getOwnPropertyDescriptor: (_, key) => {
        const descriptor = Reflect.getOwnPropertyDescriptor(value(), key);
        return descriptor && { ...descriptor, configurable: true };
      },
    },
  );
}

export const z = lazily(() => require("./schema-library.cjs"));
