import { errorFields } from "./base/error-fields.ts";
import { join } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { fileURLToPath } from "node:url";
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
import { warmUpAnalysis } from "./project/tools.ts";
import { ModelAccess } from "./model/providers/model-access.ts";
import type { OpenModels } from "./model/providers/providers.ts";
import { LazyServices } from "./project/lazy-services.ts";
import { Projects } from "./project/projects.ts";
import { ProjectRecords } from "./project/records.ts";
import type { SessionHost } from "./session/session-host.ts";
import { Housekeeping, type SessionAges } from "./reports/housekeeping.ts";
import { Sessions } from "./session/sessions.ts";
import { BundledSkills } from "./skill/bundled-skills.ts";
import { LazyStore } from "./storage/lazy-store.ts";
import type { SessionStore } from "./storage/session-store.ts";
import { ChildVariables } from "./workspace/process/child-variables.ts";
import { type DiskFiles, openFiles } from "./workspace/files/disk-files.ts";
import { openPipedProcesses, type PipedProcesses } from "./workspace/process/piped-process.ts";
import { openProcesses, type Processes } from "./workspace/process/process.ts";
import { openSearch, type Search } from "./workspace/search/search.ts";
import { openSnapshots } from "./workspace/files/snapshot.ts";
import { Watchdog } from "./workspace/process/watchdog.ts";

/** What the program is given of its surroundings; nothing below reads the process's own. */
export interface AppOptions {
  readonly env: Env;
  readonly platform: NodeJS.Platform;
  readonly version: string;
  /** Also prints what is logged, and logs everything. */
  readonly verbose?: boolean;
  /** Told what a person should know while there is no session to tell it in. */
  onWarning?(text: string): void;
}

/** Everything of one process, built once. */
export class App {
  readonly home: string;
  readonly folders: UserFolders;
  readonly logPath: string;
  readonly log: Log;
  /** What is stored of all sessions and projects. */
  readonly store: () => Promise<SessionStore>;
  /** What is remembered of projects. */
  readonly records: ProjectRecords;
  readonly projects: Projects;
  /** Keys, routes and lists of models. */
  readonly models: ModelAccess;
  /** What remote MCP servers gave this program to be let in. */
  readonly authorizations: AuthorizationStore;
  readonly #surroundings: AppOptions;
  readonly #store: LazyStore;
  readonly #person: Home;
  readonly #secrets = new Secrets();
  readonly #watchdog: Watchdog;
  readonly #files: DiskFiles;
  readonly #search: Search;
  readonly #processes: Processes;
  readonly #piped: PipedProcesses;
  readonly #parts: LazyServices;
  readonly #signIn: OAuthFetch;
  readonly #housekeeping: Housekeeping;
  #servers: Servers | undefined;
  #sessions: Sessions | undefined;
  #isClosing = false;

  constructor(surroundings: AppOptions) {
    const { env, platform } = surroundings;
    this.#surroundings = surroundings;
    this.home = homeFolder(surroundings);
    this.#person = { env, home: this.home, platform };
    this.folders = userFolders(this.#person);
    const { config: configFolder, data: dataFolder, state: stateFolder } = this.folders;
    const secrets = this.#secrets;

    this.logPath = join(stateFolder, "fairlead.log");
    const log = openLog(this.logPath, surroundings, secrets);
    this.log = log;

    const warn = (text: string) => this.#warn(text);
    this.#store = new LazyStore({ root: join(dataFolder, "storage"), log, onWarning: warn });
    this.store = () => this.#store.get();
    const storedFiles = async () => (await this.store()).files;
    this.records = new ProjectRecords(storedFiles);
    this.authorizations = new AuthorizationStore({ files: storedFiles, secrets });
    this.#signIn = new OAuthFetch(this.authorizations);

    const variables = new ChildVariables(env, secrets);
    const watchdog = new Watchdog(env["PATH"]);
    this.#watchdog = watchdog;
    this.#processes = openProcesses({ env: () => variables.now(), watchdog, secrets });
    this.#piped = openPipedProcesses({ env: () => variables.now(), watchdog });
    const snapshotFolder = join(dataFolder, "snapshot");
    const snapshots = openSnapshots(snapshotFolder, log);
    this.#files = openFiles({
      lockFolder: join(dataFolder, "file-locks"),
      keep: (bytes) => snapshots.save(bytes),
      log,
    });
    this.#search = openSearch({ env, watchdog });
    const workspace = {
      home: this.home,
      outputFolder: join(dataFolder, "tool-output"),
      files: this.#files,
      search: this.#search,
      snapshots,
      processes: this.#processes,
    };

