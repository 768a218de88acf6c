import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { openFileLog } from "../../../src/base/file-log.ts";
import { withFields } from "../../../src/base/log.ts";
import { removeSecretForms } from "../../../src/base/secrets/secret-forms.ts";
import { Secrets } from "../../../src/base/secrets/secrets.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { shownMode } from "../../support/platform/platform.ts";

const megabyte = 1024 * 1024;

async function linesOf(path: string): Promise<Record<string, unknown>[]> {
  const text = await readFile(path, "utf8");
  return text.split("\n").flatMap((line): Record<string, unknown>[] => (line ? [JSON.parse(line)] : []));
}

test("lines have session, turn and level, and no secrets; a terminal gets them as text", async () => {
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
  expect((await stat(path)).mode & 0o777).toBe(shownMode(0o600));
});

test.for([
  ["sk-proj-abcdefghij0123456789", "[key]"],
  ["sk-ant-api03-abcdefghij0123456789_x", "[key]"],
  ["ghp_abcdefghij0123456789abcdefghij", "[key]"],
  ["github_pat_11ABCDEFG0abcdefghij_x", "[key]"],
  ["glpat-abcdefghij0123456789", "[key]"],
  ["xoxb-1234567890-abcdefghij", "[key]"],
  ["AKIAIOSFODNN7EXAMPLE", "[key]"],
  ["AIzaSyA0123456789abcdefghijklmnopqrstu", "[key]"],
  ["hf_abcdefghijklmnopqrstuvwx", "[key]"],
  ["npm_abcdefghijklmnopqrstuvwxyz0123456789", "[key]"],
  ["gsk_abcdefghijklmnopqrstuvwx", "[key]"],
  ["sk_live_abcdefghijklmnopqrstuvwx", "[key]"],
  ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def", "[key]"],
  ["Incorrect API key provided: sk-abcd1234abcd1234abcd.", "Incorrect API key provided: [key]."],
  ["Authorization: Bearer abc.def-123456", "Authorization: Bearer [key]"],
  ['{"x-api-key":"0123456789abcdef"}', '{"x-api-key":"[key]"}'],
  ["GET https://me:hunter22@example.com/v1?x=1", "GET https://[key]@example.com/v1?x=1"],
  ["https://example.com/v1?key=0123456789abcdef&x=1", "https://example.com/v1?key=[key]&x=1"],
  [
    "https://example.com/cb?code=1&access_token=abcdef123456",
    "https://example.com/cb?code=1&access_token=[key]",
  ],
  ["DB_PASSWORD=correct-horse, HOME=/home/me", "DB_PASSWORD=[key], HOME=/home/me"],
  ["-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "[key]"],
])("in a log %s reads %s", ([text, clean]) => {
  expect(removeSecretForms(text ?? "")).toBe(clean);
});

test.for([
  "ses_01a1fd403dd6710b8873a96090f5f85b prt_01a1fd403f3b75a4bec85804e0a7f268",
  "an MCP server could not be connected: ENOENT /usr/bin/ask-for-more-things-than-one",
  "context: 1020 of 100000 tokens, risk-assessment-of-a-long-name",
  "https://example.com/a@b/c?page=2",
])("a log contains %s unchanged", (text) => {
  expect(removeSecretForms(text)).toBe(text);
});

test("a long text is truncated after secrets are redacted", async () => {
  const mirrored: string[] = [];
  await using folder = await temporaryFolder();
  const secrets = new Secrets();
  secrets.add(["known-0123456789"]);
  const mirror = (line: string) => mirrored.push(line);
  const log = openFileLog(join(folder.path, "x.log"), { level: "info", secrets, mirror });
  log.info(`${"x".repeat(3_990)}known-0123456789${"y".repeat(100)}`);
  expect(mirrored).toEqual([`info ${"x".repeat(3_990)}[key]${"y".repeat(5)} … 95 more characters`]);
  await vi.waitFor(() => stat(join(folder.path, "x.log")), { timeout: 10_000 });
});

test("a log that has become large is rotated while it is written, and old ones go", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "x.log");
  await writeFile(path, "a".repeat(11 * megabyte));
  for (const number of [1, 2, 3]) await writeFile(`${path}.${number}`, `old ${number}`);
  const log = openFileLog(path, { level: "info" });
  const large = "b".repeat(4_000);
  for (let count = 0; count < 3_000; count++) log.info(large);
  log.info("last");
  const isWritten = async () => (await readFile(path, "utf8")).includes("last");
  await vi.waitFor(async () => expect(await isWritten()).toBe(true), { timeout: 10_000 });
  expect((await readdir(folder.path)).sort()).toEqual(["x.log", "x.log.1", "x.log.2", "x.log.3"]);
  expect((await readFile(`${path}.1`, "utf8")).length).toBeGreaterThan(10 * megabyte);
  expect((await stat(`${path}.2`)).size).toBe(11 * megabyte);
  expect(await readFile(`${path}.3`, "utf8")).toBe("old 1");
});
