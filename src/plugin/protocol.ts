import { z } from "zod";

/** A module to load in the host. */
export interface ModuleLocation {
  readonly kind: "plugin" | "tools";
  /** Absolute file path, or a package name. */
  readonly name: string;
  /** Folder with a `node_modules` that contains the package. */
  readonly from?: string;
  /** Plugin options from the configuration. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** Files below `root` that project modules may import, because the user consented to them. */
export interface ImportAllowlist {
  readonly root: string;
  readonly folders: readonly string[];
  readonly files: readonly string[];
}

export interface HostFolders {
  readonly directory: string;
  readonly worktree: string;
  readonly projectId: string;
  readonly cover: ImportAllowlist;
}

/** A request to the host. Each gets one response with the same id. */
export type HostRequest = { readonly id: number } & (
  | { readonly ask: "load"; readonly module: ModuleLocation; readonly folders: HostFolders }
  | {
      readonly ask: "hook";
      readonly module: string;
      readonly hook: string;
      readonly input: unknown;
      readonly output: unknown;
    }
  | { readonly ask: "check"; readonly module: string; readonly tool: string; readonly args: unknown }
  | {
      readonly ask: "run";
      readonly module: string;
      readonly tool: string;
      readonly args: unknown;
      readonly context: RunContext;
    }
  | { readonly ask: "abort"; readonly run: number }
  | { readonly ask: "ping" }
);

export interface RunContext {
  readonly sessionID: string;
  readonly callID: string;
  readonly agent: string;
  readonly directory: string;
  readonly worktree: string;
}

/** Maximum length of a response, as JSON. */
export const answerLimit = 10_000_000;

const answerSchema = z.object({
  id: z.number(),
  /** JSON. */
  value: z.string().max(answerLimit).optional(),
  error: z.object({ kind: z.enum(["refusal", "bug", "input"]), message: z.string() }).optional(),
});
/** `refusal`: thrown on purpose, a plain Error. `input`: invalid arguments. `bug`: anything else. */
export type HostAnswer = z.infer<typeof answerSchema>;

const logSchema = z.object({ log: z.string() });
/** The host begins a request. If it hangs or ends, this request is the suspect. */
const beganSchema = z.object({ began: z.number() });
const messageSchema = z.union([answerSchema, logSchema, beganSchema]);
export type HostMessage = z.infer<typeof messageSchema>;

/** Undefined for messages that a module wrote to the channel. */
export const parseHostMessage = (message: unknown): HostMessage | undefined =>
  messageSchema.safeParse(message).data;

export const loadedModuleSchema = z.object({
  hooks: z.array(z.string()),
  /** Exports that are not hooks. */
  ignored: z.array(z.string()),
  tools: z.array(
    z.object({ name: z.string(), description: z.string(), schema: z.record(z.string(), z.unknown()) }),
  ),
});
export type LoadedModule = z.infer<typeof loadedModuleSchema>;

export const ranToolSchema = z.object({
  output: z.string(),
  title: z.string().optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
});
