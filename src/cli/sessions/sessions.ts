import { writeFile } from "node:fs/promises";
import { collect } from "../../base/async.ts";
import { codeOf, messageOf, UserError } from "../../base/errors.ts";
import { isFolder } from "../../base/files/file-stat.ts";
import type { ModelRef, SessionInfo } from "../../message/message.ts";
import { formatModelRef } from "../../model/catalog/catalog.ts";
import { startsTurn } from "../../message/starts-turn.ts";
import { firstWords } from "../../conversation/checkpoints.ts";
import { titleOf } from "../../evidence/describe.ts";
import { importSession } from "../../reports/import-session.ts";
import { readSession } from "../../reports/session-file.ts";
import { renderSession } from "../../reports/session-markdown.ts";
import { type ModelUsage, Stats } from "../../reports/session-stats.ts";
import { omitReverted } from "../../conversation/visible-messages.ts";
import type { SessionStore } from "../../storage/session-store.ts";
import type { Call } from "../command-line/command.ts";
import { findCalledSession, findSession, getFolderOfLast } from "./find-session.ts";
import { exitCodes } from "../terminal/help.ts";
import { existingFolder, openLocalApp, openApp } from "../local-app.ts";
import {
  print,
  printJson,
  printTable,
  writeNotice,
  sanitizeFor,
  writeToStderr,
  toCell,
} from "../terminal/output.ts";
import { QuestionsCancelledError } from "../terminal/questions.ts";
import { readSessionFile } from "./session-file.ts";
import { UsageError } from "../command-line/usage.ts";

const defaultListLimit = 50;

/** Lists the sessions of a folder or of all folders, newest first. */
export async function listSessions(call: Call): Promise<number> {
  const store = await openApp().store();
  const isAll = call.has("all");
  const cwd = isAll ? undefined : await existingFolder(call.text("cwd") ?? ".");
  const { sessions, nextCursor } = await store.list({
    ...(cwd !== undefined && { cwd }),
    includeArchived: call.has("archived"),
    limit: call.number("limit") ?? defaultListLimit,
  });
  const running = new Set<string>();
  for (const { id } of sessions) if (await store.isRunning(id)) running.add(id);
  if (call.has("json")) {
    await printJson(sessions.map((info) => ({ ...info, isRunning: running.has(info.id) })));
    return 0;
  }
  const columns = [
    { name: "session", keepsEnd: true },
    { name: "used" },
    { name: "cost", right: true },
    { name: "title" },
  ];
  await printTable(
    isAll ? [...columns, { name: "folder", keepsEnd: true }] : columns,
    sessions.map((info) => {
      const row = toRow(info, running.has(info.id));
      return isAll ? [...row, info.cwd] : row;
    }),
  );
  if (sessions.length === 0) process.stderr.write(`${describeEmptyList(cwd)}\n`);
  if (nextCursor !== undefined) process.stderr.write("There are more: --limit N shows them.\n");
  return 0;
}

/** Shows a session and its turns. */
export async function showSession(call: Call): Promise<number> {
  const store = await openApp().store();
  const info = await findCalledSession(store, call);
  const turns: { time: string; words: string; evidence?: string }[] = [];
  const stats = new Stats();
  for await (const message of omitReverted(store.messages(info.id), info.revert)) {
    if (startsTurn(message))
      turns.push({ time: formatTime(message.info.time.created), words: firstWords(message) });
    const evidence = message.parts.findLast((part) => part.type === "evidence");
    const turn = turns.at(-1);
    if (turn !== undefined && evidence !== undefined) turn.evidence = titleOf(evidence);
    stats.add("all", message);
  }
  if (info.titleCall !== undefined) stats.addCall("all", info.titleCall);
  const { calls, tokens } = stats.total();
  if (call.has("json")) {
    await printJson({ ...info, turns, calls, tokens });
    return 0;
  }
  const facts = [
    ["session", info.id],
    ["title", info.title ?? ""],
    ["folder", info.cwd],
    ["worktree", info.worktree !== undefined && isFolder(info.worktree.root) ? info.worktree.root : ""],
    ["agent", info.agent],
    ["model", info.model === undefined ? "" : formatModelRef(info.model)],
    ["created", formatTime(info.time.created)],
    ["used", formatTime(info.time.updated)],
    ["calls", String(calls)],
    ["cost", formatCost(info.cost)],
    ["files", describeSummary(info)],
  ];
  await printTable(
    [{ name: "what" }, { name: "value" }],
    facts.filter(([, value]) => value !== ""),
  );
  await print("");
  const columns = [{ name: "turn", right: true }, { name: "began" }, { name: "message" }];
  const hasEvidence = turns.some(({ evidence }) => evidence !== undefined);
  await printTable(
    hasEvidence ? [...columns, { name: "evidence" }] : columns,
    turns.map(({ time, words, evidence = "" }, at) => [
      String(at + 1),
      time,
      words,
      ...(hasEvidence ? [evidence] : []),
    ]),
  );
  return 0;
}

