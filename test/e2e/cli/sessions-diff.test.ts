import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import { startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { lacksFileModes, lacksOddNames } from "../../support/platform/platform.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";

const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}\n`).join("");
const files = {
  "a.txt": lines(30),
  "no end": "no line end",
  "gone.txt": "gone\n",
  "old.txt": lines(9),
  "run.sh": "true\n",
  "logo.bin": new Uint8Array([0, 1, 2, 3, 254, 255, 0]),
};
const command = [
  "sed -i.bak -e 's/line 3$/three/' -e '25d' a.txt && rm a.txt.bak",
  "printf ' and more' >> 'no end'",
  "rm gone.txt",
  "mkdir sub && mv old.txt sub/new.txt",
  ...(lacksFileModes ? [] : ["chmod +x run.sh"]),
  "printf '\\000\\001' > logo.bin",
  "head -c 5000 /dev/urandom > big.bin",
  "ln -s a.txt link",
  ...(lacksOddNames ? [] : ["printf 'x' > 'quote\"d'"]),
].join(" && ");

// Git for Windows would change the ends of lines.
const settings = ["-c", "core.autocrlf=false"];

/** The name that git gives to the tree of all files, with modes and links. */
function treeHash(folder: string): string {
  const env = { ...process.env, GIT_INDEX_FILE: join(folder, ".git", "index-of-test") };
  const git = (...args: string[]) =>
    execFileSync("git", [...settings, ...args], { cwd: folder, env, encoding: "utf8" });
  git("add", "--all", "--force");
  return git("write-tree").trim();
}

test("sessions diff prints a patch that git applies in both directions", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository(files);
  const model = await startModelServer();
  try {
    await writeConfig(home.path, model.url, { permission: { bash: "allow" } });
    const run = (...args: string[]) => fairlead(home.path, args, { cwd: repository.path });
    const apply = (patch: string, ...args: string[]) =>
      execFileSync("git", [...settings, "apply", ...args], { cwd: repository.path, input: patch });
    model.reply("Nothing to do.");
    await run("run", "Say something");
    const none = await run("sessions", "diff");
    expect([none.exitCode, none.stdout, none.stderr]).toEqual([
      0,
      "",
      expect.stringMatching(/^The session ses_\w+ changed no files\.$/),
    ]);
    const before = treeHash(repository.path);
    model.reply(reply.call("bash", { command })).reply("Done.");
    await run("run", "--continue", "Change much");
    const after = treeHash(repository.path);
    expect(after).not.toBe(before);
    const { exitCode, stdout, stderr } = await run("sessions", "diff", "last");
    expect([exitCode, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("rename from old.txt\nrename to sub/new.txt");
    apply(`${stdout}\n`, "-R");
    expect(treeHash(repository.path)).toBe(before);
    apply(`${stdout}\n`);
    expect(treeHash(repository.path)).toBe(after);
    const stat = await run("sessions", "diff", "last", "--stat");
    expect(stat.stdout).toContain("+1\t-2\ta.txt");
    expect(stat.stdout).toContain("old.txt → sub/new.txt");
    expect(JSON.parse((await run("sessions", "diff", "--json")).stdout)).toMatchObject({
      root: repository.path,
      files: expect.arrayContaining([{ path: "gone.txt", operation: "delete", additions: 0, deletions: 1 }]),
    });
  } finally {
    await model.close();
  }
});

test("sessions diff fails and names a file whose content is too large to store", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository({ "a.txt": "one\n" });
  const model = await startModelServer();
  try {
    await writeConfig(home.path, model.url, { permission: { bash: "allow" } });
    const run = (...args: string[]) => fairlead(home.path, args, { cwd: repository.path });
    model
      .reply(reply.call("bash", { command: "head -c 11000000 /dev/zero > large && echo two > a.txt" }))
      .reply("Done.");
    await run("run", "Write a large file");
    const { exitCode, stdout, stderr } = await run("sessions", "diff");
    expect([exitCode, stderr]).toEqual([
      1,
      "fairlead: large is not in the patch: its content is not stored.",
    ]);
    expect(stdout).toContain("-one\n+two");
  } finally {
    await model.close();
  }
});
