import { createHash } from "node:crypto";
import { realpath } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { loadAgents } from "./agent/agents.ts";
import { type LogLevel, openFileLog } from "./base/file-log.ts";
import type { Log } from "./base/log.ts";
import { type LoadedConfig, loadConfig } from "./config/load.ts";
import { type Env, userFolders, type UserFolders } from "./config/paths.ts";
import { loadInstructions } from "./instruction/instructions.ts";
import { modelRefSchema } from "./message/message.ts";
import { loadCredentials } from "./model/credentials.ts";
import { toRetryPolicy } from "./model/retry.ts";
import { openModels } from "./model/providers.ts";
import { Approvals } from "./permission/approvals.ts";
import type { Project } from "./session/project.ts";
import { Housekeeping, type SessionAges } from "./session/housekeeping.ts";
import { type Door, type Folders, Sessions } from "./session/sessions.ts";
import { SessionStore } from "./storage/session-store.ts";
import type { Tool } from "./tool/tool.ts";
import { childEnvironment } from "./workspace/environment.ts";
import { openFiles } from "./workspace/files.ts";
import { realPathSync } from "./workspace/real-path.ts";
import { openProcesses, type Processes } from "./workspace/process.ts";
import { openSearch } from "./workspace/search.ts";
import { openSnapshots } from "./workspace/snapshot.ts";
import type { Workspace } from "./workspace/workspace.ts";
import { findWorktree } from "./workspace/worktree.ts";

/** What the program is given of its surroundings; nothing below reads the process's own. */
export interface Surroundings {
  readonly env: Env;
  readonly platform: NodeJS.Platform;
  readonly version: string;
}

/** Everything of one process, built once. */
export class App {
  readonly home: string;
  readonly folders: UserFolders;
  readonly log: Log;
  readonly #surroundings: Surroundings;
  readonly #processes: Processes;
  readonly #shared: Pick<Workspace, "files" | "search" | "snapshots" | "processes" | "outputFolder" | "home">;
  #store: Promise<SessionStore> | undefined;
  readonly #housekeeping: Housekeeping;
  #sessions: Sessions | undefined;
  #tools: Promise<readonly Tool[]> | undefined;

