import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { wordOf } from "./model.ts";
import type { ProgramName, Setting } from "./setting.ts";
import { median, quantile, type Row } from "./table.ts";

/** Maximum time that the event loop may be blocked, in ms. */
const mostHeldMs = 50;
const sessionCount = 8;

export async function streamingRows(setting: Setting): Promise<Row[]> {
  return [...(await pacedRows(setting)), ...(await floodRows(setting)), ...(await fairRows(setting))];
}

/** Measures the time from the model's byte to the editor's, at a hundred deltas per second. */
async function pacedRows(setting: Setting): Promise<Row[]> {
  const [least, own] = [await paced(setting, "floor"), await paced(setting, "ours")];
  const rate = "100 deltas a second: ";
  const row = (name: string, part: number, most: number): Row => ({
    name: `${rate}${name}`,
    own: quantile(own.latencies, part),
    unit: "ms",
    floor: quantile(least.latencies, part),
    target: { most },
  });
  const cpu: Row = {
    name: `${rate}CPU for each`,
    own: own.cpu,
    unit: "ms",
    floor: least.cpu,
    target: { most: 0.5 },
  };
  return [row("median", 0.5, 0.9), row("p99", 0.99, 3), cpu];
}

async function paced(setting: Setting, program: ProgramName) {
  const { agent, session } = await setting.startWarm(program);
  const count = setting.isShort ? 50 : 1_000;
  const latencies: number[] = [];
  agent.onText = (text) => {
    const now = performance.now();
    for (const [, index] of text.matchAll(/word(\d+) /g)) {
      const sent = setting.model.paced[Number(index)];
      // The answer ends with one more word, which is not paced.
      if (sent !== undefined && latencies.length < count) latencies.push(now - sent);
    }
  };
  const before = agent.cpuMs();
  await agent.prompt(session, `paced ${count}`);
  const cpu = (agent.cpuMs() - before) / count;
  await agent.close();
  return { latencies, cpu };
}

/** Measures deltas at full speed, and checks that they arrive completely and in order. */
async function floodRows(setting: Setting): Promise<Row[]> {
  const deltas = setting.isShort ? 2_000 : 20_000;
  const runs = setting.isShort ? 1 : 5;
  const least: Awaited<ReturnType<typeof flood>>[] = [];
  const own: typeof least = [];
  for (let run = 0; run < runs; run++) {
    least.push(await flood(setting, "floor", deltas));
    own.push(await flood(setting, "ours", deltas));
  }
  const of = (all: typeof own, key: keyof (typeof own)[number]) => median(all.map((figures) => figures[key]));
  const name = `${deltas} deltas at once: `;
  return [
    { name: `${name}wall`, own: of(own, "wall"), unit: "ms", floor: of(least, "wall") },
    {
      name: `${name}CPU`,
      own: of(own, "cpu"),
      unit: "ms",
      floor: of(least, "cpu"),
      target: { ratio: 2 },
    },
    {
      name: `${name}peak`,
      own: of(own, "peak"),
      unit: "MB",
      floor: of(least, "peak"),
      target: { most: 150 },
    },
    {
      name: `${name}event loop held`,
      own: await held(setting, deltas),
      unit: "ms",
      target: { most: mostHeldMs },
    },
  ];
}

async function flood(setting: Setting, program: ProgramName, deltas: number) {
  const { agent, session } = await setting.startWarm(program);
  agent.texts.clear();
  const before = { cpu: agent.cpuMs(), at: performance.now() };
  await agent.prompt(session, `deltas ${deltas}`);
  const wall = performance.now() - before.at;
  const figures = { wall, cpu: agent.cpuMs() - before.cpu, peak: agent.peakMb() };
  await agent.close();
  expectWhole(agent.texts.get(session), deltas);
  return figures;
}

function expectWhole(text: string | undefined, deltas: number): void {
  const whole = Array.from({ length: deltas }, (_, index) => wordOf(index)).join("");
  if (text !== whole) throw new Error(`the ${deltas} deltas did not arrive whole and in order`);
}

/** Longest time that the event loop is blocked while deltas arrive at full speed, in ms of processor time. */
async function held(setting: Setting, deltas: number): Promise<number> {
  const watch = join(import.meta.dirname, "loop-watch.cjs");
  const { agent, session } = await setting.startWarm("ours", ["--require", watch]);
  agent.signal("SIGUSR2");
  await agent.prompt(session, `deltas ${deltas}`);
  agent.signal("SIGUSR2");
  const told = [...(await agent.close()).matchAll(/held ([\d.]+)/g)];
  return Number(told.at(-1)?.[1]);
}

/**
 * Measures several parallel sessions of one process, and the progress of the last one when the first has
 * finished.
 */
async function fairRows(setting: Setting): Promise<Row[]> {
  const deltas = setting.isShort ? 500 : 2_000;
  const [least, own] = [await crowd(setting, "floor", deltas), await crowd(setting, "ours", deltas)];
  const name = `${sessionCount} sessions of ${deltas} deltas: `;
  return [
    { name: `${name}wall`, own: own.wall, unit: "ms", floor: least.wall },
    { name: `${name}CPU`, own: own.cpu, unit: "ms", floor: least.cpu, target: { ratio: 2 } },
    {
      name: `${name}slowest after fastest`,
      own: own.slowest,
      unit: "%",
      floor: least.slowest,
      target: { most: 200 },
    },
  ];
}

async function crowd(setting: Setting, program: ProgramName, deltas: number) {
  const { agent, session } = await setting.startWarm(program);
  const sessions = [session];
  while (sessions.length < sessionCount) {
    const next = await agent.newSession(setting.folder);
    await agent.prompt(next, "deltas 1");
    sessions.push(next);
  }
  agent.texts.clear();
  const before = { cpu: agent.cpuMs(), at: performance.now() };
  const times = await Promise.all(
    sessions.map(async (id) => {
      await agent.prompt(id, `deltas ${deltas}`);
      return performance.now() - before.at;
    }),
  );
  const wall = Math.max(...times);
  const figures = { wall, cpu: agent.cpuMs() - before.cpu, slowest: (100 * wall) / Math.min(...times) };
  await agent.close();
  for (const id of sessions) expectWhole(agent.texts.get(id), deltas);
  return figures;
}
