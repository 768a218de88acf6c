import { createHash } from "node:crypto";
import { realpath } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { loadAgents, type LoadedAgents } from "./agent/agents.ts";
import { loadCommands, type LoadedCommands } from "./command/commands.ts";
import { orAfter } from "./base/async.ts";
import { messageOf, UserError } from "./base/errors.ts";
import { hasOnly, quickForm } from "./base/form.ts";
import { type LogLevel, openFileLog } from "./base/file-log.ts";
import type { Log } from "./base/log.ts";
import { Secrets } from "./base/secrets.ts";
import { readConsentContent } from "./config/consent.ts";
import { type LoadConfigOptions, type LoadedConfig, loadConfig, placesOf } from "./config/load.ts";
import { type Env, userFolders, type UserFolders } from "./config/paths.ts";
import type { Config } from "./config/schema.ts";
import { pluginPath } from "./config/module-files.ts";
import { stampOf, type WatchedPlaces } from "./config/stamp.ts";
import { AuthorizationStore } from "./mcp/oauth-store.ts";
import { isModelRef, modelRefSchema } from "./message/message.ts";
import { Servers } from "./mcp/servers.ts";
import { SignIn } from "./mcp/sign-in.ts";
import { loadSdk } from "./model/client.ts";
import { type Credentials, loadCredentials, saveCredential } from "./model/credentials.ts";
import { knownKeys } from "./model/known-keys.ts";
import { toRetryPolicy } from "./model/retry.ts";
import { Catalog } from "./model/known-models.ts";
import { listProblems, ModelLists } from "./model/model-lists.ts";
import { type OpenModels, openModels } from "./model/providers.ts";
import { Routing } from "./model/routing.ts";
import type { FoundModules, ModuleSources } from "./plugin/modules.ts";
import type { SharedPlugins } from "./plugin/shared-plugins.ts";
import { usableProviders } from "./model/usable-providers.ts";
import { Approvals, storedApprovals } from "./permission/approvals.ts";
import type { ShellContext } from "./permission/shell-part.ts";
import { Trust, trustedFolderSchema } from "./permission/trust.ts";
import type { LanguageServers } from "./lsp/language-servers.ts";
import type { Diagnose, PendingConsent, Project } from "./session/project.ts";
import { reservedNames } from "./session/commands.ts";
import { Housekeeping, type SessionAges } from "./session/housekeeping.ts";
import { type Door, type Folders, Sessions } from "./session/sessions.ts";
import type { Skill } from "./skill/skill.ts";
import { loadSkills, type LoadedSkills } from "./skill/skills.ts";
import { SessionStore } from "./storage/session-store.ts";
import type { Tool } from "./tool/tool.ts";
import { childEnvironment } from "./workspace/environment.ts";
import { openFiles } from "./workspace/files.ts";
import { isInside } from "./workspace/paths.ts";
import { namesInSync } from "./workspace/folder-names.ts";
import { realPathSync } from "./workspace/real-path.ts";
import { openPipedProcesses, type PipedProcesses } from "./workspace/piped-process.ts";
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
  readonly #surroundings: Surroundings;
  readonly #processes: Processes;
  readonly #piped: PipedProcesses;
  readonly #secrets = new Secrets();
  /** The folders whose own configuration the person agreed to. */
  readonly trust: Trust;
  /** What remote MCP servers gave this program to be let in. */
  readonly authorizations: AuthorizationStore;
  readonly signIn: SignIn;
  readonly #shared: Pick<Workspace, "files" | "search" | "snapshots" | "processes" | "outputFolder" | "home">;
  #store: Promise<SessionStore> | undefined;
  readonly #housekeeping: Housekeeping;
  readonly #catalog: Catalog;
  /** What servers said of their models. */
  readonly modelLists: ModelLists;
  /** What the editor said of providers. */
  readonly routing = new Routing();
  #sessions: Sessions | undefined;
  #sharedPlugins: SharedPlugins | undefined;
  #isClosing = false;
  #languageServers: Promise<LanguageServers> | undefined;
  #servers: Servers | undefined;

  constructor(surroundings: Surroundings) {
    const { env, platform } = surroundings;
    this.#surroundings = surroundings;
    this.home = env["HOME"] || env["USERPROFILE"] || homeOfUser();
    this.folders = userFolders({ env, home: this.home, platform });
    const { verbose = false } = surroundings;
    this.logPath = join(this.folders.state, "fairlead.log");
    this.log = openFileLog(this.logPath, {
      level: verbose ? "debug" : logLevel(env["FAIRLEAD_LOG"]),
      secrets: this.#secrets,
      mirror: verbose ? (line) => process.stderr.write(`fairlead: ${line}\n`) : undefined,
    });
    this.#catalog = new Catalog(this.log);
    const lists = join(this.folders.data, "models");
    this.modelLists = new ModelLists({ folder: lists, fetch: globalThis.fetch, log: this.log });
    const childEnv = childEnvironment(env);
    this.#processes = openProcesses({ env: childEnv, secrets: this.#secrets });
    this.#piped = openPipedProcesses({ env: childEnv, secrets: this.#secrets });
    this.trust = new Trust({
      load: async (id) => (await this.#openStore()).files.read(["trust", id], trustedFolderSchema),
      save: async (id, trusted) => (await this.#openStore()).files.write(["trust", id], trusted),
      remove: async (id) => (await this.#openStore()).files.remove(["trust", id]),
      ids: async () => (await (await this.#openStore()).files.entries(["trust"])).map(({ name }) => name),
    });
    this.authorizations = new AuthorizationStore({
      files: async () => (await this.#openStore()).files,
      secrets: this.#secrets,
    });
    this.signIn = new SignIn(this.authorizations);
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

  /** The MCP servers of this process, for whoever shows the person what they ask. */
  openServers(door: Pick<Door, "elicitationAbilities" | "visited">): Servers {
    this.#servers ??= new Servers({
      version: this.#surroundings.version,
      processes: this.#piped,
      log: this.log,
      signIn: this.signIn,
      abilities: () => door.elicitationAbilities(),
      onVisited: (id) => door.visited(id),
    });
    return this.#servers;
  }

  openSessions(door: Door): Sessions {
    this.#sessions = new Sessions({
      store: () => this.#openStore(),
      version: this.#surroundings.version,
      door,
      log: this.log,
      openProject: (folders) => this.openProject(folders),
      servers: this.openServers(door),
      openApprovals: (id) => this.openApprovals(id),
      onTurnEnd: () => this.#housekeeping.onTurnEnd(),
      memory: {
        lastUsedModel: async (id) => {
          const { files } = await this.#openStore();
          return (await files.read(["project", id], quickForm(isProject, projectSchema)))?.lastUsedModel;
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
    const options = { cwd: folder, worktree, home: this.home, env, platform };
    const [watched, configured, keys] = await Promise.all([
      this.#watch(placesOf(options)),
      this.#loadConfigured(options, [folder, ...others]),
      this.#loadCredentials(),
    ]);
    const { loaded, agents, skills, commands, consent, problem } = configured;
    // Nobody waits for it before the next turn asks.
    const watchedSkills = this.#watch({
      files: pluginFiles(loaded, this.home),
      holders: [],
      folders: skills.places,
    });
    const { config } = loaded;
    this.#secrets.add(knownKeys(config, env, keys.credentials));
    const sources = this.#providerSources(config, keys.credentials);
    // Where the editor sends a provider's requests nobody is asked for models.
    const providers = [...usableProviders(sources).values()].filter(({ id }) => !sources.withoutKey.has(id));
    const listFiles = this.modelLists.files(providers);
    const watchedLists = this.#watch({ files: listFiles, holders: [], folders: [] });
    const hasChanged = async () =>
      (await watched.hasChanged()) ||
      (await (await watchedSkills).hasChanged()) ||
      (await watchedLists).hasChanged();
    const lists = await this.modelLists.load(providers);
    this.modelLists.keepFresh(providers, lists);
    const workspace: Workspace = { ...this.#shared, cwd: folder, roots: [folder, ...others], worktree };
    const id = projectId(worktree ?? folder);
    const root = worktree ?? folder;
    const builtIn = this.#toolsWith(skills.skills, config.search);
    const place = { directory: folder, worktree: root, projectId: id };
    const modules = this.#modulesOf({ loaded, isTrusted: configured.isTrusted, root, home: this.home });
    const plugins = async () => {
      const known = await modules();
      if (known === undefined) return undefined;
      const { found, stamp } = known;
      const reserved = new Set([...(await builtIn()).map(({ name }) => name), ...namesOfSometimes]);
      const isUnchanged = async () => !(await hasChanged());
      return (await this.#openPlugins()).get({ found, place, stamp, reserved, isUnchanged });
    };
    return {
      id,
      workspace,
      config,
      models: openModels({
        ...sources,
        catalog: this.#catalog,
        lists,
        refreshList: (provider) => this.modelLists.refresh(provider),
        log: this.log,
        onKey: (key) => this.#secrets.add([key]),
      }),
      agents: agents.agents,
      defaultAgent: agents.default,
      commands: commands.commands,
      skills: skills.skills,
      hasChanged,
      tools: async () => [...(await builtIn()), ...((await plugins())?.tools ?? [])],
      plugins,
      diagnose: this.#diagnoseWith(config.lsp, workspace),
      consent,
      secrets: this.#secrets,
      retryPolicy: toRetryPolicy(config.retry),
      fetchText,
      instructions: async (fetched) => {
        const { loadInstructions } = await import("./instruction/instructions.ts");
        return loadInstructions({
          cwd: folder,
          root,
          additionalDirectories: others,
          configFolder: this.folders.config,
          home: this.home,
          configured: config.instructions,
          fetched,
        });
      },
      problems: [
        ...problemsOf(configured),
        ...(problem ? [problem] : []),
        ...keys.problems,
        ...listProblems(lists),
      ],
    };
  }

  /** A folder's configuration with where it comes from, as its sessions have it. */
  async readConfiguration(folder: string): Promise<Configuration> {
    const { env, platform } = this.#surroundings;
    const cwd = await realpath(folder);
    const options = { cwd, worktree: await findWorktree(cwd), home: this.home, env, platform };
    const [configured, keys] = await Promise.all([
      this.#loadConfigured(options, [cwd]),
      this.#loadCredentials(),
    ]);
    this.#secrets.add(knownKeys(configured.loaded.config, env, keys.credentials));
    return {
      loaded: configured.loaded,
      places: placesOf(options).files,
      problems: [...problemsOf(configured), ...keys.problems],
      consent: configured.consent,
      secrets: this.#secrets,
    };
  }

  /** What command lines are judged by, beside their text. */
  shellContext({ cwd, roots, home }: Pick<Workspace, "cwd" | "roots" | "home">): ShellContext {
    return { cwd, roots, home, resolve: realPathSync, list: namesInSync };
  }

  /** What was approved for good in a project. */
  async openApprovals(projectId: string): Promise<Approvals> {
    const { files } = await this.#openStore();
    const key = ["permission", projectId];
    return Approvals.open({
      load: () => files.read(key, storedApprovals),
      save: (approvals) => files.write(key, approvals),
    });
  }

  /** Tells later whether something changed that was there, or not there, now. */
  async #watch(places: WatchedPlaces): Promise<{ hasChanged(): Promise<boolean> }> {
    const stamp = await stampOf(places);
    return { hasChanged: async () => (await stampOf(places)) !== stamp };
  }

  /** Configuration and what stands in files beside it, in full where the person agreed to just what they are now. */
  async #loadConfigured(options: LoadConfigOptions, roots: readonly string[]): Promise<Configured> {
    const root = options.worktree ?? options.cwd;
    const given = await this.#loadAll(options, roots);
    const { loaded, agents } = given;
    const content = await readConsentContent(root, loaded, this.home);
    const wants = [
      ...content.wants,
      ...agents.waiting.map(({ path, message }) => `${path ?? "an agent"}: ${message}`),
    ];
    // Where nothing waits there is no code either.
    if (wants.length === 0) return given;
    const { hash } = content;
    if (hash === undefined) return { ...given, problem: tooMuchToTrust(root) };
    const known = await this.#checkTrust(root, hash);
    if (known === "trusted") {
      const full = await this.#loadAll({ ...options, trusted: true }, roots);
      // What was changed while it was read is not what was agreed to.
      const after = await readConsentContent(root, loaded, this.home);
      if (after.hash === hash) return full;
    }
    const accept = () => this.trust.add(root, hash);
    return { ...given, consent: { folder: root, wants, hasChanged: known !== "new", accept } };
  }

  async #loadAll(options: LoadConfigOptions, roots: readonly string[]): Promise<Configured> {
    const loaded = await loadConfig(options);
    const { config, folders, otherFolders } = loaded;
    const { cwd, home, trusted = false } = options;
    const root = options.worktree ?? cwd;
    const paths = config.skills?.paths;
    const places = { bundled: bundledSkills, otherFolders, folders, paths, cwd, root, home };
    const skills = await loadSkills(places);
    const agents = await loadAgents({
      config,
      folders: folders.map(({ path }) => path),
      otherFolders: otherFolders.map(({ path }) => path),
      untrusted: trusted ? [] : projectFolders(loaded),
      confined: { folders: projectFolders(loaded, "all"), root },
      outputFolder: this.#shared.outputFolder,
      skillFolders: foldersOutside(roots, skills.skills),
      home,
    });
    const commands = await loadCommands({
      configured: config.command ?? {},
      folders: [...otherFolders, ...folders],
      isTrusted: trusted,
      root,
      agents: new Set([...agents.agents.values()].filter(({ hidden }) => !hidden).map(({ name }) => name)),
      reserved: reservedNames,
    });
    return { loaded, skills, agents, commands, isTrusted: trusted };
  }

  /** Without a readable record nothing is trusted. */
  async #checkTrust(root: string, hash: string) {
    try {
      return await this.trust.check(root, hash);
    } catch (error) {
      this.log.warn("what is trusted could not be read", { error: messageOf(error) });
      return "new";
    }
  }

  /** Loads what a first prompt needs, a part at a time, so that what comes meanwhile is not kept waiting. */
  async warmUp(): Promise<void> {
    const parts = [() => import("./session/turn.ts"), () => import("./tool/registry.ts"), loadSdk];
    try {
      for (const load of parts) {
        if (this.#isClosing) return;
        await load();
        await breathe();
      }
    } catch (error) {
      this.log.error("what a prompt needs did not load", { error: messageOf(error) });
    }
  }

  /** Kills what still runs, for a program that cannot wait any longer. */
  abandon(): void {
    this.#processes.killAll();
    this.#sharedPlugins?.killAll();
    this.#piped.killAll();
  }

  /** Ends every session and every process. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const ended = [this.#processes.endAll(), this.#piped.endAll(), this.#sharedPlugins?.closeAll()];
    await this.#sessions?.closeAll();
    const closed = [this.#servers?.endAll(), this.#housekeeping.close(), this.modelLists.close()];
    await Promise.all([...ended, ...closed]);
  }

  /** Why no model could be asked by somebody without a project, in words for the person. */
  async missingModel(): Promise<string | undefined> {
    const chosen = (await this.personalModels()).defaultModel();
    return chosen.outcome === "none" ? chosen.error.message : undefined;
  }

  /** The models of the person's own configuration. */
  async personalModels(): Promise<OpenModels> {
    const { credentials } = await this.#loadCredentials();
    const sources = this.#providerSources(await this.#personalConfig(), credentials);
    return openModels({ ...sources, catalog: this.#catalog, log: this.log });
  }

  /** Whether the person switched the draft of the protocol's next version on. */
  async isProtocolDraftOn(): Promise<boolean> {
    return (await this.#personalConfig()).experimental?.acp_v2 === true;
  }

  /** Forgets every stored key; what stands in the environment or in configuration files is not ours to take. */
  async forgetKeys(): Promise<void> {
    const credentials = await loadCredentials(this.folders.data);
    for (const provider of Object.keys(credentials))
      await saveCredential(this.folders.data, provider, undefined);
    await this.#sessions?.reloadAll();
  }

  /** After the routing changed. */
  async reroute(): Promise<void> {
    await this.#sessions?.reloadAll();
  }

  async #personalConfig(): Promise<Config> {
    const { env, platform } = this.#surroundings;
    return (await loadConfig({ cwd: this.home, home: this.home, env, platform })).config;
  }

  #providerSources(config: Config, credentials: Credentials) {
    const { withoutKey } = this.routing;
    return { config: this.routing.applyTo(config), env: this.#surroundings.env, credentials, withoutKey };
  }

  /** Only the person's own configuration says what is deleted, no project's. */
  async #sessionAges(): Promise<SessionAges> {
    const config = await this.#personalConfig();
    const { archive_after_days: archiveAfterDays, remove_after_days: removeAfterDays } =
      config.sessions ?? {};
    return { archiveAfterDays, removeAfterDays };
  }

  /** Without the stored keys a session still opens, and models whose key stands elsewhere answer. */
  async #loadCredentials(): Promise<{ credentials: Credentials; problems: string[] }> {
    try {
      return { credentials: await loadCredentials(this.folders.data), problems: [] };
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      return { credentials: {}, problems: [error.message] };
    }
  }

  #warn(text: string): void {
    if (this.#sessions === undefined) this.#surroundings.onWarning?.(text);
    this.#sessions
      ?.warn(text)
      .catch((error: unknown) => this.log.error("nobody was told", { error: messageOf(error) }));
  }

  /** What is stored of all sessions and projects. */
  store(): Promise<SessionStore> {
    return this.#openStore();
  }

  /** A store that could not be opened (a full disk) is tried again with the next request. */
  #openStore(): Promise<SessionStore> {
    const root = join(this.folders.data, "storage");
    this.#store ??= SessionStore.open({ root, log: this.log, onWarning: (text) => this.#warn(text) }).catch(
      (error: unknown) => {
        this.#store = undefined;
        throw error;
      },
    );
    return this.#store;
  }

  /** Tools and the grammar of the shell are large: they load behind the first answers, not before. */
  #toolsWith(skills: readonly Skill[], search: Config["search"]): () => Promise<readonly Tool[]> {
    let tools: Promise<readonly Tool[]> | undefined;
    const load = async () => {
      const { builtInTools } = await import("./tool/registry.ts");
      return builtInTools({
        analyze: (command, place) => this.#analyze(command, place),
        skills,
        search,
      });
    };
    return () => (tools ??= load());
  }

  /** Looked for once, with what tells them from other ones later; undefined where there are none. */
  #modulesOf(sources: ModuleSources): () => Promise<{ found: FoundModules; stamp: string } | undefined> {
    let known: Promise<{ found: FoundModules; stamp: string } | undefined> | undefined;
    const find = async () => {
      const { findModules } = await import("./plugin/modules.ts");
      const found = await findModules(sources);
      if (found.modules.length + found.problems.length === 0) return undefined;
      const holders = sources.loaded.folders.map(({ path }) => path);
      const files = found.modules.map(({ name, from }) =>
        from === undefined ? name : join(from, "node_modules", name, "package.json"),
      );
      return { found, stamp: await stampOf({ files, holders }, "code") };
    };
    return () => (known ??= find());
  }

  async #openPlugins(): Promise<SharedPlugins> {
    if (this.#isClosing) throw new UserError("The program is ending.");
    const { SharedPlugins } = await import("./plugin/shared-plugins.ts");
    this.#sharedPlugins ??= new SharedPlugins({
      program: pluginHost,
      env: () => this.#withoutSecrets(childEnvironment(this.#surroundings.env)),
      log: this.log,
    });
    return this.#sharedPlugins;
  }

  #withoutSecrets(env: Record<string, string>): Record<string, string> {
    return Object.fromEntries(Object.entries(env).filter(([, value]) => !this.#secrets.isIn(value)));
  }

  /** The first edit loads the protocol and starts the servers that are for its files. */
  #diagnoseWith(servers: Config["lsp"], { cwd, worktree }: Workspace): Diagnose | undefined {
    if (servers === undefined || typeof servers === "boolean") return undefined;
    const place = { servers, root: worktree ?? cwd, cwd };
    return async (changes, signal) => {
      this.#languageServers ??= this.#openLanguageServers();
      return (await this.#languageServers).diagnose(place, changes, signal);
    };
  }

  async #openLanguageServers(): Promise<LanguageServers> {
    const { LanguageServers } = await import("./lsp/language-servers.ts");
    const { processes, snapshots, files } = this.#shared;
    return new LanguageServers({
      processes,
      snapshots,
      read: async (path) => (await files.read(path)).bytes,
      log: this.log,
      warn: (text) => this.#warn(text),
    });
  }

  async #analyze(command: string, place: Pick<Workspace, "cwd" | "roots" | "home">) {
    const { analyzeShell } = await import("./permission/shell.ts");
    return analyzeShell(command, this.shellContext(place));
  }
}

