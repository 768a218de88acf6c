import { excerpt } from "../base/text/excerpt.ts";
import { isRecord } from "../base/text/record.ts";

/** What is wrong by field, as zod formats it: each node has its own words in `_errors`. */
type ErrorTree = Readonly<Record<string, unknown>>;

/** Fields that a message names, and characters for each. */
const faultsLimit = 3;
const faultLength = 200;

/**
 * What may be of several kinds, by its `type`, with the fields of each. A schema that fits none of them says what each
 * of them lacks, of which only what the meant one lacks is of use.
 */
interface TaggedUnion {
  readonly kinds: Readonly<Record<string, readonly string[]>>;
  /** The fields of the kind that has no `type`. */
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

/** What is wrong with a request's parameters, in one line; undefined for what is no such tree or names nothing. */
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

/** Whether the field belongs to the kind that was meant, where there are several. */
function isRelevant(tree: ErrorTree, field: string): boolean {
  const refused = findRejectedKinds(tree);
  const family = [contentBlocks, mcpServers].find(({ kinds }) => refused.some((kind) => kind in kinds));
  if (family === undefined) return true;
  const [meant] = Object.keys(family.kinds).filter((kind) => !refused.includes(kind));
  if (meant !== undefined) return family.kinds[meant]?.includes(field) ?? false;
  return family.untyped?.includes(field) ?? field === "type";
}

/** The kinds that this is not of, by the words for its `type`. */
function findRejectedKinds({ type }: ErrorTree): string[] {
  if (!isRecord(type)) return [];
  return Array.from(errorsAt(type).matchAll(/expected "(\w+)"/g), ([, kind = ""]) => kind);
}
