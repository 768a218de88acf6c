import { createScanner, type Node } from "jsonc-parser";

export type Path = readonly (string | number)[];

/** A key that stands more than once in an object: only the last value of it counts. */
export interface RepeatedKey {
  readonly path: Path;
  /** Where it stands again, as an offset, and where the one is that does not count. */
  readonly offset: number;
  readonly before: number;
}

/** The value that counts at a place: of keys that repeat the last, where jsonc-parser's own search takes the first. */
export function nodeAt(root: Node | undefined, path: Path): Node | undefined {
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

/** Keys that repeat, in the order of the file. */
export function repeatedKeys(node: Node, path: Path = []): RepeatedKey[] {
  const { type, children = [] } = node;
  if (type === "array") return children.flatMap((item, at) => repeatedKeys(item, [...path, at]));
  if (type !== "object") return [];
  const offsets = new Map<unknown, number>();
  return children.flatMap(({ offset, children: [key, value] = [] }) => {
    if (key === undefined) return [];
    const at = [...path, String(key.value)];
    const before = offsets.get(key.value);
    offsets.set(key.value, offset);
    const inside = value === undefined ? [] : repeatedKeys(value, at);
    return before === undefined ? inside : [{ path: at, offset, before }, ...inside];
  });
}

/** The offset of the first list or object that stands deeper than that many others; undefined where none does. */
export function offsetBelow(limit: number, text: string): number | undefined {
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
