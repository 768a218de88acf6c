import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findRunningGroups } from "../../../src/workspace/process/process-tree.ts";
import { ripgrepEngine } from "../../../src/workspace/search/search-ripgrep.ts";
import { toSlashes } from "../../../src/base/files/paths.ts";
import { toPathFilter } from "../../../src/workspace/search/glob.ts";
import type { FilesQuery, LinesQuery } from "../../../src/workspace/search/queries.ts";
import { openSearch } from "../../../src/workspace/search/search.ts";
import { temporaryFolder } from "../../support/temp.ts";
import {
  lacksOddNames,
  lacksPipesAndDevices,
  lacksShellScripts,
  lacksSignals,
} from "../../support/platform/platform.ts";

let root: string;

/** The texts contain `needle` where a search could find them. */
const corpus: Record<string, string | Buffer> = {
  ".gitignore": "*.log\n!keep.log\nbuild/\n/only-top.txt\nsecret dir/\ndocs/*.tmp\n# a comment\n\\#odd\n",
  ".git/HEAD": "ref: refs/heads/main\n",
  ".git/config": "needle\n",
  ".git/info/exclude": "excluded.txt\n",
  ".hidden": "needle in a hidden file\n",
  ".config/settings.json": "needle\n",
  "a.log": "needle\n",
  "keep.log": "needle kept\n",
  "#odd": "needle\n",
  "only-top.txt": "needle\n",
  "excluded.txt": "needle\n",
  "build/out.js": "needle\n",
  "secret dir/x.txt": "needle\n",
  "docs/a.tmp": "needle\n",
  "docs/deep/b.tmp": "needle in deep\n",
  "src/main.ts": "first\n  const needle = 1;\nlast needle",
  "src/main.test.ts": "needle\r\nneedle two\r\n",
  "src/only-top.txt": "needle below\n",
  "src/nested/.gitignore": "*.ts\n!wanted.ts\n/local\n",
  "src/nested/gone.ts": "needle\n",
  "src/nested/wanted.ts": "needle wanted\n",
  "src/nested/local": "needle\n",
  "src/nested/deeper/local": "needle deeper\n",
  "src/nested/deeper/other.log": "needle\n",
  ".ignore": "ignored-by-ignore.txt\n!vendor.log\n!revived/\n",
  "ignored-by-ignore.txt": "needle\n",
  "vendor.log": "needle in vendor\n",
  "revive.gitignore": "",
  "other/.gitignore": "revived/\n",
  "other/revived/file.txt": "needle revived\n",
  "with blank/ünï çødé 文件.txt": "needle mit Ümlaut\n",
  "odd [names]/{a}.txt": "needle odd\n",
  "binary.bin": Buffer.from("needle\nab\0needle\n"),
  "latin1.txt": Buffer.from([0x6e, 0x65, 0x65, 0x64, 0x6c, 0x65, 0x20, 0xe9, 0x0a]),
  "utf16.txt": Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("needle sixteen\n", "utf16le")]),
  "empty.txt": "",
  "long.txt": `needle${"x".repeat(5_000)}\n`,
  "no-newline.md": "needle",
  "sub/.git/HEAD": "ref: refs/heads/main\n",
  "sub/.gitignore": "inner.txt\n",
  "sub/inner.txt": "needle\n",
  "sub/outer.log": "needle of a repository inside\n",
};

beforeAll(() => {
  root = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-search-")));
  for (const [index, [path, content]] of Object.entries(corpus).entries()) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
    utimesSync(join(root, path), 1_000 + index, 1_000 + index);
  }
  symlinkSync(join(root, "keep.log"), join(root, "link.txt"));
  symlinkSync(join(root, "src"), join(root, "linked"));
  chmodSync(join(root, "empty.txt"), 0o644);
});
afterAll(() => rmSync(root, { recursive: true }));

const engines = ["ripgrep", "javascript"] as const;
const searches = engines.map((engine) => openSearch({ env: {}, engine }));

/** Returns the results of both engines, relative to the corpus; fails if they differ. */
async function files(query: Partial<FilesQuery>): Promise<{ paths: string[]; truncated: boolean }> {
  const whole = {
    folder: root,
    globs: [],
    limit: 1_000,
    order: "path" as const,
    signal: new AbortController().signal,
  };
  const [one, two] = await Promise.all(searches.map((search) => search.files({ ...whole, ...query })));
  expect(two).toEqual(one);
  if (!one) throw new Error("no engine");
  return { ...one, paths: one.paths.map((path) => toSlashes(path.slice(root.length + 1))) };
}

