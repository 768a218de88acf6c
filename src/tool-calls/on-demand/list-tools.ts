import type { Tool } from "../../tool/tool.ts";

/** Maximum characters of the names in the system prompt. */
const LIST_LENGTH = 12_000;

/** A line of the list: a server with the names of its tools. */
export interface ServerLine {
  readonly server: string;
  readonly text: string;
}

/** Lists the names of the tools by server. If they do not all fit, each server has its share. */
export function listByServer(tools: readonly Tool[]): ServerLine[] {
  const groups = [...Map.groupBy(tools, ({ server = "" }) => server)]
    .map(([server, members]) => ({ server, names: members.map(({ name }) => name) }))
    .toSorted((one, other) => (one.server < other.server ? -1 : 1));
  let left = LIST_LENGTH;
  return groups.map(({ server, names }, index) => {
    const text = `- ${server}: ${joinNames(names, left / (groups.length - index))}`;
    left -= text.length;
    return { server, text };
  });
}

/** Lists names with their common beginning written once: `github_{get_issue, list_issues}`. */
function joinNames(names: readonly string[], length: number): string {
  const prefix = findPrefix(names);
  let left = length - prefix.length;
  const ends = names.map((name) => name.slice(prefix.length));
  const end = ends.findIndex((name) => (left -= name.length + 2) < 0);
  const listed = (end === -1 ? ends : ends.slice(0, end)).join(", ");
  const text = prefix === "" ? listed : `${prefix}{${listed}}`;
  return end === -1 ? text : `${text} and ${names.length - end} more, which tool_search finds`;
}

/** Returns the beginning that all names have, up to a separator; empty for one name. */
function findPrefix(names: readonly string[]): string {
  const [first = "", ...others] = names;
  if (others.length === 0) return "";
  let length = 0;
  while (length < first.length && others.every((name) => name[length] === first[length])) length++;
  return first.slice(0, Math.max(first.lastIndexOf("_", length - 1), first.lastIndexOf("-", length - 1)) + 1);
}
