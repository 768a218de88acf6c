import { toolContext } from "./tool-place.ts";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { toSlashes } from "../../src/base/files/paths.ts";
import { openProcesses, type Processes } from "../../src/workspace/process/process.ts";
import { Watchdog } from "../../src/workspace/process/watchdog.ts";
import { bashTool } from "../../src/tool/bash/bash.ts";
import type { ShellFolders } from "../../src/tool/paths.ts";
import {
  ToolFailure,
  type PreparedCall,
  type ToolContext,
  type ToolResult,
  appendNotes,
} from "../../src/tool/tool.ts";
import { endlessCommand, lacksSignals } from "../support/platform/platform.ts";

let folder: string;
let processes: Processes;
let analyzed: { command: string; place: ShellFolders }[];

beforeEach(() => {
  folder = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-bash-")));
  mkdirSync(join(folder, "work", "sub"), { recursive: true });
  mkdirSync(join(folder, "elsewhere"));
  processes = openProcesses({
    env: () => ({ PATH: process.env["PATH"] }),
    watchdog: new Watchdog(process.env["PATH"]),
  });
  analyzed = [];
});

afterEach(async () => {
  await processes.endAll();
  // Windows keeps the folder of a process for a moment after its end.
  await rm(folder, { recursive: true, maxRetries: 5, retryDelay: 100 });
});

/** A context whose commands change no files. */
function context(): ToolContext {
  const base = toolContext(folder, join(folder, "work"));
  const changeTracker = {
    start: async () => ({ finish: async () => ({ files: [], notes: [] }) }),
    acknowledge: () => {},
  };
  return { ...base, workspace: { ...base.workspace, home: folder, processes, changeTracker } };
}

function prepare(input: Record<string, unknown>): Promise<PreparedCall> {
  const tool = bashTool({
    analyze: async (command, place) => {
      analyzed.push({ command, place });
      return [{ permission: "bash", subjects: [{ text: command }], always: [] }];
    },
    findShown: async () => [],
  });
  return tool.prepare(tool.input.parse(input), context());
}

interface Ran {
  result: ToolResult;
  deltas: string[];
}

async function run(input: Record<string, unknown>, signal = new AbortController().signal): Promise<Ran> {
  const call = await prepare(input);
  const deltas: string[] = [];
  const result = await call.run({
    callId: "call",
    signal,
    isAllowed: () => true,
    waitUntilReady: async () => {},
    output: (delta) => {
      deltas.push(delta);
    },
    limits: limits(),
  });
  return { result: joined(result), deltas };
}

/** The result as the model receives it. */
function joined(result: ToolResult): ToolResult {
  const { notes, ...rest } = result;
  return rest.status === "completed"
    ? { ...rest, output: appendNotes(rest.output, notes) }
    : { ...rest, error: appendNotes(rest.error, notes) };
}

/** The default limits. */
const limits = () => ({ folder: join(folder, "outputs") });

const completed = (output: string, exitCode = 0): ToolResult => ({
  status: "completed",
  output,
  metadata: { exitCode, truncated: false, outputPath: undefined },
});

test("describes its command and folder, and takes its permissions from the analysis", async () => {
  const call = await prepare({ command: "  git status ", workdir: "sub" });
  const cwd = join(folder, "work");
  const place = {
    cwd,
    start: join(cwd, "sub"),
    home: folder,
    roots: [cwd],
    shell: expect.stringMatching(/sh(\.exe)?$/),
  };
  expect(analyzed).toEqual([{ command: "git status", place }]);
  expect({ ...call, run: undefined }).toEqual({
    title: "git status",
    locations: [{ path: place.start }],
    preview: { text: "It runs in sub." },
    permissions: [{ permission: "bash", subjects: [{ text: "git status" }], always: [] }],
    run: undefined,
  });
});

test.each([true, false])(
  "if it would need more than was requested, the rules decide: %s",
  async (isAllowed) => {
    const subjects = [{ text: "cat *.log" }];
    const tool = bashTool({
      analyze: async () => {
        subjects.push({ text: `${subjects.length}.log` });
        return [{ permission: "read", subjects: [...subjects], always: [] }];
      },
      findShown: async () => [],
    });
    const call = await tool.prepare({ command: "echo ran", timeout: 20_000 }, context());
    const requested: unknown[] = [];
    const ran = call.run({
      callId: "call",
      signal: new AbortController().signal,
      isAllowed: (permissions) => {
        requested.push(permissions);
        return isAllowed;
      },
      output: () => {},
      waitUntilReady: async () => {},
      limits: limits(),
    });
    if (isAllowed)
      expect(await ran).toMatchObject({ status: "completed", output: expect.stringContaining("ran") });
    else await expect(ran).rejects.toThrow("it would now need read for 2.log. Call it again.");
    expect(requested).toEqual([[{ permission: "read", subjects: [{ text: "2.log" }], always: [] }]]);
  },
);

