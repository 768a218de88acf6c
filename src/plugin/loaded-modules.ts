import { relative } from "node:path";
import { Serial } from "../base/async.ts";
import type { Log } from "../base/log.ts";
import type { Tool } from "../tool/tool.ts";
import { isInside } from "../workspace/paths.ts";
import type { Hooks } from "./author.ts";
import type { FoundModules } from "./modules.ts";
import { moduleTool, runLimitMs } from "./module-tool.ts";
import { type Ask, type Asked, PluginHost, type StartHost } from "./plugin-host.ts";
import { type HostPlace, type LoadedModule, loadedModuleSchema, type ModulePlace } from "./protocol.ts";

/** How long a hook, or the loading of a module, may take. */
export const hookLimitMs = 5_000;
/** Ends of the host that nobody can be blamed for, after which all of it stays off. */
const lossesLimit = 3;
/** What is wrong, kept for sessions that join later. */
const problemsLimit = 20;

/** What providers take as a tool's name. */
const toolNameLimit = 64;
/** Characters of what a model reads of a tool with every request: its description, and the schema of its arguments. */
const descriptionLimit = 32_000;
const schemaLimit = 64 * 1024;
/** Tools of one module; providers take about 128 of all together. */
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
  readonly place: Omit<HostPlace, "cover">;
  readonly start: StartHost;
  /** Names that no module's tool may take. */
  readonly reserved: ReadonlySet<string>;
  readonly log: Log;
  /** Whether the files are still those that were agreed to: a host that ended is not started again with others. */
  isUnchanged(): Promise<boolean>;
  /** The last session has left. */
  onUnused(): void;
}

export interface Module {
  readonly place: ModulePlace;
  /** For people. */
  readonly shown: string;
  readonly events: Serial;
  waitingEvents: number;
  hooks: readonly string[];
  tools: readonly Tool[];
  /** Why it is not used any more. */
  off?: string;
}

/** The modules of authors and the process that they run in: loading, asking, and switching off who does wrong. */
export class LoadedModules {
  readonly #options: PluginsOptions;
  readonly #modules: readonly Module[];
  readonly #listeners = new Set<(problem: string) => void>();
  #problems: string[];
  #host: PluginHost | undefined;
  #starting: Promise<void> | undefined;
  #losses = 0;
  #isClosed = false;

