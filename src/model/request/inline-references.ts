import { isRecord } from "../../base/text/record.ts";

type Json = Record<string, unknown>;

/** How deep a schema is followed; deeper levels accept anything. */
const depthLimit = 40;
/** Objects and lists of a schema with its references written out; what is beyond them accepts anything. */
const nodesLimit = 5_000;

/** A schema with each of its own references replaced by what it means; where it refers to itself, anything goes. */
export function inlineReferences(root: Json): Json {
  let nodes = 0;

  const inlined = (value: unknown, around: readonly string[], depth: number): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((one: unknown) => inlined(one, around, depth + 1));
    return inlinedObject({ ...value }, around, depth);
  };

  const inlinedObject = (schema: Json, around: readonly string[], depth: number): Json => {
    if (depth > depthLimit || ++nodes > nodesLimit) return {};
    const { $ref: reference, ...rest } = schema;
    const isReference = typeof reference === "string" && reference.startsWith("#");
    if (isReference && around.includes(reference)) return {};
    const meant = isReference ? { ...targetOf(reference, root), ...rest } : schema;
    const { $defs: _, definitions: __, ...kept } = meant;
    if (isReference && typeof kept.$ref === "string") {
      return inlinedObject(kept, [...around, reference], depth + 1);
    }
    const within = isReference ? [...around, reference] : around;
    return Object.fromEntries(
      Object.entries(kept).map(([key, one]) => [
        key,
        key === "properties" && isRecord(one)
          ? inlinedMembers(one, within, depth + 1)
          : inlined(one, within, depth + 1),
      ]),
    );
  };

  /** Its keys are names that somebody chose, `definitions` too. */
  const inlinedMembers = (members: Json, around: readonly string[], depth: number): Json =>
    Object.fromEntries(Object.entries(members).map(([name, one]) => [name, inlined(one, around, depth + 1)]));

  return inlinedObject(root, ["#"], 0);
}

function targetOf(reference: string, root: Json): Json {
  const target = reference
    .slice(2)
    .split("/")
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce<unknown>((at, name) => (isRecord(at) && Object.hasOwn(at, name) ? at[name] : undefined), root);
  return isRecord(target) ? target : {};
}
