import { errorFields } from "../../base/error-fields.ts";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { randomUuid, sha256 } from "../../base/text/hash.ts";
import { deferred } from "../../base/async.ts";
import { codeOf, UserError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { isLoopback } from "../../base/loopback.ts";
import { statOrUndefined } from "../../base/files/file-stat.ts";
import { makeFolder } from "../../base/files/make-folder.ts";
import { retryInUse } from "../../base/files/retry-in-use.ts";
import { readRegularFile } from "../../base/files/regular-file.ts";
import { updateSharedFile } from "../../storage/json/lock.ts";
import type { KeyCommands } from "../keys/key-command.ts";
import { type KnownModel, knownModelSchema } from "./known-models.ts";
import type { ListedModels } from "./list-models.ts";
import type { Provider } from "./usable-providers.ts";

/** Lists are refreshed after this time if `discover` is configured. */
const freshMs = 24 * 60 * 60 * 1_000;
/** Failures are cached for this time, so that not every session queries an unreachable server. */
const failureMs = 60_000;
/** How long a session waits for the first list of a local server. */
const localWaitMs = 1_000;

/** Date of a list that is always outdated. */
const outdatedDate = new Date(0).toISOString();

const modelListSchema = z.object({
  provider: z.string(),
  baseURL: z.string(),
  /** When it was requested. */
  date: z.iso.datetime(),
  models: z.array(knownModelSchema),
  /** Why the last attempt failed. The models are those of an earlier one. */
  failure: z.string().optional(),
});
/** A server's model list and its date. */
export type ModelList = z.infer<typeof modelListSchema>;

export interface ModelListsDeps {
  /** Folder in which lists are stored. */
  readonly folder: string;
  /** Folder of the file locks shared by all processes. */
  readonly lockFolder: string;
  readonly keyCommands: KeyCommands;
  readonly log: Log;
}

/**
 * Stored model lists of servers. Without a command, only servers with `discover` and local servers without configured
 * models are queried.
 */
export class ModelLists {
  readonly #deps: ModelListsDeps;
  readonly #end = new AbortController();
  readonly #running = new Map<string, Promise<unknown>>();
  /** When local servers last failed, by the path of their list. */
  readonly #failedLocals = new Map<string, number>();

  constructor(deps: ModelListsDeps) {
    this.#deps = deps;
  }

  /** Loads the stored lists of these providers, by id. */
  async load(providers: Iterable<Provider>): Promise<Map<string, ModelList>> {
    const lists = await Promise.all([...providers].map((provider) => this.#read(provider)));
    return new Map(lists.flatMap((list): [string, ModelList][] => (list ? [[list.provider, list]] : [])));
  }

  /** Returns the paths of these providers' lists. The files may not exist. */
  files(providers: Iterable<Provider>): string[] {
    return [...providers].map((provider) => this.#pathOf(provider));
  }

  /** Requests a provider's list and stores it. */
  async refresh(provider: Provider, signal: AbortSignal = this.#end.signal): Promise<ListedModels> {
    const listed = await this.#ask(provider, signal);
    if (signal.aborted) return listed;
    await updateSharedFile(this.#pathOf(provider), this.#deps.lockFolder, () => this.#keep(provider, listed));
    return listed;
  }

  async #keep(provider: Provider, listed: ListedModels): Promise<void> {
    const before = listed.outcome === "failed" ? await this.#read(provider) : undefined;
    await this.#write(provider, {
      ...createList(provider, listed.outcome === "listed" ? listed.models : (before?.models ?? [])),
      ...(listed.outcome === "failed" && { failure: listed.message }),
    });
  }

  async #ask(provider: Provider, signal: AbortSignal): Promise<ListedModels> {
    const { keyCommands } = this.#deps;
    const { keyCommand } = provider;
    // Loaded on demand: few sessions need it.
    const { listModels } = await import("./list-models.ts");
    if (keyCommand === undefined) return listModels(provider, signal);
    try {
      const apiKey = await keyCommands.keyOf(keyCommand);
      const listed = await listModels({ ...provider, apiKey }, signal);
      if (listed.outcome === "failed") keyCommands.forget(keyCommand);
      return listed;
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      return { outcome: "failed", message: error.message };
    }
  }

  /** Refreshes outdated lists in the background if `discover` is configured. */
  keepFresh(providers: Iterable<Provider>, lists: ReadonlyMap<string, ModelList>): void {
    for (const provider of providers)
      if (provider.config.discover && isOld(lists.get(provider.id)))
        void this.#once(provider, () => this.refresh(provider));
  }

  /**
   * Queries local servers without configured models. Waits up to a second for the first list of a server. Failures are
   * not stored, because the user did not request the list.
   */
  async askLocal(providers: Iterable<Provider>): Promise<void> {
    const waits = [...providers].filter(isUnnamedLocal).map(async (provider) => {
      const list = await this.#read(provider);
      const failedAt = this.#failedLocals.get(this.#pathOf(provider)) ?? 0;
      if (!isOld(list) || Date.now() - failedAt < failureMs) return;
      const asking = this.#once(provider, () => this.#listLocal(provider));
      if (list === undefined || list.models.length === 0) await waitAtMost(asking, localWaitMs);
    });
    await Promise.all(waits);
  }

  async #listLocal(provider: Provider): Promise<void> {
    const listed = await this.#ask(provider, this.#end.signal);
    if (listed.outcome === "listed") await this.#write(provider, createList(provider, listed.models));
    else this.#failedLocals.set(this.#pathOf(provider), Date.now());
  }

  /** Runs one request per list at a time. Never rejects. */
  #once(provider: Provider, ask: () => Promise<unknown>): Promise<unknown> {
    const path = this.#pathOf(provider);
    const running = this.#running.get(path);
    if (running !== undefined) return running;
    const asking = ask()
      .catch((error: unknown) => this.#deps.log.warn("model list not stored", errorFields(error)))
      .finally(() => this.#running.delete(path));
    this.#running.set(path, asking);
    return asking;
  }

  async close(): Promise<void> {
    this.#end.abort();
    await Promise.all(this.#running.values());
  }

  async #read(provider: Provider): Promise<ModelList | undefined> {
    const path = this.#pathOf(provider);
    try {
      if (statOrUndefined(path) === undefined) return undefined;
      const text = (await readRegularFile(path)).toString("utf8");
      const list = modelListSchema.parse(JSON.parse(text));
      return list.provider === provider.id && list.baseURL === provider.baseURL ? list : undefined;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      this.#deps.log.warn("stored model list damaged", { path });
      const failure = `${path} is damaged. List them again: fairlead models --discover`;
      return { provider: provider.id, baseURL: provider.baseURL, date: outdatedDate, models: [], failure };
    }
  }

  async #write(provider: Provider, list: ModelList): Promise<void> {
    const path = this.#pathOf(provider);
    const temporary = `${path}.${randomUuid()}.tmp`;
    await makeFolder(this.#deps.folder, 0o700);
    try {
      await writeFile(temporary, JSON.stringify(list), { mode: 0o600, flag: "wx" });
      await retryInUse(() => rename(temporary, path));
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }

  /** Hashes the id: configured text must not become part of a path. */
  #pathOf({ id, baseURL }: Provider): string {
    const name = sha256(JSON.stringify([id, baseURL])).slice(0, 24);
    return join(this.#deps.folder, `${name}.json`);
  }
}

/** Returns messages for the user about lists that could not be loaded. */
export function listProblems(lists: ReadonlyMap<string, ModelList>): string[] {
  return [...lists.values()].flatMap(({ provider, failure }) =>
    failure === undefined ? [] : [`The models of ${provider} could not be listed: ${failure}`],
  );
}

const createList = ({ id, baseURL }: Provider, models: KnownModel[]): ModelList => ({
  provider: id,
  baseURL,
  date: new Date().toISOString(),
  models,
});

/** Returns whether a local server has no configured models. Excludes key commands, which may prompt the user. */
function isUnnamedLocal({ baseURL, config, extraModels, keyCommand }: Provider): boolean {
  const isNamed = Object.keys(config.models ?? {}).length > 0 || extraModels.length > 0;
  return isLoopback(baseURL) && !isNamed && keyCommand === undefined;
}

/** Resolves with the promise or after the timeout. */
async function waitAtMost(promise: Promise<unknown>, ms: number): Promise<void> {
  const over = deferred<void>();
  const timer = setTimeout(() => over.resolve(), ms);
  await Promise.race([promise, over.promise]);
  clearTimeout(timer);
}

function isOld(list: ModelList | undefined): boolean {
  if (list === undefined) return true;
  const age = Date.now() - Date.parse(list.date);
  return age > (list.failure === undefined ? freshMs : failureMs) || age < 0;
}