test("a working directory outside the roots needs its own permission", async () => {
  const { permissions } = await prepare({ command: "ls", workdir: "../elsewhere" });
  expect(permissions.map(({ permission, subjects }) => [permission, subjects[0]?.text])).toEqual([
    ["external_directory", expect.stringContaining(toSlashes(join(folder, "elsewhere")))],
    ["bash", "ls"],
  ]);
});

test("refuses a missing working directory and a file", async () => {
  writeFileSync(join(folder, "work", "file"), "");
  await expect(prepare({ command: "ls", workdir: "missing" })).rejects.toThrow(ToolFailure);
  await expect(prepare({ command: "ls", workdir: "file" })).rejects.toThrow("file is a file.");
});

test("runs in the given folder", async () => {
  const command = `"${process.execPath}" -p "process.cwd()"`;
  expect((await run({ command, workdir: "sub" })).result).toEqual(completed(join(folder, "work", "sub")));
});

test("reports an exit code other than 0 to the model", async () => {
  expect((await run({ command: "echo no; exit 3" })).result).toEqual(completed("no\n\n[exit code 3]", 3));
});

test("reports that there was no output", async () => {
  expect((await run({ command: "true" })).result).toEqual(completed("(no output)"));
  expect((await run({ command: "exit 3" })).result).toEqual(completed("(no output)\n\n[exit code 3]", 3));
});

test("shows output while the command runs, as additions", async () => {
  const { deltas } = await run({ command: "printf 'a\\nb'; sleep 0.2; printf 'c\\n'; sleep 0.2; echo d" });
  expect(deltas.join("")).toBe("a\nbc\nd\n");
  expect(deltas.slice(-2)).toEqual(["c\n", "d\n"]);
});

test("removes colors and overwritten progress", async () => {
  const command =
    "printf '\\033[31mred\\033[0m\\n'; printf '10%%\\r50%%\\r'; printf '100%%\\n'; printf '\\033]0;title\\007end\\r\\n'";
  expect((await run({ command })).result).toEqual(completed("red\n100%\nend"));
});

test("recognizes an escape sequence that arrives in two parts", async () => {
  const { result, deltas } = await run({ command: "printf 'x\\033[3'; sleep 0.2; printf '1mred\\n'" });
  expect({ result, live: deltas.join("") }).toEqual({ result: completed("xred"), live: "xred\n" });
});

