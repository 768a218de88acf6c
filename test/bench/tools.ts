import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { BenchAgent } from "./agent.ts";
import type { ScriptedCall } from "./model.ts";
import type { ProgramName, Setting } from "./setting.ts";
import { median, type Row } from "./table.ts";

const printedMb = 50;

export async function toolRows(setting: Setting): Promise<Row[]> {
  writeScripts(setting);
  return [
    ...(await readRows(setting)),
    ...(await longTurnRows(setting)),
    ...(await searchRows(setting)),
    ...(await shellRows(setting)),
    ...(await memoryRows(setting)),
  ];
}

const reads = (isShort: boolean): number => (isShort ? 10 : 50);
const manyReads = (isShort: boolean): number => (isShort ? 20 : 400);

function writeScripts({ model, folder, isShort }: Setting): void {
  const file = join(folder, "read.txt");
  writeFileSync(file, Array.from({ length: 100 }, (_, line) => `This is line ${line} of a file.\n`).join(""));
  // All calls differ, because a model that repeats itself is stopped.
  const readFrom = (offset: number): ScriptedCall => ({ name: "read", input: { filePath: file, offset } });
  const searchFor = (digits: number) => ({ name: "grep", input: { pattern: `needle \\d{${digits}}` } });
  const line = "x".repeat(79);
  const print = `yes ${line} | head -c ${printedMb * 1024 * 1024}`;
  const edit = { filePath: file, oldString: "line 7 of", newString: "line seven of" };
  model.scripts.set(
    "reads",
    Array.from({ length: reads(isShort) }, (_, index) => readFrom(index + 1)),
  );
  model.scripts.set(
    "many",
    Array.from({ length: manyReads(isShort) }, (_, index) => ({
      name: "read",
      input: { filePath: file, offset: 1 + (index % 50), limit: 50 - Math.floor(index / 50) },
    })),
  );
  model.scripts.set(
    "search",
    Array.from({ length: isShort ? 2 : 6 }, (_, index) => searchFor(index + 1)),
  );
  model.scripts.set("print", [{ name: "bash", input: { command: print } }]);
  model.scripts.set("tour", [
    readFrom(1),
    searchFor(1),
    { name: "bash", input: { command: "ls" } },
    { name: "edit", input: edit },
  ]);
}

/** Waits until the modules that load after the first answers are loaded: users do not call tools earlier. */
const restMs = 1_000;

/**
 * Plays one turn of the script. Returns the times between the model's answers and its next requests, in ms.
 */
async function runScript(setting: Setting, program: ProgramName, script: string) {
  const { agent, session } = await setting.startWarm(program);
  if (!setting.isShort) await sleep(restMs);
  setting.model.exchanges = [];
  const before = agent.cpuMs();
  const receivedBefore = agent.received;
  await agent.prompt(session, `calls ${script}`);
  const { exchanges } = setting.model;
  const steps = exchanges.slice(1).map(({ asked }, index) => asked - (exchanges[index]?.answered ?? asked));
  const figures = {
    steps,
    cpu: agent.cpuMs() - before,
    peak: agent.peakMb(),
    resident: agent.residentMb(),
    received: (agent.received - receivedBefore) / 1024,
  };
  const calls = setting.model.scripts.get(script)?.length;
  if (steps.length !== calls) throw new Error(`${program} made ${steps.length} of ${calls} calls`);
  return { agent, session, ...figures };
}

async function readRows(setting: Setting): Promise<Row[]> {
  const least = await runScript(setting, "floor", "reads");
  const own = await runScript(setting, "ours", "reads");
  const turns = await plainTurns(setting, own);
  await Promise.all([least.agent.close(), own.agent.close()]);
  const count = reads(setting.isShort);
  const name = `${count} reads in a turn: `;
  return [
    {
      name: `${name}each`,
      own: median(own.steps),
      unit: "ms",
      floor: median(least.steps),
      target: { most: 8 },
    },
    {
      name: `${name}CPU for each`,
      own: own.cpu / count,
      unit: "ms",
      floor: least.cpu / count,
      target: { most: 8 },
    },
    { name: `turn after ${count} reads`, own: median(turns), unit: "ms", target: { most: 8 } },
  ];
}

/**
 * Measures turns of one word, in ms: their only work is the text read earlier, which their requests contain.
 */
