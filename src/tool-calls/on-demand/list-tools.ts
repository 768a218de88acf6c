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

function joinNames(names: readonly string[], length: number): string {
  let left = length;
  const end = names.findIndex((name) => (left -= name.length + 2) < 0);
  if (end === -1) return names.join(", ");
  return `${names.slice(0, end).join(", ")} and ${names.length - end} more, which tool_search finds`;
}
