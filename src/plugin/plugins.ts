import { relative } from "node:path";
import { z } from "zod";
import { orAfter, Serial } from "../base/async.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Tool } from "../tool/tool.ts";
import { isInside } from "../workspace/paths.ts";
import type { Hooks, ModelParams, Part, PermissionQuestion, PluginEvent, UserMessage } from "./author.ts";
import type { FoundModules } from "./modules.ts";
import { moduleTool, runLimitMs } from "./module-tool.ts";
import { type Ask, type Asked, PluginHost } from "./plugin-host.ts";
import { type HostPlace, type LoadedModule, loadedModuleSchema, type ModulePlace } from "./protocol.ts";

/** How long a hook, or the loading of a module, may take. */
const hookLimitMs = 5_000;
/** Ends of the host that nobody can be blamed for, after which all of it stays off. */
const lossesLimit = 3;
/** Events that wait for one module. */
const waitingEventsLimit = 200;
/** How long events that wait are waited for at the end: of the last session, and of the program, whose client may be in a hurry. */
const lastEventsMs = { gently: 500, quickly: 50 };
/** What is wrong, kept for sessions that join later. */
const problemsLimit = 20;

type HookName = Exclude<keyof Hooks, "tool">;

const hookNames: ReadonlySet<string> = new Set<HookName | "tool">([
  "event",
  "chat.message",
  "chat.params",
  "tool.execute.before",
  "tool.execute.after",
  "permission.ask",
  "tool",
]);

export interface PluginsOptions {
  readonly found: FoundModules;
  readonly place: Omit<HostPlace, "cover">;
  /** The host's program. */
  readonly program: string;
  /** Without keys and other credentials. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Names that no module's tool may take. */
  readonly reserved: ReadonlySet<string>;
  readonly log: Log;
  /** Whether the files are still those that were agreed to: a host that ended is not started again with others. */
  isUnchanged(): Promise<boolean>;
  /** The last session has left. */
  onUnused(): void;
}

interface Module {
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

/** Which call it is about, in authors' words. */
export interface CallName {
  readonly tool: string;
  readonly sessionID: string;
  readonly callID: string;
}

export type Permitted = { status: "allow" | "ask" } | { status: "deny"; by: string };

/**
 * The plugins and tools of authors that a project's sessions share. They run in a process of their own; whatever they
 * do there, a turn goes on: who throws, hangs or answers nonsense is named, switched off and not asked again.
 */
export class Plugins {
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

  /** Starts the host and loads all modules, one after the other. Never rejects for what they do. */
  load(): Promise<void> {
    return this.#ensureHost();
  }

  /** Tools of all modules that are in use. */
  get tools(): readonly Tool[] {
    return this.#modules.filter(({ off }) => off === undefined).flatMap(({ tools }) => tools);
  }