  constructor(surroundings: Surroundings) {
    const { env, platform } = surroundings;
    this.#surroundings = surroundings;
    this.home = env["HOME"] || env["USERPROFILE"] || homeOfUser();
    this.folders = userFolders({ env, home: this.home, platform });
    this.log = openFileLog(join(this.folders.state, "fairlead.log"), logLevel(env["FAIRLEAD_LOG"]));
    const childEnv = childEnvironment(env);
    this.#processes = openProcesses({ env: childEnv });
    this.#shared = {
      home: this.home,
      outputFolder: join(this.folders.data, "tool-output"),
      files: openFiles(),
      search: openSearch({ env: childEnv }),
      snapshots: openSnapshots(join(this.folders.data, "snapshot"), this.log),
      processes: this.#processes,
    };
    this.#housekeeping = new Housekeeping({
      store: () => this.#openStore(),
      outputFolder: this.#shared.outputFolder,
      snapshotFolder: join(this.folders.data, "snapshot"),
      ages: () => this.#sessionAges(),
      log: this.log,
    });
  }

  openSessions(door: Door): Sessions {
    this.#sessions = new Sessions({
      store: () => this.#openStore(),
      version: this.#surroundings.version,
      door,
      log: this.log,
      openProject: (folders) => this.openProject(folders),
      openApprovals: async () => new Approvals(),
      onTurnEnd: () => this.#housekeeping.onTurnEnd(),
      memory: {
        lastUsedModel: async (id) => {
          const { files } = await this.#openStore();
          return (await files.read(["project", id], projectSchema))?.lastUsedModel;
        },
        rememberModel: async (id, lastUsedModel) => {
          const { files } = await this.#openStore();
          await files.write(["project", id], { lastUsedModel });
        },
      },
    });
    return this.#sessions;
  }

  /** Reads what a folder's sessions work with. Never rejects for what stands in configuration files. */
  async openProject({ cwd, additionalDirectories }: Folders): Promise<Project> {
    const { env, platform } = this.#surroundings;
    const [folder, ...others] = await Promise.all(
      [cwd, ...additionalDirectories].map((path) => realpath(path)),
    );
    if (folder === undefined) throw new Error("no working directory");
    const worktree = await findWorktree(folder);
    const loaded = await loadConfig({ cwd: folder, worktree, home: this.home, env, platform });
    const agents = await this.#loadAgents(loaded);
    const { config } = loaded;
    const workspace: Workspace = { ...this.#shared, cwd: folder, roots: [folder, ...others], worktree };
    return {
      id: projectId(worktree ?? folder),
      workspace,
      config,
      models: openModels({
        config,
        env,
        credentials: await loadCredentials(this.folders.data),
        log: this.log,
      }),
      agents: agents.agents,
      defaultAgent: agents.default,
      tools: () => this.#loadTools(),
      retryPolicy: toRetryPolicy(config.retry),
      instructions: async () => {
        const { instructions } = await loadInstructions({
          cwd: folder,
          root: worktree ?? folder,
          additionalDirectories: others,
          configFolder: this.folders.config,
          home: this.home,
          configured: config.instructions,
        });
        return instructions;
      },
      problems: problemsOf(loaded, agents.problems),
    };
  }

  /** Ends every session and every process. */
  async close(): Promise<void> {
    const ended = this.#processes.endAll();
    await this.#sessions?.closeAll();
    await Promise.all([ended, this.#housekeeping.close()]);
  }

  /** Why no model could be asked by somebody without a project, in words for the person. */
  async missingModel(): Promise<string | undefined> {
    const { env, platform } = this.#surroundings;
    const { config } = await loadConfig({ cwd: this.home, home: this.home, env, platform });
    const models = openModels({
      config,
      env,
      credentials: await loadCredentials(this.folders.data),
      log: this.log,
    });
    const chosen = models.defaultModel();
    return chosen.outcome === "none" ? chosen.error.message : undefined;
  }

  /** Only the person's own configuration says what is deleted, no project's. */
  async #sessionAges(): Promise<SessionAges> {
    const { env, platform } = this.#surroundings;
    const { config } = await loadConfig({ cwd: this.home, home: this.home, env, platform });
    const { archive_after_days: archiveAfterDays, remove_after_days: removeAfterDays } =
      config.sessions ?? {};
    return { archiveAfterDays, removeAfterDays };
  }

  /** A store that could not be opened (a full disk) is tried again with the next request. */
  #openStore(): Promise<SessionStore> {
    const root = join(this.folders.data, "storage");
    this.#store ??= SessionStore.open({ root, log: this.log }).catch((error: unknown) => {
      this.#store = undefined;
      throw error;
    });
    return this.#store;
  }

  /** Tools and the grammar of the shell are large: they load behind the first answers, not before. */
  #loadTools(): Promise<readonly Tool[]> {
    this.#tools ??= import("./tool/registry.ts").then(({ builtInTools }) =>
      builtInTools({
        analyze: async (command, place) => {
          const { analyzeShell } = await import("./permission/shell.ts");
          return analyzeShell(command, { ...place, resolve: realPathSync });
        },
      }),
    );
    return this.#tools;
  }

  #loadAgents(loaded: LoadedConfig) {
    return loadAgents({
      config: loaded.config,
      folders: loaded.folders.map(({ path }) => path),
      untrusted: loaded.folders.filter(({ scope }) => scope === "project").map(({ path }) => path),
      outputFolder: this.#shared.outputFolder,
      skillFolders: [],
      home: this.home,
    });
  }
}

/** What is remembered of a project. */
const projectSchema = z.object({ lastUsedModel: modelRefSchema.optional() });

function projectId(root: string): string {
  return `prj${createHash("sha256").update(root).digest("hex").slice(0, 24)}`;
}

function homeOfUser(): string {
  try {
    return userInfo().homedir;
  } catch {
    return homedir();
  }
}

function logLevel(name: string | undefined): LogLevel {
  return name === "debug" || name === "info" || name === "error" ? name : "warn";
}

function problemsOf(loaded: LoadedConfig, agents: readonly { path?: string; message: string }[]): string[] {
  return [
    ...loaded.problems.map(({ path, line, column, message }) => `${path}:${line}:${column}: ${message}`),
    ...agents.map(({ path, message }) => (path === undefined ? message : `${path}: ${message}`)),
    ...withheldNote(loaded.withheld),
  ];
}

function withheldNote(withheld: readonly string[]): string[] {
  if (withheld.length === 0) return [];
  return [
    `This project's own configuration wants to set ${withheld.join(", ")}. That is not used, because a repository may not start, redirect or allow anything by itself; put it into your own configuration if you want it.`,
  ];
}
