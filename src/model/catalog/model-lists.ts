import { errorFields } from "../../base/error-fields.ts";
import { createHash, randomUUID } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { deferred } from "../../base/async.ts";
import { codeOf, UserError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { isLoopback } from "../../base/loopback.ts";
import { statOrUndefined } from "../../base/files/file-stat.ts";
import { makeFolder } from "../../base/files/make-folder.ts";
import { readRegularFile } from "../../base/files/regular-file.ts";
import { updateSharedFile } from "../../storage/json/lock.ts";
import type { KeyCommands } from "../keys/key-command.ts";
import { type KnownModel, knownModelSchema } from "./known-models.ts";
import type { ListedModels } from "./list-models.ts";
import type { Provider } from "./usable-providers.ts";

/** A list is asked for again after this time where the configuration says so (`discover`). */
const freshMs = 24 * 60 * 60 * 1_000;
/** A failure is kept for this time, so that a server that is away is not asked by each session. */
const failureMs = 60_000;
/** How long a session waits for the first list of a server on this machine. */
const localWaitMs = 1_000;

/** Date of a list that is asked for again as soon as the configuration allows. */
const longAgo = new Date(0).toISOString();

const modelListSchema = z.object({
  provider: z.string(),
  baseURL: z.string(),
  /** When it was asked for. */
  date: z.iso.datetime(),
  models: z.array(knownModelSchema),
  /** Why the newest try failed; the models are those of the one before. */
  failure: z.string().optional(),
});
/** What a server said of its models, and when. */
export type ModelList = z.infer<typeof modelListSchema>;

export interface ModelListsDeps {
  /** Where lists are kept between runs. */
  readonly folder: string;
  /** Where the locks are under which processes change files. */
  readonly lockFolder: string;
  readonly keyCommands: KeyCommands;
  readonly log: Log;
}

/**
 * The lists of models that servers gave. Unasked are only servers with `discover`, and those on this machine of whose
 * models nothing is configured.
 */
export class ModelLists {
  readonly #deps: ModelListsDeps;
  readonly #end = new AbortController();
  readonly #running = new Map<string, Promise<unknown>>();
  /** When servers on this machine did not answer, by the path of their list. */
  readonly #failedLocals = new Map<string, number>();

  constructor(deps: ModelListsDeps) {
    this.#deps = deps;
  }

  /** The lists that are kept of these providers, by id. */
  async load(providers: Iterable<Provider>): Promise<Map<string, ModelList>> {
    const lists = await Promise.all([...providers].map((provider) => this.#read(provider)));
    return new Map(lists.flatMap((list): [string, ModelList][] => (list ? [[list.provider, list]] : [])));
  }

  /** The files in which lists of these providers are, or will be. */
  files(providers: Iterable<Provider>): string[] {
    return [...providers].map((provider) => this.#pathOf(provider));
  }

  /** Asks a provider and keeps what it says. */
  async refresh(provider: Provider, signal: AbortSignal = this.#end.signal): Promise<ListedModels> {
    const listed = await this.#ask(provider, signal);
    if (signal.aborted) return listed;
    await updateSharedFile(this.#pathOf(provider), this.#deps.lockFolder, () => this.#keep(provider, listed));
    return listed;
  }

  async #keep(provider: Provider, listed: ListedModels): Promise<void> {
    const before = listed.outcome === "failed" ? await this.#read(provider) : undefined;
    await this.#write(provider, {
      ...listOf(provider, listed.outcome === "listed" ? listed.models : (before?.models ?? [])),
      ...(listed.outcome === "failed" && { failure: listed.message }),
    });
  }

  async #ask(provider: Provider, signal: AbortSignal): Promise<ListedModels> {
    const { keyCommands } = this.#deps;
    const { keyCommand } = provider;
    // Few sessions ask.
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

  /** Asks in the background where the configuration wants it and the list is old. */
  keepFresh(providers: Iterable<Provider>, lists: ReadonlyMap<string, ModelList>): void {
    for (const provider of providers)
      if (provider.config.discover && isOld(lists.get(provider.id)))
        void this.#once(provider, () => this.refresh(provider));
  }

  /**
   * Asks servers on this machine whose models nobody named. Waits a second for a first list, for others not at all. A
   * failure is not kept: nobody asked.
   */
  async askLocal(providers: Iterable<Provider>): Promise<void> {
    const waits = [...providers].filter(isUnnamedLocal).map(async (provider) => {
      const list = await this.#read(provider);
      const failedAt = this.#failedLocals.get(this.#pathOf(provider)) ?? 0;
      if (!isOld(list) || Date.now() - failedAt < failureMs) return;
      const asking = this.#once(provider, () => this.#listLocal(provider));
      if (list === undefined || list.models.length === 0) await within(asking, localWaitMs);
    });
    await Promise.all(waits);
  }

  async #listLocal(provider: Provider): Promise<void> {
    const listed = await this.#ask(provider, this.#end.signal);
    if (listed.outcome === "listed") await this.#write(provider, listOf(provider, listed.models));
    else this.#failedLocals.set(this.#pathOf(provider), Date.now());
  }

  /** Runs one question for each list at a time. Never rejects. */
  #once(provider: Provider, ask: () => Promise<unknown>): Promise<unknown> {
    const path = this.#pathOf(provider);
    const running = this.#running.get(path);
    if (running !== undefined) return running;
    const asking = ask()
      .catch((error: unknown) =>
        this.#deps.log.warn("a list of models could not be kept", errorFields(error)),
      )
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
      this.#deps.log.warn("stored list of models is damaged", { path });
      const failure = `${path} is damaged. List them again: fairlead models --discover`;
      return { provider: provider.id, baseURL: provider.baseURL, date: longAgo, models: [], failure };
    }
  }

  async #write(provider: Provider, list: ModelList): Promise<void> {
    const path = this.#pathOf(provider);
    const temporary = `${path}.${randomUUID()}.tmp`;
    await makeFolder(this.#deps.folder, 0o700);
    try {
      await writeFile(temporary, JSON.stringify(list), { mode: 0o600, flag: "wx" });
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }

  /** An id from a configuration must not become part of a path. */
  #pathOf({ id, baseURL }: Provider): string {
    const name = createHash("sha256")
      .update(JSON.stringify([id, baseURL]))
      .digest("hex")
      .slice(0, 24);
    return join(this.#deps.folder, `${name}.json`);
  }
}

/** What the person should know of lists that could not be had. */
export function listProblems(lists: ReadonlyMap<string, ModelList>): string[] {
  return [...lists.values()].flatMap(({ provider, failure }) =>
    failure === undefined ? [] : [`The models of ${provider} could not be listed: ${failure}`],
  );
}

const listOf = ({ id, baseURL }: Provider, models: KnownModel[]): ModelList => ({
  provider: id,
  baseURL,
  date: new Date().toISOString(),
  models,
});

/** A program that prints a key may ask the user something: it is not run for this. */
function isUnnamedLocal({ baseURL, config, extraModels, keyCommand }: Provider): boolean {
  const isNamed = Object.keys(config.models ?? {}).length > 0 || extraModels.length > 0;
  return isLoopback(baseURL) && !isNamed && keyCommand === undefined;
}

/** Resolves with the promise, or when the time is over. */
async function within(promise: Promise<unknown>, ms: number): Promise<void> {
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
