import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, rmSync, statSync, writeFileSync } from "node:fs";
import { chmod, cp, readFile, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { changedFilesLimit, ignoredFilesLimit } from "../../src/workspace/changes/tracker.ts";
import { openChangeTracker } from "../../src/workspace/changes/change-tracker.ts";
import { watchEventsLimit } from "../../src/workspace/changes/folder-watch.ts";
import { reportWrites } from "../../src/workspace/changes/report-writes.ts";
import { timeStepMs } from "../../src/workspace/changes/file-state.ts";
import { commandPlace } from "../support/command-place.ts";
import { endlessCommand, lacksFileModes } from "../support/platform/platform.ts";
import type { Files } from "../support/temp.ts";

type Place = Awaited<ReturnType<typeof commandPlace>>;

function git({ cwd }: Pick<Place, "cwd">, ...args: string[]): void {
  const author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
  execFileSync("git", [...author, ...args], { cwd, stdio: "ignore" });
}

/** A place that is a git repository with all files committed. */
async function committed(files: Files): Promise<Place> {
  const place = await commandPlace(files);
  git(place, "init", "-q");
  git(place, "add", "-A");
  git(place, "commit", "-qm", "first");
  return place;
}

/** Runs a command and returns what it changed by path relative to the folder. */
async function changed(place: Place, command: string) {
  const { changes = [], metadata } = await place.run(command);
  const operations = changes.map(({ path, operation }) => [path.slice(place.cwd.length + 1), operation]);
  return { changes, operations: Object.fromEntries(operations), notUndone: metadata?.["notUndone"] };
}

describe("the changes of a command", () => {
  test("omit edits of the user before it, and undo restores these", async () => {
    await using place = await committed({ a: "one\n", b: "two\n" });
    await place.write({ a: "mine\n", c: "also mine\n" });
    const { changes, operations } = await changed(place, "echo more >> a; rm b");
    expect(operations).toEqual({ a: "update", b: "delete" });
    expect(await place.undo(changes)).toEqual({ a: "changed", b: "made" });
    expect(place.tree()).toEqual({ a: "mine\n", b: "two\n", c: "also mine\n" });
  });

  test("are found if size and times stay the same", async () => {
    await using place = await committed({ a: "one\n" });
    const time = new Date("2020-01-01T00:00:00Z");
    await utimes(place.path("a"), time, time);
    git(place, "status");
    const { operations } = await changed(place, "printf 'two\\n' > a; touch -d 2020-01-01T00:00:00Z a");
    expect(operations).toEqual({ a: "update" });
  });

  test("do not include a file that is only touched or rewritten", async () => {
    await using place = await committed({ a: "one\n", b: "two\n" });
    const { operations } = await changed(place, "touch a; cat b > c; mv c b");
    expect(operations).toEqual({});
  });

  test.each([
    ["sed -i.bak s/one/1/ a b", "as here"],
    ["find . -name '?' -type f -exec sed -i.bak s/one/1/ {} +", "as here"],
    ["find . -name '?' -type f -exec sed -i.bak s/one/1/ {} +", "of Git for Windows"],
  ])("include copies of unchanged files that an editing program left: %s (index %s)", async (line, index) => {
    await using place = await committed({ a: "one\n", b: "two\n" });
    if (index !== "as here") await writeIndexOfWindows(place);
    const created = Date.now();
    // File system clocks are coarse.
    await expect.poll(() => Date.now() - created).toBeGreaterThan(2 * timeStepMs);
    const { changes, notUndone } = await changed(place, line);
    expect([Object.keys(place.tree()).toSorted(), notUndone]).toEqual([
      ["a", "a.bak", "b", "b.bak"],
      undefined,
    ]);
    await place.undo(changes);
    expect(place.tree()).toEqual({ a: "one\n", b: "two\n" });
  });

  test("include a file again that an undo has just removed", async () => {
    await using place = await committed({ a: "one\n" });
    for (const line of ["echo two > b", "echo three > b"]) {
      const { changes } = await changed(place, line);
      await place.undo(changes);
      expect(place.tree(), line).toEqual({ a: "one\n" });
    }
  });

  test("include a new file with an old time of modification", async () => {
    await using place = await committed({ a: "one\n" });
    const { changes } = await changed(place, "touch -t 202001010000 b");
    await place.undo(changes);
    expect(place.tree()).toEqual({ a: "one\n" });
  });

  test("omit a file that was moved in or was ignored before", async () => {
    await using place = await committed({ ".gitignore": "*.secret\n", "a.secret": "mine\n" });
    await rename(place.path("a.secret"), place.path("b.secret"));
    const created = Date.now();
    // File system clocks are coarse.
    await expect.poll(() => Date.now() - created).toBeGreaterThan(2 * timeStepMs);
    const { changes, operations, notUndone } = await changed(place, "rm .gitignore");
    expect(operations).toEqual({ ".gitignore": "delete" });
    expect(notUndone).toEqual(["1 file was already there before, ignored or elsewhere, and not removed"]);
    await place.undo(changes);
    expect(place.tree()).toEqual({ ".gitignore": "*.secret\n", "b.secret": "mine\n" });
  });

  test.each([
    ["rm .env", "delete"],
    ["echo A=2 > .env", "update"],
    ["printf x | tee .env", "update"],
    ["> .env", "update"],
    ["truncate -s 0 .env", "update"],
    ["echo A=2 > new; mv new .env", "update"],
  ])("cover an ignored file that the command line names: %s", async (line, operation) => {
    await using place = await committed({ ".gitignore": ".env\n", ".env": "A=1\n" });
    const { changes, operations } = await changed(place, line);
    expect(operations).toEqual({ ".env": operation });
    await place.undo(changes);
    expect(place.tree()[".env"]).toBe("A=1\n");
  });

  test.each([true, false])("cover ignored files in what the command line names (git: %s)", async (isGit) => {
    const files = {
      ".gitignore": "out/\n*.log\n",
      "out/a/b": "1",
      "out/c": "2",
      "a.log": "3",
      "src/d.log": "4",
    };
    await using place = await (isGit ? committed(files) : commandPlace(files));
    const before = place.tree();
    for (const [line, count] of [
      ["rm -rf out", 2],
      ["rm -rf out/*", 2],
      ["rm *.log", 1],
      ["cd src && rm -f *.log", 1],
      ["mv out src/moved", 4],
      ["cp -r out src/out", 2],
      ["mkdir -p new && cp -r src new && rm -rf src", 2],
    ] as const) {
      const { changes } = await changed(place, line);
      expect(changes, line).toHaveLength(count);
      await place.undo(changes);
      expect(place.tree(), line).toEqual(before);
    }
  });

  test.each([true, false])(
    "report that a named folder has too many ignored files (git: %s)",
    async (isGit) => {
      await using place = await (isGit ? committed : commandPlace)({ ".gitignore": "out/\n", "out/a": "1" });
      await place.run(`cd out && for i in $(seq ${ignoredFilesLimit}); do : > f$i; done`);
      const { operations, notUndone } = await changed(place, "rm -rf out");
      expect(operations).toEqual({});
      expect(notUndone).toEqual(["out has more than 500 ignored files, which are not undone"]);
    },
  );

  test("include a folder in place of a link", async () => {
    await using place = await committed({ a: "one\n" });
    await symlink("a", place.path("link"));
    const before = place.tree();
    const { changes } = await changed(place, "rm link && mkdir -p link/deep && echo x > link/deep/file");
    await place.undo(changes);
    expect(place.tree()).toEqual(before);
  });

  test("cover a checkout, a stash and a commit, and report that HEAD moved", async () => {
    await using place = await committed({ a: "one\n" });
    git(place, "checkout", "-q", "-b", "other");
    await place.write({ a: "two\n", b: "new\n" });
    git(place, "add", "-A");
    git(place, "commit", "-qm", "second");
    const before = place.tree();
    const { changes, operations, notUndone } = await changed(place, "git checkout -q -");
    expect(operations).toEqual({ a: "update", b: "delete" });
    expect(notUndone).toEqual([
      expect.stringMatching(/^git's HEAD moved from other \(\w{8}\) to \w+ \(\w{8}\), and stays there$/),
    ]);
    await place.undo(changes);
    expect(place.tree()).toEqual(before);
  });

  test("restore files with a filter only from bytes that were in the folder", async () => {
    await using place = await committed({ ".gitattributes": "*.txt text eol=crlf\n", "a.txt": "one\ntwo\n" });
    git(place, "rm", "-q", "--cached", "a.txt");
    await rm(place.path("a.txt"));
    git(place, "reset", "-q", "--hard");
    const before = place.tree();
    expect(before["a.txt"]).toBe("one\r\ntwo\r\n");
    const { changes } = await changed(place, "rm a.txt");
    await place.undo(changes);
    expect(place.tree()).toEqual(before);
  });

  test("are read with each version of git's index", async () => {
    for (const version of ["2", "3", "4"]) {
      await using place = await committed({ "src/a": "one\n", "src/ab": "two\n", "src/b/c": "three\n" });
      git(place, "update-index", "--index-version", version);
      if (version === "3") git(place, "update-index", "--skip-worktree", "src/a");
      const before = place.tree();
      const { changes } = await changed(place, "rm -r src/ab src/b");
      await place.undo(changes);
      expect(place.tree()).toEqual(before);
    }
  });

  test("are found in a repository with SHA-256", async () => {
    await using place = await commandPlace({ a: "one\n" });
    git(place, "init", "-q", "--object-format=sha256");
    git(place, "add", "-A");
    git(place, "commit", "-qm", "first");
    const { changes } = await changed(place, "rm a");
    await place.undo(changes);
    expect(place.tree()).toEqual({ a: "one\n" });
  });

  test.skipIf(lacksFileModes)("include modes", async () => {
    await using place = await committed({ run: "two\n" });
    await chmod(place.path("run"), 0o755);
    const before = place.tree();
    const { changes, operations } = await changed(place, "chmod -x run");
    expect(operations).toEqual({ run: "update" });
    const after = place.tree();
    await place.undo(changes);
    expect(place.tree()).toEqual(before);
    await place.redo(changes);
    expect(place.tree()).toEqual(after);
  });

  test("include links", async () => {
    await using place = await committed({ a: "one\n", run: "two\n" });
    await symlink("a", place.path("link"));
    const before = place.tree();
    const { changes, operations } = await changed(place, "ln -sf run link; ln -s a other; rm a");
    expect(operations).toEqual({ a: "delete", link: "update", other: "add" });
    const after = place.tree();
    await place.undo(changes);
    expect(place.tree()).toEqual(before);
    await place.redo(changes);
    expect(place.tree()).toEqual(after);
  });

  test("of two commands at the same time are reported once", async () => {
    await using place = await committed({ a: "one\n", b: "two\n" });
    const slow = place.run("until [ -e go ]; do sleep 0.05; done; echo more >> b");
    const { changes } = await changed(place, "echo more >> a; touch go");
    const all = [...changes, ...((await slow).changes ?? [])];
    expect(all.map(({ path }) => path.slice(place.cwd.length + 1)).sort()).toEqual(["a", "b", "go"]);
  });

  test("omit what tools write while it runs", async () => {
    await using place = await committed({ a: "one\n", b: "two\n", c: "three\n", d: "four\n" });
    const { workspace } = place.context;
    const files = reportWrites(workspace.files, workspace.changeTracker);
    const running = changed(place, "echo more >> b; touch begun; until [ -e go ]; do sleep 0.05; done");
    await expect.poll(() => existsSync(place.path("begun"))).toBe(true);
    const hash = async (name: string) => (await files.read(place.path(name))).hash;
    await files.write(place.path("a"), Buffer.from("1\n"), await hash("a"));
    await files.write(place.path("new"), Buffer.from("new\n"), null);
    await files.remove(place.path("d"), await hash("d"));
    await place.write({ c: "a user's\n", go: "" });
    // A user's edit cannot be distinguished from the command's.
    expect((await running).operations).toEqual({ b: "update", begun: "add", c: "update", go: "add" });
  });

  test("are recorded for a cancelled command", async () => {
    await using place = await committed({ a: "one\n" });
    const cancel = new AbortController();
    const running = place.run(`echo more >> a; ${endlessCommand}`, cancel.signal);
    await expect.poll(() => place.text("a")).toBe("one\nmore\n");
    cancel.abort();
    const { changes = [] } = await running;
    await place.undo(changes);
    expect(place.tree()).toEqual({ a: "one\n" });
  });

  test("beyond the limits are counted", async () => {
    await using place = await committed({ a: "one\n" });
    const count = changedFilesLimit + 7;
    const { changes, notUndone } = await changed(
      place,
      `for i in $(seq ${count}); do : > f$i; done; head -c 11000000 /dev/zero > a`,
    );
    expect(changes).toHaveLength(changedFilesLimit);
    expect(changes.find(({ path }) => path === join(place.cwd, "a"))?.after).toBe(undefined);
    expect(notUndone).toEqual([
      "1 file was too large or could not be read, and not restored",
      `8 more files changed; at most ${changedFilesLimit} per command are recorded`,
    ]);
  });

  test("are not searched if the command only reads", async () => {
    await using place = await committed({ a: "one\n" });
    for (const line of ["ls -la", "git status --short", "grep one a | sort | head -3", "sed -n 1p a"])
      expect(await place.isTracked(line)).toBe(false);
    for (const line of ["npm test", "sed -i 1d a", "ls > b", "git stash", "find . -delete"])
      expect(await place.isTracked(line)).toBe(true);
  });

  test.each([true, false])("omit the program's own files (git: %s)", async (isGit) => {
    const own = ".local/share/fairlead";
    await using place = await (isGit ? committed : commandPlace)({ a: "one\n", [`${own}/storage/x`]: "1" });
    for (const line of [
      `echo more | tee -a a ${own}/storage/x > ${own}/new`,
      `find . -path ./.git -prune -o -type f -exec sh -c 'echo more >> "$1"' - {} \\;`,
      `rm -rf .local`,
    ]) {
      const { operations, notUndone } = await changed(place, line);
      expect(operations, line).toEqual(line.startsWith("rm") ? {} : { a: "update" });
      expect(notUndone ?? [], line).toEqual([]);
    }
  });

  test.each([
    ["an edit", async (place: Place) => place.write({ "src/a": "mine\n", "src/new": "mine\n" })],
    ["an edit in an ignored folder", async (place: Place) => place.write({ "out/tracked": "mine\n" })],
    ["a new folder", async (place: Place) => place.write({ "made/deep/a": "mine\n" })],
    ["a moved folder", async (place: Place) => rename(place.path("src"), place.path("moved"))],
    ["a removed file", async (place: Place) => rm(place.path("src/a"))],
    ["another mode", async (place: Place) => chmod(place.path("src/a"), 0o755)],
    ["another rule", async (place: Place) => place.write({ ".gitignore": "*.log\n" })],
    ["more edits than are watched", editMany],
    [
      "another folder of the same name",
      async (place: Place) => {
        const copy = join(place.outside, "copy");
        await cp(place.cwd, copy, { recursive: true });
        await rm(place.cwd, { recursive: true });
        await rename(copy, place.cwd);
        await place.write({ "src/a": "mine\n" });
      },
    ],
  ])("omit %s between two commands", async (_, edit) => {
    await using place = await commandPlace({
      ".gitignore": "out/\n*.log\n",
      "src/a": "one\n",
      "src/b": "two\n",
      "out/tracked": "three\n",
      "out/other": "four\n",
      "empty/.gitkeep": "",
    });
    git(place, "init", "-q");
    git(place, "add", "-A");
    git(place, "add", "-f", "out/tracked");
    git(place, "commit", "-qm", "first");
    const append = "find . -name .git -prune -o -type f -exec sh -c 'echo more >> \"$1\"' - {} \\;";
    // The first command starts to watch the folders, the second one already knows the files.
    for (const line of ["echo x > c", "mkdir -p made && echo y >> c"]) await place.run(line);
    await edit(place);
    const before = place.tree();
    const { changes } = await changed(place, append);
    await place.undo(changes);
    const isCovered = ([name]: [string, string]) => name !== "out/other";
    expect(Object.entries(place.tree()).filter(isCovered)).toEqual(Object.entries(before).filter(isCovered));
  });

  test.runIf(process.platform === "linux")(
    "are found with one listing if nothing changes between two commands",
    async () => {
      await using place = await committed({ ".gitignore": "*.log\n", "src/a": "one\n" });
      const log = join(place.outside, "listings");
      const program = join(place.outside, "bin", "git");
      const script = `#!/bin/sh\necho "$*" >> '${log}'\nPATH='${process.env["PATH"] ?? ""}' exec git "$@"\n`;
      await place.write({ "../bin/git": script });
      await chmod(program, 0o755);
      const tracker = openChangeTracker(() => ({ ...process.env, PATH: dirname(program) }), []);
      const run = async (task: () => Promise<void>) => {
        await writeFile(log, "");
        const command = await tracker.start([place.cwd], []);
        await task();
        const { files } = await command.finish();
        const listings = (await readFile(log, "utf8"))
          .split("\n")
          .filter((line) => line.includes("--modified"));
        return {
          files: files.map(({ path }) => path.slice(place.cwd.length + 1)),
          listings: listings.length,
        };
      };
      expect(await run(async () => place.write({ "src/a": "two\n" }))).toEqual({
        files: ["src/a"],
        listings: 2,
      });
      expect(await run(async () => place.write({ "src/a": "three\n" }))).toEqual({
        files: ["src/a"],
        listings: 1,
      });
      await place.write({ "src/a": "mine\n", "src/b": "mine\n", "a.log": "mine\n" });
      expect(await run(async () => place.write({ "src/b": "four\n", "a.log": "five\n" }))).toEqual({
        files: ["src/b"],
        listings: 1,
      });
      git(place, "add", "-A");
      expect(await run(async () => {})).toEqual({ files: [], listings: 2 });
    },
  );
});

/** Rewrites git's index as Git for Windows does: without inodes, and with the times of creation. */
async function writeIndexOfWindows(place: Place): Promise<void> {
  const path = place.path(".git/index");
  const index = await readFile(path);
  let at = 12;
  for (let entry = index.readUInt32BE(8); entry > 0; entry--) {
    const length = index.readUInt16BE(at + 60) & 0xfff;
    const name = index.toString("utf8", at + 62, at + 62 + length);
    const { birthtimeMs } = statSync(place.path(name));
    index.writeUInt32BE(Math.floor(birthtimeMs / 1_000), at);
    index.writeUInt32BE(Math.floor(birthtimeMs % 1_000) * 1e6, at + 4);
    index.writeUInt32BE(0, at + 20);
    at += (62 + length + 8) & ~7;
  }
  const content = index.subarray(0, -20);
  await writeFile(path, Buffer.concat([content, createHash("sha1").update(content).digest()]));
}

/** Creates and removes one file more often than events are counted. */
async function editMany(place: Place): Promise<void> {
  for (let round = 0; round < watchEventsLimit / 2; round++) {
    writeFileSync(place.path("src/b"), `mine ${round}\n`);
    rmSync(place.path("src/b"));
  }
  await place.write({ "src/a": "mine\n" });
}
