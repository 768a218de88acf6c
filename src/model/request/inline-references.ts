import { isRecord } from "../../base/text/record.ts";

type Json = Record<string, unknown>;

/** Maximum depth of a schema. Deeper levels accept anything. */
const depthLimit = 40;
/** Maximum number of objects in the expanded schema. Further ones accept anything. */
const nodesLimit = 5_000;

/** Replaces each local `$ref` with its target. Recursive references accept anything. */
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
    const target = isReference ? { ...resolveReference(reference, root), ...rest } : schema;
    const { $defs: _, definitions: __, ...members } = target;
    if (isReference && typeof members.$ref === "string") {
      return inlinedObject(members, [...around, reference], depth + 1);
    }
    const within = isReference ? [...around, reference] : around;
    return Object.fromEntries(
      Object.entries(members).map(([key, one]) => [
        key,
        key === "properties" && isRecord(one)
          ? inlinedMembers(one, within, depth + 1)
          : inlined(one, within, depth + 1),
      ]),
    );
  };

  /** Inlines `properties`: its keys are arbitrary names, so `definitions` is not special here. */
  const inlinedMembers = (members: Json, around: readonly string[], depth: number): Json =>
    Object.fromEntries(Object.entries(members).map(([name, one]) => [name, inlined(one, around, depth + 1)]));

  return inlinedObject(root, ["#"], 0);
}

function resolveReference(reference: string, root: Json): Json {
  const target = reference
    .slice(2)
    .split("/")
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce<unknown>((at, name) => (isRecord(at) && Object.hasOwn(at, name) ? at[name] : undefined), root);
  return isRecord(target) ? target : {};
}