async function lines(query: Partial<LinesQuery>): Promise<{ matches: string[]; truncated: boolean }> {
  const whole = { folder: root, pattern: "needle", limit: 1_000, signal: new AbortController().signal };
  const [one, two] = await Promise.all(searches.map((search) => search.lines({ ...whole, ...query })));
  expect(two).toEqual(one);
  if (!one) throw new Error("no engine");
  const matches = one.matches.map(
    ({ path, line, text }) => `${toSlashes(path.slice(root.length + 1))}:${line}:${text}`,
  );
  return { ...one, matches };
}

const visible = [
  ".config/settings.json",
  ".gitignore",
  ".hidden",
  ".ignore",
  "binary.bin",
  "docs/deep/b.tmp",
  "empty.txt",
  "keep.log",
  "latin1.txt",
  "long.txt",
  "no-newline.md",
  "odd [names]/{a}.txt",
  "other/.gitignore",
  "other/revived/file.txt",
  "revive.gitignore",
  "src/main.test.ts",
  "src/main.ts",
  "src/nested/.gitignore",
  "src/nested/deeper/local",
  "src/nested/wanted.ts",
  "src/only-top.txt",
  "sub/.gitignore",
  "sub/outer.log",
  "utf16.txt",
  "vendor.log",
  "with blank/ünï çødé 文件.txt",
];

describe("files", () => {
  test("are all but .git, links, and what ignore files exclude", async () => {
    expect(await files({})).toEqual({ paths: visible, truncated: false });
  });

  test("are listed newest first and truncated at the limit", async () => {
    expect(await files({ order: "newest", limit: 3 })).toEqual({
      paths: ["sub/outer.log", "sub/.gitignore", "no-newline.md"],
      truncated: true,
    });
    expect((await files({ limit: visible.length })).truncated).toBe(false);
  });

  test.each<[string[], string[]]>([
    [["*.ts"], ["src/main.test.ts", "src/main.ts", "src/nested/wanted.ts"]],
    [["**/*.ts"], ["src/main.test.ts", "src/main.ts", "src/nested/wanted.ts"]],
    [["src/*.ts"], ["src/main.test.ts", "src/main.ts"]],
    [["/src/**/*.ts"], ["src/main.test.ts", "src/main.ts", "src/nested/wanted.ts"]],
    [["./src/*.{ts,txt}"], ["src/main.test.ts", "src/main.ts", "src/only-top.txt"]],
    [
      ["*.ts", "!*.test.ts"],
      ["src/main.ts", "src/nested/wanted.ts"],
    ],
    [["*.log"], ["keep.log", "sub/outer.log", "vendor.log"]],
    [["nested"], []],
    [["nested/**"], []],
    [["**/nested/**"], ["src/nested/.gitignore", "src/nested/deeper/local", "src/nested/wanted.ts"]],
    [["[no]*.md"], ["no-newline.md"]],
    [["*文件*"], ["with blank/ünï çødé 文件.txt"]],
    [["with blank/*"], ["with blank/ünï çødé 文件.txt"]],
    [[".h*"], [".hidden"]],
    [["?inary.bin"], ["binary.bin"]],
  ])("match the globs %j", async (globs, expected) => {
    expect(await files({ globs })).toEqual({ paths: expected, truncated: false });
  });

  test("match a glob that begins with the searched folder's own path", async () => {
    const globs = [`${root}/src/**/*.ts`, `!${root}/src/nested/**`];
    expect((await files({ globs })).paths).toEqual(["src/main.test.ts", "src/main.ts"]);
    expect((await files({ globs: [`${root}x/src/**`] })).paths).toEqual([]);
  });

  test("exclude a folder with its content if a glob excludes it", async () => {
    const { paths } = await files({ globs: ["!src", "!*.txt"] });
    expect(paths).toEqual(visible.filter((path) => !path.startsWith("src/") && !path.endsWith(".txt")));
  });

  test("below a folder follow the rules above it", async () => {
    const { paths } = await files({ folder: join(root, "src", "nested") });
    expect(paths).toEqual(["src/nested/.gitignore", "src/nested/deeper/local", "src/nested/wanted.ts"]);
  });

  test("of an excluded folder are found if it is searched by name", async () => {
    expect((await files({ folder: join(root, "build") })).paths).toEqual(["build/out.js"]);
    expect((await files({ folder: join(root, "secret dir") })).paths).toEqual(["secret dir/x.txt"]);
  });

  test("of a nested repository follow its own rules only", async () => {
    expect((await files({ folder: join(root, "sub") })).paths).toEqual(["sub/.gitignore", "sub/outer.log"]);
  });

  test("outside git follow .gitignore too, but not those of the folders above", async () => {
    const plain = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-plain-")));
    try {
      mkdirSync(join(plain, "home", "project", "src"), { recursive: true });
      writeFileSync(join(plain, "home", ".gitignore"), "*\n");
      writeFileSync(join(plain, "home", "project", ".gitignore"), "*.log\n");
      for (const name of ["a.log", "b.txt", "src/c.log"])
        writeFileSync(join(plain, "home", "project", name), "");
      for (const search of searches) {
        const query = { folder: join(plain, "home", "project"), globs: [], limit: 9, order: "path" as const };
        const { paths } = await search.files({ ...query, signal: new AbortController().signal });
        expect(paths).toEqual([".gitignore", "b.txt"].map((name) => join(plain, "home", "project", name)));
      }
    } finally {
      rmSync(plain, { recursive: true });
    }
  });

  test("are not searched after an abort", async () => {
    for (const search of searches) {
      const query = {
        folder: root,
        globs: [],
        limit: 10,
        order: "path" as const,
        signal: AbortSignal.abort(),
      };
      await expect(search.files(query)).rejects.toThrow("aborted");
    }
  });
});

