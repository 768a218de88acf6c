import { realpath } from "node:fs/promises";
import { once } from "../base/async.ts";
import type { Log } from "../base/log.ts";
import type { Secrets } from "../base/secrets/secrets.ts";
import { type LoadConfigOptions, type LoadedConfig, listWatchedPaths } from "../config/load.ts";
import { parsePluginEntry, resolvePluginPath } from "../config/files/module-files.ts";
import type { Home, UserFolders } from "../config/paths.ts";
import type { Config } from "../config/schema.ts";
import { detectChanges, type WatchedPaths } from "../config/files/stamp.ts";
import { collectKeys } from "../model/providers/known-keys.ts";
import type { ModelAccess } from "../model/providers/model-access.ts";
import { toRetryPolicy } from "../model/retry.ts";
import type { Formatter } from "../formatter/choose-formatters.ts";
import type { ProjectServers } from "../lsp/project-servers.ts";
import type {
  Folders,
  FolderServices,
  PendingConsent,
  Project,
  ProjectLanguages,
} from "../conversation/project.ts";
import type { ConfineProgram, ProjectSandbox } from "../sandbox/project-sandbox.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { BundledSkills } from "../skill/bundled-skills.ts";
import { projectIdOf } from "../storage/project-id.ts";
import type { ChildEnvironment } from "../workspace/process/child-variables.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { findWorktree } from "../workspace/worktree.ts";
import { type Configured, loadConfigured, getProblems } from "./configured.ts";
import { fetchText } from "./fetch-text.ts";
import type { LazyServices } from "./lazy-services.ts";
import type { Trust } from "../permission/trust.ts";
import type { ProjectRecords } from "./records.ts";
import { createProjectTools } from "./tools.ts";

export interface ProjectsDeps {
  readonly user: Home;
  /** The user's own configuration folders, highest precedence first. */
  readonly configFolders: readonly string[];
  readonly bundledSkills: BundledSkills;
  /** The services that all folders share. */
  readonly workspace: Omit<Workspace, "cwd" | "roots" | "worktree">;
  readonly records: Pick<ProjectRecords, "trust" | "languageServers" | "rememberLanguageServers">;
  readonly models: ModelAccess;
  readonly lazyServices: LazyServices;
  readonly variables: ChildEnvironment;
  readonly secrets: Secrets;
  /** The program's own folders. */
  readonly userFolders: UserFolders;
  readonly sandbox: () => Promise<Sandbox>;
  /** Informs the user. */
  readonly warn: (text: string) => void;
  readonly log: Log;
}

/** The configuration of a folder with its sources. */
export interface Configuration {
  readonly loaded: LoadedConfig;
  /** Paths of all possible configuration files, lowest precedence first. */
  readonly files: readonly string[];
  readonly problems: readonly string[];
  readonly consent: PendingConsent | undefined;
  readonly secrets: Secrets;
}

/** Opens projects: loads the configuration, models, agents and tools of a folder. */
export class Projects {
  readonly #deps: ProjectsDeps;

  constructor(deps: ProjectsDeps) {
    this.#deps = deps;
  }

