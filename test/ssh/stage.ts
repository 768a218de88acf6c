import assert from "node:assert/strict";
import { execa } from "execa";
import { Editor } from "../support/editor/editor.ts";
import { type ModelServer, startModelServer } from "../support/model/model-server.ts";
import { environment } from "../support/program/environment.ts";
import { findLeftoversWith, findProcess, findProcessesWith } from "../support/program/processes.ts";
import {
  type GitRepository,
  gitRepository,
  temporaryFolder,
  type TemporaryFolder,
  writeConfig,
} from "../support/temp.ts";
import { type SshServer, startSshServer } from "./ssh-server.ts";

/** A connection of an editor, or of a user. */
export interface ConnectionOptions {
  /** Options of ssh. */
  readonly options?: readonly string[];
  /** The remote shell's command. */
  readonly command?: string;
  /** Variables of ssh. */
  readonly env?: Record<string, string>;
}

/** An ssh server, a home and a project for one scene. */
export class Stage implements AsyncDisposable {
  readonly home: TemporaryFolder;
  readonly repository: GitRepository;
  readonly model: ModelServer;
  readonly #server: SshServer;
  readonly #editors: Editor[] = [];

  private constructor(parts: Pick<Stage, "home" | "repository" | "model"> & { server: SshServer }) {
    ({ home: this.home, repository: this.repository, model: this.model, server: this.#server } = parts);
  }

  static async open(sshd: string): Promise<Stage> {
    const home = await temporaryFolder({}, "fairlead-home-");
    const model = await startModelServer();
    const repository = await gitRepository();
    const stage = new Stage({
      home,
      model,
      repository,
      server: await startSshServer({ sshd, home: home.path }),
    });
    await stage.configure({});
    return stage;
  }

  /** Writes the program's configuration on the remote machine. */
  async configure(more: Record<string, unknown>): Promise<void> {
    await writeConfig(this.home.path, this.model.url, more);
  }

  commandLine({ options = ["-T"], command = "exec fairlead acp" }: ConnectionOptions = {}): string[] {
    return this.#server.commandLine(options, command);
  }

  /** Connects an editor. */
  connect(connection: ConnectionOptions = {}): Editor {
    const editor = new Editor({
      home: this.home.path,
      cwd: this.repository.path,
      command: this.commandLine(connection),
      permission: "never",
      env: connection.env ?? {},
    });
    this.#editors.push(editor);
    return editor;
  }

  /** Runs a command on the remote machine without an editor. */
  async run(command: string) {
    const [program = "", ...args] = this.commandLine({ command });
    return execa(program, args, { stdin: "ignore", reject: false, env: environment(this.home.path) });
  }

  /** Returns the ids of the program's remote processes, oldest first. */
  async findAgents(): Promise<number[]> {
    const found = await findProcessesWith("HOME", this.home.path);
    const agents = found.filter(({ command }) => /^\S+ \S*fairlead acp$/.test(command));
    return agents.map(({ pid }) => pid);
  }

  /** Returns the id of the server process for the agent's connection. */
  async findConnection(): Promise<number> {
    const [agent = 0] = await this.findAgents();
    let found = await findProcess(agent);
    while (found !== undefined && !found.command.startsWith("sshd")) found = await findProcess(found.parent);
    if (found !== undefined) return found.pid;
    throw new Error("The agent was not started by sshd.");
  }

  /** Plays a scene, then checks that the wires have no faults and that no process remains. */
  async play(scene: (stage: Stage) => Promise<void>): Promise<void> {
    try {
      await scene(this);
    } catch (error) {
      for (const editor of this.#editors) console.error(`${editor.wire.excerpt()}\n${editor.stderr}`);
      throw error;
    }
    for (const editor of this.#editors) {
      await editor.close();
      editor.assertClean();
    }
    this.model.assertClean();
    assert.deepEqual(await findLeftoversWith("HOME", this.home.path), [], "processes are left");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const editor of this.#editors) await editor.kill();
    await this.#server[Symbol.asyncDispose]();
    await this.model.close();
    await this.repository.remove();
    await this.home.remove();
  }
}