  constructor(options: PluginsOptions) {
    this.#options = options;
    this.#problems = [...options.found.problems];
    this.#modules = options.found.modules.map((place) => ({
      place,
      shown: shownPlace(place, options.place.worktree),
      events: new Serial(),
      waitingEvents: 0,
      hooks: [],
      tools: [],
    }));
  }

  get inUse(): readonly Module[] {
    return this.#modules.filter(({ off }) => off === undefined);
  }

  /** Starts the host and loads all modules, one after the other. Never rejects for what they do. */
  load(): Promise<void> {
    return this.#ensureHost();
  }

  /** Somebody is told what is wrong, now and later, until they leave. The last that leaves ends all of it. */
  join(tell: (problem: string) => void): { leave: () => void } {
    this.#listeners.add(tell);
    for (const problem of this.#problems) tell(problem);
    return {
      leave: () => {
        if (this.#listeners.delete(tell) && this.#listeners.size === 0) this.#options.onUnused();
      },
    };
  }

  /** Resolves when no event waits any more. */
  async eventsTold(): Promise<void> {
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

  /** Once more where another module took the host along; but what a tool does is not done twice. */
  async ask(module: Module, request: Ask, limitMs: number, signal?: AbortSignal): Promise<Asked> {
    const asked = await this.#askOnce(module, request, limitMs, signal);
    const isHarmless = asked.outcome === "lost" && request.ask !== "run" && module.off === undefined;
    return isHarmless && !this.#isClosed ? this.#askOnce(module, request, limitMs, signal) : asked;
  }

  async #askOnce(module: Module, request: Ask, limitMs: number, signal?: AbortSignal): Promise<Asked> {
    await this.#ensureHost();
    const { off } = module;
    if (off !== undefined) return { outcome: "lost", message: `${module.shown} was switched off: ${off}` };
    if (this.#host === undefined) return { outcome: "lost", message: "plugins and tools are not running" };
    return this.#host.ask(request, limitMs, signal);
  }

  /** Starts the host where there is none, or none any more. */
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
    const { start, log, place } = this.#options;
    const onLost = (why: string, suspect: string | undefined) => this.#lost(why, suspect);
    const host = new PluginHost({ start, cwd: place.directory, log, onLost });
    this.#host = host;
    for (const module of modules) await this.#load(module, host);
    // One of them has ended it, and was switched off for that: the others are loaded anew.
    if (host.isLost) await this.#start();
  }

  async #load(module: Module, host: PluginHost): Promise<void> {
    const { place, found } = this.#options;
    const request = { ask: "load", module: module.place, place: { ...place, cover: found.cover } } as const;
    const asked = await host.ask(request, hookLimitMs);
    if (asked.outcome !== "value") return this.blame(module, "loading it", asked);
    const loaded = loadedModuleSchema.safeParse(asked.value).data;
    if (loaded === undefined) return this.switchOff(module, "loading it was answered with nonsense");
    const unknown = [...loaded.hooks.filter((hook) => !hookNames.has(hook)), ...loaded.ignored];
    if (unknown.length > 0 && module.hooks.length === 0)
      this.#tell(`The plugin ${module.shown} has hooks that mean nothing here: ${unknown.join(", ")}.`);
    module.hooks = loaded.hooks;
    // The same objects after a new start of the host: calls of a turn hold them.
    if (module.tools.length === 0) module.tools = this.#toolsOf(module, loaded);
  }

  #toolsOf(module: Module, { tools }: LoadedModule): Tool[] {
    const taken = new Set([
      ...this.#options.reserved,
      ...this.#modules.flatMap((one) => one.tools.map(({ name }) => name)),
    ]);
    if (tools.length > toolsLimit)
      this.#tell(`${module.shown} has ${tools.length} tools; only the first ${toolsLimit} are used.`);
    return tools.slice(0, toolsLimit).flatMap((tool) => {
      const name = tool.name.replaceAll(/[^\w-]/g, "_").slice(0, toolNameLimit);
      const problem = taken.has(name) ? "there is another of that name. Rename it" : tooLong(tool);
      taken.add(name);
      if (problem === undefined) return [this.#tool(module, { ...tool, name }, tool.name)];
      this.#tell(`The tool ${name} of ${module.shown} is left out: ${problem}.`);
      return [];
    });
  }

  #tool(module: Module, described: LoadedModule["tools"][number], tool: string): Tool {
    const { directory, worktree } = this.#options.place;
    const named = { module: module.place.name, tool };
    return moduleTool(described, module.shown, {
      check: (args, signal) => this.ask(module, { ask: "check", ...named, args }, hookLimitMs, signal),
      run: (args, { sessionId, agent }, callID, signal) => {
        const context = { sessionID: sessionId, callID, agent, directory, worktree };
        return this.ask(module, { ask: "run", ...named, args, context }, runLimitMs, signal);
      },
    });
  }

  /** Where nobody can be blamed all are after a few times. */
  #lost(why: string, suspect: string | undefined): void {
    const blamed = this.#modules.find(({ place, off }) => place.name === suspect && off === undefined);
    if (blamed !== undefined) return this.switchOff(blamed, `the process of plugins was lost in it: ${why}`);
    if (++this.#losses < lossesLimit) return;
    for (const module of this.#modules) module.off ??= why;
    this.#tell(
      `Plugins and tools are switched off: their process ended ${lossesLimit} times, the last time ${why}.`,
    );
  }

  /** The end of the host was blamed already. */
  blame(module: Module, hook: string, asked: Exclude<Asked, { outcome: "value" }>): void {
    if (asked.outcome === "lost") return;
    const how = asked.outcome === "late" ? "" : "threw: ";
    this.switchOff(module, `${hook} ${how}${asked.message}`);
  }

  switchOff(module: Module, why: string): void {
    if (module.off !== undefined) return;
    module.off = why;
    const what = module.place.kind === "plugin" ? "plugin" : "tool file";
    this.#tell(
      `The ${what} ${module.shown} was switched off: ${why}. It is loaded again when its file changes.`,
    );
  }

  #tell(problem: string): void {
    this.#options.log.warn(problem);
    this.#problems = [...this.#problems, problem].slice(-problemsLimit);
    for (const tell of this.#listeners) tell(problem);
  }
}

function tooLong({ description, schema }: LoadedModule["tools"][number]): string | undefined {
  const { length } = JSON.stringify(schema);
  if (description.length > descriptionLimit)
    return `its description has ${description.length} characters; ${descriptionLimit} are the most. Shorten it`;
  if (length > schemaLimit)
    return `the schema of its arguments has ${length} characters; ${schemaLimit} are the most. Shorten it`;
  return undefined;
}

function shownPlace({ name, from }: ModulePlace, worktree: string): string {
  return from === undefined && isInside(name, [worktree]) ? relative(worktree, name) : name;
}
