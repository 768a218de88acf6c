import { toolContext } from "./tool-place.ts";
import {
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { toSlashes } from "../../src/base/files/paths.ts";
import { openSearch } from "../../src/workspace/search/search.ts";
import { globTool } from "../../src/tool/search/glob.ts";
import { grepTool } from "../../src/tool/search/grep.ts";
import { listTool } from "../../src/tool/search/list.ts";
import { ToolFailure, type PreparedCall, type Tool, type ToolContext } from "../../src/tool/tool.ts";

let folder: string;
let cwd: string;
let clock: number;

beforeEach(() => {
  folder = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-search-tools-")));
  cwd = join(folder, "work");
  clock = 1_000;
  mkdirSync(join(cwd, ".git"), { recursive: true });
  write("work/.gitignore", "dist/\n");
  write("work/dist/out.ts", "const answer = 42;\n");
  write("work/src/old.ts", "const answer = 1;\n\nconst other = answer;\n");
  write("work/src/new file.ts", "const answer = 2;\n");
  write("work/readme.md", "# Answer\n");
  write("outside/secret.ts", "const answer = 3;\n");
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
  clock++;
  utimesSync(join(folder, path), clock, clock);
}

function context(): ToolContext {
  const base = toolContext(folder, cwd);
  return {
    ...base,
    workspace: { ...base.workspace, worktree: cwd, home: folder, search: openSearch({ env: {} }) },
  };
}

const prepare = (tool: Tool, input: unknown): Promise<PreparedCall> =>
  tool.prepare(tool.input.parse(input), context());

async function run(tool: Tool, input: unknown, signal?: AbortSignal): Promise<string> {
  return runPrepared(await prepare(tool, input), signal);
}

async function runPrepared(call: PreparedCall, signal = new AbortController().signal): Promise<string> {
  const result = await call.run({
    callId: "call",
    signal,
    isAllowed: () => true,
    output: () => {},
    waitUntilReady: async () => {},
    limits: { folder: cwd },
  });
  return result.status === "completed" ? result.output : result.error;
}

test("glob describes its search", async () => {
  const call = await prepare(globTool, { pattern: "**/*.ts", path: "src" });
  expect({ ...call, run: undefined }).toEqual({
    title: "Find **/*.ts in src",
    locations: [{ path: join(cwd, "src") }],
    permissions: [{ permission: "glob", subjects: [{ text: "**/*.ts" }], always: ["*"] }],
    run: undefined,
  });
});

test("glob lists files newest first, relative to the working directory", async () => {
  expect(await run(globTool, { pattern: "*.ts" })).toBe("src/new file.ts\nsrc/old.ts");
  expect(await run(globTool, { pattern: "*.ts", path: "src" })).toBe("src/new file.ts\nsrc/old.ts");
});

test("glob returns absolute paths outside", async () => {
  expect(await run(globTool, { pattern: "*", path: "../outside" })).toBe(
    toSlashes(join(folder, "outside", "secret.ts")),
  );
});

test("glob reports that nothing matches and where it searched", async () => {
  expect(await run(globTool, { pattern: "*.rs", path: "src" })).toBe("No files match in src.");
});

test("glob reports that it shows only some, and how to see others", async () => {
  for (let index = 0; index < 101; index++) write(`work/many/${index}.txt`, "");
  const lines = (await run(globTool, { pattern: "*.txt" })).split("\n");
  expect(lines.slice(0, 2)).toEqual(["many/100.txt", "many/99.txt"]);
  expect(lines.slice(100)).toEqual([
    "",
    "[Only the 100 files changed last are shown. Narrow the pattern or give a path to see others.]",
  ]);
});

test("grep groups lines by file, newest file first", async () => {
  expect(await run(grepTool, { pattern: "answer" })).toBe(
    "src/new file.ts:\n  1: const answer = 2;\n\nsrc/old.ts:\n  1: const answer = 1;\n  3: const other = answer;",
  );
});

test("grep searches the given path and files", async () => {
  expect(await run(grepTool, { pattern: "(?i)answer", include: "*.md" })).toBe("readme.md:\n  1: # Answer");
  expect(await run(grepTool, { pattern: "other", path: "src/old.ts" })).toBe(
    "src/old.ts:\n  3: const other = answer;",
  );
  expect(await run(grepTool, { pattern: "answer", path: "dist" })).toBe(
    "dist/out.ts:\n  1: const answer = 42;",
  );
  expect(await run(grepTool, { pattern: "nothing", include: "*.md" })).toBe(
    "No lines match in the working directory (*.md).",
  );
});

test("grep names the files that are too large to search", async () => {
  for (const name of ["1", "2", "3", "4", "5", "6", "7"]) {
    write(`work/logs/${name}.log`, "");
    truncateSync(join(cwd, "logs", `${name}.log`), 70_000_000);
  }
  const names = [1, 2, 3, 4, 5].map((name) => `logs/${name}.log`).join(", ");
  expect(await run(grepTool, { pattern: "nowhere" })).toBe(
    `No lines match in the working directory.\n\n[7 files of more than 67108864 bytes not searched: ${names} and 2 more. Search them with a command.]`,
  );
});

test("grep explains to the model what is wrong with an expression", async () => {
  await expect(run(grepTool, { pattern: "answer(" })).rejects.toThrow(ToolFailure);
  await expect(run(grepTool, { pattern: "answer(" })).rejects.toThrow(
    'The regular expression "answer(" is not valid: unclosed group',
  );
  for (const input of [{ pattern: "a\0b" }, { pattern: "answer", include: "*.t\0s" }])
    expect(grepTool.input.safeParse(input).error?.issues[0]?.message).toBe(
      "Text files contain no NUL characters: leave it out",
    );
});

test("grep truncates long lines and reports that it shows only some", async () => {
  write("work/long.txt", `${"x".repeat(1_000)}\n`.repeat(101));
  const blocks = (await run(grepTool, { pattern: "xxx" })).split("\n\n");
  expect(blocks[0]?.split("\n").slice(0, 2)).toEqual(["long.txt:", `  1: ${"x".repeat(400)} [… line cut]`]);
  expect(blocks[0]?.split("\n")).toHaveLength(101);
  expect(blocks[1]).toMatch(/^\[Only 100 lines are shown, from the files changed last\./);
});

test("list shows a tree of folders and files", async () => {
  const call = await prepare(listTool, {});
  expect([call.title, listTool.kind, call.permissions]).toEqual([
    "List .",
    "read",
    [{ permission: "list", subjects: [{ text: "." }], always: ["*"] }],
  ]);
  expect(await run(listTool, {})).toBe(
    `${toSlashes(cwd)}/\n  src/\n    new file.ts\n    old.ts\n  .gitignore\n  readme.md`,
  );
  expect(await run(listTool, { ignore: ["src", "*.md"] })).toBe(`${toSlashes(cwd)}/\n  .gitignore`);
});

test("list closes folders that do not fit and counts their entries", async () => {
  for (let index = 0; index < 200; index++) write(`work/many/${index}.txt`, "");
  expect(await run(listTool, {})).toBe(
    [
      `${toSlashes(cwd)}/`,
      "  many/ (200 files)",
      "  src/",
      "    new file.ts",
      "    old.ts",
      "  .gitignore",
      "  readme.md",
      "[Not all of it fits. List one of the folders, or use glob, to see more.]",
    ].join("\n"),
  );
  expect((await run(listTool, { path: "many" })).split("\n")).toHaveLength(102);
});

test("list reports an empty folder", async () => {
  mkdirSync(join(cwd, "empty"));
  expect(await run(listTool, { path: "empty" })).toBe(`${toSlashes(cwd)}/empty/\n  (no files)`);
});

test.each([
  ["glob", globTool, { pattern: "*" }, []],
  // The response must not reveal whether it is a file or a folder.
  ["grep", grepTool, { pattern: "x" }, ["read"]],
  ["list", listTool, {}, []],
])("%s needs permission to search outside", async (name, tool, input, more) => {
  const { permissions } = await prepare(tool, { ...input, path: "../outside" });
  expect(permissions.map(({ permission }) => permission)).toEqual([name, ...more, "external_directory"]);
  expect(permissions.at(-1)?.subjects[0]?.text).toContain(toSlashes(join(folder, "outside")));
});

test.each([
  ["glob", globTool, { pattern: "*" }],
  ["grep", grepTool, { pattern: "x" }],
  ["list", listTool, {}],
])("%s reports a missing folder, and stops when it is cancelled", async (_, tool, input) => {
  await expect(prepare(tool, { ...input, path: "scr" })).rejects.toThrow(
    "scr does not exist. Did you mean src?",
  );
  await expect(run(tool, input, AbortSignal.abort())).rejects.toThrow("aborted");
});

test.each([
  [globTool, { pattern: "*", path: "src" }],
  [grepTool, { pattern: "answer", path: "src" }],
  [listTool, { path: "src" }],
])("a link created after the question is not followed: $name", async (tool, input) => {
  const prepared = await prepare(tool, input);
  renameSync(join(cwd, "src"), join(cwd, "moved"));
  symlinkSync(join(folder, "outside"), join(cwd, "src"));
  await expect(runPrepared(prepared)).rejects.toThrow("now leads to");
});
