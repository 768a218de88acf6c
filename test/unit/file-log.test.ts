import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { openFileLog } from "../../src/base/file-log.ts";
import { withFields } from "../../src/base/log.ts";
import { Secrets } from "../../src/base/secrets.ts";
import { temporaryFolder } from "../support/temp.ts";

const megabyte = 1024 * 1024;

async function linesOf(path: string): Promise<Record<string, unknown>[]> {
  const text = await readFile(path, "utf8");
  return text.split("\n").flatMap((line): Record<string, unknown>[] => (line ? [JSON.parse(line)] : []));
}

test("lines have their session, turn and level, and no secrets; a person gets them as text", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "state", "x.log");
  const secrets = new Secrets();
  secrets.add(["sk-0123456789abcdef"]);
  const mirrored: string[] = [];
  const log = openFileLog(path, { level: "info", secrets, mirror: (line) => mirrored.push(line) });
  const turn = withFields(withFields(log, { sessionId: "ses_1" }), { turnId: "msg_1" });
  turn.debug("too quiet");
  turn.info("asked with sk-0123456789abcdef", { key: "sk-0123456789abcdef", ms: 5 });
  await vi.waitFor(() => stat(path), { timeout: 10_000 });
  const line = { sessionId: "ses_1", turnId: "msg_1", key: "[key]", ms: 5, msg: "asked with [key]" };
  expect(await linesOf(path)).toEqual([expect.objectContaining({ level: 30, pid: process.pid, ...line })]);
  expect(mirrored).toEqual(["info asked with [key] sessionId=ses_1 turnId=msg_1 key=[key] ms=5"]);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

test("a log that has grown large is put aside while it is written, and old ones go", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "x.log");
  await writeFile(path, "a".repeat(11 * megabyte));
  for (const number of [1, 2, 3]) await writeFile(`${path}.${number}`, `old ${number}`);
  const log = openFileLog(path, { level: "info" });
  const large = "b".repeat(megabyte);
  for (let count = 0; count < 12; count++) log.info(large);
  log.info("last");
  const isWritten = async () => (await readFile(path, "utf8")).includes("last");
  await vi.waitFor(async () => expect(await isWritten()).toBe(true), { timeout: 10_000 });
  expect((await readdir(folder.path)).sort()).toEqual(["x.log", "x.log.1", "x.log.2", "x.log.3"]);
  expect((await readFile(`${path}.1`, "utf8")).length).toBeGreaterThan(10 * megabyte);
  expect((await stat(`${path}.2`)).size).toBe(11 * megabyte);
  expect(await readFile(`${path}.3`, "utf8")).toBe("old 1");
});
