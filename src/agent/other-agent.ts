/** Permissions by the names that other programs give to their tools. */
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
 * The settings of an agent that was written for a program with tools by name (`tools: Read, Grep`) and models without
 * a provider: the tools that it does not name are denied, its model is the session's. Other keys mean nothing here.
 */
export function fromOtherProgram(raw: Record<string, unknown>): Record<string, unknown> {
  const { description, color, prompt } = raw;
  const named = namesIn(raw["tools"]);
  const missing =
    named && [...permissionsOfTools.values()].filter((one) => !permissionsOf(named).includes(one));
  const denied = [...(missing ?? []), ...permissionsOf(namesIn(raw["disallowedTools"]) ?? [])];
  const permission = Object.fromEntries(denied.map((name) => [name, "deny"]));
  return {
    mode: "subagent",
    description,
    color,
    prompt,
    ...(denied.length > 0 && { permission }),
  };
}

/** A list, or names between commas or on lines; `Bash(git *)` counts as its tool. Undefined where nothing is said. */
function namesIn(value: unknown): string[] | undefined {
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

function permissionsOf(names: readonly string[]): string[] {
  return names.map((name) => permissionsOfTools.get(name)).filter((name) => name !== undefined);
}
