import type { Agent } from "../agent/agent.ts";
import type { Config } from "../config/schema.ts";
import type { Instruction } from "../instruction/instructions.ts";
import type { OpenModels } from "../model/providers.ts";
import type { RetryPolicy } from "../model/retry.ts";
import type { Tool } from "../tool/tool.ts";
import type { Workspace } from "../workspace/workspace.ts";

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
  /** Loaded when they are first asked for: a session opens without them. */
  tools(): Promise<readonly Tool[]>;
  readonly retryPolicy: RetryPolicy;
  /** The instruction files as they are now. */
  instructions(): Promise<readonly Instruction[]>;
  /** What is wrong with the configuration, one line each, for the person. */
  readonly problems: readonly string[];
}
