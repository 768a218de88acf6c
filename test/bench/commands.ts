import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openChangeTracker } from "../../src/workspace/changes/change-tracker.ts";
import type { Setting } from "./setting.ts";
import type { Row } from "./table.ts";

const sizes = [
  { files: 5_000, rounds: 20, most: 30 },
  { files: 100_000, rounds: 5, most: 300 },
];
const filesPerFolder = 50;

/**
 * Measures the processor time, in ms, to find that one of several commands changed nothing in a repository.
 */
export async function commandRows({ folder, isShort }: Setting): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { files, rounds, most } of isShort ? sizes.slice(0, 1) : sizes) {
    const root = makeRepository(join(folder, `files-${files}`), files);
    const tracker = openChangeTracker(() => process.env, []);
    const compare = async () => void (await (await tracker.start([root], [])).finish());
    const look = () => execFileSync("git", ["status", "--porcelain"], { cwd: root });
    // The first commands also find git, read its index and start to watch the folders.
    for (let first = 0; first < 2; first++) await compare();
    const count = isShort ? 2 : rounds;
    const floor = await measureCpu(count, async () => void look());
    const row = { unit: "ms", floor, beside: "git status", target: { most } } as const;
    let edits = 0;
    const editAndCompare = async () => {
      writeFileSync(join(root, "part0", "folder0", "file0.ts"), `edit ${edits++}\n`);
      await compare();
    };
    rows.push(
      {
        ...row,
        name: `a command in ${files} files: CPU to find changes`,
        own: await measureCpu(count, compare),
      },
      {
        ...row,
        name: `a command in ${files} files after an edit`,
        own: await measureCpu(count, editAndCompare),
      },
    );
  }
  return rows;
}

function makeRepository(root: string, files: number): string {
  for (let number = 0; number < files / filesPerFolder; number++) {
    const folder = join(root, `part${number % 20}`, `folder${number}`);
    mkdirSync(folder, { recursive: true });
    for (let file = 0; file < filesPerFolder; file++)
      writeFileSync(join(folder, `file${file}.ts`), `export const value = ${number * file};\n`);
  }
  const git = (...args: string[]) => execFileSync("git", args, { cwd: root, stdio: "ignore" });
  git("init", "-q");
  git("add", "-A");
  git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first");
  return root;
}

async function measureCpu(rounds: number, task: () => Promise<void>): Promise<number> {
  const before = usedMs();
  for (let round = 0; round < rounds; round++) await task();
  return (usedMs() - before) / rounds;
}

/** Clock ticks of Linux in ms. */
const tickMs = 10;

/** Processor time of this process and of its child processes. */
function usedMs(): number {
  const { user, system } = process.cpuUsage();
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]?.split(" ") ?? [];
  return (user + system) / 1_000 + (Number(fields[13]) + Number(fields[14])) * tickMs;
}