/** What a folder is configured with, and from where. */
export interface Configuration {
  readonly loaded: LoadedConfig;
  /** Every file that is looked for, lowest first. */
  readonly places: readonly string[];
  readonly problems: readonly string[];
  readonly consent: PendingConsent | undefined;
  readonly secrets: Secrets;
}

/** The skills that come with the program, beside its code. */
const bundledSkills = fileURLToPath(new URL("../skills", import.meta.url));

/** The program that runs authors' modules, beside ours. */
const pluginHost = fileURLToPath(new URL("./plugin-host.js", import.meta.url));

/** What is remembered of a project. */
const projectSchema = z.object({ lastUsedModel: modelRefSchema.optional() });

function isProject(value: unknown): value is z.infer<typeof projectSchema> {
  if (!hasOnly(value, ["lastUsedModel"])) return false;
  return value.lastUsedModel === undefined || isModelRef(value.lastUsedModel);
}

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

/** How long instructions may take to arrive, in seconds (system.md 9). */
const fetchLimitS = 5;

/** Tools are loaded for it, but only where a configuration names a URL. */
async function fetchText(url: string): Promise<string> {
  const { fetchText } = await import("./tool/webfetch.ts");
  const { systemLookup } = await import("./tool/web-request.ts");
  const { signal } = new AbortController();
  const fetched = fetchText(url, { lookup: systemLookup, timeoutS: fetchLimitS, signal });
  // The look-up of the name has a limit of its own.
  const text = await orAfter(fetched, fetchLimitS * 1000, undefined);
  if (text === undefined) throw new UserError(`it did not answer within ${fetchLimitS} seconds`);
  return text;
}

