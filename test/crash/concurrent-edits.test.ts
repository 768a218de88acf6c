import { spawn } from "node:child_process";
import { once } from "node:events";
import { watch } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test, vi } from "vitest";
import { openFiles } from "../../src/workspace/files/disk-files.ts";
import { sha256 } from "../../src/base/text/hash.ts";
import { openSnapshots } from "../../src/workspace/files/snapshot.ts";
import { isLong } from "../support/run-length.ts";
import { story } from "../support/editor/story.ts";
import { temporaryFolder } from "../support/temp.ts";

/** Runs a script as a new process and returns the lines that it printed. */
async function linesOf(script: string, ...args: (string | number)[]): Promise<string[]> {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, "programs", script), ...args.map(String)],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  expect(code).toBe(0);
  return output.split("\n").filter((line) => line !== "");
}

test("every edit that one of four processes reports as done is in the file", async () => {
  await using folder = await temporaryFolder({ "work/a.txt": "" });
  const path = join(folder.path, "work/a.txt");
  const rounds = isLong ? 120 : 60;
  const names = ["one", "two", "three", "four"];
  const done = await Promise.all(
    names.map((name) => linesOf("edit-file.ts", path, folder.path, name, rounds, 1)),
  );
  const stored = (await readFile(path, "utf8")).split("\n").filter((line) => line !== "");
  expect(stored.toSorted()).toEqual(done.flat().toSorted());
  expect(await readdir(join(folder.path, "work"))).toEqual(["a.txt"]);
});

test.each(["place", "rename"])("edits lose nothing that an editor saves: by %s", async (how) => {
  await using folder = await temporaryFolder({ "work/a.txt": "" });
  const path = join(folder.path, "work/a.txt");
  const rounds = isLong ? 1_000 : 300;
  const [replaced, done] = await Promise.all([
    linesOf("save-file.ts", path, how, rounds),
    linesOf("edit-file.ts", path, folder.path, "edit", rounds, 0),
  ]);
  // Two saves within one tick of the file system's clock cannot be ordered: one stays, the other is a snapshot.
  const snapshots = openSnapshots(join(folder.path, "snapshot"));
  const contents = await Promise.all(
    replaced.map((line) => snapshots.load(sha256(Buffer.from(`${line}\n`)))),
  );
  expect(replaced.filter((_, index) => !contents[index])).toEqual([]);
  expect(done.length).toBeGreaterThan(0);
  expect(await readdir(join(folder.path, "work"))).toEqual(["a.txt"]);
});

/** Kills a process that edits a file as soon as it creates a file next to it. */
async function killWhileWriting(path: string, folder: string): Promise<void> {
  const args = [join(import.meta.dirname, "programs/edit-file.ts"), path, folder, "edit", "1000"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
  const watcher = watch(dirname(path), () => child.kill("SIGKILL"));
  await once(child, "exit");
  watcher.close();
}

test("the next program start removes a killed process's temporary file", async () => {
  await story({}, async ({ editor, model, home, repository }) => {
    const data = join(home.path, ".local/share/fairlead");
    const path = join(repository.path, "a.txt");
    const before = `${"x".repeat(4_000_000)}\n`;
    await writeFile(path, before);
    const isLeft = (name: string) => name.endsWith(".tmp");
    const left = async () => (await readdir(repository.path)).filter(isLeft);
    for (let round = 0; round < 40 && (await left()).length === 0; round++)
      await killWhileWriting(path, data);
    expect(await left()).toHaveLength(1);

    const { sessionId } = await editor.newSession();
    model.reply("Done.");
    await editor.prompt(sessionId, "Go on");
    await vi.waitFor(async () => expect(await left()).toEqual([]), { timeout: 10_000 });
    const [first, ...added] = (await readFile(path, "utf8")).trimEnd().split("\n");
    expect(`${first}\n`).toBe(before);
    expect(added.filter((line) => !/^edit \d+$/.test(line))).toEqual([]);
  });
});

test("cleaning up after a killed process keeps files that others saved", async () => {
  await using folder = await temporaryFolder({ "work/a.txt": "ours\n", "work/.b.tmp": "theirs\n" });
  const path = join(folder.path, "work/a.txt");
  const lockFolder = join(folder.path, "file-locks");
  const temporary = join(folder.path, "work/.b.tmp");
  const note = { path, temporary, expected: sha256(Buffer.from("before\n")), inode: "1:2" };
  await mkdir(lockFolder);
  await writeFile(join(lockFolder, `${sha256(Buffer.from(path)).slice(0, 2)}.json`), JSON.stringify(note));
  const stored: string[] = [];
  const keep = async (bytes: Buffer) => {
    stored.push(bytes.toString());
    return sha256(bytes);
  };
  const files = openFiles({ lockFolder, keep });
  await files.lock([path], () => files.write(path, Buffer.from("more\n"), sha256(Buffer.from("ours\n"))));
  expect(stored).toEqual(["theirs\n"]);
  expect(await readdir(join(folder.path, "work"))).toEqual(["a.txt"]);
  expect((await readdir(lockFolder)).filter((name) => name.endsWith(".json"))).toEqual([]);
});
