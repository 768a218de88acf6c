import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { ProjectSandbox } from "../../src/sandbox/project-sandbox.ts";
import { Sandbox } from "../../src/sandbox/sandbox.ts";
import type { Setting } from "./setting.ts";
import { median, type Row } from "./table.ts";

const run = promisify(execFile);

/** Measures the time of an empty command in the sandbox, beside the same command without it. */
export async function sandboxRows({ folder, home, isShort }: Setting): Promise<Row[]> {
  const system = new Sandbox({ env: () => process.env });
  const problem = await system.findProblem();
  if (problem !== undefined) {
    console.warn(`Not measured: the sandbox. ${problem}`);
    return [];
  }
  const own = { config: join(home, "config"), data: join(home, "data"), runtime: join(home, "runtime") };
  const sandbox = new ProjectSandbox({
    settings: {},
    folders: {
      cwd: folder,
      roots: [folder],
      worktree: undefined,
      home,
      outputFolder: own.data,
      skills: [],
      own,
    },
    env: () => process.env,
    system: () => Promise.resolve(system),
    rules: () => [],
    warn: () => {},
  });
  const argv = ["bash", "-c", ":"];
  const confined = async () => {
    const line = await sandbox.confineProgram(argv, { sandbox: true, start: folder });
    await start(line.argv, line.env);
  };
  // The first command also opens the network.
  await confined();
  const rounds = isShort ? 2 : 50;
  const floor = await measure(rounds, () => start(argv, {}));
  const time = await measure(rounds, confined);
  system.close();
  const target = { more: 10 };
  return [{ name: "a command in the sandbox", own: time, floor, beside: "bash -c :", unit: "ms", target }];
}

async function start([program = "", ...args]: readonly string[], env: Readonly<Record<string, string>>) {
  await run(program, args, { env: { ...process.env, ...env } });
}

async function measure(rounds: number, task: () => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const before = performance.now();
    await task();
    times.push(performance.now() - before);
  }
  return median(times);
}
