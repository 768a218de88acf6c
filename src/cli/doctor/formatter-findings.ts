import { relative } from "node:path";
import type { Project } from "../../conversation/project.ts";
import type { Finding } from "./finding.ts";

/** Lists the formatters that apply, and those whose program is missing. */
export async function formatterFindings({ formatters = [], workspace }: Project): Promise<Finding[]> {
  if (formatters.length === 0) return [];
  const { findFormatterProgram } = await import("../../formatter/find-formatter-program.ts");
  const findings = formatters.map(async (formatter) => {
    const { configuredIn: [folder = workspace.cwd] = [] } = formatter;
    const program = await findFormatterProgram(formatter, folder, workspace, process.env);
    const root = workspace.worktree ?? workspace.cwd;
    const below = relative(root, folder);
    const where = formatter.configuredIn === undefined || below === "" ? "" : ` in ${below}`;
    const found = `${formatter.name} (${formatter.extensions.join(" ")})${where}`;
    if (program !== undefined) return { what: "Formatter", found };
    const note = `Its program ${formatter.command[0]} was not found. Install it, or set "disabled": true under "formatter": {"${formatter.name}": …}.`;
    return { what: "Formatter", found: `${formatter.name}: cannot run`, note };
  });
  return Promise.all(findings);
}
