import type { Agent } from "../agent/agent.ts";
import type { Secrets } from "../base/secrets/secrets.ts";
import type { Command } from "../command/command.ts";
import type { Config } from "../config/schema.ts";
import type { FetchedTexts } from "../instruction/fetched-texts.ts";
import type { LoadedInstructions } from "../instruction/instructions.ts";
import type { FileChange } from "../message/part.ts";
import type { OpenModels } from "../model/providers/providers.ts";
import type { RetryPolicy } from "../model/retry.ts";
import type { Plugins } from "../plugin/plugins.ts";
import type { Skill } from "../skill/skill.ts";
import type { Tool } from "../tool/tool.ts";
import type { Workspace } from "../workspace/workspace.ts";

/** Where a project is opened: absolute paths. */
export interface Folders {
  cwd: string;
  additionalDirectories: readonly string[];
}

/** What of a project's own configuration counts only once the person has agreed. */
export interface PendingConsent {
  readonly folder: string;
  /** What it would run, load, redirect or allow, one line each. */
  readonly wants: readonly string[];
  /** Whether an earlier content of it was agreed to. */
  readonly hasChanged: boolean;
  /** Remembers the consent for what the configuration is now. */
  accept(): Promise<void>;
}

/** Empty where nothing is wrong. Ends soon after the signal aborts. */
export type Diagnose = (changes: readonly FileChange[], signal: AbortSignal) => Promise<string>;

/** What the sessions of one folder share: its disk, its configuration, and what that gives them to work with. */
export interface Project {
  /** The same for every folder of one git worktree. */
  readonly id: string;
  readonly workspace: Workspace;
  readonly config: Config;
  readonly models: OpenModels;
  readonly agents: ReadonlyMap<string, Agent>;
  /** The name of the primary agent that a new session begins with. */
  readonly defaultAgent: string;
  /** What a person can call with a slash, beside the built-in ones. */
  readonly commands: readonly Command[];
  readonly skills: readonly Skill[];
  /** Whether a file that it was made of is another one now. Reads no contents. */
  hasChanged(): Promise<boolean>;
  /** Loaded when they are first asked for: a session opens without them. */
  tools(): Promise<readonly Tool[]>;
  /** Plugins and tools of the person and of a trusted project, if there are any; loaded when first asked for. */
  plugins(): Promise<Plugins | undefined>;
  /** What language servers have against the changes, in words for the model; undefined where none is configured. */
  readonly diagnose?: Diagnose | undefined;
  readonly retryPolicy: RetryPolicy;
  /** The instruction files as they are now, and what stood at configured URLs when `fetched` was asked first. */
  instructions(fetched: FetchedTexts): Promise<LoadedInstructions>;
  /** The text at a URL that the configuration names. Rejects with what went wrong, after 5 seconds at the latest. */
  fetchText(url: string): Promise<string>;
  /** What of the project's own configuration waits until the person trusts it, if anything does. */
  readonly consent?: PendingConsent | undefined;
  /** Keys of providers, which no command, tool output or log may show. */
  readonly secrets: Secrets;
  /** What is wrong with the configuration, one line each, for the person. */
  readonly problems: readonly string[];
}
