import { createScanner, type Node } from "jsonc-parser";

export type Path = readonly (string | number)[];

/** A duplicate key in an object. The last value is used. */
export interface RepeatedKey {
  readonly path: Path;
  /** Offsets of the repeated key and of the one before it, which is ignored. */
  readonly offset: number;
  readonly before: number;
}

/** Finds the node at a path. Uses the last of duplicate keys; jsonc-parser's own search uses the first. */
export function findNode(root: Node | undefined, path: Path): Node | undefined {
  let at = root;
  for (const key of path) at = typeof key === "number" ? itemAt(at, key) : valueOf(at, key);
  return at;
}

const itemAt = (list: Node | undefined, index: number): Node | undefined =>
  list?.type === "array" ? list.children?.[index] : undefined;

const valueOf = (object: Node | undefined, key: string): Node | undefined =>
  object?.type === "object"
    ? object.children?.findLast((property) => property.children?.[0]?.value === key)?.children?.[1]
    : undefined;

/** Finds duplicate keys, in file order. */
export function findRepeatedKeys(node: Node, path: Path = []): RepeatedKey[] {
  const { type, children = [] } = node;
  if (type === "array") return children.flatMap((item, at) => findRepeatedKeys(item, [...path, at]));
  if (type !== "object") return [];
  const offsets = new Map<unknown, number>();
  return children.flatMap(({ offset, children: [key, value] = [] }) => {
    if (key === undefined) return [];
    const at = [...path, String(key.value)];
    const before = offsets.get(key.value);
    offsets.set(key.value, offset);
    const inside = value === undefined ? [] : findRepeatedKeys(value, at);
    return before === undefined ? inside : [{ path: at, offset, before }, ...inside];
  });
}

/** Offset of the first list or object nested deeper than the limit; undefined if there is none. */
export function findOffsetDeeperThan(limit: number, text: string): number | undefined {
  const scanner = createScanner(text, true);
  let depth = 0;
  while (scanner.getPosition() < text.length) {
    scanner.scan();
    const mark = text[scanner.getTokenOffset()];
    if (mark === "{" || mark === "[") depth++;
    if (mark === "}" || mark === "]") depth--;
    if (depth > limit) return scanner.getTokenOffset();
  }
  return undefined;
}
