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
import type { HostResult } from "./plugin-host.ts";

/** Maximum number of queued events per module. */
const waitingEventsLimit = 200;
/** Time to deliver queued events when the last session closes, and when the program exits. */
const eventFlushMs = { gently: 500, quickly: 50 };

/** Identifies a tool call, in the terms of the plugin API. */
export interface CallName {
  readonly tool: string;
  readonly sessionID: string;
  readonly callID: string;
}

export type BeforeCallResult = { status: "allow" | "ask" } | { status: "deny"; by: string };

/**
 * Plugins and tools shared by the sessions of a project. They run in a separate process and cannot stop a
 * turn:
 * a module that throws, hangs or returns invalid data is reported and disabled.
 */
export class Plugins {
  readonly #modules: LoadedModules;
  readonly #log: Log;

  constructor(options: PluginsOptions) {
    this.#modules = new LoadedModules(options);
    this.#log = options.log;
  }

  /** Starts the host and loads all modules in order. Never rejects. */
  load(): Promise<void> {
    return this.#modules.load();
  }

  /** Tools of all enabled modules. */
  get tools(): readonly Tool[] {
    return this.#modules.inUse.flatMap(({ tools }) => tools);
  }

  /**
   * Registers a session, which is notified of current and later problems. The last one to leave stops the
   * host.
   */
  join(notify: (problem: string) => void): { leave: () => void } {
    return this.#modules.join(notify);
  }

  has(hook: HookName): boolean {
    return this.#users(hook).length > 0;
  }

  /**
   * Returns the arguments as changed by plugins, or why the call must not run. If a hook fails, the call is
   * refused.
   */
  async beforeCall(
    call: CallName,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<{ args: Record<string, unknown> } | { refused: string }> {
    let output = { args };
    for (const module of this.#users("tool.execute.before")) {
      const result = await this.#hook(module, "tool.execute.before", call, output, signal);
      if (result.outcome === "refusal")
        return { refused: `Not run. The plugin ${module.displayName} refused this call: ${result.message}` };
      const next = this.#accept(module, "tool.execute.before", result, argsSchema, signal);
      if (next === undefined)
        return {
          refused: `Not run, because the plugin ${module.displayName}, which checks each call, failed and was switched off. Repeat the call if it is still needed.`,
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
    return this.#applyHooks("tool.execute.after", call, result, resultSchema, signal);
  }

  params(
    input: Parameters<NonNullable<Hooks["chat.params"]>>[0],
    params: ModelParams,
    signal: AbortSignal,
  ): Promise<ModelParams> {
    return this.#applyHooks("chat.params", input, params, paramsSchema, signal);
  }

  /** Returns the system prompt as changed by plugins, without empty blocks. */
  async system(
    input: { sessionID: string; model: PluginModelRef },
    system: readonly string[],
    signal: AbortSignal,
  ): Promise<string[]> {
    const before = { system: [...system] };
    const after = await this.#applyHooks(
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
  ): Promise<ChangedMessage> {
    const changed = { message: { ...message }, parts };
    return this.#applyHooks<ChangedMessage>("chat.message", input, changed, changedMessageSchema, signal);
  }

  /** Returns the first denial. A failing plugin leaves the verdict of the rules. */
  async permission(
    question: PermissionQuestion,
    status: "allow" | "ask",
    signal: AbortSignal,
  ): Promise<BeforeCallResult> {
    let output: { status: "allow" | "ask" | "deny" } = { status };
    for (const module of this.#users("permission.ask")) {
      const result = await this.#hook(module, "permission.ask", question, output, signal);
      output = this.#accept(module, "permission.ask", result, statusSchema, signal) ?? output;
      if (output.status === "deny") return { status: "deny", by: module.displayName };
    }
    return { status: output.status === "allow" ? "allow" : "ask" };
  }

  /** Queues an event; each module receives its events in order. */
  event(event: PluginEvent): void {
    for (const module of this.#users("event")) {
      if (module.waitingEvents >= waitingEventsLimit) {
        this.#modules.disable(module, `${waitingEventsLimit} events waited for it`);
        continue;
      }
      module.waitingEvents++;
      const delivered = module.events.run(async () => {
        module.waitingEvents--;
        if (module.disabledReason !== undefined) return;
        const result = await this.#hook(module, "event", { event });
        if (result.outcome !== "value") this.#modules.blame(module, "event", result);
      });
      delivered.catch((error: unknown) => this.#log.error("event delivery failed", errorFields(error)));
    }
  }

  /** Stops the host after queued events were delivered or the time is up. */
  async close(how: "gently" | "quickly"): Promise<void> {
    await orAfter(this.#modules.eventsDelivered(), eventFlushMs[how], undefined);
    await this.#modules.end(how);
  }

  kill(): void {
    this.#modules.kill();
  }

  #users(hook: HookName): Module[] {
    return this.#modules.inUse.filter(({ hooks }) => hooks.includes(hook));
  }

  /** Applies each module's hook in turn. A failing hook changes nothing. */
  async #applyHooks<Output>(
    hook: HookName,
    input: unknown,
    output: Output,
    schema: z.ZodType<Output>,
    signal: AbortSignal,
  ): Promise<Output> {
    let current = output;
    for (const module of this.#users(hook)) {
      const result = await this.#hook(module, hook, input, current, signal);
      current = this.#accept(module, hook, result, schema, signal) ?? current;
    }
    return current;
  }

  #hook(
    module: Module,
    hook: HookName,
    input: unknown,
    output?: unknown,
    signal?: AbortSignal,
  ): Promise<HostResult> {
    const request = { ask: "hook", module: module.location.name, hook, input, output } as const;
    return this.#modules.request(module, request, hookLimitMs, signal);
  }

  /** Undefined if the output is invalid; the module is disabled then. */
  #accept<Output>(
    module: Module,
    hook: HookName,
    result: HostResult,
    schema: z.ZodType<Output>,
    signal: AbortSignal,
  ): Output | undefined {
    if (result.outcome === "value") {
      const parsed = schema.safeParse(result.value);
      if (parsed.success) return parsed.data;
      const [issue] = parsed.error.issues;
      this.#modules.disable(
        module,
        `${hook} set an invalid value in output.${issue?.path.join(".")}: ${issue?.message}`,
      );
    } else if (!signal.aborted) {
      this.#modules.blame(module, hook, result);
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
const changedMessageSchema = z.object({
  message: z.looseObject({
    system: z.string().optional(),
    tools: z.record(z.string(), z.boolean()).optional(),
  }),
  parts: z.array(z.looseObject({ id: z.string().optional(), type: z.string(), text: z.string().optional() })),
});
type ChangedMessage = z.infer<typeof changedMessageSchema>;
const statusSchema = z.object({ status: z.enum(["allow", "ask", "deny"]) });
