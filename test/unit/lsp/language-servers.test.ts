import { noSandbox } from "../../tool/lsp/no-sandbox.ts";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { LanguageServers } from "../../../src/lsp/language-servers.ts";
import { findNewProblems, type Problem } from "../../../src/lsp/problems.ts";
import type { FileChange } from "../../../src/message/part.ts";
import { openFiles } from "../../../src/workspace/files/disk-files.ts";
import { sha256 } from "../../../src/base/text/hash.ts";
import { openPipedProcesses } from "../../../src/workspace/process/piped-process.ts";
import { Watchdog } from "../../../src/workspace/process/watchdog.ts";
import { temporaryFolder } from "../../support/temp.ts";

const program = fileURLToPath(new URL("../../support/program/language-server-program.ts", import.meta.url));
const running: { endAll(): Promise<void> }[] = [];
afterEach(async () => {
  for (const processes of running.splice(0)) await processes.endAll();
});

/** A folder with servers for `.txt` files that behave in this way. */
async function place(behavior: string, waits = { firstMs: 10_000, laterMs: 10_000 }) {
  const folder = await temporaryFolder();
  const processes = openPipedProcesses({
    env: () => process.env,
    watchdog: new Watchdog(process.env["PATH"]),
  });
  running.push(processes);
  const contents = new Map<string, Buffer>();
  const warnings: string[] = [];
  const files = openFiles();
  const servers = new LanguageServers({
    processes,
    snapshots: { load: async (hash) => contents.get(hash) },
    read: async (path) => (await files.read(path)).bytes,
    log: silentLog,
    warn: (text) => warnings.push(text),
    waits: { ...waits, quietMs: { first: 100, least: 100, most: 100 } },
  });
  const starts = join(folder.path, "starts");
  const test = { command: [process.execPath, program, behavior, starts], extensions: ["txt"] };
  const keep = (text: string | null) => {
    if (text === null) return null;
    const bytes = Buffer.from(text);
    contents.set(sha256(bytes), bytes);
    return sha256(bytes);
  };
  const change = (name: string, before: string | null, after: string | null): FileChange => {
    const operation = before === null ? "add" : after === null ? "delete" : "update";
    const path = join(folder.path, name);
    return { path, operation, before: keep(before), after: keep(after), additions: 0, deletions: 0 };
  };
  const diagnose = (changes: FileChange[], signal = new AbortController().signal) =>
    servers.diagnose(
      { servers: { test }, root: folder.path, cwd: folder.path, confine: noSandbox },
      changes,
      signal,
    );
  return {
    folder,
    warnings,
    diagnose,
    change,
    edit: (name: string, before: string | null, after: string | null) =>
      diagnose([change(name, before, after)]),
    startCount: async () => (await readFile(starts, "utf8").catch(() => "")).split("\n").length - 1,
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}

const notice = (...lines: string[]) => ["test reports new errors:", ...lines].join("\n");

describe.each(["pushes", "pushes-versions", "is-asked", "is-odd"])("a server that %s", (behavior) => {
  test("checks each edit, and reports only new errors", async () => {
    await using at = await place(behavior);
    expect(await at.edit("a.txt", "wrong one\nfine", "first\nwrong one\nwrong two")).toBe(
      notice('a.txt:3:1: "wrong two" is wrong (W1)'),
    );
    expect(await at.edit("a.txt", "first\nwrong one\nwrong two", "wrong two\nwrong one")).toBe("");
    expect(await at.edit("b.txt", null, "  wrong too")).toBe(notice('b.txt:1:3: "wrong too" is wrong (W1)'));
    expect(await at.edit("b.txt", "  wrong too", null)).toBe("");
    expect(await at.edit("other.md", null, "wrong")).toBe("");
    expect(at.warnings).toEqual([]);
    expect(await at.startCount()).toBe(1);
  });
});

test("changes by others meanwhile do not count as the edit's", async () => {
  await using at = await place("pushes-versions");
  await at.folder.write({ "other.txt": "fine" });
  expect(await at.edit("other.txt", null, "fine")).toBe("");
  await at.folder.write({ "other.txt": "wrong by hand" });
  expect(await at.edit("a.txt", "", "wrong")).toBe(notice('a.txt:1:1: "wrong" is wrong (W1)'));
});

test("checks both ends of a move and several files of one change", async () => {
  await using at = await place("pushes-versions");
  const moved: FileChange = {
    ...at.change("new.txt", "wrong", "wrong\nwrong more"),
    operation: "move",
    fromPath: join(at.folder.path, "old.txt"),
  };
  const found = await at.diagnose([moved, at.change("b.txt", null, "wrong b")]);
  expect(found).toContain('new.txt:2:1: "wrong more" is wrong (W1)');
  expect(found).toContain('b.txt:1:1: "wrong b" is wrong (W1)');
});

describe("a faulty server", () => {
  test.each([
    ["crashes-on-open", "it ended with exit code 3: this language is too hard"],
    ["prints-noise", "it printed output that is not a message"],
    ["announces-too-much", "a message of 99999999999 bytes is too long"],
  ])("that %s is reported once and not restarted", async (behavior, reason) => {
    await using at = await place(behavior);
    expect(await at.edit("a.txt", "", "wrong")).toBe("");
    expect(await at.edit("a.txt", "wrong", "wrong again")).toBe("");
    expect(at.warnings).toEqual([
      `The language server test was disabled: ${reason} Edits continue without its errors.`,
    ]);
    expect(await at.startCount()).toBe(1);
  });

  test.each(["never-answers", "stays-silent"])(
    "that %s delays edits for a bounded time",
    async (behavior) => {
      await using at = await place(behavior, { firstMs: 50, laterMs: 50 });
      const late = "test has not checked this yet; its errors are shown with a later edit.";
      expect(await at.edit("a.txt", "", "one")).toBe(late);
      expect(await at.edit("a.txt", "one", "two")).toBe(late);
      expect(await at.edit("a.txt", "two", "three")).toBe("");
      expect(await at.edit("a.txt", "three", "four")).toBe("");
      expect(at.warnings).toEqual([
        "The language server test was disabled: it does not respond in time. Edits continue without its errors.",
      ]);
    },
  );

  test("that is not installed is reported with an explanation", async () => {
    await using folder = await temporaryFolder();
    const processes = openPipedProcesses({
      env: () => process.env,
      watchdog: new Watchdog(process.env["PATH"]),
    });
    running.push(processes);
    const warnings: string[] = [];
    const servers = new LanguageServers({
      processes,
      snapshots: { load: async () => Buffer.from("text") },
      read: async () => Buffer.from("text"),
      log: silentLog,
      warn: (text) => warnings.push(text),
    });
    const change: FileChange = {
      path: join(folder.path, "a.ts"),
      operation: "add",
      before: null,
      after: "x",
      additions: 1,
      deletions: 0,
    };
    const place = {
      servers: { typescript: { command: ["no-such-server"] } },
      root: folder.path,
      cwd: folder.path,
      confine: noSandbox,
    };
    expect(await servers.diagnose(place, [change], new AbortController().signal)).toBe("");
    expect(warnings).toEqual([
      'The language server typescript cannot be used: program not found: "no-such-server"; install it or use its full path. Edits continue without its errors.',
    ]);
  });

  test("that sends too much is reported in part", async () => {
    await using at = await place("says-too-much");
    const found = await at.edit("a.txt", "fine", "wrong");
    expect(found).toContain('a.txt:1:1: "wrong" is wrong (W1)\n');
    expect(found).toMatch(/: 0 M{498}… \(9500 characters more\) \(C{100}… \(9900 characters more\)\)\n/);
    expect(found).toMatch(/\n… and 180 more\.$/);
    expect(found.length).toBeLessThan(20_000);
  });

  test("does not delay a turn that is cancelled", async () => {
    await using at = await place("never-answers");
    const cancel = new AbortController();
    const requested = at.diagnose([at.change("a.txt", "", "one")], cancel.signal);
    cancel.abort();
    expect(await requested).toBe("");
  });
});

describe("errors are recognized", () => {
  const problem = (line: number, lineText: string, message = "m"): Problem => ({
    path: "/a",
    line,
    column: 1,
    message,
    code: "",
    lineText,
  });

  test("after their line moved, changed, or when several are alike", () => {
    const before = [problem(1, "x"), problem(5, "x"), problem(9, "y")];
    expect(findNewProblems(before, [problem(3, "x"), problem(7, "x"), problem(9, "y changed")])).toEqual([]);
    expect(
      findNewProblems(before, [problem(1, "x"), problem(2, "x"), problem(3, "x"), problem(9, "y")]),
    ).toHaveLength(1);
    expect(findNewProblems(before, [problem(1, "x", "another")])).toEqual([problem(1, "x", "another")]);
  });
});