  /** A session takes part: what is wrong is told to it now and later. The last that leaves ends all of it. */
  join(tell: (problem: string) => void): { leave: () => void } {
    this.#listeners.add(tell);
    for (const problem of this.#problems) tell(problem);
    return {
      leave: () => {
        if (this.#listeners.delete(tell) && this.#listeners.size === 0) this.#options.onUnused();
      },
    };
  }

  has(hook: HookName): boolean {
    return this.#users(hook).length > 0;
  }

  /** The arguments as plugins leave them, or why the call may not run. What looks at calls and breaks lets none through. */
  async beforeCall(
    call: CallName,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<{ args: Record<string, unknown> } | { refused: string }> {
    let output = { args };
    for (const module of this.#users("tool.execute.before")) {
      const asked = await this.#hook(module, "tool.execute.before", call, output, signal);
      if (asked.outcome === "refusal")
        return { refused: `Not run. The plugin ${module.shown} refused this call: ${asked.message}` };
      const next = this.#accept(module, "tool.execute.before", asked, argsSchema, signal);
      if (next === undefined)
        return {
          refused: `Not run, because the plugin ${module.shown}, which looks at each call first, broke and was switched off. Make the call again if it is still needed.`,
        };
      output = next;
    }
    return output;
  }

  afterCall(
    call: CallName & { args: Record<string, unknown> },
    result: CallResult,
    signal: AbortSignal,
  ): Promise<CallResult> {
    return this.#changed("tool.execute.after", call, result, resultSchema, signal);
  }

  params(
    input: Parameters<NonNullable<Hooks["chat.params"]>>[0],
    params: ModelParams,
    signal: AbortSignal,
  ): Promise<ModelParams> {
    return this.#changed("chat.params", input, params, paramsSchema, signal);
  }

  message(
    input: Parameters<NonNullable<Hooks["chat.message"]>>[0],
    { message, parts }: { message: UserMessage; parts: Part[] },
    signal: AbortSignal,
  ): Promise<Said> {
    const said = { message: { ...message }, parts };
    return this.#changed<Said>("chat.message", input, said, saidSchema, signal);
  }

  /** The first that says no decides. For one that breaks it stays as the rules say. */
  async permission(
    question: PermissionQuestion,
    status: "allow" | "ask",
    signal: AbortSignal,
  ): Promise<Permitted> {
    let output: { status: "allow" | "ask" | "deny" } = { status };
    for (const module of this.#users("permission.ask")) {
      const asked = await this.#hook(module, "permission.ask", question, output, signal);
      output = this.#accept(module, "permission.ask", asked, statusSchema, signal) ?? output;
      if (output.status === "deny") return { status: "deny", by: module.shown };
    }
    return { status: output.status === "allow" ? "allow" : "ask" };
  }

  /** Goes its way without anybody waiting, in order for each module. */
  event(event: PluginEvent): void {
    for (const module of this.#users("event")) {
      if (module.waitingEvents >= waitingEventsLimit) {
        this.#switchOff(module, `it was ${waitingEventsLimit} events behind`);
        continue;
      }
      module.waitingEvents++;
      const told = module.events.run(async () => {
        module.waitingEvents--;
        if (module.off !== undefined) return;
        const asked = await this.#hook(module, "event", { event });
        if (asked.outcome !== "value") this.#blame(module, "event", asked);
      });
      told.catch((error: unknown) => this.#options.log.error("an event broke", { error: messageOf(error) }));
    }
  }

  /** What was told before has a moment to reach everybody. */
  async close(how: "gently" | "quickly"): Promise<void> {
    const told = Promise.all(this.#modules.map(({ events }) => events.idle()));
    await orAfter(told, lastEventsMs[how], undefined);
    this.#isClosed = true;
    await this.#host?.end(how);
  }

  kill(): void {
    this.#isClosed = true;
    this.#host?.kill();
  }

  #users(hook: HookName): Module[] {
    return this.#modules.filter(({ hooks, off }) => off === undefined && hooks.includes(hook));
  }

  /** What is changed by each module in turn, as it was before those that break. */
  async #changed<Output>(
    hook: HookName,
    input: unknown,
    output: Output,
    schema: z.ZodType<Output>,
    signal: AbortSignal,
  ): Promise<Output> {
    let current = output;
    for (const module of this.#users(hook)) {
      const asked = await this.#hook(module, hook, input, current, signal);
      current = this.#accept(module, hook, asked, schema, signal) ?? current;
    }
    return current;
  }

  #hook(
    module: Module,
    hook: HookName,
    input: unknown,
    output?: unknown,
    signal?: AbortSignal,
  ): Promise<Asked> {
    const request = { ask: "hook", module: module.place.name, hook, input, output } as const;
    return this.#ask(module, request, hookLimitMs, signal);
  }

  /** Undefined where it broke. */
  #accept<Output>(
    module: Module,
    hook: HookName,
    asked: Asked,
    schema: z.ZodType<Output>,
    signal: AbortSignal,
  ): Output | undefined {
    if (asked.outcome === "value") {
      const parsed = schema.safeParse(asked.value);
      if (parsed.success) return parsed.data;
      const [issue] = parsed.error.issues;
      this.#switchOff(module, `${hook} left nonsense in output.${issue?.path.join(".")}: ${issue?.message}`);
    } else if (!signal.aborted) {
      this.#blame(module, hook, asked);
    }
    return undefined;
  }

  /** The end of the host was blamed already. */
  #blame(module: Module, hook: string, asked: Exclude<Asked, { outcome: "value" }>): void {
    if (asked.outcome === "lost") return;
    const how = asked.outcome === "late" ? "" : "threw: ";
    this.#switchOff(module, `${hook} ${how}${asked.message}`);
  }

