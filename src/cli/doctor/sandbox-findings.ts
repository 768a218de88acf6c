import type { Project } from "../../conversation/project.ts";
import type { Finding } from "./finding.ts";

/** Says whether commands can run in a sandbox here, and what is missing. */
export async function sandboxFinding(project: Project): Promise<Finding> {
  const { sandbox } = project.config;
  const mode = typeof sandbox === "object" ? sandbox.mode : sandbox;
  const what = "Sandbox";
  if (mode === "off") return { what, found: "off, as configured" };
  const problem = await project.findSandboxProblem();
  if (problem === undefined) {
    const todo = await project.findSandboxNetworkProblem();
    const found = uses[mode ?? "chosen"];
    return todo === undefined
      ? { what, found }
      : { what, found: `${found}, without the configured hosts`, todo };
  }
  if (mode === undefined) return { what, found: "not available", note: problem };
  return { what, found: `configured ("${mode}"), but not available`, todo: problem };
}

const uses = {
  chosen: "available, for sessions that are set to Sandboxed",
  auto: "used for all commands",
  required: "used for all commands, and required",
} as const;
