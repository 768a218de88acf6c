import { relative } from "node:path";
import { Serial } from "../base/async.ts";
import type { Log } from "../base/log.ts";
import type { Tool } from "../tool/tool.ts";
import { isInside } from "../workspace/paths.ts";
import type { Hooks } from "./author.ts";
import type { FoundModules } from "./modules.ts";
import { createModuleTool, runLimitMs } from "./module-tool.ts";
import { type HostRequestBody, type HostResult, PluginHost, type StartHost } from "./plugin-host.ts";
import { type HostFolders, type LoadedModule, loadedModuleSchema, type ModuleLocation } from "./protocol.ts";

/** Time limit of a hook or of loading a module. */
export const hookLimitMs = 5_000;
/** Host crashes without a known culprit until all modules stay disabled. */
const crashLimit = 3;
/** Problems stored for sessions that join later. */
const problemsLimit = 20;

/** Tool name length that providers accept. */
const toolNameLimit = 64;
/** Maximum length of a tool's description and schema, because both are sent with every request. */
const descriptionLimit = 32_000;
const schemaLimit = 64 * 1024;
/** Maximum number of tools per module; providers accept about 128 in total. */
const toolsLimit = 100;

export type HookName = Exclude<keyof Hooks, "tool">;

const hookNames: ReadonlySet<string> = new Set<HookName | "tool">([
  "event",
  "chat.message",
  "chat.params",
  "experimental.chat.system.transform",
  "tool.execute.before",
  "tool.execute.after",
  "permission.ask",
  "tool",
]);

export interface PluginsOptions {
  readonly found: FoundModules;
  readonly folders: Omit<HostFolders, "cover">;
  readonly start: StartHost;
  /** Tool names that modules must not use. */
  readonly reserved: ReadonlySet<string>;
  readonly log: Log;
  /** Whether the files are still those the user consented to. Otherwise the host is not restarted. */
  isUnchanged(): Promise<boolean>;
  /** Called when the last session has left. */
  onUnused(): void;
}

export interface Module {
  readonly location: ModuleLocation;
  /** Display name. */
  readonly displayName: string;
  readonly events: Serial;
  waitingEvents: number;
  hooks: readonly string[];
  tools: readonly Tool[];
  /** Reason why it is disabled. */
  disabledReason?: string;
}

/** Runs plugin modules in their process: loads them, sends requests, and disables modules that fail. */
export class LoadedModules {
  readonly #options: PluginsOptions;
  readonly #modules: readonly Module[];
  readonly #listeners = new Set<(problem: string) => void>();
  #problems: string[];
  #host: PluginHost | undefined;
  #starting: Promise<void> | undefined;
  #crashes = 0;
  #isClosed = false;

