import { excerpt } from "../base/text/excerpt.ts";
import { isRecord } from "../base/text/record.ts";

/** Validation errors by field, as formatted by zod: each node has its messages in `_errors`. */
type ErrorTree = Readonly<Record<string, unknown>>;

/** Maximum number of fields in a message, and of characters for each. */
const faultsLimit = 3;
const faultLength = 200;

/**
 * A union with a `type` field, and the fields of each member. If no member matches, the schema reports the errors of
 * all members; only those of the intended member are shown.
 */
interface TaggedUnion {
  readonly kinds: Readonly<Record<string, readonly string[]>>;
  /** The fields of the member without `type`. */
  readonly untyped?: readonly string[];
}

const contentBlocks: TaggedUnion = {
  kinds: {
    text: ["text"],
    image: ["data", "mimeType"],
    audio: ["data", "mimeType"],
    resource_link: ["uri", "name"],
    resource: ["resource"],
  },
};
const remote = ["name", "url", "headers"];
const mcpServers: TaggedUnion = {
  kinds: { http: remote, sse: remote },
  untyped: ["name", "command", "args", "env"],
};

/** Formats validation errors of a request's params as one line. Returns undefined if `tree` contains none. */
export function formatParamFaults(tree: unknown): string | undefined {
  if (!isRecord(tree) || !Array.isArray(tree._errors)) return undefined;
  const faults = collectFaults(tree, []);
  if (faults.length === 0) return undefined;
  const more = faults.length > faultsLimit ? `; and ${faults.length - faultsLimit} more` : "";
  const named = faults.slice(0, faultsLimit).map((fault) => excerpt(fault, faultLength));
  return `Invalid params: ${named.join("; ")}${more}`;
}

function collectFaults(tree: ErrorTree, path: readonly string[]): string[] {
  const words = errorsAt(tree);
  const own = words === "" ? [] : [[path.join("."), words].filter((text) => text !== "").join(": ")];
  const fields = Object.entries(tree).flatMap(([name, field]) =>
    name !== "_errors" && isRecord(field) && isRelevant(tree, name)
      ? collectFaults(field, [...path, name])
      : [],
  );
  return [...own, ...fields];
}

function errorsAt({ _errors: words }: ErrorTree): string {
  return Array.isArray(words) ? [...new Set(words)].join(", ") : "";
}

/** Whether the field belongs to the intended member of a union. */
function isRelevant(tree: ErrorTree, field: string): boolean {
  const refused = findRejectedKinds(tree);
  const family = [contentBlocks, mcpServers].find(({ kinds }) => refused.some((kind) => kind in kinds));
  if (family === undefined) return true;
  const [meant] = Object.keys(family.kinds).filter((kind) => !refused.includes(kind));
  if (meant !== undefined) return family.kinds[meant]?.includes(field) ?? false;
  return family.untyped?.includes(field) ?? field === "type";
}

/** Returns the member types that do not match, parsed from the error messages of `type`. */
function findRejectedKinds({ type }: ErrorTree): string[] {
  if (!isRecord(type)) return [];
  return Array.from(errorsAt(type).matchAll(/expected "(\w+)"/g), ([, kind = ""]) => kind);
}
