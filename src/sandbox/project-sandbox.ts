import { mkdirSync, readdirSync, realpathSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { messageOf, UserError } from "../base/errors.ts";
import { expandHome } from "../permission/pattern.ts";
import type { Action, PermissionRequest, Ruleset } from "../permission/rule.ts";
import { addHookFolders, describeAddedFiles } from "./added-files.ts";
import { findBlockedReason } from "./blocked.ts";
import { type AllowedCommand, deriveProfile } from "./derive-profile.ts";
import type { Connections } from "./network/filter-proxy.ts";
import { matchesHost } from "./network/host-pattern.ts";
import type { SandboxProfile } from "./profile.ts";
import type { ConfinedLine } from "../workspace/process/process.ts";
import { type ProtectedFiles, ProtectedFileSearch } from "./protected-files.ts";
import { blockedEnding, RedirectionGuard } from "./redirection-guard.ts";
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
  /** Folders of skills, whose scripts run though they are in a hidden folder. */
  readonly skills: readonly string[];
  /** The program's configuration and data, which have keys in them, and its sockets, which answer questions. */
  readonly own: { readonly config: string; readonly data: string; readonly runtime: string };
}

export interface ProjectSandboxDeps {
  readonly settings: SandboxSettings;
  readonly folders: ProjectFolders;
  readonly env: () => Readonly<Record<string, string | undefined>>;
  readonly system: () => Promise<Sandbox>;
  /** The lists of rules of sessions, for programs that all of them use. */
  readonly rules: () => readonly Ruleset[];
  /** Informs the user. */
  readonly warn: (text: string) => void;
}

/** The inputs of a profile, in addition to the settings. */
type DerivedFrom = Pick<AllowedCommand, "requests" | "start" | "program" | "reads"> &
  Pick<SandboxProfile, "network" | "hosts">;

/** The key `sandbox` in the entry of a server, hook or plugin. */
export type ProgramSandbox = boolean | { readonly network?: SandboxSettings["network"] };

/** A program of the configuration, such as a server, that runs in the sandbox by itself. */
export interface ProgramToRun {
  readonly sandbox: ProgramSandbox;
  /** Files and folders that the program needs, and that stay visible inside hidden folders; real paths. */
  readonly reads?: readonly string[];
  /** The folder in which it starts; an absolute path. */
  readonly start: string;
}

/** Returns the command line that runs a program in the sandbox. Rejects with a message for the user if it cannot. */
export type ConfineProgram = (argv: readonly string[], program: ProgramToRun) => Promise<ConfinedLine>;

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
      /**
       * Returns a note about files that appeared and that the command should not have created. Called at its end;
       * `isRunning` is set if processes that it started still run.
       */
      findAddedFiles(isRunning: boolean): Promise<string | undefined>;
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
      const find = () => this.#find(filter);
      const found = addHookFolders(await find());
      const network = { network: settings.network === true, hosts: [...this.#hosts, ...command.hosts] };
      const profile = this.#derive({ ...command, ...network }, filter, found, await system.temporary());
      const guard = new RedirectionGuard(found.pinned, new Set(found.readOnly), (path) =>
        this.#deps.warn(
          `A command in the sandbox created ${path}, which would redirect git: renamed to end in ${blockedEnding}.`,
        ),
      );
      const findAddedFiles = async (isRunning: boolean) => {
        // Processes in the background end with the program.
        if (!isRunning) guard.stop();
        return describeAddedFiles(found, await find(), guard.renamed);
      };
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

  /** Runs a program that asks no questions, with the workspace writable and the network of its entry. */
  readonly confineProgram: ConfineProgram = async (argv, { sandbox, start, reads }) => {
    const { settings, rules } = this.#deps;
    const system = await this.#deps.system();
    const problem = findProgramProblem(settings) ?? (await system.findProblem());
    if (problem !== undefined) throw new UserError(`its entry sets "sandbox". ${problem}`);
    const filter = createReadFilter(rules());
    const found = addHookFolders(await this.#find(filter));
    const { network } = typeof sandbox === "object" ? sandbox : {};
    const cwd = realpathSync.native(start);
    const hosts = listHosts(network);
    const program = { start: cwd, program: argv[0], reads, requests: [], network: network === true, hosts };
    const profile = this.#derive(program, filter, found, await system.temporary());
    const connections = profile.network
      ? undefined
      : await this.#connect(system, hosts, (target) => hosts.some((host) => matchesHost(host, target)));
    return system.confine(argv, profile, { cwd, connections });
  };

  #openConnections(system: Sandbox, command: CommandToRun): Promise<Connections | undefined> {
    const allowed = [...this.#hosts, ...command.hosts];
    return this.#connect(system, allowed, (target) => {
      const action = command.judgeConnection(target);
      return action === "allow" || (action === "ask" && allowed.some((host) => matchesHost(host, target)));
    });
  }

  async #connect(
    system: Sandbox,
    hosts: readonly string[],
    mayConnect: (target: string) => boolean,
  ): Promise<Connections | undefined> {
    const connections = await system.openConnections(mayConnect);
    if (connections === undefined && hosts.length > 0)
      this.#warnOnce(`${(await system.findNetworkProblem()) ?? ""} They run without network.`);
    return connections;
  }

  get #hosts(): readonly string[] {
    return listHosts(this.#deps.settings.network);
  }

  #find(filter: ReadFilter): Promise<ProtectedFiles> {
    const { roots, cwd } = this.#deps.folders;
    return this.#search.find(roots, cwd, filter);
  }

  #derive(
    { requests, start, program, reads, network, hosts }: DerivedFrom,
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
      program,
      reads: [...folders.skills, ...(reads ?? [])],
      folders: { ...folders, own: listOwnFolders(own, outputFolder) },
      additions: {
        writable: toPaths(settings.writable),
        hidden: toPaths(settings.hidden),
        network,
        hosts,
      },
      found,
      unreadable: filter.named,
      temporary,
      env: env(),
    });
  }
}

function listHosts(network: SandboxSettings["network"]): readonly string[] {
  return typeof network === "object" ? network.hosts : [];
}

/** Returns why the configuration lets no program run in the sandbox by itself. */
function findProgramProblem({ mode, command }: SandboxSettings): string | undefined {
  if (mode === "off") return 'The configuration sets "sandbox" to "off". Remove one of the two.';
  return command === undefined
    ? undefined
    : 'The words of "sandbox.command" run commands only. Remove "sandbox" from the entry; the command of a server can start it there.';
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