function problemsOf({ loaded, agents, skills, commands }: Configured): string[] {
  const others: { path?: string; message: string }[] = [
    ...agents.problems,
    ...skills.problems,
    ...commands.problems,
  ];
  return [
    ...loaded.problems.map(({ path, line, column, message }) => `${path}:${line}:${column}: ${message}`),
    ...others.map(({ path, message }) => (path === undefined ? message : `${path}: ${message}`)),
  ];
}

/** Folders of skills that could not be read without asking; the program's have nothing to read. A name with signs of patterns would open others too. */
function foldersOutside(roots: readonly string[], skills: readonly Skill[]): string[] {
  const folders = skills.map(({ folder }) => folder);
  return folders.filter((folder) => !isInside(folder, [...roots, bundledSkills]) && !/[*?]/.test(folder));
}

/** What was read for a folder. */
interface Configured {
  loaded: LoadedConfig;
  agents: LoadedAgents;
  skills: LoadedSkills;
  commands: LoadedCommands;
  /** Whether the project's own configuration counts in full. */
  isTrusted: boolean;
  consent?: PendingConsent;
  problem?: string;
}

/** Names of tools that are not always there and stay theirs. */
const namesOfSometimes = ["task", "websearch", "codesearch", "lsp", "invalid", "batch"];

/** Files that the configuration names as plugins. */
function pluginFiles({ layers }: LoadedConfig, home: string): string[] {
  const named = layers.flatMap(({ source, value }) =>
    (value.plugin ?? []).map((entry) => pluginPath(entry, source, home)),
  );
  return named.filter((path) => path !== undefined);
}

/** `all` counts those of other programs in. */
function projectFolders({ folders, otherFolders }: LoadedConfig, which: "own" | "all" = "own"): string[] {
  const wanted = which === "own" ? folders : [...folders, ...otherFolders];
  return wanted.filter(({ scope }) => scope === "project").map(({ path }) => path);
}

function tooMuchToTrust(root: string): string {
  return `The configuration in ${root} is too large to be looked at and trusted. What it would run, load, redirect or allow is not used.`;
}