  /** Once more where another module took the host along; but what a tool does is not done twice. */
  async #ask(module: Module, request: Ask, limitMs: number, signal?: AbortSignal): Promise<Asked> {
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
    const modules = this.#modules.filter(({ off }) => off === undefined);
    if (this.#isClosed || modules.length === 0) return;
    if (isAgain && !(await this.#options.isUnchanged())) return;
    const { program, env, log, place } = this.#options;
    const onLost = (why: string, suspect: string | undefined) => this.#lost(why, suspect);
    const host = new PluginHost({ program, cwd: place.directory, env, log, onLost });
    this.#host = host;
    for (const module of modules) await this.#load(module, host);
    // One of them has ended it, and was switched off for that: the others are loaded anew.
    if (host.isLost) await this.#start();
  }

  async #load(module: Module, host: PluginHost): Promise<void> {
    const { place, found } = this.#options;
    const request = { ask: "load", module: module.place, place: { ...place, cover: found.cover } } as const;
    const asked = await host.ask(request, hookLimitMs);
    if (asked.outcome !== "value") return this.#blame(module, "loading it", asked);
    const loaded = loadedModuleSchema.parse(asked.value);
    const unknown = loaded.hooks.filter((hook) => !hookNames.has(hook));
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
    return tools.flatMap((tool) => {
      const name = tool.name.replaceAll(/[^\w-]/g, "_").slice(0, toolNameLimit);
      if (!taken.has(name)) return [this.#tool(module, { ...tool, name }, tool.name)];
      this.#tell(
        `The tool ${name} of ${module.shown} is left out: there is another of that name. Rename it.`,
      );
      return [];
    });
  }

  #tool(module: Module, described: LoadedModule["tools"][number], tool: string): Tool {
    const { directory, worktree } = this.#options.place;
    const named = { module: module.place.name, tool };
    return moduleTool(described, module.shown, {
      check: (args, signal) => this.#ask(module, { ask: "check", ...named, args }, hookLimitMs, signal),
      run: (args, { sessionId, agent }, callID, signal) => {
        const context = { sessionID: sessionId, callID, agent, directory, worktree };
        return this.#ask(module, { ask: "run", ...named, args, context }, runLimitMs, signal);
      },
    });
  }

  /** Where nobody can be blamed all are after a few times. */
  #lost(why: string, suspect: string | undefined): void {
    const blamed = this.#modules.find(({ place, off }) => place.name === suspect && off === undefined);
    if (blamed !== undefined) return this.#switchOff(blamed, `the process of plugins was lost in it: ${why}`);
    if (++this.#losses < lossesLimit) return;
    for (const module of this.#modules) module.off ??= why;
    this.#tell(
      `Plugins and tools are switched off: their process ended ${lossesLimit} times, the last time ${why}.`,
    );
  }

  #switchOff(module: Module, why: string): void {
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

/** What providers take as a tool's name. */
const toolNameLimit = 64;

const argsSchema = z.object({ args: z.record(z.string(), z.unknown()) });
const resultSchema = z.object({
  title: z.string(),
  output: z.string(),
  metadata: z.record(z.string(), z.unknown()),
});
type CallResult = z.infer<typeof resultSchema>;
const paramsSchema = z.object({
  temperature: z.number().optional(),
  topP: z.number().optional(),
  maxOutputTokens: z.number().int().positive().optional(),
  options: z.record(z.string(), z.unknown()),
});
const saidSchema = z.object({
  message: z.looseObject({
    system: z.string().optional(),
    tools: z.record(z.string(), z.boolean()).optional(),
  }),
  parts: z.array(z.looseObject({ id: z.string().optional(), type: z.string(), text: z.string().optional() })),
});
type Said = z.infer<typeof saidSchema>;
const statusSchema = z.object({ status: z.enum(["allow", "ask", "deny"]) });

function shownPlace({ name, from }: ModulePlace, worktree: string): string {
  return from === undefined && isInside(name, [worktree]) ? relative(worktree, name) : name;
}