/** Exports a session as Markdown, or as JSON for programs and `sessions import`. */
export async function exportSession(call: Call): Promise<number> {
  const store = await openApp().store();
  const info = await findCalledSession(store, call);
  const text =
    call.text("format") === "json" ? await formatJson(store, info) : await formatMarkdown(store, info);
  const output = call.text("output");
  if (output === undefined) {
    process.stdout.write(sanitizeFor(process.stdout, text));
    return 0;
  }
  try {
    await writeFile(output, text, { mode: 0o600, flag: call.has("force") ? "w" : "wx" });
  } catch (error) {
    const isThere = codeOf(error) === "EEXIST";
    throw new UserError(
      isThere ? `${output} already exists; --force overwrites it.` : `${output}: ${messageOf(error)}`,
      { cause: error },
    );
  }
  process.stderr.write(`Written: ${output}\n`);
  return 0;
}

/** Imports sessions from files written by `sessions export --format json`. */
export async function importSessions(call: Call): Promise<number> {
  const { app, project } = await openLocalApp(call.text("cwd"));
  const store = await app.store();
  for (const path of call.operands) {
    const file = await readSessionFile(path);
    const target = { projectId: project.id, cwd: project.workspace.cwd };
    await print(await importSession(store, file, target));
  }
  return 0;
}

/** Deletes sessions. Asks first on a terminal, unless all ids are given in full or --yes is set. */
export async function deleteSessions(call: Call): Promise<number> {
  const store = await openApp().store();
  const folder = await getFolderOfLast(call);
  const found = new Map<string, SessionInfo>();
  for (const name of call.operands) found.set(name, await findSession(store, name, folder));
  const sessions = [...new Map([...found.values()].map((info) => [info.id, info])).values()];
  const isTyped = [...found].every(([name, { id }]) => name === id);
  if (!isTyped && !call.has("yes") && !(await confirmDeletion(sessions, found.get("last")))) {
    writeNotice("Nothing was deleted.");
    return exitCodes.cancelled;
  }
  for (const { id, title } of sessions) {
    await store.remove(id);
    await print(`Deleted: ${id} ${title ?? ""}`.trim());
  }
  return exitCodes.done;
}

/** Asks on a terminal. Without one, ids are accepted, but `last` throws {@link UsageError}. */
async function confirmDeletion(
  sessions: readonly SessionInfo[],
  newest: SessionInfo | undefined,
): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    if (newest === undefined) return true;
    throw new UsageError(`last is ${newest.id}: add --yes, or name it by its id`, "sessions delete");
  }
  for (const { id, title, time, cwd } of sessions)
    writeToStderr(`  ${id}  ${formatTime(time.updated)}  ${toCell(title ?? "")}  (${toCell(cwd)})`);
  const { createLineQuestions } = await import("../terminal/line-questions.ts");
  const questions = createLineQuestions(process.stdin, process.stderr);
  const what = sessions.length === 1 ? "this session" : `these ${sessions.length} sessions`;
  try {
    return await questions.confirm(`Delete ${what} and all stored data?`, false);
  } catch (error) {
    if (!(error instanceof QuestionsCancelledError)) throw error;
    writeNotice(error.message);
    return false;
  } finally {
    questions.close();
  }
}