describe("lines", () => {
  test("are found in text files, newest file first", async () => {
    expect(await lines({})).toEqual({
      matches: [
        "sub/outer.log:1:needle of a repository inside",
        "no-newline.md:1:needle",
        `long.txt:1:needle${"x".repeat(1_994)}`,
        "utf16.txt:1:needle sixteen",
        "latin1.txt:1:needle \uFFFD",
        "odd [names]/{a}.txt:1:needle odd",
        "with blank/ünï çødé 文件.txt:1:needle mit Ümlaut",
        "other/revived/file.txt:1:needle revived",
        "vendor.log:1:needle in vendor",
        "src/nested/deeper/local:1:needle deeper",
        "src/nested/wanted.ts:1:needle wanted",
        "src/only-top.txt:1:needle below",
        "src/main.test.ts:1:needle",
        "src/main.test.ts:2:needle two",
        "src/main.ts:2:  const needle = 1;",
        "src/main.ts:3:last needle",
        "docs/deep/b.tmp:1:needle in deep",
        "keep.log:1:needle kept",
        ".config/settings.json:1:needle",
        ".hidden:1:needle in a hidden file",
      ],
      truncated: false,
      large: [],
    });
  });

  test("are truncated at the limit", async () => {
    expect(await lines({ limit: 1 })).toEqual({
      matches: ["sub/outer.log:1:needle of a repository inside"],
      truncated: true,
      large: [],
    });
    expect((await lines({ limit: 20 })).truncated).toBe(false);
  });

  test.each<[string, string[]]>([
    ["*.ts", ["src/nested/wanted.ts:1:needle wanted", "src/main.test.ts:2:needle two"]],
    ["src/*.{ts,tsx}", ["src/main.test.ts:2:needle two"]],
    ["**/nested/**", ["src/nested/deeper/local:1:needle deeper", "src/nested/wanted.ts:1:needle wanted"]],
    ["*.log", ["vendor.log:1:needle in vendor", "keep.log:1:needle kept"]],
    ["!src/**", ["vendor.log:1:needle in vendor"]],
  ])("are found in files that match %j", async (include, expected) => {
    const { matches } = await lines({ include, pattern: "needle (wanted|two|deeper|in vendor|kept)$" });
    expect(matches.filter((match) => expected.includes(match))).toEqual(expected);
    expect(matches.every((match) => expected.includes(match) || include.startsWith("!"))).toBe(true);
  });

  test.each<[string, number]>([
    ["^needle$", 3],
    ["(?i)NEEDLE t", 1],
    ["needle(?= two)", 1],
    ["\\bconst\\s+\\w+ =", 1],
    ["[[:upper:]]ml", 0],
    ["(?P<word>needle) (?:kept|odd)", 2],
    ["needle \\- nothing", 0],
    ["Ümlaut", 1],
    ["--version", 0],
  ])("match the expression %j", async (pattern, count) => {
    expect((await lines({ pattern })).matches).toHaveLength(count);
  });

  test("of one file are found, whatever excludes it", async () => {
    expect((await lines({ folder: join(root, "a.log") })).matches).toEqual(["a.log:1:needle"]);
    expect((await lines({ folder: join(root, "binary.bin") })).matches).toEqual([]);
  });

  test.each(["needle(", "[z-a]", "*x"])("the expression %j is rejected with a reason", async (pattern) => {
    for (const search of searches) {
      const query = { folder: root, pattern, limit: 10, signal: new AbortController().signal };
      await expect(search.lines(query)).rejects.toThrow(
        `The regular expression ${JSON.stringify(pattern)} is not valid: `,
      );
    }
  });
});

