import { errorFields } from "../base/error-fields.ts";
import type { Log } from "../base/log.ts";
import type { HostProgram, PluginsOptions } from "./loaded-modules.ts";
import { Plugins } from "./plugins.ts";

interface SharedPluginsOptions {
  readonly program: HostProgram;
  readonly log: Log;
}

export interface WantedPlugins extends Omit<PluginsOptions, "program" | "log" | "onUnused"> {
  /** Changes when a module file changes. */
  readonly stamp: string;
}

/** Plugin processes in use, shared by sessions with the same modules. */
export class SharedPlugins {
  readonly #options: SharedPluginsOptions;
  readonly #open = new Map<string, Plugins>();
  /** Unused processes that are still ending. */
  readonly #closing = new Set<Plugins>();

  constructor(options: SharedPluginsOptions) {
    this.#options = options;
  }

  async get({ stamp, ...wanted }: WantedPlugins): Promise<Plugins> {
    const key = JSON.stringify([wanted.found, wanted.folders, stamp]);
    const onUnused = () => void this.#close(key);
    const options = { ...this.#options, ...wanted, onUnused };
    const plugins = this.#open.get(key) ?? new Plugins(options);
    this.#open.set(key, plugins);
    await plugins.load();
    return plugins;
  }

  /** Ends all processes at program exit. */
  async closeAll(): Promise<void> {
    await Promise.all(this.#all.map((plugins) => plugins.close("quickly")));
  }

  killAll(): void {
    for (const plugins of this.#all) plugins.kill();
  }

  get #all(): Plugins[] {
    return [...this.#open.values(), ...this.#closing];
  }

  async #close(key: string): Promise<void> {
    const plugins = this.#open.get(key);
    if (plugins === undefined) return;
    this.#open.delete(key);
    this.#closing.add(plugins);
    try {
      await plugins.close("gently");
    } catch (error) {
      this.#options.log.warn("plugins did not end", errorFields(error));
    }
    this.#closing.delete(plugins);
  }
}
