import type { Agent } from "../agent/agent.ts";
import type { Secrets } from "../base/secrets/secrets.ts";
import type { Command } from "../command/command.ts";
import type { Config } from "../config/schema.ts";
import type { FetchedTexts } from "../instruction/fetched-texts.ts";
import type { LoadedInstructions } from "../instruction/instructions.ts";
import type { FileChange } from "../message/part.ts";
import type { OpenModels } from "../model/providers/providers.ts";
import type { OfferedServers, ProjectServers } from "../lsp/project-servers.ts";
import type { RetryPolicy } from "../model/retry.ts";
import type { Plugins } from "../plugin/plugins.ts";
import type { Formatter } from "../formatter/choose-formatters.ts";
import type { FormatChanges } from "../formatter/project-formatters.ts";
import type { Attention } from "../hook/notifier.ts";
import type { SessionHooks, SessionHooksDeps } from "../hook/session-hooks.ts";
import type { ConfineProgram } from "../sandbox/project-sandbox.ts";
import type { Skill } from "../skill/skill.ts";
import type { Tool } from "../tool/tool.ts";
import type { Workspace } from "../workspace/workspace.ts";

/** The folders of a project; absolute paths. */
export interface Folders {
  cwd: string;
  additionalDirectories: readonly string[];
  /** The checkout whose trust, approvals and project the folder shares, if it is a worktree of a session. */
  origin?: string | undefined;
}

/** Project configuration that applies only after the user's consent. */
export interface PendingConsent {
  readonly folder: string;
  /** Effects of the configuration (run, load, redirect, allow), one line each. */
  readonly wants: readonly string[];
  /** Whether an earlier version of it was accepted. */
  readonly hasChanged: boolean;
  /** Stores the consent to the current configuration. */
  accept(): Promise<void>;
}

/** The language servers of a project. */
export interface ProjectLanguages {
  /** Installed servers that wait for the user's consent; undefined if there are none. */
  offered(): Promise<OfferedServers | undefined>;
  /** All servers, configured or installed, with their states. */
  choices: ProjectServers["choices"];
}

/** Returns diagnostics; empty when there are none. Ends soon after the signal aborts. */
export type Diagnose = (changes: readonly FileChange[], signal: AbortSignal) => Promise<string>;

/** The parts of a session that hooks use. */
export type HookedSession = Pick<SessionHooksDeps, "sessionId" | "messages" | "mode" | "report">;

/** The parts of a project that depend on its folders. */
export type FolderServices = Pick<
  Project,
  | "workspace"
  | "tools"
  | "plugins"
  | "languages"
  | "diagnose"
  | "format"
  | "notify"
  | "openHooks"
  | "findSandboxProblem"
  | "findSandboxNetworkProblem"
  | "confineProgram"
  | "instructions"
>;

/** Services and configuration that the sessions of one folder share. */
export interface Project {
  /** The same for every folder of one git worktree. */
  readonly id: string;
  readonly workspace: Workspace;
  readonly config: Config;
  readonly models: OpenModels;
  readonly agents: ReadonlyMap<string, Agent>;
  /** The primary agent of new sessions. */
  readonly defaultAgent: string;
  /** Slash commands, without the built-in ones. */
  readonly commands: readonly Command[];
  readonly skills: readonly Skill[];
  /** True when a file that the project was created from has changed. Reads no contents. */
  hasChanged(): Promise<boolean>;
  /** Returns what tools need to work in other folders under the same configuration. */
  openIn(folders: Folders): Promise<FolderServices>;
  /** Loaded on first use: a session opens without them. */
  tools(): Promise<readonly Tool[]>;
  /** Usage instructions of the session's MCP servers, sorted by name. */
  serverInstructions?(): readonly { name: string; text: string }[];
  /** Plugins and tools of the user and of a trusted project, if any; loaded on first use. */
  plugins(): Promise<Plugins | undefined>;
  /** Undefined if the configuration switches them off. */
  readonly languages?: ProjectLanguages | undefined;
  /** Diagnostics of language servers, as text for the model; undefined when they are off. */
  readonly diagnose?: Diagnose | undefined;
  /** The formatters that apply. */
  readonly formatters?: readonly Formatter[];
  /** Formats files that tools changed; undefined without formatters. */
  readonly format?: FormatChanges | undefined;
  /** Opens the hooks of a session; undefined when there are none. */
  readonly openHooks?: ((session: HookedSession) => Promise<SessionHooks>) | undefined;
  /** Notifies the user; undefined if nothing is configured. Never rejects. */
  readonly notify?: ((attention: Attention) => Promise<void>) | undefined;
  /** Returns why the approval setting *Sandboxed* cannot be used here; undefined if it can. */
  findSandboxProblem(): Promise<string | undefined>;
  /** Returns why commands in the sandbox cannot be limited to the configured hosts; undefined if they can. */
  findSandboxNetworkProblem(): Promise<string | undefined>;
  /** Runs a server in the sandbox, if its entry says so. */
  readonly confineProgram: ConfineProgram;
  readonly retryPolicy: RetryPolicy;
  /** Reads the instruction files, and the texts of configured URLs as `fetched` first returned them. */
  instructions(fetched: FetchedTexts): Promise<LoadedInstructions>;
  /** Fetches the text of a configured URL. Rejects with the problem, after 5 seconds at the latest. */
  fetchText(url: string): Promise<string>;
  /** Project configuration that waits for the user's consent, if any. */
  readonly consent?: PendingConsent | undefined;
  /** Provider keys, which must not appear in commands, tool output or logs. */
  readonly secrets: Secrets;
  /** Problems of the configuration for the user, one line each. */
  readonly problems: readonly string[];
}