  constructor(options: PluginsOptions) {
    this.#options = options;
    this.#problems = [...options.found.problems];
    this.#modules = options.found.modules.map((location) => ({
      location,
      displayName: describePath(location, options.folders.worktree),
      events: new Serial(),
      waitingEvents: 0,
      hooks: [],
      tools: [],
    }));
  }

  get inUse(): readonly Module[] {
    return this.#modules.filter(({ disabledReason: off }) => off === undefined);
  }

  /** Starts the host and loads all modules in order. Never rejects. */
  load(): Promise<void> {
    return this.#ensureHost();
  }

  /** Registers a listener for current and later problems. The last one to leave stops the host. */
  join(notify: (problem: string) => void): { leave: () => void } {
    this.#listeners.add(notify);
    for (const problem of this.#problems) notify(problem);
    return {
      leave: () => {
        if (this.#listeners.delete(notify) && this.#listeners.size === 0) this.#options.onUnused();
      },
    };
  }

  /** Resolves when all queued events were delivered. */
  async eventsDelivered(): Promise<void> {
    await Promise.all(this.#modules.map(({ events }) => events.idle()));
  }

  async end(how: "gently" | "quickly"): Promise<void> {
    this.#isClosed = true;
    await this.#host?.end(how);
  }

  kill(): void {
    this.#isClosed = true;
    this.#host?.kill();
  }

  /**
   * Repeats the request if another module crashed the host. Tool calls are not repeated, because they may
   * have had effects.
   */
  async request(
    module: Module,
    request: HostRequestBody,
    limitMs: number,
    signal?: AbortSignal,
  ): Promise<HostResult> {
    const result = await this.#requestOnce(module, request, limitMs, signal);
    const isHarmless =
      result.outcome === "lost" && request.ask !== "run" && module.disabledReason === undefined;
    return isHarmless && !this.#isClosed ? this.#requestOnce(module, request, limitMs, signal) : result;
  }

  async #requestOnce(
    module: Module,
    request: HostRequestBody,
    limitMs: number,
    signal?: AbortSignal,
  ): Promise<HostResult> {
    await this.#ensureHost();
    const { disabledReason: off } = module;
    if (off !== undefined)
      return { outcome: "lost", message: `${module.displayName} was switched off: ${off}` };
    if (this.#host === undefined) return { outcome: "lost", message: "plugins and tools are not running" };
    return this.#host.request(request, limitMs, signal);
  }

  /** Starts the host if it is not running. */
  async #ensureHost(): Promise<void> {
    if (this.#starting === undefined && (this.#host?.isLost ?? true)) {
      this.#starting = this.#start().finally(() => (this.#starting = undefined));
    }
    await this.#starting;
  }

  async #start(): Promise<void> {
    const isAgain = this.#host !== undefined;
    this.#host = undefined;
    const modules = this.inUse;
    if (this.#isClosed || modules.length === 0) return;
    if (isAgain && !(await this.#options.isUnchanged())) return;
    const { start, log, folders } = this.#options;
    const onLost = (why: string, suspect: string | undefined) => this.#onHostLost(why, suspect);
    const host = new PluginHost({ start, cwd: folders.directory, log, onLost });
    this.#host = host;
    for (const module of modules) await this.#load(module, host);
    // A module crashed the host and was disabled: load the others again.
    if (host.isLost) await this.#start();
  }

  async #load(module: Module, host: PluginHost): Promise<void> {
    const { folders, found } = this.#options;
    const request = {
      ask: "load",
      module: module.location,
      folders: { ...folders, cover: found.cover },
    } as const;
    const result = await host.request(request, hookLimitMs);
    if (result.outcome !== "value") return this.blame(module, "loading it", result);
    const loaded = loadedModuleSchema.safeParse(result.value).data;
    if (loaded === undefined) return this.disable(module, "loading it returned an invalid response");
    const unknown = [...loaded.hooks.filter((hook) => !hookNames.has(hook)), ...loaded.ignored];
    if (unknown.length > 0 && module.hooks.length === 0)
      this.#notify(`The plugin ${module.displayName} has unsupported hooks: ${unknown.join(", ")}.`);
    module.hooks = loaded.hooks;
    // Keep the tool objects after a restart, because running turns reference them.
    if (module.tools.length === 0) module.tools = this.#createTools(module, loaded);
  }

  #createTools(module: Module, { tools }: LoadedModule): Tool[] {
    const taken = new Set([
      ...this.#options.reserved,
      ...this.#modules.flatMap((one) => one.tools.map(({ name }) => name)),
    ]);
    if (tools.length > toolsLimit)
      this.#notify(`${module.displayName} has ${tools.length} tools; only the first ${toolsLimit} are used.`);
    return tools.slice(0, toolsLimit).flatMap((tool) => {
      const name = tool.name.replaceAll(/[^\w-]/g, "_").slice(0, toolNameLimit);
      const problem = taken.has(name) ? "the name is already used. Rename it" : describeExcessLength(tool);
      taken.add(name);
      if (problem === undefined) return [this.#tool(module, { ...tool, name }, tool.name)];
      this.#notify(`The tool ${name} of ${module.displayName} is ignored: ${problem}.`);
      return [];
    });
  }

  #tool(module: Module, described: LoadedModule["tools"][number], tool: string): Tool {
    const { directory, worktree } = this.#options.folders;
    const named = { module: module.location.name, tool };
    return createModuleTool(described, module.displayName, {
      check: (args, signal) => this.request(module, { ask: "check", ...named, args }, hookLimitMs, signal),
      run: (args, { sessionId, agent }, callID, signal) => {
        const context = { sessionID: sessionId, callID, agent, directory, worktree };
        return this.request(module, { ask: "run", ...named, args, context }, runLimitMs, signal);
      },
    });
  }

  /** Disables all modules after repeated crashes without a known culprit. */
  #onHostLost(why: string, suspect: string | undefined): void {
    const blamed = this.#modules.find(
      ({ location, disabledReason: off }) => location.name === suspect && off === undefined,
    );
    if (blamed !== undefined)
      return this.disable(blamed, `the plugin process ended while running it: ${why}`);
    if (++this.#crashes < crashLimit) return;
    for (const module of this.#modules) module.disabledReason ??= why;
    this.#notify(
      `Plugins and tools are switched off: the plugin process ended ${crashLimit} times, the last time ${why}.`,
    );
  }

  /** Disables the module for a failed hook, unless the host's end was reported already. */
  blame(module: Module, hook: string, result: Exclude<HostResult, { outcome: "value" }>): void {
    if (result.outcome === "lost") return;
    const how = result.outcome === "late" ? "" : "threw: ";
    this.disable(module, `${hook} ${how}${result.message}`);
  }

  disable(module: Module, why: string): void {
    if (module.disabledReason !== undefined) return;
    module.disabledReason = why;
    const what = module.location.kind === "plugin" ? "plugin" : "tool file";
    this.#notify(
      `The ${what} ${module.displayName} was switched off: ${why}. It is loaded again when its file changes.`,
    );
  }

  #notify(problem: string): void {
    this.#options.log.warn(problem);
    this.#problems = [...this.#problems, problem].slice(-problemsLimit);
    for (const notify of this.#listeners) notify(problem);
  }
}

function describeExcessLength({ description, schema }: LoadedModule["tools"][number]): string | undefined {
  const { length } = JSON.stringify(schema);
  if (description.length > descriptionLimit)
    return `its description has ${description.length} characters; the limit is ${descriptionLimit}. Shorten it`;
  if (length > schemaLimit)
    return `the schema of its arguments has ${length} characters; the limit is ${schemaLimit}. Shorten it`;
  return undefined;
}

function describePath({ name, from }: ModuleLocation, worktree: string): string {
  return from === undefined && isInside(name, [worktree]) ? relative(worktree, name) : name;
}
