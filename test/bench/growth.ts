import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { performance } from "node:perf_hooks";
import { dig } from "./agent.ts";
import { bytesBelow, filesIn, type Setting } from "./setting.ts";
import { median, type Row } from "./table.ts";

/** Deltas of an answer, about 2 KB of text. */
const answerDeltas = 250;
/** Text of the turns that only make a session long. */
const fillerDeltas = 20;

export async function growthRows(setting: Setting): Promise<Row[]> {
  const { session, rows } = await grow(setting);
  const load = await loadRow(setting, session, `those ${turnsOf(setting)} turns`, 100);
  await lengthen(setting, session);
  const longLoad = await loadRow(setting, session, `${messagesOf(setting)} messages`, 300);
  return [...rows, load, longLoad, ...(await listRows(setting, session))];
}

/** Measures memory and files over many turns in one session that keeps all of them. */
async function grow(setting: Setting): Promise<{ session: string; rows: Row[] }> {
  const turns = turnsOf(setting);
  const { agent, session } = await setting.startWarm();
  const bytesBefore = storedBytes(setting);
  agent.texts.clear();
  const times: number[] = [];
  let early = 0;
  for (let turn = 2; turn <= turns; turn++) {
    const before = performance.now();
    await agent.prompt(session, `deltas ${answerDeltas}`);
    times.push(performance.now() - before);
    if (turn === 3) early = agent.residentMb();
  }
  const late = agent.residentMb();
  const content = (agent.texts.get(session)?.length ?? 0) + times.length * `deltas ${answerDeltas}`.length;
  const stored = storedBytes(setting) - bytesBefore;
  await agent.close();
  const edge = Math.min(20, Math.floor(turns / 3));
  const firstTurns = median(times.slice(1, 1 + edge));
  const first = { unit: "ms", floor: firstTurns, beside: "turn 3 and after" } as const;
  const rows: Row[] = [
    { name: "turn 3 and after", own: firstTurns, unit: "ms", target: { most: 8 } },
    { name: `turn ${turns}`, own: median(times.slice(-edge)), ...first, target: { more: 2 } },
    {
      name: `memory after ${turns} turns`,
      own: late,
      unit: "MB",
      floor: early,
      beside: "after 3",
      target: { more: 25 },
    },
    {
      name: `bytes on disk of ${turns} turns`,
      own: stored / 1024,
      unit: "KB",
      floor: content / 1024,
      beside: "their text",
      target: { ratio: 2 },
    },
  ];
  return { session, rows };
}

const turnsOf = ({ isShort }: Setting): number => (isShort ? 30 : 300);
const messagesOf = ({ isShort }: Setting): number => (isShort ? 80 : 2_000);

/** Except the cache of compiled code. */
function storedBytes({ home }: Setting): number {
  return bytesBelow(home, (path) => !path.startsWith(join(home, ".cache")));
}

/** Plays more turns until the session has the wanted number of messages. */
async function lengthen(setting: Setting, session: string): Promise<void> {
  const { agent } = await setting.startWarm();
  await agent.load(session, setting.folder);
  for (let turn = turnsOf(setting); turn < messagesOf(setting) / 2; turn++)
    await agent.prompt(session, `deltas ${fillerDeltas}`);
  await agent.close();
}

/** Measures how a process opens a long session that another process wrote. */
async function loadRow(setting: Setting, session: string, what: string, most: number): Promise<Row> {
  const times: number[] = [];
  for (let run = 0; run < (setting.isShort ? 1 : 5); run++) {
    const agent = setting.start();
    await agent.initialize();
    const before = performance.now();
    await agent.load(session, setting.folder);
    times.push(performance.now() - before);
    await agent.close();
  }
  return {
    name: `load of ${what}`,
    own: median(times),
    unit: "ms",
    target: { most },
  };
}

/**
 * Measures `session/list` among many sessions: the first request ever, which reads their files, a process's
 * first request, a repeated request, and all pages.
 */
async function listRows(setting: Setting, session: string): Promise<Row[]> {
  const count = setting.isShort ? 200 : 5_000;
  const files = copySession(setting, session, count);
  const unknown = await timeLists(setting, 1);
  const later: ListTimes[] = [];
  for (let run = 0; run < 5; run++) later.push(await timeLists(setting, 5));
  const start = performance.now();
  for (const file of files) readFileSync(file);
  const floor = { unit: "ms", floor: performance.now() - start, beside: "reading their files" } as const;
  const name = `list of ${count} sessions`;
  return [
    { name: `${name}, never listed`, own: unknown.first, ...floor },
    {
      name: `${name}, first of a process`,
      own: median(later.map(({ first }) => first)),
      ...floor,
      target: { most: 50 },
    },
    { name, own: median(later.flatMap(({ again }) => again)), ...floor, target: { most: 50 } },
    { name: `${name}, all its pages`, own: median(later.map(({ pages }) => pages)), ...floor },
  ];
}

interface ListTimes {
  first: number;
  again: number[];
  /** Reads all pages of the list. */
  pages: number;
}

async function timeLists(setting: Setting, runs: number): Promise<ListTimes> {
  const agent = setting.start();
  await agent.initialize();
  const page = async (cursor?: unknown) => {
    const { result } = await agent.request("session/list", { cursor });
    return dig(result, "nextCursor");
  };
  const timeOf = async (work: () => Promise<unknown>) => {
    const before = performance.now();
    await work();
    return performance.now() - before;
  };
  const first = await timeOf(() => page());
  const again: number[] = [];
  for (let run = 1; run < runs; run++) again.push(await timeOf(() => page()));
  const pages = await timeOf(async () => {
    let next = await page();
    while (next !== undefined) next = await page(next);
  });
  await agent.close();
  return { first, again, pages };
}

/** Copies this session, without its messages, until there are as many sessions as wanted. */
function copySession({ home }: Setting, session: string, count: number): string[] {
  const original = filesIn(home).find(
    (path) => path.endsWith(`${session}.json`) && /[/\\]session[/\\]/.test(path),
  );
  if (original === undefined) throw new Error("the session's file was not found");
  const content = readFileSync(original, "utf8");
  return Array.from({ length: count }, (_, index) => {
    const id = `${session.slice(0, -5)}${String(index).padStart(5, "0")}`;
    const path = join(dirname(original), `${id}.json`);
    if (id !== session) writeFileSync(path, content.replaceAll(session, id));
    return path;
  });
}
