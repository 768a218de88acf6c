import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import type { SessionId } from "../../src/message/ids.ts";
import type { Message } from "../../src/message/message.ts";
import { SessionStore } from "../../src/storage/session-store.ts";
import { lacksResourceLimits } from "../support/platform/platform.ts";
import { isLong } from "../support/run-length.ts";
import { all, openWriter, sessionInfo } from "./support/stored-session.ts";

const rounds = isLong ? 24 : 4;
const lossLimitMs = 200;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "fairlead-kill-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const script = (name: string) => join(import.meta.dirname, "programs", name);

interface Progress {
  at: number;
  message: string;
  words?: number;
  part?: string;
}

function startWriter(id: SessionId) {
  return spawn(process.execPath, [script("write-session.ts"), root, id], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

/** Runs a writer, kills it after a random number of printed lines, and returns these lines. */
async function writeUntilKilled(id: SessionId): Promise<{ progress: Progress[]; killedAt: number }> {
  const writer = startWriter(id);
  const enough = 1 + Math.floor(Math.random() * 200);
  let reply = "";
  let killedAt = 0;
  writer.stdout.on("data", (chunk: Buffer) => {
    reply += chunk.toString();
    if (killedAt > 0 || reply.split("\n").length <= enough) return;
    killedAt = Date.now();
    writer.kill("SIGKILL");
  });
  await once(writer, "close");
  const lines = reply.split("\n").slice(0, -1);
  return { progress: lines.map((line): Progress => JSON.parse(line)), killedAt };
}

const wordsOf = (message: Message | undefined): number => {
  const part = message?.parts[0];
  if (part?.type !== "text" || part.text === "") return 0;
  const words = part.text.trimEnd().split(" ");
  expect(words).toEqual(words.map((_, index) => String(index)));
  return words.length;
};

function expectNothingLost(messages: Message[], progress: Progress[], killedAt: number): void {
  for (const { at, message: id, words, part } of progress) {
    const message = messages.find(({ info }) => info.id === id);
    if (part !== undefined) expect(message?.parts.map((stored) => stored.id)).toContain(part);
    if (words !== undefined && at < killedAt - lossLimitMs) {
      expect(wordsOf(message)).toBeGreaterThanOrEqual(words);
    }
  }
}

test("a killed writer loses no finished part and only the latest text", { timeout: 120_000 }, async () => {
  const info = sessionInfo();
  await (await SessionStore.open({ root, log: silentLog })).create(info);
  const history: Progress[] = [];
  for (let round = 0; round < rounds; round++) {
    const { progress, killedAt } = await writeUntilKilled(info.id);
    history.push(...progress.filter(({ part }) => part !== undefined));
    const store = await SessionStore.open({ root, log: silentLog, onWarning: (text) => expect.fail(text) });
    const messages = await all(store.messages(info.id));
    for (const message of messages) wordsOf(message);
    expectNothingLost(messages, [...history, ...progress], killedAt);
    await (await openWriter(store, info.id)).close();
    expect(await all(store.messages(info.id))).toEqual(messages);
    expect(readdirSync(join(root, "tmp"))).toEqual([]);
  }
});

test("a session of another process is busy but readable, and free after its kill", async () => {
  const info = sessionInfo();
  const store = await SessionStore.open({ root, log: silentLog });
  await store.create(info);
  const other = startWriter(info.id);
  await once(other.stdout, "data");
  expect(await store.openSession(info.id)).toEqual({ status: "busy", pid: other.pid });
  await expect
    .poll(async () => (await all(store.messages(info.id))).length, { timeout: 10_000 })
    .toBeGreaterThan(0);
  other.kill("SIGKILL");
  await once(other, "close");
  const writer = await openWriter(store, info.id);
  await writer.close();
});

test.skipIf(lacksResourceLimits)(
  "a full disk causes a readable error and loses no data; the process continues",
  async () => {
    // A file size limit makes writes fail in the middle like a full disk, and works for each user.
    const command = `ulimit -f 64; exec "$0" "$@"`;
    const { stdout } = await promisify(execFile)("sh", [
      "-c",
      command,
      process.execPath,
      script("fill-disk.ts"),
      root,
    ]);
    expect(JSON.parse(stdout)).toEqual({
      isUserError: true,
      message:
        "Sessions cannot be stored in <root>/journal/<id>.ndjson: the file may not grow any further (EFBIG). " +
        "Raise the file size limit (ulimit -f) and try again.",
      // The first line of the second message was accepted, its text was not.
      texts: [["small"], []],
    });
  },
);