    this.models = new ModelAccess({ dataFolder, env, secrets, log });
    this.#parts = new LazyServices({
      pluginHost,
      variables,
      processes: this.#piped,
      watchdog,
      workspace,
      log,
      warn,
    });
    this.projects = new Projects({
      person: this.#person,
      configFolders: [configFolder, join(configHome(this.#person), "opencode")],
      bundledSkills: new BundledSkills(bundledSkills),
      workspace,
      trust: this.records.trust,
      models: this.models,
      parts: this.#parts,
      variables,
      secrets,
      log,
    });
    this.#housekeeping = new Housekeeping({
      store: this.store,
      outputFolder: workspace.outputFolder,
      snapshotFolder,
      ages: () => this.#sessionAges(),
      log,
    });
  }

  /** The MCP servers of this process, for whoever shows the person what they ask. */
  openServers(door: Pick<SessionHost, "elicitationAbilities" | "visited">): Servers {
    this.#servers ??= new Servers({
      version: this.#surroundings.version,
      processes: this.#piped,
      log: this.log,
      secrets: this.#secrets,
      signIn: this.#signIn,
      abilities: () => door.elicitationAbilities(),
      onVisited: (id) => door.visited(id),
    });
    return this.#servers;
  }

  openSessions(door: SessionHost): Sessions {
    this.#sessions = new Sessions({
      store: this.store,
      version: this.#surroundings.version,
      door,
      log: this.log,
      openProject: (folders) => this.projects.open(folders),
      servers: this.openServers(door),
      openApprovals: (id) => this.records.openApprovals(id),
      onTurnEnd: () => this.#housekeeping.onTurnEnd(),
      memory: this.records,
    });
    return this.#sessions;
  }

  /** Loads what a first prompt needs, a part at a time, so that what comes meanwhile is not kept waiting. */
  warmUp(): Promise<void> {
    return this.#load([
      () => import("./turn/turn.ts"),
      () => import("./tool/registry.ts"),
      loadCalls,
      () => this.#files.recover(),
    ]);
  }

  /** The same for a first command, the grammar of whose shell is large, and a first search. */
  warmUpCalls(): Promise<void> {
    return this.#load([warmUpAnalysis, () => this.#processes.warmUp(), () => this.#search.warmUp()]);
  }

  async #load(parts: readonly (() => Promise<unknown>)[]): Promise<void> {
    try {
      for (const load of parts) {
        if (this.#isClosing) return;
        await load();
        await breathe();
      }
    } catch (error) {
      this.log.error("a part of the program did not load", errorFields(error));
    }
  }

  /** Kills what still runs, for a program that cannot wait any longer. */
  abandon(): void {
    this.#processes.killAll();
    this.#parts.killAll();
    this.#piped.killAll();
  }

  /** Ends every session and every process. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const ended = [this.#processes.endAll(), this.#piped.endAll(), this.#parts.closeAll()];
    await this.#sessions?.closeAll();
    const closed = [this.#servers?.endAll(), this.#housekeeping.close(), this.models.close()];
    await Promise.all([...ended, ...closed]);
    await this.#store.close();
    this.#watchdog.dismiss();
  }

  /** The models of the person's own configuration. */
  async personalModels(): Promise<OpenModels> {
    return this.models.open(await this.#personalConfig());
  }

  /** Why no model could be asked by somebody without a project, in words for the person. */
  async missingModel(): Promise<string | undefined> {
    const chosen = (await this.personalModels()).defaultModel();
    return chosen.outcome === "none" ? chosen.error.message : undefined;
  }

  /** Forgets every stored key, also in sessions that are open. */
  async forgetKeys(): Promise<void> {
    await this.models.forgetKeys();
    await this.#sessions?.reloadAll();
  }

  /** After the routing changed. */
  async reroute(): Promise<void> {
    await this.#sessions?.reloadAll();
  }

  /** Whether the person switched the draft of the protocol's next version on. */
  async isProtocolDraftOn(): Promise<boolean> {
    return (await this.#personalConfig()).experimental?.acp_v2 === true;
  }

  /** Only the person's own configuration says what is deleted, no project's. */
  async #sessionAges(): Promise<SessionAges> {
    const { sessions = {} } = await this.#personalConfig();
    return { archiveAfterDays: sessions.archive_after_days, removeAfterDays: sessions.remove_after_days };
  }

  async #personalConfig(): Promise<Config> {
    return (await loadConfig({ cwd: this.home, ...this.#person })).config;
  }

  #warn(text: string): void {
    if (this.#sessions === undefined) this.#surroundings.onWarning?.(text);
    this.#sessions
      ?.warn(text)
      .catch((error: unknown) => this.log.error("nobody was told", errorFields(error)));
  }
}

/** The skills that come with the program, beside its code. */
const bundledSkills = fileURLToPath(new URL("../skills", import.meta.url));

/** The program that runs authors' modules, beside ours. */
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
