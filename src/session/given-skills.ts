import { once } from "../base/async.ts";
import type { Project } from "../conversation/project.ts";
import type { GivenSkill } from "../skill/skill.ts";

/** Adds the client's skills to a project. A skill of the project or the user wins over one of the same name. */
export function withGivenSkills(project: Project, given: readonly GivenSkill[]): Project {
  const names = new Set(project.skills.map(({ name }) => name));
  const added = given.filter(({ name }) => !names.has(name));
  if (added.length === 0) return project;
  const skills = [...project.skills, ...added].sort((one, other) => (one.name < other.name ? -1 : 1));
  const loadTool = once(async () => (await import("../tool/skill.ts")).skillTool({ skills }));
  const tools = async () => {
    const tool = await loadTool();
    return (await project.tools()).map((other) => (other.name === tool.name ? tool : other));
  };
  return { ...project, skills, tools };
}
