import { pathToFileURL } from "node:url";
import { z } from "zod";
import { codeOf } from "../base/errors.ts";
import type { Hooks, PluginInput, PluginOptions, ToolContext, ToolDefinition, ToolOutput } from "./author.ts";
import { packageSpecifier, registerImports } from "./imports.ts";
import {
  answerLimit,
  type HostAnswer,
  type HostFolders,
  type HostRequest,
  type ModuleLocation,
} from "./protocol.ts";

// Entry point of the process that runs plugin modules, which isolates their output and crashes.

/** Error types that indicate a bug; any other error is a message of the author. */
const bugErrorNames = new Set([
  "TypeError",
  "ReferenceError",
  "SyntaxError",
  "RangeError",
  "EvalError",
  "URIError",
]);

/** A loaded module. */
interface Module {
  /** One map of hooks by name per plugin. */
  readonly hooks: readonly ReadonlyMap<string, Hook>[];
  /** Exported names that are neither a hook nor a group of hooks. */
  readonly ignored: readonly string[];
  readonly tools: ReadonlyMap<string, ToolDefinition>;
}

type Hook = (...args: unknown[]) => unknown;

/** The arguments do not match the tool's schema. */
class InputError extends Error {}
/** A module returned invalid data. */
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
      return { id: request.id, error: { kind: kindOf(error), message: describeError(error) } };
    }
  }

  async #do(request: HostRequest): Promise<unknown> {
    switch (request.ask) {
      case "load":
        return this.#load(request.module, request.folders);
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

  async #load(location: ModuleLocation, folders: HostFolders): Promise<unknown> {
    if (!this.#isPrepared) registerImports(folders.cover);
    this.#isPrepared = true;
    const exported = await importModule(location);
    const module =
      location.kind === "tools"
        ? { hooks: [], ignored: [], tools: collectTools(exported, location.name) }
        : await startPlugins(exported, folders, location.options);
    this.#modules.set(location.name, module);
    const hooks = module.hooks.flatMap((one) => [...one.keys()]);
    const { ignored } = module;
    return { hooks: [...new Set(hooks)], ignored, tools: [...module.tools].map(describeTool) };
  }

  /** Calls each plugin of the module with the output of the previous one. */
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

async function importModule({ name, from }: ModuleLocation): Promise<Record<string, unknown>> {
  return import(from === undefined ? pathToFileURL(name).href : packageSpecifier(name, from));
}

/** Exported functions are plugins, and so is `server` of a default export that is an object. */
async function startPlugins(
  exported: Record<string, unknown>,
  folders: HostFolders,
  options: PluginOptions = {},
): Promise<Module> {
  const { default: first } = exported;
  const server: unknown =
    typeof first === "object" && first !== null ? Reflect.get(first, "server") : undefined;
  const plugins = new Set([...Object.values(exported), server].filter(isFunction));
  if (plugins.size === 0) throw new InvalidPluginError("it exports no plugin function");
  const hooks: Hooks[] = [];
  for (const plugin of plugins) {
    const returned: unknown = await plugin(createPluginInput(folders), options);
    if (typeof returned !== "object" || returned === null)
      throw new InvalidPluginError(`it returned ${describe(returned)} instead of its hooks`);
    hooks.push(returned);
  }
  const named = hooks.map((one) => collectHooks(one));
  return {
    hooks: named.map((one) => one.hooks),
    ignored: named.flatMap((one) => one.ignored),
    tools: new Map(hooks.flatMap((one) => Object.entries(one.tool ?? {}).map(validateTool))),
  };
}

/** Nesting depth of hook groups: `tool.execute.before` has two levels. */
const groupDepth = 2;

/** Collects hooks by name and flattens groups: `{ permission: { ask } }` is `permission.ask`. */
function collectHooks(holder: object, depth = 0): { hooks: Map<string, Hook>; ignored: string[] } {
  const hooks = new Map<string, Hook>();
  const ignored: string[] = [];
  for (const [name, value] of Object.entries(holder)) {
    if (value === undefined || (depth === 0 && name === "tool")) continue;
    const group = isGroup(value) && depth < groupDepth ? collectHooks(value, depth + 1) : undefined;
    if (isFunction(value)) hooks.set(name, value.bind(holder));
    else if (group === undefined || group.hooks.size === 0) ignored.push(name);
    else for (const [inner, hook] of group.hooks) addHook(hooks, `${name}.${inner}`, hook);
  }
  return { hooks, ignored };
}

/** A hook with its full name takes precedence over a member of a group. */
function addHook(hooks: Map<string, Hook>, name: string, hook: Hook): void {
  if (!hooks.has(name)) hooks.set(name, hook);
}

const isGroup = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function createPluginInput({ directory, worktree, projectId }: HostFolders): PluginInput & { $: unknown } {
  return { directory, worktree, project: { id: projectId, worktree }, client, $: rejectShell };
}

const client = rejectUnknownMembers("client", {
  app: rejectUnknownMembers("client.app", {
    log: async ({ body }: { body: { service?: string; level?: string; message: string } }) => {
      process.send?.({ log: `${body.service ?? "plugin"} ${body.level ?? "info"}: ${body.message}` });
    },
  }),
});

const rejectShell = () => {
  throw new Error("Fairlead gives plugins no shell ($): use node:child_process");
};

/** An object whose other members throw a helpful error instead of being undefined. */
function rejectUnknownMembers<T extends object>(name: string, members: T): T {
  return new Proxy(members, {
    get(target, key) {
      if (key in target || typeof key === "symbol" || key === "then") return Reflect.get(target, key);
      throw new Error(`Fairlead has no ${name}.${key}`);
    },
  });
}

/** Names the tools of a module: the default export of `math.ts` is `math`, its export `add` is `math_add`. */
function collectTools(exported: Record<string, unknown>, path: string): Map<string, ToolDefinition> {
  const file = path.replace(/^.*[/\\]/, "").replace(/\.[^.]*$/, "");
  const named = Object.entries(exported).filter(
    ([, value]) => typeof value === "object" && value !== null && "execute" in value,
  );
  if (named.length === 0) throw new InvalidPluginError("it exports no tool");
  return new Map(
    named.map(([name, value]) => validateTool([name === "default" ? file : `${file}_${name}`, value])),
  );
}

function validateTool([name, value]: [string, unknown]): [string, ToolDefinition] {
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
  return bugErrorNames.has(error.name) || "code" in error ? "bug" : "refusal";
}

/** Message of a module's error with its cause, which for `fetch` is the informative part. */
function describeError(error: unknown): string {
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
// Exit with the parent. The watchdog ends processes that modules started.
process.on("disconnect", () => process.exit());
// Errors in a module's background work must not end the process.
for (const event of ["uncaughtException", "unhandledRejection"])
  process.on(event, (error: unknown) =>
    process.send?.({ log: `uncaught error in a module: ${describeError(error)}` }),
  );