async function plainTurns(setting: Setting, { agent, session }: { agent: BenchAgent; session: string }) {
  const turns: number[] = [];
  while (turns.length < (setting.isShort ? 3 : 20)) {
    const before = performance.now();
    await agent.prompt(session, "deltas 1");
    turns.push(performance.now() - before);
  }
  return turns;
}

/** Measures how much longer a step takes in a long turn, whose request contains everything read before. */
async function longTurnRows(setting: Setting): Promise<Row[]> {
  const own = await runScript(setting, "ours", "many");
  await own.agent.close();
  const edge = Math.min(20, Math.floor(own.steps.length / 3));
  const first = median(own.steps.slice(3, 3 + edge));
  return [
    {
      name: `read ${own.steps.length} of a turn`,
      own: median(own.steps.slice(-edge)),
      unit: "ms",
      floor: first,
      beside: "read 3 and after",
      target: { more: 2 },
    },
  ];
}

/** Measures a search of many files beside ripgrep's own time for them. */
async function searchRows(setting: Setting): Promise<Row[]> {
  const files = setting.isShort ? 200 : 5_000;
  for (let file = 0; file < files; file++) {
    const parent = join(setting.folder, `part-${Math.floor(file / 100)}`);
    if (file % 100 === 0) mkdirSync(parent);
    const needle = file % 100 === 50 ? `needle ${file}\n` : "";
    writeFileSync(
      join(parent, `file-${file}.txt`),
      `${"A line of a file that is searched.\n".repeat(100)}${needle}`,
    );
  }
  const { rgPath } = createRequire(import.meta.url)("@vscode/ripgrep");
  const bare = Array.from({ length: 6 }, () => {
    const before = performance.now();
    spawnSync(rgPath, ["--line-number", "needle \\d+", setting.folder]);
    return performance.now() - before;
  });
  const own = await runScript(setting, "ours", "search");
  await own.agent.close();
  const name = `grep of ${files} files`;
  return [
    {
      name,
      own: median(own.steps),
      unit: "ms",
      floor: median(bare),
      beside: "ripgrep",
      target: { more: 20 },
    },
  ];
}

async function shellRows(setting: Setting): Promise<Row[]> {
  const runs = setting.isShort ? 1 : 5;
  const least: Awaited<ReturnType<typeof runScript>>[] = [];
  const own: typeof least = [];
  const print = async (program: ProgramName) => {
    const figures = await runScript(setting, program, "print");
    await figures.agent.close();
    return figures;
  };
  for (let run = 0; run < runs; run++) {
    least.push(await print("floor"));
    own.push(await print("ours"));
  }
  const wall = (all: typeof own) => median(all.flatMap(({ steps }) => steps));
  const peak = (all: typeof own) => median(all.map(({ peak }) => peak));
  const name = `bash prints ${printedMb} MB: `;
  return [
    { name: `${name}wall`, own: wall(own), unit: "ms", floor: wall(least), target: { ratio: 2 } },
    { name: `${name}peak`, own: peak(own), unit: "MB", floor: peak(least), target: { most: 150 } },
    {
      name: `${name}sent`,
      own: median(own.map(({ received }) => received)),
      unit: "KB",
      target: { most: 200 },
    },
  ];
}

/**
 * Measures memory after a turn with a read, a search, a command and an edit, and the processor time of the
 * idle program.
 */
async function memoryRows(setting: Setting): Promise<Row[]> {
  const runs = setting.isShort ? 1 : 5;
  const resident: number[] = [];
  const idle: number[] = [];
  for (let run = 0; run < runs; run++) {
    writeScripts(setting);
    const { agent, resident: afterTurn } = await runScript(setting, "ours", "tour");
    resident.push(afterTurn);
    if (run === 0) idle.push(await idleCpu(agent, setting.isShort));
    await agent.close();
  }
  return [
    { name: "memory after a turn with tools", own: median(resident), unit: "MB", target: { most: 95 } },
    {
      name: `idle: CPU in ${setting.isShort ? 1 : 10} s`,
      own: median(idle),
      unit: "ms",
      target: { most: 1 },
    },
  ];
}

/**
 * Processor time of an idle agent, in ms. During the wait the agent finishes the turn's background work and
 * V8 collects garbage, once about eight seconds after the last work.
 */
async function idleCpu(agent: { cpuMs(): number }, isShort: boolean): Promise<number> {
  await sleep(isShort ? 1_500 : 12_000);
  const before = agent.cpuMs();
  await sleep(isShort ? 1_000 : 10_000);
  return agent.cpuMs() - before;
}
