import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { BenchAgent } from "./agent.ts";
import { bytesBelow, type ProgramName, type Setting } from "./setting.ts";
import { median, type Row } from "./table.ts";

/** Measures the time from starting the process to each answer, in ms, and its memory at that point, in MB. */
async function startOnce(setting: Setting, program: ProgramName, folder = setting.folder) {
  const start = performance.now();
  const agent = setting.start(program);
  await agent.initialize();
  const initialized = performance.now() - start;
  const afterInitialize = agent.residentMb();
  const session = await agent.newSession(folder);
  const opened = performance.now() - start;
  const openedCpu = agent.cpuMs();
  const afterSession = agent.residentMb();
  const prompted = performance.now() - start;
  const first = new Promise<number>((resolve) => (agent.onText = () => resolve(performance.now() - start)));
  const request = setting.model.nextRequest();
  const turn = agent.prompt(session, "deltas 1");
  const asked = (await request) - start - prompted;
  const askedCpu = agent.cpuMs() - openedCpu;
  const firstText = await first;
  await turn;
  await agent.close();
  return { initialized, opened, openedCpu, asked, askedCpu, firstText, afterInitialize, afterSession };
}

export async function startRows(setting: Setting): Promise<Row[]> {
  const large = largeFolder(setting);
  const runs = setting.isShort ? 3 : 15;
  const bare: number[] = [];
  const least: Awaited<ReturnType<typeof startOnce>>[] = [];
  const own: typeof least = [];
  const inLarge: typeof least = [];
  await startOnce(setting, "ours");
  // The compiled code of the first start is written a moment later.
  await sleep(500);
  const kept = bytesBelow(setting.home);
  for (let run = 0; run < runs; run++) {
    bare.push(bareNode(setting));
    least.push(await startOnce(setting, "floor"));
    own.push(await startOnce(setting, "ours"));
    inLarge.push(await startOnce(setting, "ours", large.folder));
  }
  const of = (all: typeof own, key: keyof (typeof own)[number]) => median(all.map((times) => times[key]));
  const besideNode = { unit: "ms", floor: median(bare), beside: "node -e 0" } as const;
  return [
    { name: "spawn to initialize", own: of(own, "initialized"), ...besideNode, target: { ratio: 1.25 } },
    { name: "spawn to session/new", own: of(own, "opened"), ...besideNode, target: { ratio: 3.5 } },
    {
      name: `the same among ${large.files} files`,
      own: of(inLarge, "opened"),
      ...besideNode,
      target: { ratio: 3.5 },
    },
    {
      name: "spawn to first text",
      own: of(own, "firstText"),
      unit: "ms",
      floor: of(least, "firstText"),
      target: { most: 150 },
    },
    {
      name: "first prompt to first request, cold",
      own: of(own, "asked"),
      unit: "ms",
      floor: of(least, "asked"),
      target: { most: 40 },
    },
    {
      name: "CPU until session/new",
      own: of(own, "openedCpu"),
      unit: "ms",
      floor: of(least, "openedCpu"),
      target: { ratio: 3.5 },
    },
    {
      name: "CPU of a first prompt until its request, cold",
      own: of(own, "askedCpu"),
      unit: "ms",
      floor: of(least, "askedCpu"),
    },
    {
      name: "memory after initialize",
      own: of(own, "afterInitialize"),
      unit: "MB",
      floor: of(least, "afterInitialize"),
      target: { most: 60 },
    },
    {
      name: "memory after session/new",
      own: of(own, "afterSession"),
      unit: "MB",
      floor: of(least, "afterSession"),
      target: { most: 80 },
    },
    { name: "home folder after a first start", own: kept / 1024, unit: "KB", target: { most: 1_500 } },
    ...(await furtherRows(setting, runs)),
  ];
}

