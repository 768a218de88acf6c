import type { ChangesPart, ToolPart } from "../message/part.ts";

/** Presents listed changes as a finished call that the model did not make. */
export function toChangesCall({ id, type, files, title, paths, metadata }: ChangesPart): ToolPart {
  const changes = files.flatMap(({ change }) => (paths.includes(change.path) ? [change] : []));
  const time = { start: 0, end: 0 };
  return {
    id,
    type: "tool",
    callId: id,
    tool: type,
    title,
    kind: "other",
    state: { status: "completed", output: "", changes, metadata, time },
  };
}
