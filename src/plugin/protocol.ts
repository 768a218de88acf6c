import { z } from "zod";

/** A module with plugins or tools, as the host is to load it. */
export interface ModulePlace {
  readonly kind: "plugin" | "tools";
  /** A file's absolute path, or a package's name. */
  readonly name: string;
  /** Where a package is looked for: a folder that has it in its `node_modules`. */
  readonly from?: string;
  /** For a plugin, as the configuration gives them. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** Where a project's own modules may import from: of the files below `root` only these, which the person agreed to. */
export interface ImportAllowlist {
  readonly root: string;
  readonly folders: readonly string[];
  readonly files: readonly string[];
}

export interface HostPlace {
  readonly directory: string;
  readonly worktree: string;
  readonly projectId: string;
  readonly cover: ImportAllowlist;
}

/** What the host is asked. Each request gets one answer with its id. */
export type HostRequest = { readonly id: number } & (
  | { readonly ask: "load"; readonly module: ModulePlace; readonly place: HostPlace }
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
      readonly context: RunPlace;
    }
  | { readonly ask: "abort"; readonly run: number }
  | { readonly ask: "ping" }
);

export interface RunPlace {
  readonly sessionID: string;
  readonly callID: string;
  readonly agent: string;
  readonly directory: string;
  readonly worktree: string;
}

/** Characters of one answer, as JSON. */
export const answerLimit = 10_000_000;

const answerSchema = z.object({
  id: z.number(),
  /** JSON. */
  value: z.string().max(answerLimit).optional(),
  error: z.object({ kind: z.enum(["refusal", "bug", "input"]), message: z.string() }).optional(),
});
/** `refusal`: thrown on purpose, a plain Error. `input`: the arguments do not fit. `bug`: anything else. */
export type HostAnswer = z.infer<typeof answerSchema>;

const logSchema = z.object({ log: z.string() });
/** The host turns to the request now: if it is stuck or ends, this is what it was in. */
const beganSchema = z.object({ began: z.number() });
const messageSchema = z.union([answerSchema, logSchema, beganSchema]);
export type HostMessage = z.infer<typeof messageSchema>;

/** Undefined for what a module wrote into the channel by itself. */
export const parseHostMessage = (message: unknown): HostMessage | undefined =>
  messageSchema.safeParse(message).data;

/** What a module brought. */
export const loadedModuleSchema = z.object({
  hooks: z.array(z.string()),
  /** What it gave as hooks and is none. */
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
