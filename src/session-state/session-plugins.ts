import { messageOf } from "../base/errors.ts";
import type { Plugins } from "../plugin/plugins.ts";
import type { Project } from "../conversation/project.ts";

/** The plugins that take part in a session, and of which state of the project they are. */
export class SessionPlugins {
  readonly #warn: (text: string) => void;
  #joined: { plugins: Plugins | undefined; project: Project; leave: () => void } | undefined;

  /** `tell` brings to the person what is wrong with them. */
  constructor(tell: (text: string) => void) {
    this.#warn = tell;
  }

  /** Those that take part now. */
  get current(): Plugins | undefined {
    return this.#joined?.plugins;
  }

  /** Has the project's plugins take part from here on, those of its files as they are now. */
  async join(project: Project): Promise<void> {
    if (this.#joined?.project === project) return;
    const plugins = await project.plugins().catch((error: unknown) => {
      this.#warn(`Plugins and tools of yours could not be started: ${messageOf(error)}`);
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
