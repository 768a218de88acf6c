import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BenchAgent } from "./agent.ts";
import { BenchModel } from "./model.ts";

export type ProgramName = "ours" | "floor";

/** The environment of all measurements: a model, a home and a working folder, removed when the run ends. */
export class Setting {
  readonly isShort: boolean;
  readonly model: BenchModel;
  readonly folder: string;
  readonly home: string;
  readonly env: Record<string, string | undefined>;
  readonly #root: string;
  readonly #programs: Readonly<Record<ProgramName, readonly string[]>>;

  /** @param build The folder with the built program that is measured as "ours". */
  static async open(isShort: boolean, build: string): Promise<Setting> {
    return new Setting(isShort, build, await BenchModel.start());
  }

  private constructor(isShort: boolean, build: string, model: BenchModel) {
    this.isShort = isShort;
    this.model = model;
    this.#programs = {
      ours: [join(build, "bin/fairlead.js"), "acp"],
      floor: [join(import.meta.dirname, "floor-agent.js")],
    };
    this.#root = mkdtempSync(join(tmpdir(), "fairlead-bench-"));
    this.folder = join(this.#root, "project");
    this.home = join(this.#root, "home");
    for (const folder of [this.folder, this.home]) mkdirSync(folder);
    const { PATH } = process.env;
    const content = JSON.stringify(configFor(model.url));
    this.env = { PATH, HOME: this.home, FAIRLEAD_CONFIG_CONTENT: content, MODEL_URL: model.url };
  }

  start(program: ProgramName = "ours", nodeOptions: readonly string[] = []): BenchAgent {
    return new BenchAgent([...nodeOptions, ...this.#programs[program]], this.env);
  }

  /** The program with another configuration. */
  startWith(config: unknown): BenchAgent {
    return new BenchAgent(this.#programs.ours, {
      ...this.env,
      FAIRLEAD_CONFIG_CONTENT: JSON.stringify(config),
    });
  }

  /** A started program with a session that has had its first turn. */
  async startWarm(program: ProgramName = "ours", nodeOptions: readonly string[] = []) {
    const agent = this.start(program, nodeOptions);
    await agent.initialize();
    const session = await agent.newSession(this.folder);
    await agent.prompt(session, "deltas 1");
    return { agent, session };
  }

  close(): void {
    this.model.close();
    rmSync(this.#root, { recursive: true, force: true });
  }
}

/** Returns the size of a folder in bytes. */
export function bytesBelow(folder: string, isWanted: (path: string) => boolean = () => true): number {
  return filesIn(folder)
    .filter(isWanted)
    .reduce((sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0);
}

export function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

function configFor(baseURL: string) {
  const models = { m: { limit: { context: 1e7, output: 1e5 } } };
  return {
    model: "bench/m",
    provider: { bench: { options: { baseURL, apiKey: "k" }, models } },
    permission: { bash: "allow", edit: "allow" },
    // An installed language server would add a question and its own time.
    lsp: false,
  };
}