/** Measures further sessions and prompts after a first turn, each from its request. */
async function furtherRows(setting: Setting, runs: number): Promise<Row[]> {
  const { agent, session } = await setting.startWarm();
  const opened: number[] = [];
  const asked: number[] = [];
  const shown: number[] = [];
  const ended: number[] = [];
  const whole: number[] = [];
  const cpu: number[] = [];
  for (let run = 0; run < runs + 3; run++) {
    const before = performance.now();
    await agent.newSession(setting.folder);
    opened.push(performance.now() - before);
  }
  for (let run = 0; run < runs + 3; run++) {
    const request = setting.model.nextRequest();
    const used = agent.cpuMs();
    const before = performance.now();
    let firstText = before;
    agent.onText = () => (firstText = performance.now());
    const turn = agent.prompt(session, "deltas 1");
    asked.push((await request) - before);
    await turn;
    const end = performance.now();
    whole.push(end - before);
    cpu.push(agent.cpuMs() - used);
    const answered = setting.model.exchanges.at(-1)?.answered ?? Number.NaN;
    shown.push(firstText - answered);
    ended.push(end - answered);
  }
  const long = await askInLongConversation(setting, agent, runs);
  await agent.close();
  const write = { unit: "ms", floor: plainWrite(setting), beside: "a durable write" } as const;
  return [
    { name: "a further session/new", own: median(opened.slice(3)), ...write, target: { most: 5 } },
    { name: "prompt to request, warm", own: median(asked.slice(3)), ...write, target: { most: 5 } },
    { name: "answer to first text, warm", own: median(shown.slice(3)), unit: "ms", target: { most: 1.5 } },
    {
      name: "answer to the prompt's end, warm",
      own: median(ended.slice(3)),
      unit: "ms",
      target: { most: 5 },
    },
    { name: "a warm turn, whole", own: median(whole.slice(3)), ...write },
    { name: "a warm turn, CPU", own: median(cpu.slice(3)), unit: "ms", target: { most: 12 } },
    {
      name: `prompt to request after ${longKilobytes} KB`,
      own: median(long),
      unit: "ms",
      floor: median(asked.slice(3)),
      beside: "of a short conversation",
      target: { more: 6 },
    },
  ];
}

/** Size of the text of a long conversation, in KB. */
const longKilobytes = 630;

/** Returns the times from prompt to request in a session that begins with long messages. */
async function askInLongConversation(setting: Setting, agent: BenchAgent, runs: number): Promise<number[]> {
  const session = await agent.newSession(setting.folder);
  const parts = 9;
  const sentence = "A line of a long conversation, of which every request has all the others. ";
  const message = sentence.repeat((longKilobytes * 1024) / parts / sentence.length);
  for (let part = 0; part < parts; part++) await agent.prompt(session, `${message} deltas 1`);
  const asked: number[] = [];
  for (let run = 0; run < runs + 3; run++) {
    const request = setting.model.nextRequest();
    const before = performance.now();
    const turn = agent.prompt(session, "deltas 1");
    asked.push((await request) - before);
    await turn;
  }
  return asked.slice(3);
}

function bareNode({ env }: Setting): number {
  const start = performance.now();
  spawnSync(process.execPath, ["-e", "0"], { env });
  return performance.now() - start;
}

/** Measures the minimum for a journal and a message: small files written and renamed one after the other. */
function plainWrite({ folder }: Setting): number {
  const before = performance.now();
  for (let file = 0; file < 20; file++) {
    writeFileSync(join(folder, "plain.tmp"), "x".repeat(1_000), { flush: true });
    renameSync(join(folder, "plain.tmp"), join(folder, `plain-${file}`));
  }
  return (performance.now() - before) / 20;
}

/** Creates a repository of many small files, a hundred per folder. */
function largeFolder({ folder, isShort }: Setting): { folder: string; files: number } {
  const files = isShort ? 2_000 : 100_000;
  const large = `${folder}-large`;
  mkdirSync(large);
  spawnSync("git", ["init", "--quiet", large]);
  for (let file = 0; file < files; file++) {
    const parent = join(large, `folder-${Math.floor(file / 100)}`);
    if (file % 100 === 0) mkdirSync(parent);
    writeFileSync(join(parent, `file-${file}.txt`), "");
  }
  return { folder: large, files };
}
