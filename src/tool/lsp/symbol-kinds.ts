/** Names of the protocol's SymbolKind. */
export const kindNames: ReadonlyMap<number, string> = new Map(
  (
    "file module namespace package class method property field constructor enum interface function variable " +
    "constant string number boolean array object key null enum-member struct event operator type-parameter"
  )
    .split(" ")
    .map((name, index) => [index + 1, name]),
);
