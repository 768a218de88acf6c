import { rmSync, statSync } from "node:fs";
import { chmod, mkdir, mkdtemp, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { once } from "../base/async.ts";
import { childProcess } from "../workspace/process/child-process.ts";
import { type Environment, findProgram } from "../workspace/process/find-program.ts";
import { createBubblewrapArguments } from "./bubblewrap.ts";
import type { Connections } from "./network/filter-proxy.ts";
import type { FilteredNetwork } from "./network/filtered-network.ts";
import type { Covers, SandboxProfile } from "./profile.ts";
import { createSeatbeltProfile } from "./seatbelt.ts";

/** Time for a trial start; a system under load needs more than a moment. */
const trialTimeoutMs = 10_000;

/** How a command starts in the sandbox. */
export interface Confined {
  readonly argv: readonly string[];
  /** Variables to add to its environment. */
  readonly env: Readonly<Record<string, string>>;
  /** A process of the sandbox holds the output open exactly as long as any process in the sandbox runs. */
  readonly holdsOutput: boolean;
}

/** The sandbox of the operating system. Finds its program and makes its folders on first use. */
export class Sandbox {
  readonly #env: () => Environment;
  readonly #platform: NodeJS.Platform;
  readonly #folders = once(createFolders);
  readonly #trial = once(() => this.#try());
  readonly #network = once(() => this.#openNetwork());
  #base: string | undefined;
  #opened: FilteredNetwork | undefined;

  constructor(options: { env: () => Environment; platform?: NodeJS.Platform }) {
    this.#env = options.env;
    this.#platform = options.platform ?? process.platform;
  }

  /** Returns why commands cannot be confined here, and what to do about it; undefined if they can. */
  async findProblem(): Promise<string | undefined> {
    const tried = await this.#trial();
    return typeof tried === "string" ? tried : undefined;
  }

  /** The folder for temporary files of confined commands, which lasts as long as this process. */
  async temporary(): Promise<string> {
    const { base, temporary } = await this.#folders();
    this.#base = base;
    return temporary;
  }

  /** Returns why commands cannot be limited to single hosts here; undefined if they can. */
  async findNetworkProblem(): Promise<string | undefined> {
    const problem = await this.findProblem();
    if (problem !== undefined) return problem;
    const network = await this.#network();
    return typeof network === "string" ? network : undefined;
  }

  /**
   * Opens the connections of a command, for which `mayConnect` is asked with `example.org` or `example.org:8080`.
   * Undefined if hosts cannot be filtered here: then the command has no network.
   */
  async openConnections(mayConnect: (target: string) => boolean): Promise<Connections | undefined> {
    const network = await this.#network();
    return typeof network === "string" ? undefined : network.proxy.open(mayConnect);
  }

  /** Returns the command line that runs `argv` confined. Rejects if there is no sandbox. */
  async confine(
    argv: readonly string[],
    profile: SandboxProfile,
    { cwd, connections }: { cwd: string; connections: Connections | undefined },
  ): Promise<Confined> {
    const tried = await this.#trial();
    if (typeof tried === "string") throw new Error(tried);
    const { covers } = await this.#folders();
    const network = connections === undefined ? undefined : this.#opened;
    const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
    const unshareNetwork = !profile.network && network === undefined;
    const prefix =
      this.#platform === "darwin"
        ? ["-p", createSeatbeltProfile(profile)]
        : createBubblewrapArguments(profile, { cwd, covers, isFolder, unshareNetwork });
    const { temporary } = profile;
    return {
      argv: [...(network?.enter ?? []), tried.program, ...prefix, ...argv],
      env: {
        TMPDIR: temporary,
        TMP: temporary,
        TEMP: temporary,
        ...(connections && network?.createEnvironment(connections)),
      },
      holdsOutput: this.#platform === "linux",
    };
  }

  /** Removes the temporary folder. Must not throw. */
  close(): void {
    this.#opened?.close();
    if (this.#base === undefined) return;
    try {
      rmSync(this.#base, { recursive: true, force: true });
    } catch {
      // A command that still runs may write to it; the system cleans its temporary folder.
    }
  }

  async #openNetwork(): Promise<FilteredNetwork | string> {
    const tried = await this.#trial();
    if (typeof tried === "string") return tried;
    const { openLinuxNetwork, openLoopbackNetwork } = await import("./network/filtered-network.ts");
    const trial = linuxTrial.filter((word) => word !== "--unshare-net");
    const network =
      this.#platform === "linux"
        ? await openLinuxNetwork({ bwrap: tried.program, env: this.#env(), trial })
        : await openLoopbackNetwork();
    if (typeof network !== "string") this.#opened = network;
    return network;
  }

  /** Finds the program and starts something in it; returns the problem if that fails. */
  async #try(): Promise<{ program: string } | string> {
    const name = programs[this.#platform];
    if (name === undefined)
      return "Commands cannot run in a sandbox on this system: only Linux and macOS have one that Fairlead uses.";
    const program = await findProgram(name, this.#env());
    if (program === undefined) return this.#platform === "linux" ? missingBubblewrap : missingSeatbelt;
    const args =
      this.#platform === "linux" ? linuxTrial : ["-p", "(version 1)(allow default)", "/usr/bin/true"];
    try {
      await promisify(childProcess().execFile)(program, args, { timeout: trialTimeoutMs });
      return { program };
    } catch (error) {
      const shown = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
      return `${program} cannot start a sandbox here: ${shown || String(error)}. ${
        this.#platform === "linux" ? namespaceAdvice : ""
      }`.trim();
    }
  }
}

const programs: Partial<Record<NodeJS.Platform, string>> = { linux: "bwrap", darwin: "sandbox-exec" };

const linuxTrial =
  "--unshare-user --unshare-pid --unshare-ipc --unshare-net --cap-drop ALL --ro-bind / / --dev /dev --proc /proc --tmpfs /run -- /bin/sh -c :".split(
    " ",
  );

const missingBubblewrap =
  "Commands cannot run in a sandbox: bubblewrap (bwrap) is not installed. Install the package bubblewrap, for example with: sudo apt install bubblewrap, sudo dnf install bubblewrap, sudo pacman -S bubblewrap, or apk add bubblewrap.";
const missingSeatbelt =
  "Commands cannot run in a sandbox: sandbox-exec, a part of macOS, is not on the PATH.";
const namespaceAdvice =
  "It needs user namespaces: on Ubuntu 24.04 and newer allow them for bwrap by an AppArmor profile or with sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, on other systems with sudo sysctl kernel.unprivileged_userns_clone=1; in a container, start it with a security profile that allows them.";

/** Creates the temporary folder, and a file and a folder without any rights next to it. */
async function createFolders(): Promise<{ base: string; temporary: string; covers: Covers }> {
  const base = await realpath(await mkdtemp(join(tmpdir(), "fairlead-sandbox-")));
  const temporary = join(base, "tmp");
  const covers = { file: join(base, "hidden-file"), folder: join(base, "hidden-folder") };
  await mkdir(temporary, { mode: 0o700 });
  await writeFile(covers.file, "", { mode: 0o000 });
  await mkdir(covers.folder);
  await chmod(covers.folder, 0o000);
  return { base, temporary, covers };
}
