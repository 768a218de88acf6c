import { messageOf } from "../base/errors.ts";
import type { Plugins } from "../plugin/plugins.ts";
import type { Project } from "../conversation/project.ts";

/** The active plugins of a session and the project state they belong to. */
export class SessionPlugins {
  readonly #warn: (text: string) => void;
  #joined: { plugins: Plugins | undefined; project: Project; leave: () => void } | undefined;

  /** `warn` shows problems of plugins to the user. */
  constructor(warn: (text: string) => void) {
    this.#warn = warn;
  }

  /** The active plugins. */
  get current(): Plugins | undefined {
    return this.#joined?.plugins;
  }

  /** Activates the project's plugins as their files are now. */
  async join(project: Project): Promise<void> {
    if (this.#joined?.project === project) return;
    const plugins = await project.plugins().catch((error: unknown) => {
      this.#warn(`Your plugins and tools could not be started: ${messageOf(error)}`);
      return undefined;
    });
    const before = this.#joined;
    if (before !== undefined && before.plugins === plugins) {
      this.#joined = { ...before, project };
      return;
    }
    this.#joined = { plugins, project, leave: plugins?.join(this.#warn).leave ?? (() => {}) };
    before?.leave();
  }

  leave(): void {
    this.#joined?.leave();
  }
}
