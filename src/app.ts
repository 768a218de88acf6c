import { once } from "./base/async.ts";
import { errorFields } from "./base/error-fields.ts";
import { rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { codeOf } from "./base/errors.ts";
import { type LogLevel, openFileLog } from "./base/file-log.ts";
import type { Log } from "./base/log.ts";
import { Secrets } from "./base/secrets/secrets.ts";
import { loadConfig } from "./config/load.ts";
import {
  configHome,
  type Env,
  type Home,
  homeFolder,
  userFolders,
  type UserFolders,
} from "./config/paths.ts";
import type { Config } from "./config/schema.ts";
import { AuthorizationStore } from "./mcp/oauth/oauth-store.ts";
import { Servers } from "./mcp/servers.ts";
import { OAuthFetch } from "./mcp/oauth/oauth-fetch.ts";
import { loadCalls } from "./model/providers/lazy-calls.ts";
import { ModelAccess } from "./model/providers/model-access.ts";
import type { OpenModels } from "./model/providers/providers.ts";
import { LazyServices } from "./project/lazy-services.ts";
import { Projects } from "./project/projects.ts";
import { ProjectRecords } from "./project/records.ts";
import type { SessionHost } from "./session/session-host.ts";
import type { Housekeeping, HousekeepingDeps, SessionAges } from "./reports/housekeeping.ts";
import { Sessions, type SessionsDeps } from "./session/sessions.ts";
import { BundledSkills } from "./skill/bundled-skills.ts";
import { LazyStore } from "./storage/lazy-store.ts";
import type { SessionStore } from "./storage/session-store.ts";
import { ChildEnvironment } from "./workspace/process/child-variables.ts";
import { type DiskFiles, openFiles } from "./workspace/files/disk-files.ts";
import { openChangeTracker } from "./workspace/changes/change-tracker.ts";
import { SharedChanges } from "./workspace/recent/shared-changes.ts";
import { openPipedProcesses, type PipedProcesses } from "./workspace/process/piped-process.ts";
import type { Sandbox } from "./sandbox/sandbox.ts";
import { openProcesses, type Processes } from "./workspace/process/process.ts";
import type { Search } from "./workspace/search/queries.ts";
import { openSearch } from "./workspace/search/search.ts";
import { openSnapshots } from "./workspace/files/snapshot.ts";
import { Watchdog } from "./workspace/process/watchdog.ts";

/** Variable with the rules of `run --allow`. */
export const allowedVariable = "FAIRLEAD_ALLOW";
/** Variable with the temporary folder of `run --ephemeral`, which replaces the stored sessions. */
export const sessionFolderVariable = "FAIRLEAD_SESSION_FOLDER";

/** The program's environment. Nothing below this level reads `process.env` or `process.platform`. */
export interface AppOptions {
  readonly env: Env;
  readonly platform: NodeJS.Platform;
  readonly version: string;
  /** Logs at debug level, and mirrors the log to stderr. */
  readonly verbose?: boolean;
  /** Receives warnings for the user while no session can show them. */
  onWarning?(text: string): void;
}

/** All services of one process, built once. */
export class App {
  readonly home: string;
  readonly folders: UserFolders;
  readonly logPath: string;
  readonly log: Log;
  /** The store of all sessions and projects. */
  readonly store: () => Promise<SessionStore>;
  /** Stored facts about projects: trust, approvals, last used models. */
  readonly records: ProjectRecords;
  readonly projects: Projects;
  /** Model keys, routes and lists. */
  readonly models: ModelAccess;
  /** OAuth tokens of remote MCP servers. */
  readonly authorizations: AuthorizationStore;
  readonly #options: AppOptions;
  readonly #system: () => Promise<Sandbox>;
  /** The store of sessions. */
  readonly #store: LazyStore;
  /** The store of projects: the same, unless sessions are ephemeral. */
  readonly #projectStore: LazyStore;
  /** Folders of the ephemeral sessions, the outer one first; removed at the end. */
  readonly #ephemeral: readonly string[];
  readonly #user: Home;
  readonly #secrets = new Secrets();
  readonly #watchdog: Watchdog;
  readonly #variables: ChildEnvironment;
  readonly #files: DiskFiles;
  readonly #search: Search;
  readonly #processes: Processes;
  readonly #piped: PipedProcesses;
  readonly #lazyServices: LazyServices;
  readonly #oauthFetch: OAuthFetch;
  readonly #housekeepingDeps: HousekeepingDeps;
  #housekeeping: Housekeeping | undefined;
  /** Undefined before the first confined command. */
  #sandbox: Sandbox | undefined;
  #servers: Servers | undefined;
  #sessions: Sessions | undefined;
  #isClosing = false;

  constructor(options: AppOptions) {
    const { env, platform } = options;
    this.#options = options;
    this.home = homeFolder(options);
    this.#user = { env, home: this.home, platform };
    this.folders = userFolders(this.#user);
    const { config: configFolder, data: dataFolder, state: stateFolder } = this.folders;
    const secrets = this.#secrets;

    this.logPath = join(stateFolder, "fairlead.log");
    const log = openLog(this.logPath, options, secrets);
    this.log = log;

    const warn = (text: string) => this.#warn(text);
    const ephemeralFolder = env[sessionFolderVariable];
    const sessionFolder = ephemeralFolder || dataFolder;
    const openStore = (folder: string) =>
      new LazyStore({ root: join(folder, "storage"), log, onWarning: warn });
    this.#projectStore = openStore(dataFolder);
    this.#store = sessionFolder === dataFolder ? this.#projectStore : openStore(sessionFolder);
    this.store = () => this.#store.get();
    const storedFiles = async () => (await this.#projectStore.get()).files;
    this.records = new ProjectRecords(storedFiles);
    this.authorizations = new AuthorizationStore({ files: storedFiles, secrets });
    this.#oauthFetch = new OAuthFetch(this.authorizations);

    const variables = new ChildEnvironment(env, secrets);
    this.#variables = variables;
    const watchdog = new Watchdog(env["PATH"]);
    this.#watchdog = watchdog;
    this.#processes = openProcesses({ env: () => variables.get(), watchdog, secrets });
    this.#piped = openPipedProcesses({ env: () => variables.get(), watchdog });
    const snapshotFolder = join(sessionFolder, "snapshot");
    const outputFolder = join(sessionFolder, "tool-output");
    this.#ephemeral = ephemeralFolder
      ? [sessionFolder, join(sessionFolder, "storage"), snapshotFolder, outputFolder]
      : [];
    const snapshots = openSnapshots(snapshotFolder, log);
    this.#files = openFiles({
      lockFolder: join(dataFolder, "file-locks"),
      keep: (bytes) => snapshots.save(bytes),
      log,
    });
    this.#search = openSearch({ env, watchdog });
    const workspace = {
      home: this.home,
      outputFolder,
      files: this.#files,
      search: this.#search,
      snapshots,
      processes: this.#processes,
      changeTracker: openChangeTracker(
        () => variables.get(),
        [...Object.values(this.folders), sessionFolder],
      ),
    };

    this.models = new ModelAccess({ dataFolder, env, secrets, log });
    this.#lazyServices = new LazyServices({
      pluginHost,
      variables,
      processes: this.#piped,
      watchdog,
      workspace,
      log,
      warn,
    });
    this.#system = once(async () => {
      const { Sandbox } = await import("./sandbox/sandbox.ts");
      this.#sandbox = new Sandbox({ env: () => variables.get() });
      return this.#sandbox;
    });
    this.projects = new Projects({
      user: this.#user,
      configFolders: [configFolder, join(configHome(this.#user), "opencode")],
      bundledSkills: new BundledSkills(bundledSkills),
      workspace,
      records: this.records,
      models: this.models,
      lazyServices: this.#lazyServices,
      variables,
      secrets,
      userFolders: this.folders,
      sandbox: this.#system,
      warn,
      log,
    });
    this.#housekeepingDeps = {
      store: this.store,
      outputFolder: workspace.outputFolder,
      snapshotFolder,
      ages: () => this.#sessionAges(),
      log,
    };
  }

  /** The MCP servers of this process. `host` shows their questions to the user. */
  openServers(host: Pick<SessionHost, "userCapabilities" | "visited">): Servers {
    this.#servers ??= new Servers({
      version: this.#options.version,
      processes: this.#piped,
      log: this.log,
      secrets: this.#secrets,
      signIn: this.#oauthFetch,
      files: async () => (await this.#projectStore.get()).files,
      capabilities: () => host.userCapabilities(),
      onVisited: (id) => host.visited(id),
    });
    return this.#servers;
  }

  /** Whether sessions are removed at the end. */
  get isEphemeral(): boolean {
    return this.#ephemeral.length > 0;
  }

  openSessions(host: SessionHost): Sessions {
    this.#sessions = new Sessions({
      store: this.store,
      version: this.#options.version,
      host,
      log: this.log,
      openProject: (folders) => this.projects.open(folders),
      servers: this.openServers(host),
      openApprovals: async (id) => {
        const approvals = await this.records.openApprovals(id);
        const allowed = this.#options.env[allowedVariable];
        if (allowed) {
          const { parseAllowedRules } = await import("./permission/allowed-rules.ts");
          approvals.allow(parseAllowedRules(allowed, this.home));
        }
        return approvals;
      },
      onTurnEnd: () => void this.#keepHouse(),
      worktrees: once(async () => {
        const { Worktrees } = await import("./workspace/worktrees/worktrees.ts");
        return new Worktrees({
          folder: this.folders.worktrees,
          isEphemeral: this.isEphemeral,
          env: () => this.#variables.get(),
        });
      }),
      recentChanges: new SharedChanges({
        folder: join(this.folders.data, "recent-changes"),
        isShared: !this.isEphemeral,
        log: this.log,
      }),
      memory: this.isEphemeral ? readOnlyMemory(this.records) : this.records,
    });
    return this.#sessions;
  }

  /** Returns why this system has no sandbox for commands, and how to get one; undefined if it has. */
  async findSandboxProblem(): Promise<string | undefined> {
    return (await this.#system()).findProblem();
  }

  /** Loads the modules of a first prompt one by one, so that incoming requests are not blocked. */
  warmUp(): Promise<void> {
    return this.#load([
      () => import("./turn/turn.ts"),
      () => import("./tool/registry.ts"),
      loadCalls,
      () => this.#files.recover(),
    ]);
  }

  /** Loads the modules of a first shell command (the grammar is large) and a first search. */
  warmUpCalls(): Promise<void> {
    return this.#load([
      async () => (await import("./tool/command-analysis.ts")).warmUpAnalysis(),
      () => this.#processes.warmUp(),
      () => this.#search.warmUp(),
    ]);
  }

  async #load(loaders: readonly (() => Promise<unknown>)[]): Promise<void> {
    try {
      for (const load of loaders) {
        if (this.#isClosing) return;
        await load();
        await yieldToEventLoop();
      }
    } catch (error) {
      this.log.error("warm-up failed", errorFields(error));
    }
  }

  /** Kills all running processes without waiting. */
  abandon(): void {
    this.#processes.killAll();
    this.#lazyServices.killAll();
    this.#piped.killAll();
    this.#sandbox?.close();
    this.#removeEphemeral();
  }

  /** Removes the ephemeral sessions, and their folder if it contains nothing else. Must not throw. */
  #removeEphemeral(): void {
    const [folder, ...parts] = this.#ephemeral;
    if (folder === undefined) return;
    try {
      for (const part of parts) rmSync(part, { recursive: true, force: true });
      rmdirSync(folder);
    } catch (error) {
      if (codeOf(error) !== "ENOENT") this.log.warn("ephemeral session not removed", errorFields(error));
    }
  }

  /** Housekeeping is first needed when a turn ends. */
  async #keepHouse(): Promise<void> {
    try {
      const { Housekeeping } = await import("./reports/housekeeping.ts");
      if (this.#isClosing) return;
      this.#housekeeping ??= new Housekeeping(this.#housekeepingDeps);
      this.#housekeeping.onTurnEnd();
    } catch (thrown) {
      this.log.warn("housekeeping could not start", errorFields(thrown));
    }
  }

  /** Ends all sessions and processes, and waits until they have ended. */
  async close(): Promise<void> {
    this.#isClosing = true;
    // A notification is a program too: it may tell the user of the turn that has just ended.
    const piped = Promise.resolve(this.#sessions?.notified()).then(() => this.#piped.endAll());
    const ended = [this.#processes.endAll(), piped, this.#lazyServices.closeAll()];
    await this.#sessions?.closeAll();
    const closed = [this.#servers?.endAll(), this.#housekeeping?.close(), this.models.close()];
    await Promise.all([...ended, ...closed]);
    await Promise.all([this.#store.close(), this.#projectStore.close()]);
    this.#sandbox?.close();
    this.#removeEphemeral();
    this.#watchdog.dismiss();
  }

  /** The models of the user's own configuration. */
  async personalModels(): Promise<OpenModels> {
    return this.models.open(await this.#personalConfig());
  }

  /** Explains to the user why no model is usable outside projects; undefined when one is. */
  async missingModel(): Promise<string | undefined> {
    const chosen = (await this.personalModels()).defaultModel();
    return chosen.outcome === "none" ? chosen.error.message : undefined;
  }

  /** Removes all stored keys and reloads the open sessions. */
  async forgetKeys(): Promise<void> {
    await this.models.forgetKeys();
    await this.#sessions?.reloadAll();
  }

  /** Reloads the open sessions after a routing change. */
  async reroute(): Promise<void> {
    await this.#sessions?.reloadAll();
  }

  /** Whether the draft of the protocol's next version is spoken with clients that ask for it. */
  async isProtocolDraftOn(): Promise<boolean> {
    return (await this.#personalConfig()).experimental?.acp_v2 !== false;
  }

  /** Minutes for which a turn continues after its client disconnected. */
  async keepRunningMinutes(): Promise<number> {
    return (await this.#personalConfig()).sessions?.keep_running_minutes ?? 0;
  }

  /** Reads the ages from the user's own configuration only: projects must not delete sessions. */
  async #sessionAges(): Promise<SessionAges> {
    const { sessions = {} } = await this.#personalConfig();
    return { archiveAfterDays: sessions.archive_after_days, removeAfterDays: sessions.remove_after_days };
  }

  async #personalConfig(): Promise<Config> {
    return (await loadConfig({ cwd: this.home, ...this.#user })).config;
  }

  #warn(text: string): void {
    if (this.#sessions === undefined) this.#options.onWarning?.(text);
    this.#sessions?.warn(text);
  }
}

/** The memory of ephemeral sessions, which store nothing. */
function readOnlyMemory(records: ProjectRecords): SessionsDeps["memory"] {
  return {
    lastUsedModel: (id) => records.lastUsedModel(id),
    rememberModel: () => Promise.resolve(),
    noteSeen: () => Promise.resolve(),
  };
}

/** The skills bundled with the program. */
const bundledSkills = fileURLToPath(new URL("../skills", import.meta.url));

/** The child program that runs plugin modules. */
const pluginHost = fileURLToPath(new URL("./plugin-host.js", import.meta.url));

function openLog(path: string, { env, verbose = false }: AppOptions, secrets: Secrets): Log {
  return openFileLog(path, {
    level: verbose ? "debug" : logLevel(env["FAIRLEAD_LOG"]),
    secrets,
    mirror: verbose ? (line) => process.stderr.write(`fairlead: ${line}\n`) : undefined,
  });
}

function logLevel(name: string | undefined): LogLevel {
  return name === "debug" || name === "info" || name === "error" ? name : "warn";
}
