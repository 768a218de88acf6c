import { realpath } from "node:fs/promises";
import type { Log } from "../base/log.ts";
import type { Secrets } from "../base/secrets/secrets.ts";
import { type LoadConfigOptions, type LoadedConfig, placesOf } from "../config/load.ts";
import { pluginEntry, pluginPath } from "../config/files/module-files.ts";
import type { Home } from "../config/paths.ts";
import type { Config } from "../config/schema.ts";
import { watch, type WatchedPlaces } from "../config/files/stamp.ts";
import { knownKeys } from "../model/providers/known-keys.ts";
import type { ModelAccess } from "../model/providers/model-access.ts";
import { toRetryPolicy } from "../model/retry.ts";
import type { Trust } from "../permission/trust.ts";
import type { Folders, PendingConsent, Project } from "../conversation/project.ts";
import type { BundledSkills } from "../skill/bundled-skills.ts";
import { projectIdOf } from "../storage/project-id.ts";
import type { ChildVariables } from "../workspace/process/child-variables.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { findWorktree } from "../workspace/worktree.ts";
import { type Configured, loadConfigured, problemsOf } from "./configured.ts";
import { fetchText } from "./fetch-text.ts";
import type { LazyServices } from "./lazy-services.ts";
import { projectTools } from "./tools.ts";

export interface ProjectsDeps {
  readonly person: Home;
  /** The person's own configuration folders, the one that counts first. */
  readonly configFolders: readonly string[];
  readonly bundledSkills: BundledSkills;
  /** The doors that all folders have in common. */
  readonly workspace: Omit<Workspace, "cwd" | "roots" | "worktree">;
  readonly trust: Trust;
  readonly models: ModelAccess;
  readonly parts: LazyServices;
  readonly variables: ChildVariables;
  readonly secrets: Secrets;
  readonly log: Log;
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

/** Reads what sessions of a folder work with. */
export class Projects {
  readonly #deps: ProjectsDeps;

  constructor(deps: ProjectsDeps) {
    this.#deps = deps;
  }

  /** Never rejects for what stands in configuration files. */
  async open({ cwd, additionalDirectories }: Folders): Promise<Project> {
    const [folder, ...others] = await Promise.all(
      [cwd, ...additionalDirectories].map((path) => realpath(path)),
    );
    if (folder === undefined) throw new Error("no working directory");
    const roots = [folder, ...others];
    const options = await this.#optionsFor(folder);
    const [watched, { configured, keys }] = await Promise.all([
      watch(placesOf(options)),
      this.#read(options, roots),
    ]);
    // Nobody waits for it before the next turn asks.
    const watchedFurther = watch(furtherPlaces(configured, options.home));
    const { models, ...lists } = await this.#deps.models.openListed(configured.loaded.config, keys);
    return this.#toProject({
      configured,
      models,
      workspace: { ...this.#deps.workspace, cwd: folder, roots, worktree: options.worktree },
      hasChanged: async () =>
        (await watched.hasChanged()) || (await (await watchedFurther).hasChanged()) || lists.hasChanged(),
      problems: [
        ...problemsOf(configured),
        ...trustProblems(configured),
        ...keys.problems,
        ...lists.problems,
      ],
    });
  }

  /** A folder's configuration with where it comes from, as its sessions have it. */
  async readConfiguration(folder: string): Promise<Configuration> {
    const options = await this.#optionsFor(await realpath(folder));
    const { configured, keys } = await this.#read(options, [options.cwd]);
    return {
      loaded: configured.loaded,
      places: placesOf(options).files,
      problems: [...problemsOf(configured), ...trustProblems(configured), ...keys.problems],
      consent: configured.consent,
      secrets: this.#deps.secrets,
    };
  }

  async #optionsFor(cwd: string): Promise<LoadConfigOptions> {
    const { home, env, platform } = this.#deps.person;
    return { cwd, worktree: await findWorktree(cwd), home, env, platform };
  }

  /** From here on the keys in it are kept out of whatever is handed on. */
  async #read(options: LoadConfigOptions, roots: readonly string[]) {
    const { models, secrets, person, variables } = this.#deps;
    const [configured, keys] = await Promise.all([
      loadConfigured(options, roots, this.#deps),
      models.loadKeys(),
    ]);
    secrets.add(knownKeys(configured.loaded.config, person.env, keys.credentials));
    variables.keep(configured.loaded.config.environment?.keep ?? []);
    return { configured, keys };
  }

  #toProject(opened: OpenedProject): Project {
    const { configured, ...given } = opened;
    const { loaded, agents, skills, commands, consent } = configured;
    const { config } = loaded;
    return {
      ...given,
      ...this.#toolsOf(opened),
      id: projectIdOf(rootOf(given.workspace)),
      config,
      agents: agents.agents,
      defaultAgent: agents.default,
      commands: commands.commands,
      skills: skills.skills,
      diagnose: this.#deps.parts.diagnoseWith(config.lsp, given.workspace),
      consent,
      secrets: this.#deps.secrets,
      retryPolicy: toRetryPolicy(config.retry),
      fetchText,
      instructions: this.#instructionsOf(given.workspace, config),
    };
  }

  #toolsOf({ configured, workspace, hasChanged }: OpenedProject): Pick<Project, "tools" | "plugins"> {
    const { loaded, skills, isTrusted } = configured;
    const root = rootOf(workspace);
    return projectTools({
      skills: skills.skills,
      search: loaded.config.search,
      sources: { loaded, isTrusted, root, home: workspace.home },
      place: { directory: workspace.cwd, worktree: root, projectId: projectIdOf(root) },
      openPlugins: () => this.#deps.parts.openPlugins(),
      hasChanged,
    });
  }

  #instructionsOf(workspace: Workspace, config: Config): Project["instructions"] {
    const { cwd, roots, home } = workspace;
    return async (fetched) => {
      const { loadInstructions } = await import("../instruction/instructions.ts");
      return loadInstructions({
        cwd,
        root: rootOf(workspace),
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
}

/** Skills and plugins that stand elsewhere, as the configuration names them. */
function furtherPlaces({ loaded, skills }: Configured, home: string): WatchedPlaces {
  const named = loaded.layers.flatMap(({ source, value }) =>
    (value.plugin ?? [])
      .flatMap((entry) => pluginEntry(entry)?.name ?? [])
      .map((name) => pluginPath(name, source, home)),
  );
  const files = named.filter((path) => path !== undefined);
  return { files, holders: [], folders: skills.places };
}

function trustProblems({ problem }: Configured): string[] {
  return problem === undefined ? [] : [problem];
}

function rootOf({ worktree, cwd }: Pick<Workspace, "worktree" | "cwd">): string {
  return worktree ?? cwd;
}
