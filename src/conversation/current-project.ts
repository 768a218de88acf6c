import type { Project } from "./project.ts";

/** The project of a session, which is replaced when its configuration is reloaded. */
export class CurrentProject {
  #project: Project;
  #adapted: Project;
  #adapt = (project: Project): Project => project;

  constructor(project: Project) {
    this.#project = project;
    this.#adapted = project;
  }

  get(): Project {
    return this.#adapted;
  }

  replace(project: Project): void {
    this.#project = project;
    this.#adapted = this.#adapt(project);
  }

  /** Changes the project, and those that replace it, for this session. */
  adapt(change: (project: Project) => Project): void {
    this.#adapt = change;
    this.replace(this.#project);
  }
}