const pipesAndDevices: [string, string, (path: string) => void][] = [
  ["a pipe", "", (path) => execFileSync("mkfifo", [path])],
  ["a device", "", (path) => symlinkSync("/dev/zero", path)],
  ["a pipe far below", "deep/er", (path) => execFileSync("mkfifo", [path])],
];

test.each([
  ["src/*.ts", "src/a.ts"],
  ["src\\**\\*.ts", "src/deep/a.ts"],
  ["C:\\work\\src\\*.ts", "src/a.ts"],
  ["C:/work/src/*.ts", "src/a.ts"],
])("on Windows the glob %s matches %s", (glob, path) => {
  const isWanted = toPathFilter([glob], "C:\\work", "\\");
  expect([isWanted(path), isWanted("other/a.ts")]).toEqual([true, false]);
});

describe.each(engines)("%s does not wait for ignore files", (engine) => {
  test.each([
    ...(lacksPipesAndDevices ? [] : pipesAndDevices),
    ["huge", "", makeHuge],
    ["huge and far below", "deep/er", makeHuge],
    [
      "huge and in a repository below",
      "deep/.git/info",
      (path: string) => makeHuge(join(path, "../exclude")),
    ],
  ])("that are %s", async (_, below, make) => {
    const folder = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-search-")));
    try {
      mkdirSync(join(folder, below), { recursive: true });
      mkdirSync(join(folder, ".git"), { recursive: true });
      writeFileSync(join(folder, ".git/HEAD"), "ref: refs/heads/main\n");
      writeFileSync(join(folder, "a.txt"), "needle\n");
      make(join(folder, below, ".gitignore"));
      const search = openSearch({ env: {}, engine });
      const signal = AbortSignal.timeout(10_000);
      const files = { folder, globs: ["*.txt"], limit: 10, order: "path", signal } as const;
      expect((await search.files(files)).paths).toEqual([join(folder, "a.txt")]);
      const { matches } = await search.lines({ folder, pattern: "needle", limit: 10, signal });
      expect(matches).toEqual([{ path: join(folder, "a.txt"), line: 1, text: "needle" }]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

/** Takes no room on the disk, except on Windows. */
const hugeBytes = process.platform === "win32" ? 80_000_000 : 8_000_000_000;

function makeHuge(path: string): void {
  writeFileSync(path, "");
  truncateSync(path, hugeBytes);
}

describe.each(engines)("%s shows", (engine) => {
  test("matches in a line of many bytes and many matches, truncated", { timeout: 20_000 }, async () => {
    const folder = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-search-")));
    const long = `${"ü".repeat(3_000)}${"x".repeat(30_000_000)}`;
    writeFileSync(join(folder, "a.txt"), `${long}needle\nneedle 2\r\n`);
    const search = openSearch({ env: {}, engine });
    const signal = AbortSignal.timeout(10_000);
    const { matches } = await search.lines({ folder, pattern: "x|needle", limit: 10, signal });
    const path = join(folder, "a.txt");
    expect(matches).toEqual([
      { path, line: 1, text: "ü".repeat(2_000) },
      { path, line: 2, text: "needle 2" },
    ]);
    rmSync(folder, { recursive: true });
  });

  test("no lines of a file with binary data after them, but those of other files", async () => {
    const folder = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-search-")));
    writeFileSync(join(folder, "late.bin"), `needle 1\n${"text\n".repeat(100_000)}\0\0`);
    writeFileSync(join(folder, "a.txt"), "needle 2\n");
    const search = openSearch({ env: {}, engine });
    const signal = AbortSignal.timeout(10_000);
    const { matches } = await search.lines({ folder, pattern: "needle", limit: 10, signal });
    expect(matches).toEqual([{ path: join(folder, "a.txt"), line: 1, text: "needle 2" }]);
    rmSync(folder, { recursive: true });
  });

  test("the requested lines, newest file first, even if many more match", async () => {
    const folder = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-search-")));
    for (let file = 0; file < 30; file++) {
      const path = join(folder, `${file}.txt`);
      writeFileSync(path, `needle ${"x".repeat(1_000)}\n`.repeat(50));
      utimesSync(path, file, file);
    }
    const search = openSearch({ env: {}, engine });
    const signal = AbortSignal.timeout(10_000);
    const found = await search.lines({ folder, pattern: "needle", limit: 60, signal });
    expect(found.truncated).toBe(true);
    const names = found.matches.map(({ path }) => relative(folder, path));
    expect(names).toEqual([...Array(50).fill("29.txt"), ...Array(10).fill("28.txt")]);
    rmSync(folder, { recursive: true });
  });

  test.skipIf(lacksOddNames)("files whose names look like its own output", async () => {
    const folder = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-search-")));
    const names = ["a\nb.txt", "a:1:b.txt", "a: binary file matches", "b.txt"];
    for (const name of names) writeFileSync(join(folder, name), "needle: binary file matches\n");
    const search = openSearch({ env: {}, engine });
    const signal = AbortSignal.timeout(10_000);
    const { matches } = await search.lines({ folder, pattern: "needle", limit: 10, signal });
    const found = matches.map(({ path, text }) => `${relative(folder, path)} ${text}`);
    expect(found.toSorted()).toEqual(names.map((name) => `${name} needle: binary file matches`).toSorted());
    rmSync(folder, { recursive: true });
  });

  test("which files are too large to search, and lists them", async () => {
    const folder = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-search-")));
    mkdirSync(join(folder, "sub"));
    writeFileSync(join(folder, ".gitignore"), "ignored.log\n");
    writeFileSync(join(folder, "a.txt"), "needle\n");
    for (const name of ["big.log", "sub/other big.log", "ignored.log"]) makeHuge(join(folder, name));
    const search = openSearch({ env: {}, engine });
    const { signal } = new AbortController();
    const query = { folder, limit: 10, signal };
    const large = ["big.log", "sub/other big.log"].map((name) => join(folder, name));
    for (const pattern of ["needle", "nothing"])
      expect((await search.lines({ ...query, pattern })).large).toEqual(large);
    expect((await search.lines({ ...query, pattern: "needle", include: "*.txt" })).large).toEqual([]);
    expect((await search.lines({ ...query, pattern: "needle", include: "big*" })).large).toEqual([large[0]]);
    const listed = await search.files({ ...query, globs: ["*.log"], order: "path" });
    expect(listed.paths).toEqual(large);
    rmSync(folder, { recursive: true });
  });

  test("no file above the size limit, even if requested, and says so", async () => {
    const folder = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-search-")));
    const path = join(folder, "a.txt");
    makeHuge(path);
    const search = openSearch({ env: {}, engine });
    const found = search.lines({
      folder: path,
      pattern: "x",
      limit: 10,
      signal: AbortSignal.timeout(10_000),
    });
    await expect(found).rejects.toThrow(
      `${path} has ${hugeBytes} bytes; the limit for searches is 67108864 bytes.`,
    );
    rmSync(folder, { recursive: true });
  });
});

test("an expression that takes forever without ripgrep is given up", async () => {
  const folder = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-search-")));
  writeFileSync(join(folder, "a.txt"), `${"a".repeat(200)}!\n`);
  const search = openSearch({ env: {}, engine: "javascript" });
  const signal = new AbortController().signal;
  const found = search.lines({ folder, pattern: "(a+)+$", limit: 10, signal });
  await expect(found).rejects.toThrow('The regular expression "(a+)+$" takes too long.');
  rmSync(folder, { recursive: true });
});

/** Searches with a program that prints nothing; killed soon after that is guarded. */
const killedSearch = `
  import { writeFileSync } from "node:fs";
  import { ripgrepEngine } from "${new URL("../../../src/workspace/search/search-ripgrep.ts", import.meta.url).href}";
  import { Watchdog } from "${new URL("../../../src/workspace/process/watchdog.ts", import.meta.url).href}";
  const [folder] = process.argv.slice(1);
  writeFileSync(folder + "/silent", "#!/bin/sh\\nexec sleep 1000", { mode: 0o755 });
  class Dog extends Watchdog {
    guard(group) {
      super.guard(group);
      process.stdout.write(String(group));
      setTimeout(() => process.kill(process.pid, "SIGKILL"), 100);
    }
  }
  const engine = ripgrepEngine(folder + "/silent", new Dog(process.env.PATH));
  for await (const path of engine.files(folder, new AbortController().signal));
`;

/** Searches without free file handles. */
const searchWithoutFiles = `
  import { openSync } from "node:fs";
  import { findRipgrep, ripgrepEngine } from "${new URL("../../../src/workspace/search/search-ripgrep.ts", import.meta.url).href}";
  const engine = ripgrepEngine(await findRipgrep(process.env));
  for (let isOpen = true; isOpen; )
    try { openSync("/dev/null"); } catch { isOpen = false; }
  try {
    for await (const path of engine.files("/", new AbortController().signal));
  } catch (error) {
    process.stdout.write(error.message);
  }
`;

test.skipIf(lacksShellScripts)("a search that cannot start reports the reason", async () => {
  const script = ["--input-type=module", "--experimental-strip-types", "-e", searchWithoutFiles];
  const limited = ["-c", 'ulimit -n 200; exec "$@"', "sh", process.execPath, ...script];
  const { stdout } = await execa("/bin/sh", limited);
  expect(stdout).toMatch(/^ripgrep could not be started: spawn \S+ EMFILE$/);
});

test.skipIf(lacksSignals)("a search ends if the program is killed", async () => {
  const folder = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-search-")));
  const script = ["--input-type=module", "--experimental-strip-types", "-e", killedSearch, folder];
  const { stdout, signal } = await execa(process.execPath, script, { reject: false });
  expect([signal, Number(stdout)]).toEqual(["SIGKILL", expect.any(Number)]);
  await expect.poll(() => findRunningGroups([Number(stdout)]), { timeout: 10_000 }).toEqual([]);
  rmSync(folder, { recursive: true });
});

test.each(engines)("%s reports the progress of a search", async (engine) => {
  const search = openSearch({ env: {}, engine, progressMs: 0 });
  const notice: number[] = [];
  const onProgress = async (files: number) => void notice.push(files);
  const query = { folder: root, limit: 10, onProgress, signal: new AbortController().signal };
  await search.files({ ...query, globs: ["*.ts"], order: "path" });
  expect(notice).toEqual(notice.toSorted((one, other) => one - other));
  expect(notice.at(-1)).toBe(3);
  notice.length = 0;
  await search.lines({ ...query, pattern: "needle" });
  expect(notice.length).toBeGreaterThan(2);
});

test("searches without any ripgrep", async () => {
  const search = openSearch({ env: {} });
  const query = { folder: root, globs: ["keep.log"], limit: 10, order: "path" as const };
  const { paths } = await search.files({ ...query, signal: new AbortController().signal });
  expect(paths).toEqual([join(root, "keep.log")]);
});

test("thousands of files are searched in bounded time, and an abort ends it", async () => {
  const many = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-many-")));
  try {
    for (let folder = 0; folder < 30; folder++) {
      mkdirSync(join(many, `f${folder}`));
      for (let file = 0; file < 100; file++)
        writeFileSync(join(many, `f${folder}`, `${file}.txt`), "needle\n".repeat(50));
    }
    for (const search of searches) {
      const query = { folder: many, pattern: "needle", limit: 100, signal: new AbortController().signal };
      const { matches, truncated } = await search.lines(query);
      expect({ count: matches.length, truncated }).toEqual({ count: 100, truncated: true });
      const controller = new AbortController();
      const aborted = search.lines({ ...query, signal: controller.signal });
      controller.abort();
      await expect(aborted).rejects.toThrow("aborted");
    }
  } finally {
    rmSync(many, { recursive: true });
  }
});

test.skipIf(lacksShellScripts)("ripgrep prints paths with slashes, as globs have them", async () => {
  await using place = await temporaryFolder();
  const program = join(place.path, "rg");
  writeFileSync(program, "#!/bin/sh\nprintf '%s\\0' \"$@\"\n", { mode: 0o755 });
  const engine = ripgrepEngine(program, undefined);
  const options: string[] = [];
  for await (const option of engine.files(place.path, new AbortController().signal)) options.push(option);
  expect(options).toContain("--path-separator=/");
});
