/** Permission names by the tool names of other programs. */
const permissionsOfTools: ReadonlyMap<string, string> = new Map([
  ["Read", "read"],
  ["Grep", "grep"],
  ["Glob", "glob"],
  ["LS", "list"],
  ["Edit", "edit"],
  ["MultiEdit", "edit"],
  ["Write", "edit"],
  ["NotebookEdit", "edit"],
  ["Bash", "bash"],
  ["WebFetch", "webfetch"],
  ["WebSearch", "websearch"],
  ["TodoWrite", "todowrite"],
  ["Task", "task"],
  ["Agent", "task"],
]);

/**
 * Converts an agent written for another program, with tools by name (`tools: Read, Grep`) and models without
 * a provider.
 * Unlisted tools are denied; the session's model is used. Other keys are ignored.
 */
export function convertForeignAgent(raw: Record<string, unknown>): Record<string, unknown> {
  const { description, color, prompt } = raw;
  const named = splitNames(raw["tools"]);
  const missing =
    named && [...permissionsOfTools.values()].filter((one) => !getPermissions(named).includes(one));
  const denied = [...(missing ?? []), ...getPermissions(splitNames(raw["disallowedTools"]) ?? [])];
  const permission = Object.fromEntries(denied.map((name) => [name, "deny"]));
  return {
    mode: "subagent",
    description,
    color,
    prompt,
    ...(denied.length > 0 && { permission }),
  };
}

/**
 * Names in a list, or separated by commas or lines. `Bash(git *)` counts as its tool. Undefined if nothing is
 * set.
 */
function splitNames(value: unknown): string[] | undefined {
  const names: unknown[] | undefined =
    typeof value === "string"
      ? value.replace(/^\[|\]$/g, "").split(/[,\n]/)
      : Array.isArray(value)
        ? value
        : undefined;
  const words = names?.map((name) =>
    String(name)
      .replace(/\(.*$/s, "")
      .replace(/^\s*-\s/, "")
      .trim(),
  );
  return words?.includes("*") ? undefined : words;
}

function getPermissions(names: readonly string[]): string[] {
  return names.map((name) => permissionsOfTools.get(name)).filter((name) => name !== undefined);
}
