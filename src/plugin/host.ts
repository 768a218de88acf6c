import { pathToFileURL } from "node:url";
import { z } from "zod";
import { codeOf } from "../base/errors.ts";
import type { Hooks, PluginInput, PluginOptions, ToolContext, ToolDefinition, ToolOutput } from "./author.ts";
import { packageSpecifier, registerImports } from "./imports.ts";
import {
  answerLimit,
  type HostAnswer,
  type HostPlace,
  type HostRequest,
  type ModulePlace,
} from "./protocol.ts";

// The program that runs authors' modules, in a process of its own: what they print, hold and break stays in it.

/** Errors that a program throws by mistake; any other is its author's word. */
const mistakes = new Set([
  "TypeError",
  "ReferenceError",
  "SyntaxError",
  "RangeError",
  "EvalError",
  "URIError",
]);

/** What one module brought. */
interface Module {
  /** Of each plugin, by name. */
  readonly hooks: readonly ReadonlyMap<string, Hook>[];
  /** Names of what is neither a hook nor a group of hooks. */
  readonly ignored: readonly string[];
  readonly tools: ReadonlyMap<string, ToolDefinition>;
}

type Hook = (...args: unknown[]) => unknown;

/** The arguments do not fit the tool. */
class InputError extends Error {}
/** A module gave what it may not. */
class InvalidPluginError extends Error {}

class Host {
  readonly #modules = new Map<string, Module>();
  readonly #running = new Map<number, AbortController>();
  #isPrepared = false;

  async answer(request: HostRequest): Promise<HostAnswer> {
    try {
      const value = JSON.stringify((await this.#do(request)) ?? null);
      if (value.length > answerLimit)
        throw new InvalidPluginError(`it returned more than ${answerLimit} characters`);
      return { id: request.id, value };
    } catch (error) {
      return { id: request.id, error: { kind: kindOf(error), message: wordsOf(error) } };
    }
  }

  async #do(request: HostRequest): Promise<unknown> {
    switch (request.ask) {
      case "load":
        return this.#load(request.module, request.place);
      case "hook":
        return this.#hook(request.module, request.hook, request.input, request.output);
      case "check":
        return checkArgs(this.#tool(request.module, request.tool), request.args);
      case "run":
        return this.#run(request);
      case "abort":
        return this.#running.get(request.run)?.abort();
      case "ping":
        return "pong";
    }
  }

  async #load(place: ModulePlace, at: HostPlace): Promise<unknown> {
    if (!this.#isPrepared) registerImports(at.cover);
    this.#isPrepared = true;
    const exported = await importModule(place);
    const module =
      place.kind === "tools"
        ? { hooks: [], ignored: [], tools: toolsOf(exported, place.name) }
        : await startPlugins(exported, at, place.options);
    this.#modules.set(place.name, module);
    const hooks = module.hooks.flatMap((one) => [...one.keys()]);
    const { ignored } = module;
    return { hooks: [...new Set(hooks)], ignored, tools: [...module.tools].map(describeTool) };
  }

  /** Each plugin of the module gets what the one before has left. */
  async #hook(name: string, hook: string, input: unknown, output: unknown): Promise<unknown> {
    for (const hooks of this.#module(name).hooks) await hooks.get(hook)?.(input, output);
    return output;
  }

  async #run(request: HostRequest & { ask: "run" }): Promise<unknown> {
    const tool = this.#tool(request.module, request.tool);
    const args = await checkArgs(tool, request.args);
    const abort = new AbortController();
    this.#running.set(request.id, abort);
    let more: { title?: string; metadata?: Record<string, unknown> } = {};
    const context: ToolContext = {
      ...request.context,
      abort: abort.signal,
      metadata: (added) => {
        more = { ...more, ...added };
      },
    };
    try {
      const result: unknown = await Reflect.apply(tool.execute, tool, [args, context]);
      return { ...more, ...toOutput(result) };
    } finally {
      this.#running.delete(request.id);
    }
  }

  #module(name: string): Module {
    const module = this.#modules.get(name);
    if (module === undefined) throw new Error(`${name} is not loaded`);
    return module;
  }

  #tool(module: string, name: string): ToolDefinition {
    const tool = this.#module(module).tools.get(name);
    if (tool === undefined) throw new Error(`${module} has no tool ${name}`);
    return tool;
  }
}

async function importModule({ name, from }: ModulePlace): Promise<Record<string, unknown>> {
  return import(from === undefined ? pathToFileURL(name).href : packageSpecifier(name, from));
}

/** Functions are plugins; so is `server` of a default export that is an object. */
async function startPlugins(
  exported: Record<string, unknown>,
  place: HostPlace,
  options: PluginOptions = {},
): Promise<Module> {
  const { default: first } = exported;
  const server: unknown =
    typeof first === "object" && first !== null ? Reflect.get(first, "server") : undefined;
  const plugins = new Set([...Object.values(exported), server].filter(isFunction));
  if (plugins.size === 0) throw new InvalidPluginError("it exports no function, which a plugin is");
  const hooks: Hooks[] = [];
  for (const plugin of plugins) {
    const returned: unknown = await plugin(pluginInput(place), options);
    if (typeof returned !== "object" || returned === null)
      throw new InvalidPluginError(`it returned ${describe(returned)} instead of its hooks`);
    hooks.push(returned);
  }
  const named = hooks.map((one) => namedHooks(one));
  return {
    hooks: named.map((one) => one.hooks),
    ignored: named.flatMap((one) => one.ignored),
    tools: new Map(hooks.flatMap((one) => Object.entries(one.tool ?? {}).map(checkedTool))),
  };
}