/** Shows token usage and cost by model, day, folder or session. */
export async function sessionStats(call: Call): Promise<number> {
  const app = openApp();
  const store = await app.store();
  const since = Date.now() - (call.number("days") ?? Number.POSITIVE_INFINITY) * 24 * 60 * 60 * 1000;
  const cwd = call.has("cwd") ? await existingFolder(call.text("cwd") ?? ".") : undefined;
  const by = call.text("by") ?? "model";
  const stats = new Stats();
  let sessions = 0;
  for (const id of await store.sessionIds()) {
    const info = await store.load(id);
    if (info === undefined || info.time.updated < since || (cwd !== undefined && info.cwd !== cwd)) continue;
    sessions++;
    for await (const message of store.messages(id))
      if (message.info.time.created >= since) {
        const model = message.info.role === "assistant" ? message.info.model : undefined;
        stats.add(getGroupName(by, { time: message.info.time.created, model }, info), message);
      }
    const { titleCall } = info;
    if (titleCall !== undefined && titleCall.time >= since)
      stats.addCall(getGroupName(by, titleCall, info), titleCall);
  }
  const rows = stats.rows();
  const total = stats.total();
  if (call.has("json")) {
    await printJson({ by, sessions, rows: rows.map(({ name, spending }) => ({ name, ...spending })), total });
    return 0;
  }
  if (call.has("view")) {
    const { openPage, viewFile } = await import("./view.ts");
    const { renderStatsPage } = await import("../../reports/view/stats-page.ts");
    const path = await viewFile(app.folders.cache, "stats");
    await openPage(call, path, renderStatsPage(by, rows, total));
    return 0;
  }
  const right = ["calls", "input", "cache read", "output", "reasoning", "cost"];
  await printTable(
    [{ name: by, keepsEnd: by !== "day" }, ...right.map((name) => ({ name, right: true }))],
    [...rows.map(({ name, spending }) => toUsageRow(name, spending)), toUsageRow("total", total)],
  );
  return 0;
}

function getGroupName(
  by: string,
  { time, model }: { time: number; model: ModelRef | undefined },
  session: SessionInfo,
): string {
  if (by === "day") return new Date(time).toISOString().slice(0, 10);
  if (by === "folder") return session.cwd;
  if (by === "session") return session.id;
  return model === undefined ? "" : formatModelRef(model);
}

function toUsageRow(name: string, { calls, tokens, cost }: ModelUsage): string[] {
  const { input, cache, output, reasoning } = tokens;
  const format = (count: number) => (process.stdout.isTTY ? count.toLocaleString("en") : String(count));
  return [name, ...[calls, input, cache.read, output, reasoning].map(format), formatCost(cost)];
}

async function formatJson(store: SessionStore, { id }: SessionInfo): Promise<string> {
  return `${JSON.stringify(await readSession(store, id), undefined, 2)}\n`;
}

async function formatMarkdown(store: SessionStore, info: SessionInfo): Promise<string> {
  return renderSession(info, await collect(omitReverted(store.messages(info.id), info.revert)));
}

function toRow({ id, time, cost, title, worktree }: SessionInfo, isRunning: boolean): string[] {
  const marks = [
    ...(time.archived === undefined ? [] : ["(archived) "]),
    ...(isRunning ? ["(running) "] : []),
    ...(worktree !== undefined && isFolder(worktree.root) ? ["(worktree) "] : []),
  ];
  return [id, formatTime(time.updated), formatCost(cost), `${marks.join("")}${title ?? ""}`];
}

function describeSummary({ summary }: SessionInfo): string {
  if (summary === undefined) return "";
  return `${summary.files} changed, +${summary.additions} -${summary.deletions} lines`;
}

function describeEmptyList(cwd: string | undefined): string {
  return cwd === undefined
    ? "There is no session yet."
    : `There is no session in ${cwd}. --all shows those of all folders.`;
}

/** Formats milliseconds since 1970 as local time, sortable. */
function formatTime(ms: number): string {
  const date = new Date(ms);
  const local = new Date(ms - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16).replace("T", " ");
}

function formatCost(cost: number): string {
  return cost === 0 ? "" : `$${cost.toFixed(4)}`;
}
