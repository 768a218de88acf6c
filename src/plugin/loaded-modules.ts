import { dirname, join, relative } from "node:path";
import { Serial } from "../base/async.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Tool } from "../tool/tool.ts";
import { isInside } from "../workspace/paths.ts";
import type { Hooks } from "./author.ts";
import type { ConfineProgram, ProgramSandbox } from "../sandbox/project-sandbox.ts";
import type { ConfinedLine } from "../workspace/process/process.ts";
import type { FoundModule, FoundModules } from "./modules.ts";
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

/** The program that runs modules. */
export interface HostProgram {
  /** Its command line without a sandbox. */
  readonly argv: readonly string[];
  /** Folder of its files. */
  readonly folder: string;
  readonly start: StartHost;
}

export interface PluginsOptions {
  readonly found: FoundModules;
  readonly folders: Omit<HostFolders, "cover">;
  readonly program: HostProgram;
  readonly confine: ConfineProgram;
  /** Tool names that modules must not use. */
  readonly reserved: ReadonlySet<string>;
  readonly log: Log;
  /** Whether the files are still those the user consented to. Otherwise the host is not restarted. */
  isUnchanged(): Promise<boolean>;
  /** Called when the last session has left. */
  onUnused(): void;
}

/** The process of the modules with the same sandbox. */
interface HostSlot {
  readonly sandbox: ProgramSandbox;
  host?: PluginHost | undefined;
  starting?: Promise<void> | undefined;
  /** Ends without a known culprit. */
  crashes: number;
}

export interface Module {
  readonly location: FoundModule;
  readonly slot: HostSlot;
  /** Display name. */
  readonly displayName: string;
  readonly events: Serial;
  waitingEvents: number;
  hooks: readonly string[];
  tools: readonly Tool[];
  /** Reason why it is disabled. */
  disabledReason?: string;
}

/** Runs plugin modules in their processes: loads them, sends requests, and disables modules that fail. */
export class LoadedModules {
  readonly #options: PluginsOptions;
  readonly #modules: readonly Module[];
  readonly #listeners = new Set<(problem: string) => void>();
  readonly #slots: readonly HostSlot[];
  #problems: string[];
  #isClosed = false;

  constructor(options: PluginsOptions) {
    this.#options = options;
    this.#problems = [...options.found.problems];
    const slots = new Map<string, HostSlot>();
    this.#modules = options.found.modules.map((location) => ({
      location,
      slot: getSlot(slots, location.sandbox),
      displayName: describePath(location, options.folders.worktree),
      events: new Serial(),
      waitingEvents: 0,
      hooks: [],
      tools: [],
    }));
    this.#slots = [...slots.values()];
  }

  get inUse(): readonly Module[] {
    return this.#modules.filter(({ disabledReason: off }) => off === undefined);
  }

  /** Starts the hosts, one after the other, and loads their modules in order. Never rejects. */
  async load(): Promise<void> {
    for (const slot of this.#slots) await this.#ensureHost(slot);
  }

  /** Registers a listener for current and later problems. The last one to leave stops the hosts. */
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
    await Promise.all(this.#slots.map(async ({ host }) => host?.end(how)));
  }

  kill(): void {
    this.#isClosed = true;
    for (const { host } of this.#slots) host?.kill();
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
    await this.#ensureHost(module.slot);
    const { disabledReason: off } = module;
    if (off !== undefined)
      return { outcome: "lost", message: `${module.displayName} was switched off: ${off}` };
    const { host } = module.slot;
    if (host === undefined) return { outcome: "lost", message: "plugins and tools are not running" };
    return host.request(request, limitMs, signal);
  }

  /** Starts the host if it is not running. */
  async #ensureHost(slot: HostSlot): Promise<void> {
    if (slot.starting === undefined && (slot.host?.isLost ?? true)) {
      slot.starting = this.#start(slot).finally(() => (slot.starting = undefined));
    }
    await slot.starting;
  }

  async #start(slot: HostSlot): Promise<void> {
    const isAgain = slot.host !== undefined;
    slot.host = undefined;
    const modules = this.#listUsed(slot);
    if (this.#isClosed || modules.length === 0) return;
    if (isAgain && !(await this.#options.isUnchanged())) return;
    const { program, log, folders } = this.#options;
    const onLost = (why: string, suspect: string | undefined) => this.#onHostLost(slot, why, suspect);
    const confined = slot.sandbox ? await this.#confine(slot.sandbox, modules) : undefined;
    // It was closed, or there is no sandbox.
    if (this.#isClosed || (slot.sandbox && confined === undefined)) return;
    const host = new PluginHost({ start: program.start, cwd: folders.directory, confined, log, onLost });
    slot.host = host;
    for (const module of modules) await this.#load(module, host);
    // A module crashed the host and was disabled: load the others again.
    if (host.isLost) await this.#start(slot);
  }

  #listUsed(slot: HostSlot): Module[] {
    return this.inUse.filter((module) => module.slot === slot);
  }

  /** Returns the host's command line in the sandbox; undefined if there is none, and the modules are disabled. */
  async #confine(sandbox: ProgramSandbox, modules: readonly Module[]): Promise<ConfinedLine | undefined> {
    const { program, confine, folders, found } = this.#options;
    try {
      const files = modules.flatMap(({ location }) => listReadPaths(location, found.cover.folders));
      const reads = [program.folder, ...files];
      return await confine(program.argv, { sandbox, start: folders.directory, reads });
    } catch (error) {
      for (const module of modules) {
        module.disabledReason = messageOf(error);
        this.#notify(`The plugin ${module.displayName} is not used: ${messageOf(error)}`);
      }
      return undefined;
    }
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

  /** Disables the modules of the process after repeated crashes without a known culprit. */
  #onHostLost(slot: HostSlot, why: string, suspect: string | undefined): void {
    const blamed = this.#modules.find(
      ({ location, disabledReason: off }) => location.name === suspect && off === undefined,
    );
    if (blamed !== undefined)
      return this.disable(blamed, `the plugin process ended while running it: ${why}`);
    if (++slot.crashes < crashLimit) return;
    const names = this.#listUsed(slot).map(({ displayName }) => displayName);
    for (const module of this.#listUsed(slot)) module.disabledReason = why;
    this.#notify(
      `${names.join(", ")} ${names.length === 1 ? "is" : "are"} switched off: the plugin process ended ${crashLimit} times, the last time ${why}.`,
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

function getSlot(slots: Map<string, HostSlot>, sandbox: ProgramSandbox): HostSlot {
  const key = JSON.stringify(sandbox);
  const slot = slots.get(key) ?? { sandbox, crashes: 0 };
  slots.set(key, slot);
  return slot;
}

/**
 * Returns what a module needs from folders that the sandbox hides: the module with its folder, and the packages of
 * configuration folders. Of a configuration folder itself only the file, because keys may be beside it.
 */
function listReadPaths({ name, from }: ModuleLocation, configFolders: readonly string[]): string[] {
  const packages = configFolders.flatMap((folder) => [
    join(folder, "package.json"),
    join(folder, "node_modules"),
  ]);
  const folder = dirname(name);
  const own = configFolders.includes(folder) ? name : folder;
  return from === undefined ? [own, ...packages] : packages;
}

function describePath({ name, from }: ModuleLocation, worktree: string): string {
  return from === undefined && isInside(name, [worktree]) ? relative(worktree, name) : name;
}