/** Groups in groups that are looked into: `tool.execute.before` has two. */
const groupDepth = 2;

/** Hooks by name, groups of hooks flattened: `{ permission: { ask } }` is `permission.ask`. */
function namedHooks(holder: object, depth = 0): { hooks: Map<string, Hook>; ignored: string[] } {
  const hooks = new Map<string, Hook>();
  const ignored: string[] = [];
  for (const [name, value] of Object.entries(holder)) {
    if (value === undefined || (depth === 0 && name === "tool")) continue;
    const group = isGroup(value) && depth < groupDepth ? namedHooks(value, depth + 1) : undefined;
    if (isFunction(value)) hooks.set(name, value.bind(holder));
    else if (group === undefined || group.hooks.size === 0) ignored.push(name);
    else for (const [inner, hook] of group.hooks) setOnce(hooks, `${name}.${inner}`, hook);
  }
  return { hooks, ignored };
}

/** What is written with the whole name counts before a member of a group. */
function setOnce(hooks: Map<string, Hook>, name: string, hook: Hook): void {
  if (!hooks.has(name)) hooks.set(name, hook);
}

const isGroup = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function pluginInput({ directory, worktree, projectId }: HostPlace): PluginInput & { $: unknown } {
  return { directory, worktree, project: { id: projectId, worktree }, client, $: noShell };
}

const client = absent("client", {
  app: absent("client.app", {
    log: async ({ body }: { body: { service?: string; level?: string; message: string } }) => {
      process.send?.({ log: `${body.service ?? "plugin"} ${body.level ?? "info"}: ${body.message}` });
    },
  }),
});

const noShell = () => {
  throw new Error("Fairlead gives plugins no shell ($): use node:child_process");
};

/** An object whose other members say that they are not here, instead of being undefined. */
function absent<T extends object>(name: string, members: T): T {
  return new Proxy(members, {
    get(target, key) {
      if (key in target || typeof key === "symbol" || key === "then") return Reflect.get(target, key);
      throw new Error(`Fairlead has no ${name}.${key}`);
    },
  });
}

/** `math.ts` gives `math` for its default export and `math_add` for the export `add`. */
function toolsOf(exported: Record<string, unknown>, path: string): Map<string, ToolDefinition> {
  const file = path.replace(/^.*[/\\]/, "").replace(/\.[^.]*$/, "");
  const named = Object.entries(exported).filter(
    ([, value]) => typeof value === "object" && value !== null && "execute" in value,
  );
  if (named.length === 0) throw new InvalidPluginError("it exports no tool");
  return new Map(
    named.map(([name, value]) => checkedTool([name === "default" ? file : `${file}_${name}`, value])),
  );
}

function checkedTool([name, value]: [string, unknown]): [string, ToolDefinition] {
  const { data } = toolSchema.safeParse(value);
  if (data === undefined)
    throw new InvalidPluginError(
      `the tool ${name} needs a description, args with schemas of zod 4 (tool.schema), and execute`,
    );
  return [name, data];
}

const isSchema = (value: unknown): value is z.ZodType =>
  typeof value === "object" && value !== null && "_zod" in value;

const toolSchema = z.object({
  description: z.string(),
  args: z.record(z.string(), z.custom<z.ZodType>(isSchema)).default({}),
  execute: z.custom<ToolDefinition["execute"]>(isFunction),
});

function describeTool([name, { description, args }]: [string, ToolDefinition]) {
  const { $schema: _, ...schema } = z.toJSONSchema(z.object(args), { io: "input", unrepresentable: "any" });
  return { name, description, schema };
}

async function checkArgs({ args }: ToolDefinition, given: unknown): Promise<unknown> {
  const parsed = await z.object(args).safeParseAsync(given);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map(
    ({ path, message }) => `- ${path.join(".") || "the arguments"}: ${message}`,
  );
  throw new InputError(lines.join("\n"));
}

function toOutput(result: unknown): ToolOutput & object {
  if (typeof result === "string") return { output: result };
  const { data } = outputSchema.safeParse(result);
  if (data === undefined) throw new InvalidPluginError(`it returned ${describe(result)} instead of text`);
  return data;
}

const outputSchema = z.object({
  output: z.string(),
  title: z.string().optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
});

function describe(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value)
    ? "an array"
    : value === undefined
      ? "nothing"
      : `a value of the type ${typeof value}`;
}

function kindOf(error: unknown): NonNullable<HostAnswer["error"]>["kind"] {
  if (error instanceof InputError) return "input";
  if (error instanceof InvalidPluginError || !(error instanceof Error)) return "bug";
  return mistakes.has(error.name) || "code" in error ? "bug" : "refusal";
}

/** A module's own error, with its cause: what `fetch` throws says nothing without. */
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === "string" ? error : describe(error);
  const { message, name, cause } = error;
  const why = cause instanceof Error ? cause.message || codeOf(cause) : undefined;
  return why ? `${message || name}: ${why}` : message || name;
}

function isFunction(value: unknown): value is (...args: unknown[]) => unknown {
  return typeof value === "function";
}

const host = new Host();
process.on("message", (request: HostRequest) => {
  process.send?.({ began: request.id });
  void host.answer(request).then((answer) => process.send?.(answer));
});
// Without Fairlead nobody needs what runs here; what that has started is its watchdog's.
process.on("disconnect", () => process.exit());
// What a module left behind must not take the others along.
for (const event of ["uncaughtException", "unhandledRejection"])
  process.on(event, (error: unknown) =>
    process.send?.({ log: `something a module left behind threw: ${wordsOf(error)}` }),
  );
