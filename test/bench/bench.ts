import { spawnSync } from "node:child_process";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { BenchAgent } from "./agent.ts";
import { startBenchModel } from "./model.ts";

// Figures of the program as ratios to a bare Node process of the same run. `--short` only shows that it runs.
const isShort = process.argv.includes("--short");
const runs = isShort ? 3 : 15;
const deltas = isShort ? 2_000 : 20_000;

const folder = mkdtempSync(join(tmpdir(), "fairlead-bench-"));
const model = await startBenchModel();
process.env["BENCH_DELTAS"] = String(deltas);
const config = {
  model: "bench/m",
  provider: {
    bench: {
      options: { baseURL: model.url, apiKey: "k" },
      models: { m: { limit: { context: 1e6, output: 1e5 } } },
    },
  },
};
const env = {
  PATH: process.env["PATH"],
  HOME: folder,
  FAIRLEAD_CONFIG_CONTENT: JSON.stringify(config),
  MODEL_URL: model.url,
};
const ours = [join(import.meta.dirname, "../../bin/fairlead.js"), "acp"];
const floor = [join(import.meta.dirname, "floor-agent.js")];

const median = (values: number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
const rows: string[][] = [];

function bareNode(): number {
  const start = performance.now();
  spawnSync(process.execPath, ["-e", "0"], { env });
  return performance.now() - start;
}

async function startTimes(program: string[]) {
  const start = performance.now();
  const agent = new BenchAgent(program, env);
  await agent.initialize();
  const initialized = performance.now() - start;
  const afterInitialize = agent.residentMb();
  const session = await agent.newSession(folder);
  const opened = performance.now() - start;
  const first = new Promise<number>((resolve) => (agent.onText = () => resolve(performance.now() - start)));
  const turn = agent.prompt(session, "deltas 1");
  const firstText = await first;
  await turn;
  const afterTurn = agent.residentMb();
  await agent.close();
  return { initialized, opened, firstText, afterInitialize, afterTurn };
}

async function flood(program: string[]) {
  const agent = new BenchAgent(program, env);
  await agent.initialize();
  const session = await agent.newSession(folder);
  await agent.prompt(session, "deltas 1");
  const before = { cpu: agent.cpuMs(), at: performance.now() };
  agent.text = "";
  await agent.prompt(session, `deltas ${deltas}`);
  const result = {
    wall: performance.now() - before.at,
    cpu: agent.cpuMs() - before.cpu,
    rss: agent.residentMb(),
  };
  const expected = Array.from({ length: deltas }, (_, index) => `word${index} `).join("");
  const isWhole = agent.text.includes(expected);
  await agent.close();
  if (!isWhole) throw new Error(`${program[0]}: the ${deltas} deltas did not arrive whole and in order`);
  return result;
}

async function warmTurn() {
  const agent = new BenchAgent(ours, env);
  await agent.initialize();
  const session = await agent.newSession(folder);
  const times: { asked: number; total: number }[] = [];
  for (let turn = 0; turn < runs + 3; turn++) {
    const asked = model.nextRequest();
    const start = performance.now();
    const answered = agent.prompt(session, "deltas 1");
    await asked;
    const at = performance.now() - start;
    await answered;
    times.push({ asked: at, total: performance.now() - start });
  }
  await agent.close();
  const warm = times.slice(3);
  return { asked: median(warm.map(({ asked }) => asked)), total: median(warm.map(({ total }) => total)) };
}

/** Many short turns in one session, and the session loaded again by a new process. */
async function growth(count: number) {
  const agent = new BenchAgent(ours, env);
  await agent.initialize();
  const session = await agent.newSession(folder);
  const times: number[] = [];
  let early = 0;
  for (let turn = 0; turn < count; turn++) {
    const before = performance.now();
    await agent.prompt(session, "deltas 3");
    times.push(performance.now() - before);
    if (turn === 2) early = agent.residentMb();
  }
  const late = agent.residentMb();
  await agent.close();
  const reader = new BenchAgent(ours, env);
  await reader.initialize();
  await reader.request("session/list", {});
  const before = performance.now();
  await reader.request("session/load", { sessionId: session, cwd: folder, mcpServers: [] });
  const load = performance.now() - before;
  await reader.close();
  const edge = Math.min(20, Math.floor(count / 3));
  return { first: median(times.slice(3, 3 + edge)), last: median(times.slice(-edge)), early, late, load };
}

/** Sessions after the first, each from its request to its answer. */
async function furtherSessions() {
  const agent = new BenchAgent(ours, env);
  await agent.initialize();
  await agent.newSession(folder);
  const times: number[] = [];
  for (let session = 0; session < runs + 5; session++) {
    const before = performance.now();
    await agent.newSession(folder);
    times.push(performance.now() - before);
  }
  await agent.close();
  return median(times.slice(5));
}

/** What the journal and a message cost at least: one small file after the other, written and renamed. */
function plainWrite(): number {
  const before = performance.now();
  for (let file = 0; file < 20; file++) {
    writeFileSync(join(folder, "plain.tmp"), "x".repeat(1_000), { flush: true });
    renameSync(join(folder, "plain.tmp"), join(folder, `plain-${file}`));
  }
  return (performance.now() - before) / 20;
}

const bare: number[] = [];
const start: Awaited<ReturnType<typeof startTimes>>[] = [];
const least: Awaited<ReturnType<typeof startTimes>>[] = [];
await startTimes(ours);
await new Promise((resolve) => setTimeout(resolve, 500));
for (let run = 0; run < runs; run++) {
  bare.push(bareNode());
  least.push(await startTimes(floor));
  start.push(await startTimes(ours));
}
const bareMs = median(bare);
const ratio = (value: number, base: number) => `${(value / base).toFixed(2)} x`;
const ms = (value: number) => `${value.toFixed(1)} ms`;
const mb = (value: number) => `${value.toFixed(0)} MB`;
for (const [name, key] of [
  ["spawn to initialize", "initialized"],
  ["spawn to session/new", "opened"],
  ["spawn to first text", "firstText"],
] as const) {
  const own = median(start.map((times) => times[key]));
  rows.push([name, ms(own), ms(median(least.map((times) => times[key]))), `${ratio(own, bareMs)} node -e 0`]);
}
for (const [name, key] of [
  ["memory after initialize", "afterInitialize"],
  ["memory after a turn", "afterTurn"],
] as const) {
  const own = median(start.map((times) => times[key]));
  const base = median(least.map((times) => times[key]));
  rows.push([name, mb(own), mb(base), `${ratio(own, base)} floor`]);
}
const write = plainWrite();
const further = await furtherSessions();
rows.push([
  "a further session/new",
  ms(further),
  ms(write),
  `${ratio(further, write)} a plain durable write`,
]);
const warm = await warmTurn();
rows.push(
  ["warm turn: prompt to model asked", ms(warm.asked), "", ""],
  ["warm turn: whole", ms(warm.total), "", ""],
);
const [ownFlood, leastFlood] = [await flood(ours), await flood(floor)];
rows.push([
  `${deltas} deltas: wall`,
  ms(ownFlood.wall),
  ms(leastFlood.wall),
  `${ratio(ownFlood.wall, leastFlood.wall)} floor`,
]);
rows.push([
  `${deltas} deltas: CPU`,
  ms(ownFlood.cpu),
  ms(leastFlood.cpu),
  `${ratio(ownFlood.cpu, leastFlood.cpu)} floor`,
]);
rows.push([
  `${deltas} deltas: memory`,
  mb(ownFlood.rss),
  mb(leastFlood.rss),
  `${ratio(ownFlood.rss, leastFlood.rss)} floor`,
]);
const turns = isShort ? 30 : 300;
const grown = await growth(turns);
rows.push(
  [`turn 4 to 23: each`, ms(grown.first), "", ""],
  [`the last 20 of ${turns} turns: each`, ms(grown.last), "", `${ratio(grown.last, grown.first)} the first`],
);
rows.push(
  [`memory after 3 turns`, mb(grown.early), "", ""],
  [`memory after ${turns} turns`, mb(grown.late), "", `${ratio(grown.late, grown.early)} after 3`],
);
rows.push([`load of ${turns} turns`, ms(grown.load), "", `${ratio(grown.load, bareMs)} node -e 0`]);
model.close();
rmSync(folder, { recursive: true, force: true });

console.log(`node -e 0: ${ms(bareMs)} (median of ${runs}, Node ${process.versions.node})`);
const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
for (const row of [["", "ours", "floor", "ratio"], ...rows]) {
  console.log(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "));
}
