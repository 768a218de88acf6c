import type { Project } from "./project.ts";

/** The project of a session, which is replaced when its configuration is reloaded. */
export class CurrentProject {
  #project: Project;

  constructor(project: Project) {
    this.#project = project;
  }

  get(): Project {
    return this.#project;
  }

  replace(project: Project): void {
    this.#project = project;
  }
}
