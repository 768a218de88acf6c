import { mkdirSync, readdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { messageOf } from "../base/errors.ts";
import { expandHome } from "../permission/pattern.ts";
import type { Action, PermissionRequest, Ruleset } from "../permission/rule.ts";
import { addHookFolders, describeAddedFiles } from "./added-files.ts";
import { findBlockedReason } from "./blocked.ts";
import { deriveProfile } from "./derive-profile.ts";
import type { Connections } from "./network/filter-proxy.ts";
import { matchesHost } from "./network/host-pattern.ts";
import type { SandboxProfile } from "./profile.ts";
import { type ProtectedFiles, ProtectedFileSearch } from "./protected-files.ts";
import { createReadFilter, type ReadFilter } from "./read-filter.ts";
import type { Confined, Sandbox } from "./sandbox.ts";
import { wrapCommand } from "./wrapper.ts";

/** Variable in which a configured command finds the profile, as JSON. */
const profileVariable = "FAIRLEAD_SANDBOX_PROFILE";

/** The configuration key `sandbox`. */
export interface SandboxSettings {
  /** Undefined confines commands only in sessions whose approval setting is *Sandboxed*. */
  readonly mode?: "off" | "auto" | "required" | undefined;
  /** Everything, nothing, or single hosts. */
  readonly network?: boolean | { readonly hosts: readonly string[] } | undefined;
  readonly writable?: readonly string[] | undefined;
  readonly hidden?: readonly string[] | undefined;
  /** Words that run a command in another place, instead of the sandbox of the system. */
  readonly command?: readonly string[] | undefined;
}

/** The folders of a project, and those of the program. */
export interface ProjectFolders {
  readonly cwd: string;
  readonly roots: readonly string[];
  readonly worktree: string | undefined;
  readonly home: string;
  readonly outputFolder: string;
  /** The program's configuration and data, which have keys in them, and its sockets, which answer questions. */
  readonly own: { readonly config: string; readonly data: string; readonly runtime: string };
}

export interface ProjectSandboxDeps {
  readonly settings: SandboxSettings;
  readonly folders: ProjectFolders;
  readonly env: () => Readonly<Record<string, string | undefined>>;
  readonly system: () => Promise<Sandbox>;
  /** Informs the user. */
  readonly warn: (text: string) => void;
}

/** A command line that was allowed. */
export interface CommandToRun {
  readonly command: string;
  /** The folder in which it starts; an absolute real path. */
  readonly start: string;
  readonly requests: readonly PermissionRequest[];
  /** The session's approval setting is *Sandboxed*. */
  readonly isSandboxed: boolean;
  /** The lists of rules that apply to the session. */
  readonly rules: readonly Ruleset[];
  /** Whether a rule or an approval lets it run outside the sandbox. */
  readonly isAllowedOutside: boolean;
  /** Hosts that the user allowed for this run. */
  readonly hosts: readonly string[];
  /** Returns what rules and approvals say about a connection to `example.org` or `example.org:8080`. */
  judgeConnection(target: string): Action;
}

/** How a command line runs. */
export type Confinement =
  | { readonly kind: "none" }
  /** It must not run; the reason is for the model and the user. */
  | { readonly kind: "refused"; readonly reason: string }
  | {
      readonly kind: "confined";
      confine(argv: readonly string[]): Promise<Confined>;
      /** Returns why the sandbox made it fail, as far as its output shows it. */
      findBlockedReason(output: string): string | undefined;
      /** Returns the hosts to which connections were blocked, in order. */
      listBlockedHosts(): readonly string[];
      /** Returns a note about files that appeared and that the command should not have created. */
      findAddedFiles(): Promise<string | undefined>;
      /** Whether the user may allow it to run outside. */
      readonly mayLeave: boolean;
    };

/** Decides how the commands of a project run. */
export class ProjectSandbox {
  readonly #deps: ProjectSandboxDeps;
  readonly #search = new ProtectedFileSearch();
  readonly #warned = new Set<string>();

  constructor(deps: ProjectSandboxDeps) {
    this.#deps = deps;
  }

  /** Returns why commands cannot be limited to the configured hosts; undefined if they can, or none are configured. */
  async findNetworkProblem(): Promise<string | undefined> {
    const { settings, system } = this.#deps;
    if (this.#hosts.length === 0 || settings.command !== undefined) return undefined;
    return (await system()).findNetworkProblem();
  }

  /** Returns why the approval setting *Sandboxed* cannot be used; undefined if it can. */
  async findProblem(): Promise<string | undefined> {
    const { settings, system } = this.#deps;
    if (settings.mode === "off")
      return 'Commands cannot run in a sandbox: the configuration sets "sandbox" to "off". Remove it, or choose another approval setting.';
    return settings.command === undefined ? (await system()).findProblem() : undefined;
  }

  async open(command: CommandToRun): Promise<Confinement> {
    const { mode } = this.#deps.settings;
    const isWanted = command.isSandboxed || mode === "auto" || mode === "required";
    if (!isWanted) return { kind: "none" };
    if (command.isAllowedOutside && mode !== "required") return { kind: "none" };
    const problem = await this.findProblem();
    if (problem === undefined) return this.#confine(command);
    if (!command.isSandboxed && mode === "auto") return this.#runWithout(problem);
    const reason = command.isSandboxed
      ? "the session's approval setting is Sandboxed; the user can choose another one"
      : 'the configuration sets "sandbox" to "required"';
    return { kind: "refused", reason: `Not run: ${reason}. ${problem}` };
  }

  #runWithout(problem: string): Confinement {
    this.#warnOnce(`Commands run without a sandbox. ${problem}`);
    return { kind: "none" };
  }

  #warnOnce(text: string): void {
    if (this.#warned.has(text)) return;
    this.#warned.add(text);
    this.#deps.warn(text);
  }

  async #confine(command: CommandToRun): Promise<Confinement> {
    const { settings } = this.#deps;
    const mayLeave = settings.mode !== "required";
    try {
      const system = await this.#deps.system();
      const filter = createReadFilter(command.rules);
      const { roots, cwd } = this.#deps.folders;
      const find = () => this.#search.find(roots, cwd, filter);
      const found = addHookFolders(await find());
      const profile = this.#derive(command, filter, found, await system.temporary());
      const findAddedFiles = async () => describeAddedFiles(found, await find());
      const { command: words } = settings;
      if (words !== undefined) {
        const argv = wrapCommand(words, command.command, command.start);
        const env = { [profileVariable]: JSON.stringify(profile) };
        const confine = () => Promise.resolve({ argv, env, holdsOutput: false });
        return {
          kind: "confined",
          mayLeave,
          confine,
          findAddedFiles,
          findBlockedReason: () => undefined,
          listBlockedHosts: () => [],
        };
      }
      const connections = profile.network ? undefined : await this.#openConnections(system, command);
      return {
        kind: "confined",
        mayLeave,
        findAddedFiles,
        confine: (argv) => system.confine(argv, profile, { cwd: command.start, connections }),
        findBlockedReason: (output) => findBlockedReason(output, profile),
        listBlockedHosts: () => [...(connections?.blocked ?? [])],
      };
    } catch (error) {
      return { kind: "refused", reason: `Not run: the sandbox could not be prepared: ${messageOf(error)}.` };
    }
  }

  async #openConnections(system: Sandbox, command: CommandToRun): Promise<Connections | undefined> {
    const allowed = [...this.#hosts, ...command.hosts];
    const connections = await system.openConnections((target) => {
      const action = command.judgeConnection(target);
      return action === "allow" || (action === "ask" && allowed.some((host) => matchesHost(host, target)));
    });
    if (connections === undefined && allowed.length > 0)
      this.#warnOnce(`${(await system.findNetworkProblem()) ?? ""} They run without network.`);
    return connections;
  }

  get #hosts(): readonly string[] {
    const { network } = this.#deps.settings;
    return typeof network === "object" ? network.hosts : [];
  }

  #derive(
    { requests, start, hosts }: CommandToRun,
    filter: ReadFilter,
    found: ProtectedFiles,
    temporary: string,
  ): SandboxProfile {
    const { folders, settings, env } = this.#deps;
    const { cwd, home, own, outputFolder } = folders;
    const toPaths = (paths: readonly string[] = []) =>
      paths.map((path) => resolve(cwd, expandHome(path, home)));
    return deriveProfile({
      requests,
      start,
      folders: { ...folders, own: listOwnFolders(own, outputFolder) },
      additions: {
        writable: toPaths(settings.writable),
        hidden: toPaths(settings.hidden),
        network: settings.network === true,
        hosts: [...this.#hosts, ...hosts],
      },
      found,
      unreadable: filter.named,
      temporary,
      env: env(),
    });
  }
}

/** Returns the program's configuration and sockets, and its data except the outputs of commands. */
function listOwnFolders({ config, data, runtime }: ProjectFolders["own"], outputFolder: string): string[] {
  makeRuntimeFolder(runtime);
  try {
    const names = readdirSync(data).filter((name) => name !== basename(outputFolder));
    return [config, runtime, ...names.map((name) => join(data, name))];
  } catch {
    // No data yet.
    return [config, runtime];
  }
}

/** A socket may be created while a command runs: only a folder that exists can be hidden from it. */
function makeRuntimeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch {
    // No socket can be created there either.
  }
}