  /** Opens a folder's project. Must not reject because of invalid configuration files. */
  async open({ cwd, additionalDirectories, origin }: Folders): Promise<Project> {
    const [folder, ...others] = await Promise.all(
      [cwd, ...additionalDirectories].map((path) => realpath(path)),
    );
    if (folder === undefined) throw new Error("no working directory");
    const roots = [folder, ...others];
    const options = await this.#optionsFor(folder);
    const [watched, { configured, keys }] = await Promise.all([
      detectChanges(listWatchedPaths(options)),
      this.#read(options, roots, origin),
    ]);
    // Not awaited here: the next turn needs it first.
    const watchedFurther = detectChanges(getSkillAndPluginPlaces(configured, options.home));
    const { models, ...lists } = await this.#deps.models.openListed(configured.loaded.config, keys);
    return this.#toProject({
      ...(origin !== undefined && { origin }),
      configured,
      models,
      workspace: {
        ...this.#deps.workspace,
        cwd: folder,
        roots,
        worktree: options.worktree,
        checkout: origin,
      },
      hasChanged: async () =>
        (await watched.hasChanged()) || (await (await watchedFurther).hasChanged()) || lists.hasChanged(),
      problems: [
        ...getProblems(configured),
        ...getTrustProblems(configured),
        ...keys.problems,
        ...lists.problems,
      ],
    });
  }

  /** Reads a folder's configuration with its sources, as its sessions see it. */
  async readConfiguration(folder: string): Promise<Configuration> {
    const options = await this.#optionsFor(await realpath(folder));
    const { configured, keys } = await this.#read(options, [options.cwd]);
    return {
      loaded: configured.loaded,
      files: listWatchedPaths(options).files,
      problems: [...getProblems(configured), ...getTrustProblems(configured), ...keys.problems],
      consent: configured.consent,
      secrets: this.#deps.secrets,
    };
  }

  async #optionsFor(cwd: string): Promise<LoadConfigOptions> {
    const { home, env, platform } = this.#deps.user;
    return { cwd, worktree: await findWorktree(cwd), home, env, platform };
  }

  /** Loads configuration and keys, and registers the keys for redaction. */
  async #read(options: LoadConfigOptions, roots: readonly string[], origin?: string) {
    const { models, secrets, user: person, variables, records } = this.#deps;
    const [configured, keys] = await Promise.all([
      loadConfigured(options, roots, {
        ...this.#deps,
        trust: origin === undefined ? records.trust : trustLike(records.trust, origin),
      }),
      models.loadKeys(),
    ]);
    secrets.add(collectKeys(configured.loaded.config, person.env, keys.credentials));
    variables.keep(configured.loaded.config.environment?.keep ?? []);
    return { configured, keys };
  }

  #toProject(opened: OpenedProject): Project {
    const { configured, origin, ...given } = opened;
    const { loaded, agents, skills, commands, consent } = configured;
    const { config } = loaded;
    return {
      ...given,
      ...this.#openFolder(opened),
      openIn: async ({ cwd, additionalDirectories, origin: checkout }) => {
        const roots = [cwd, ...additionalDirectories];
        const worktree = await findWorktree(cwd);
        const workspace = { ...given.workspace, cwd, roots, worktree, checkout };
        return this.#openFolder({ ...opened, workspace });
      },
      id: projectIdOf(origin ?? getRoot(given.workspace)),
      config,
      agents: agents.agents,
      defaultAgent: agents.default,
      commands: commands.commands,
      skills: skills.skills,
      formatters: configured.formatters,
      consent,
      secrets: this.#deps.secrets,
      retryPolicy: toRetryPolicy(config.retry),
      fetchText,
    };
  }

  #openFolder(opened: OpenedProject): FolderServices {
    const { configured, workspace } = opened;
    const { config } = configured.loaded;
    const sandbox = once(() => this.#openSandbox(workspace, configured));
    const confineProgram: ConfineProgram = async (...line) => (await sandbox()).confineProgram(...line);
    const servers = config.lsp === false ? undefined : this.#serversOf(workspace, config, confineProgram);
    return {
      workspace,
      ...this.#toolsOf(opened, servers, sandbox, confineProgram),
      findSandboxProblem: async () => (await sandbox()).findProblem(),
      confineProgram,
      findSandboxNetworkProblem: async () => (await sandbox()).findNetworkProblem(),
      languages: servers && toLanguages(servers),
      diagnose: servers && this.#diagnoseWith(servers),
      format: this.#formatWith(configured.formatters, workspace, sandbox),
      notify: this.#notifyWith(workspace, config),
      openHooks: this.#hooksOf(workspace, config, confineProgram),
      instructions: this.#instructionsOf(workspace, config),
    };
  }

  /** Returns the language servers, which are looked for on first use. */
  #serversOf(workspace: Workspace, { lsp }: Config, confine: ConfineProgram): () => Promise<ProjectServers> {
    const { lazyServices, records } = this.#deps;
    const root = getRoot(workspace);
    const id = projectIdOf(root);
    return once(() =>
      lazyServices.openProjectServers({
        config: lsp,
        root,
        cwd: workspace.cwd,
        roots: workspace.roots,
        confine,
        answers: {
          load: () => records.languageServers(id),
          save: (answers) => records.rememberLanguageServers(id, answers),
        },
      }),
    );
  }

  #diagnoseWith(servers: () => Promise<ProjectServers>): NonNullable<Project["diagnose"]> {
    return async (changes, signal) => {
      const folders = await (await servers()).folders();
      if (Object.keys(folders.servers).length === 0) return "";
      return (await this.#deps.lazyServices.languageServers()).diagnose(folders, changes, signal);
    };
  }

  #formatWith(
    formatters: readonly Formatter[],
    workspace: Workspace,
    sandbox: () => Promise<ProjectSandbox>,
  ): Project["format"] {
    if (formatters.length === 0) return undefined;
    const { variables, log } = this.#deps;
    const load = once(async () => {
      const { ProjectFormatters } = await import("../formatter/project-formatters.ts");
      return new ProjectFormatters({ formatters, workspace, sandbox, env: () => variables.get(), log });
    });
    return async (changes, call) => (await load()).format(changes, call);
  }

  #hooksOf(workspace: Workspace, { hooks = false }: Config, confine: ConfineProgram): Project["openHooks"] {
    if (hooks === false || Object.keys(hooks).length === 0) return undefined;
    const { lazyServices, log } = this.#deps;
    const { cwd, outputFolder: folder } = workspace;
    return async (session) =>
      lazyServices.openHooks({
        ...session,
        hooks,
        confine,
        findShell: () => workspace.processes.findShell(),
        cwd,
        root: getRoot(workspace),
        folder,
        log,
      });
  }

  #notifyWith({ cwd }: Workspace, { notify: settings }: Config): Project["notify"] {
    if (settings === undefined) return undefined;
    const open = once(() => this.#deps.lazyServices.openNotifier({ settings, cwd }));
    return async (attention) => (await open()).notify(attention);
  }

  #toolsOf(
    { configured, workspace, hasChanged }: OpenedProject,
    servers: (() => Promise<ProjectServers>) | undefined,
    sandbox: () => Promise<ProjectSandbox>,
    confine: ConfineProgram,
  ): Pick<Project, "tools" | "plugins"> {
    const { loaded, skills, isTrusted } = configured;
    const root = getRoot(workspace);
    return createProjectTools({
      skills: skills.skills,
      search: loaded.config.search,
      sandbox,
      findShell: () => workspace.processes.findShell(),
      queries: async () => (await servers?.())?.queries(),
      sources: { loaded, isTrusted, root, home: workspace.home },
      folders: { directory: workspace.cwd, worktree: root, projectId: projectIdOf(root) },
      confine,
      openPlugins: () => this.#deps.lazyServices.openPlugins(),
      hasChanged,
    });
  }

  async #openSandbox(workspace: Workspace, { loaded, agents, skills }: Configured): Promise<ProjectSandbox> {
    const { sandbox: settings = {} } = loaded.config;
    const { userFolders: own, variables, sandbox, warn } = this.#deps;
    const { ProjectSandbox } = await import("../sandbox/project-sandbox.ts");
    return new ProjectSandbox({
      settings: typeof settings === "string" ? { mode: settings } : settings,
      folders: { ...workspace, own, skills: skills.skills.map(({ folder }) => folder) },
      env: () => variables.get(),
      system: sandbox,
      rules: () => [agents.agents.get(agents.default)?.rules ?? []],
      warn,
    });
  }

  #instructionsOf(workspace: Workspace, config: Config): Project["instructions"] {
    const { cwd, roots, home } = workspace;
    return async (fetched) => {
      const { loadInstructions } = await import("../instruction/instructions.ts");
      return loadInstructions({
        cwd,
        root: getRoot(workspace),
        additionalDirectories: roots.slice(1),
        configFolders: this.#deps.configFolders,
        home,
        configured: config.instructions,
        fetched,
      });
    };
  }
}

