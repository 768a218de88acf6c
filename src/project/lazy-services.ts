import { dirname } from "node:path";
import { once } from "../base/async.ts";
import { UserError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { importModule } from "../base/import-module.ts";
import type { Notifier, NotifierDeps } from "../hook/notifier.ts";
import type { SessionHooks, SessionHooksDeps } from "../hook/session-hooks.ts";
import type { LanguageServers } from "../lsp/language-servers.ts";
import type { ProjectServers, ProjectServersDeps } from "../lsp/project-servers.ts";
import type { SharedPlugins } from "../plugin/shared-plugins.ts";
import type { ChildEnvironment } from "../workspace/process/child-variables.ts";
import type { NodeProgramOptions } from "../workspace/process/node-program.ts";
import type { PipedProcesses } from "../workspace/process/piped-process.ts";
import type { Watchdog } from "../workspace/process/watchdog.ts";
import type { Workspace } from "../workspace/workspace.ts";

export interface LazyServicesDeps {
  /** Path of the child program that runs plugin modules. */
  readonly pluginHost: string;
  readonly variables: ChildEnvironment;
  readonly processes: PipedProcesses;
  readonly watchdog: Watchdog;
  readonly workspace: Pick<Workspace, "files" | "snapshots">;
  readonly log: Log;
  /** Shows a warning to the user. */
  readonly warn: (text: string) => void;
}

/** Plugins and language servers, shared by all projects and loaded on first use: most sessions need neither. */
export class LazyServices {
  readonly #deps: LazyServicesDeps;
  #plugins: SharedPlugins | undefined;
  readonly #languageServers = once(() => this.#openLanguageServers());
  #isClosing = false;

  constructor(deps: LazyServicesDeps) {
    this.#deps = deps;
  }

  async openPlugins(): Promise<SharedPlugins> {
    if (this.#isClosing) throw new UserError("The program is shutting down.");
    const [{ SharedPlugins }, { NodeProgram, createNodeLine }] = await Promise.all([
      import("../plugin/shared-plugins.ts"),
      import("../workspace/process/node-program.ts"),
    ]);
    const { pluginHost, variables, watchdog, log } = this.#deps;
    const argv = createNodeLine(pluginHost);
    const start = (options: NodeProgramOptions) =>
      new NodeProgram({ argv, env: variables.get(), watchdog }, options);
    this.#plugins ??= new SharedPlugins({ program: { argv, folder: dirname(pluginHost), start }, log });
    return this.#plugins;
  }

  /** The running language servers. The first edit or question starts those that it needs. */
  languageServers(): Promise<LanguageServers> {
    return this.#languageServers();
  }

  /** Opens the language servers of a project. */
  async openProjectServers(deps: Omit<ProjectServersDeps, "env" | "servers">): Promise<ProjectServers> {
    const { ProjectServers } = await importModule(() => import("../lsp/project-servers.ts"));
    const env = () => this.#deps.variables.get();
    return new ProjectServers({ ...deps, env, servers: () => this.#languageServers() });
  }

  /** Opens the hooks of a session. */
  async openHooks(deps: Omit<SessionHooksDeps, "processes">): Promise<SessionHooks> {
    const { SessionHooks } = await importModule(() => import("../hook/session-hooks.ts"));
    return new SessionHooks({ ...deps, processes: this.#deps.processes });
  }

  /** Opens the notifications of a project. */
  async openNotifier(deps: Pick<NotifierDeps, "settings" | "cwd">): Promise<Notifier> {
    const { Notifier } = await importModule(() => import("../hook/notifier.ts"));
    const { processes, log } = this.#deps;
    // In `run` this is the user's terminal; editors read stderr through a pipe.
    const { stderr } = process;
    const terminal = stderr.isTTY ? (text: string) => void stderr.write(text) : undefined;
    return new Notifier({ ...deps, processes, log, terminal });
  }

  killAll(): void {
    this.#plugins?.killAll();
  }

  async closeAll(): Promise<void> {
    this.#isClosing = true;
    await this.#plugins?.closeAll();
  }

  async #openLanguageServers(): Promise<LanguageServers> {
    const { LanguageServers } = await importModule(() => import("../lsp/language-servers.ts"));
    const { processes, workspace, log, warn } = this.#deps;
    const { snapshots, files } = workspace;
    const read = async (path: string) => (await files.read(path)).bytes;
    return new LanguageServers({ processes, snapshots, read, log, warn });
  }
}
