import { errorFields } from "../base/error-fields.ts";
import { z } from "zod";
import { orAfter } from "../base/async.ts";
import type { Log } from "../base/log.ts";
import type { Tool } from "../tool/tool.ts";
import type {
  Hooks,
  ModelParams,
  Part,
  PermissionQuestion,
  PluginEvent,
  PluginModelRef,
  UserMessage,
} from "./author.ts";
import {
  type HookName,
  hookLimitMs,
  LoadedModules,
  type Module,
  type PluginsOptions,
} from "./loaded-modules.ts";
import type { Asked } from "./plugin-host.ts";

/** Events that wait for one module. */
const waitingEventsLimit = 200;
/** How long events that wait are waited for at the end: of the last session, and of the program, whose client may be in a hurry. */
const lastEventsMs = { gently: 500, quickly: 50 };

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
  readonly #modules: LoadedModules;
  readonly #log: Log;

  constructor(options: PluginsOptions) {
    this.#modules = new LoadedModules(options);
    this.#log = options.log;
  }

  /** Starts the host and loads all modules, one after the other. Never rejects for what they do. */
  load(): Promise<void> {
    return this.#modules.load();
  }

  /** Tools of all modules that are in use. */
  get tools(): readonly Tool[] {
    return this.#modules.inUse.flatMap(({ tools }) => tools);
  }

  /** A session takes part: what is wrong is told to it now and later. The last that leaves ends all of it. */
  join(tell: (problem: string) => void): { leave: () => void } {
    return this.#modules.join(tell);
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

  /** Returns the system prompt as plugins leave it; blocks that they empty are left out. */
  async system(
    input: { sessionID: string; model: PluginModelRef },
    system: readonly string[],
    signal: AbortSignal,
  ): Promise<string[]> {
    const before = { system: [...system] };
    const after = await this.#changed(
      "experimental.chat.system.transform",
      input,
      before,
      systemSchema,
      signal,
    );
    return after.system.filter((block) => block.trim() !== "");
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
        this.#modules.switchOff(module, `it was ${waitingEventsLimit} events behind`);
        continue;
      }
      module.waitingEvents++;
      const told = module.events.run(async () => {
        module.waitingEvents--;
        if (module.off !== undefined) return;
        const asked = await this.#hook(module, "event", { event });
        if (asked.outcome !== "value") this.#modules.blame(module, "event", asked);
      });
      told.catch((error: unknown) => this.#log.error("an event broke", errorFields(error)));
    }
  }

  /** What was told before has a moment to reach everybody. */
  async close(how: "gently" | "quickly"): Promise<void> {
    await orAfter(this.#modules.eventsTold(), lastEventsMs[how], undefined);
    await this.#modules.end(how);
  }

  kill(): void {
    this.#modules.kill();
  }

  #users(hook: HookName): Module[] {
    return this.#modules.inUse.filter(({ hooks }) => hooks.includes(hook));
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
    return this.#modules.ask(module, request, hookLimitMs, signal);
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
      this.#modules.switchOff(
        module,
        `${hook} left nonsense in output.${issue?.path.join(".")}: ${issue?.message}`,
      );
    } else if (!signal.aborted) {
      this.#modules.blame(module, hook, asked);
    }
    return undefined;
  }
}

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
const systemSchema = z.object({ system: z.array(z.string()) });
const saidSchema = z.object({
  message: z.looseObject({
    system: z.string().optional(),
    tools: z.record(z.string(), z.boolean()).optional(),
  }),
  parts: z.array(z.looseObject({ id: z.string().optional(), type: z.string(), text: z.string().optional() })),
});
type Said = z.infer<typeof saidSchema>;
const statusSchema = z.object({ status: z.enum(["allow", "ask", "deny"]) });