interface OpenedProject extends Pick<Project, "workspace" | "models" | "hasChanged" | "problems"> {
  readonly configured: Configured;
  readonly origin?: string;
}

/** Trusts a worktree like the checkout from which it was made, if the content is the same. */
function trustLike(trust: Trust, origin: string): Pick<Trust, "check" | "add"> {
  return {
    check: (_folder, hash) => trust.check(origin, hash),
    add: (_folder, hash) => trust.add(origin, hash),
  };
}

function toLanguages(servers: () => Promise<ProjectServers>): ProjectLanguages {
  return {
    offered: async () => (await servers()).offered(),
    choices: async () => (await servers()).choices(),
  };
}

/** Locations of skills and plugins outside the configuration folders. */
function getSkillAndPluginPlaces({ loaded, skills }: Configured, home: string): WatchedPaths {
  const named = loaded.layers.flatMap(({ source, value }) =>
    (value.plugin ?? [])
      .flatMap((entry) => parsePluginEntry(entry)?.name ?? [])
      .map((name) => resolvePluginPath(name, source, home)),
  );
  const files = named.filter((path) => path !== undefined);
  return { files, configFolders: [], folders: skills.folders };
}

function getTrustProblems({ problem }: Configured): string[] {
  return problem === undefined ? [] : [problem];
}

function getRoot({ worktree, cwd }: Pick<Workspace, "worktree" | "cwd">): string {
  return worktree ?? cwd;
}
