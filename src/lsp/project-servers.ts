import { realpath } from "node:fs/promises";
import { once } from "../base/async.ts";
import type { Config } from "../config/schema.ts";
import type { ConfineProgram } from "../sandbox/project-sandbox.ts";
import { isInside } from "../workspace/paths.ts";
import { type Environment, findCommand } from "../workspace/process/find-program.ts";
import { findFiles, type FoundFiles } from "./servers/find-files.ts";
import { LanguageQueries, type QueryServer } from "./language-queries.ts";
import type { LanguageServers, ServerFolders } from "./language-servers.ts";
import { selectServers, type ServerAnswers, type ServerChoice } from "./servers/select-servers.ts";

export interface ProjectServersDeps {
  readonly config: Config["lsp"];
  /** Real path of the worktree, or of the working directory outside git. */
  readonly root: string;
  readonly cwd: string;
  /** Real paths of the session's folders. Programs in them are part of the project and not used unasked. */
  readonly roots: readonly string[];
  readonly env: () => Environment;
  readonly confine: ConfineProgram;
  /** The running servers of the process; loaded on first use. */
  servers(): Promise<LanguageServers>;
  /** The user's answers for the project. */
  answers: {
    load(): Promise<ServerAnswers>;
    save(answers: ServerAnswers): Promise<void>;
  };
}

/** Installed servers that the user was not asked about. */
export interface OfferedServers {
  readonly folder: string;
  readonly servers: readonly { readonly name: string; readonly program: string }[];
  /** Stores the user's answer for the project. */
  answer(isAgreed: boolean): Promise<void>;
}

/** The language servers of a project. What may run is decided once, so that the tools of a conversation stay. */
export class ProjectServers {
  readonly #deps: ProjectServersDeps;
  readonly #files = once(() => this.#findFiles());
  readonly #decided = once(() => this.choices());

  constructor(deps: ProjectServersDeps) {
    this.#deps = deps;
  }

  /** The servers with their current states. */
  async choices(): Promise<readonly ServerChoice[]> {
    const { config, root, env, answers } = this.#deps;
    const [files, known] = await Promise.all([this.#files(), answers.load()]);
    const find = async (name: string) => this.#outsideProject(await findCommand(name, env()));
    return selectServers({ config, files, root, answers: known, findProgram: find });
  }

  /** The installed servers to ask the user about; undefined if there are none. */
  async offered(): Promise<OfferedServers | undefined> {
    const open = (await this.choices()).filter(({ state }) => state === "open");
    if (open.length === 0) return undefined;
    const names = open.map(({ name }) => name);
    const { root, answers } = this.#deps;
    return {
      folder: root,
      servers: open.map(({ name, config }) => ({ name, program: config.command?.[0] ?? name })),
      answer: (isAgreed) => answers.save({ agreed: isAgreed ? names : [], declined: isAgreed ? [] : names }),
    };
  }

  /** Returns the queries that tools use; undefined unless a server may run that serves files of the project. */
  async queries(): Promise<LanguageQueries | undefined> {
    const [usable, files] = await Promise.all([this.#usable(), this.#files()]);
    const isUsed = usable.some(({ sample }) => sample !== undefined || !files.isComplete);
    if (!isUsed) return undefined;
    const folders = await this.folders();
    return new LanguageQueries({ folders, choices: usable, servers: () => this.#deps.servers() });
  }

  /** The servers that may run, for checks of edits. */
  async folders(): Promise<ServerFolders> {
    const { root, cwd, confine } = this.#deps;
    const servers = Object.fromEntries((await this.#usable()).map(({ name, config }) => [name, config]));
    return { servers, root, cwd, confine };
  }

  async #usable(): Promise<QueryServer[]> {
    return (await this.#decided()).filter(({ state }) => state === "usable");
  }

  /** Lists the files of the working directory, then those of the worktree. */
  async #findFiles(): Promise<FoundFiles> {
    const { root, cwd } = this.#deps;
    const near = await findFiles(cwd);
    if (root === cwd) return near;
    const all = await findFiles(root);
    return { paths: [...near.paths, ...all.paths], isComplete: near.isComplete && all.isComplete };
  }

  async #outsideProject(program: string | undefined): Promise<string | undefined> {
    if (program === undefined) return undefined;
    const { root, roots } = this.#deps;
    const path = await realpath(program).catch(() => undefined);
    const places = path === undefined ? [] : [program, path];
    return places.length === 0 || places.some((place) => isInside(place, [root, ...roots]))
      ? undefined
      : program;
  }
}