test("describes binary output instead of showing it", async () => {
  const { result, deltas } = await run({ command: "head -c 20000 /dev/urandom; head -c 3000 /dev/zero" });
  expect(result).toMatchObject({
    status: "completed",
    output: expect.stringMatching(/^\[The output is binary, about/),
  });
  expect(deltas.join("").length).toBeLessThan(100_000);
});

test("shows NUL as a visible character if the other output is text", async () => {
  const command = "printf 'a-rather-long-name.txt\\0another-rather-long-name.txt\\n'";
  expect((await run({ command })).result).toEqual(
    completed("a-rather-long-name.txt␀another-rather-long-name.txt"),
  );
});

test("shows the end of a long output and stores all of it in a file", async () => {
  const { result } = await run({ command: "seq 5000; exit 2" });
  const files = readdirSync(join(folder, "outputs")).map((name) => join(folder, "outputs", name));
  const shown = Array.from({ length: 2_000 }, (_, index) => 3_001 + index).join("\n");
  const where = `The whole output is in ${files[0]}. Read it in parts with read, or search it with grep.`;
  const note = `[Only the last 2000 lines are shown; 14 KB before are missing here. ${where}]`;
  expect(result).toEqual({
    status: "completed",
    output: `${shown}\n\n${note}\n\n[exit code 2]`,
    metadata: { exitCode: 2, truncated: true, outputPath: files[0] },
  });
  const whole = Array.from({ length: 5_000 }, (_, index) => `${index + 1}\n`).join("");
  expect(readFileSync(files[0] ?? "", "utf8")).toBe(whole);
});

test("limits long lines for the model to 50 KB of whole characters", async () => {
  const { result } = await run({ command: "for i in $(seq 3000); do printf '€€€€€€€€€€'; done; echo end" });
  if (result.status !== "completed") throw new Error(result.error);
  const [shown = "", note] = result.output.split("\n\n");
  expect(Buffer.byteLength(`${shown}\n`)).toBeGreaterThan(50 * 1024 - 4);
  expect(Buffer.byteLength(`${shown}\n`)).toBeLessThanOrEqual(50 * 1024);
  expect(shown).toMatch(/^€+end$/);
  expect(note).toMatch(/^\[Only the last line is shown; 38 KB before are missing here\. /);
});

test("bounds endless output on disk, live and for the model", async () => {
  const { result, deltas } = await run({ command: "yes endless output", timeout: 1_500 });
  if (result.status !== "completed") throw new Error(result.error);
  expect(Buffer.byteLength(result.output)).toBeLessThanOrEqual(51 * 1024);
  expect(result.output).toMatch(/\[Ended after [\d.]+ s because its time of 1500 ms was up; /);
  expect(deltas.join("").length).toBeLessThan(100_000);
  const [name = ""] = readdirSync(join(folder, "outputs"));
  expect(readFileSync(join(folder, "outputs", name)).length).toBeLessThanOrEqual(64 * 1024 * 1024);
});

test("shows the newest part of an output that was too fast, and continues from there", async () => {
  const { deltas } = await run({ command: "seq 30000; printf 'almost '; sleep 1; echo last" });
  const shown = deltas.join("");
  expect(shown.slice(0, 6)).toBe("1\n2\n3\n");
  expect(shown).toMatch(/\n\[… \d+ KB too fast to show …\]\n[\d\n]+\n29999\n30000\nalmost last\n$/);
  expect(deltas.at(-1)).toBe("last\n");
  expect(shown.length).toBeLessThan(72_000);
});

/** Windows shows no signal that ended a command. */
const endSignal = lacksSignals ? {} : { signal: "SIGTERM" };

test("reports after how long it was ended, with its output so far", async () => {
  const { result } = await run({ command: `echo begin; ${endlessCommand}`, timeout: 1_000 });
  expect(result).toEqual({
    status: "completed",
    output: expect.stringMatching(/^begin\n\n\[Ended after \d+\.\d s because/),
    metadata: { exitCode: null, ...endSignal, truncated: false, outputPath: undefined },
  });
});

test("a cancelled command fails with its output so far", async () => {
  const controller = new AbortController();
  const call = await prepare({ command: `echo begin; ${endlessCommand}` });
  const result = await call.run({
    callId: "call",
    signal: controller.signal,
    isAllowed: () => true,
    output: () => controller.abort(),
    waitUntilReady: async () => {},
    limits: limits(),
  });
  expect(joined(result)).toEqual({
    status: "failed",
    error: expect.stringMatching(/^begin\n\n\[Cancelled after \d+\.\d s; /),
    metadata: { exitCode: null, ...endSignal, truncated: false, outputPath: undefined },
  });
});

test("reports that a process continues in the background", async () => {
  const { result } = await run({ command: "until [ -e end ]; do sleep 0.1; done & echo started" });
  writeFileSync(join(folder, "work", "end"), "");
  const advice = "To read or stop such a process, start it with background: true and without &.";
  expect(result).toEqual(
    completed(`started\n\n[Processes that it started still run in the background, unseen. ${advice}]`),
  );
});

test("handles 50 MB in bounded time and sends little of it", async () => {
  const start = performance.now();
  const { result, deltas } = await run({
    command: "yes 'a line of output, as long as lines are' | head -c 52428800",
  });
  expect(performance.now() - start).toBeLessThan(20_000);
  expect(result).toMatchObject({ status: "completed", metadata: { exitCode: 0, truncated: true } });
  expect(deltas.join("").length).toBeLessThan(100_000);
  const [name = ""] = readdirSync(join(folder, "outputs"));
  expect(readFileSync(join(folder, "outputs", name)).length).toBe(52_428_800);
});

test("the description names the shell where there is no bash", () => {
  const analysis = { analyze: async () => [], findShown: async () => [] };
  const { description } = bashTool(analysis);
  expect(bashTool(analysis, { shell: "/usr/local/bin/bash" }).description).toBe(description);
  for (const shell of ["/bin/sh", "C:\\Windows\\System32\\cmd.exe"])
    expect(bashTool(analysis, { shell }).description).toContain(`commands run in ${shell}`);
});
