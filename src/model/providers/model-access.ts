import { join } from "node:path";
import { UserError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Secrets } from "../../base/secrets/secrets.ts";
import type { Env } from "../../config/paths.ts";
import type { Config } from "../../config/schema.ts";
import { detectChanges, type ChangeDetector } from "../../config/files/stamp.ts";
import { lockFolderOf } from "../../storage/json/lock.ts";
import { type Credentials, loadCredentials, saveCredential } from "../keys/credentials.ts";
import { KeyCommands } from "../keys/key-command.ts";
import { Catalog } from "../catalog/known-models.ts";
import { listProblems, ModelLists } from "../catalog/model-lists.ts";
import { type OpenModels, openModels } from "./providers.ts";
import { RefusedMedia } from "../request/refused-media.ts";
import { Routing } from "./routing.ts";
import { usableProviders } from "../catalog/usable-providers.ts";

export interface ModelAccessDeps {
  /** Folder of the user's keys and model lists. */
  readonly dataFolder: string;
  readonly env: Env;
  readonly secrets: Secrets;
  readonly log: Log;
}

export interface StoredKeys {
  readonly credentials: Credentials;
  /** Why they could not be read, for the user. */
  readonly problems: readonly string[];
}

/** The models of a project, watched for changes of the lists. */
export interface ProjectModels extends ChangeDetector {
  readonly models: OpenModels;
  /** Problems with the lists, one line each, for the user. */
  readonly problems: readonly string[];
}

/** Access to models for a process: keys, base URLs and model data. */
export class ModelAccess {
  /** Base URLs and disabled providers set by the editor. */
  readonly routing = new Routing();
  readonly #deps: ModelAccessDeps;
  readonly #catalog: Catalog;
  readonly #keyCommands: KeyCommands;
  /** Model lists of servers. */
  readonly #lists: ModelLists;
  readonly #refusedMedia = new RefusedMedia();

  constructor(deps: ModelAccessDeps) {
    const { dataFolder, env, secrets, log } = deps;
    this.#deps = deps;
    this.#keyCommands = new KeyCommands(env, (key) => secrets.add([key]));
    this.#catalog = new Catalog(log);
    this.#lists = new ModelLists({
      folder: join(dataFolder, "models"),
      lockFolder: lockFolderOf(dataFolder),
      keyCommands: this.#keyCommands,
      log,
    });
  }

  /** Loads the stored keys. If they cannot be read, a session still opens with keys from other sources. */
  async loadKeys(): Promise<StoredKeys> {
    try {
      return { credentials: await loadCredentials(this.#deps.dataFolder), problems: [] };
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      return { credentials: {}, problems: [error.message] };
    }
  }

  /** Deletes all stored keys. Keys in the environment and in configuration files remain. */
  async forgetKeys(): Promise<void> {
    const { dataFolder } = this.#deps;
    const credentials = await loadCredentials(dataFolder);
    for (const provider of Object.keys(credentials)) await saveCredential(dataFolder, provider, undefined);
  }

  /** Opens the models of a configuration, without the lists of servers. */
  async open(config: Config): Promise<OpenModels> {
    const { credentials } = await this.loadKeys();
    return openModels({
      ...this.#sourcesOf(config, credentials),
      catalog: this.#catalog,
      log: this.#deps.log,
    });
  }

  /** Opens the models of a project with the lists of servers. Outdated lists are refreshed in the background. */
  async openListed(config: Config, { credentials }: StoredKeys): Promise<ProjectModels> {
    const { log } = this.#deps;
    const sources = this.#sourcesOf(config, credentials);
    // Routed providers are not asked for models.
    const providers = [...usableProviders(sources).values()].filter(({ id }) => !sources.withoutKey.has(id));
    await this.#lists.askLocal(providers);
    const watched = detectChanges({ files: this.#lists.files(providers), configFolders: [] });
    const lists = await this.#lists.load(providers);
    this.#lists.keepFresh(providers, lists);
    const models = openModels({
      ...sources,
      catalog: this.#catalog,
      lists,
      refreshList: (provider) => this.#lists.refresh(provider),
      log,
    });
    return { models, problems: listProblems(lists), hasChanged: async () => (await watched).hasChanged() };
  }

  close(): Promise<void> {
    this.#keyCommands.close();
    return this.#lists.close();
  }

  #sourcesOf(config: Config, credentials: Credentials) {
    const { withoutKey } = this.routing;
    return {
      config: this.routing.applyTo(config),
      env: this.#deps.env,
      credentials,
      withoutKey,
      keyCommands: this.#keyCommands,
      refusedMedia: this.#refusedMedia,
    };
  }
}
