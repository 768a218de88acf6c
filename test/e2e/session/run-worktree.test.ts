import { readFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { lacksShellScripts } from "../../support/platform/platform.ts";
import { writeProgram } from "../../support/platform/path-program.ts";
import { fairlead } from "../../support/program/cli.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";

test("run --worktree does not change the folder until /merge; doctor names leftovers", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository({ "a.txt": "one\n" });
  const model = await startModelServer();
  try {
    await writeConfig(home.path, model.url);
    const run = (...args: string[]) => fairlead(home.path, args, { cwd: repository.path });
    const text = () => readFile(join(repository.path, "a.txt"), "utf8");
    model.reply(reply.call("edit", { filePath: "a.txt", oldString: "one", newString: "two" })).reply("Done.");
    const first = await run("run", "--permission", "allow", "--worktree", "Change it");
    expect(first.stderr).toContain("works in the worktree");
    expect(await text()).toBe("one\n");
    expect((await run("doctor", "--offline")).stdout).toContain("Worktree");
    expect((await run("sessions", "list")).stdout).toContain("(worktree) ");
    const denied = await run("run", "--continue", "/merge");
    expect(denied.exitCode).not.toBe(0);
    expect(await text()).toBe("one\n");
    const merged = await run("run", "--permission", "allow", "--continue", "/merge");
    expect(merged.stdout).toContain("Merged 1 file of fairlead/");
    expect(await text()).toBe("two\n");
    expect((await run("doctor", "--offline")).stdout).not.toContain("Worktree");
    const wrong = await run("run", "--worktree", "--continue", "Go on");
    expect(wrong.stderr).toContain("--worktree starts a new session");
    model.assertClean();
  } finally {
    await model.close();
  }
});

test.skipIf(lacksShellScripts)("a run waits until git has removed its worktree", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository({ "a.txt": "one\n" });
  const model = await startModelServer();
  try {
    await writeConfig(home.path, model.url);
    const { PATH: path = "" } = process.env;
    const slowGit = `import { spawnSync } from "node:child_process";
      const args = process.argv.slice(2);
      if (args.includes("remove")) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
      const env = { ...process.env, PATH: ${JSON.stringify(path)} };
      process.exit(spawnSync("git", args, { stdio: "inherit", env }).status);`;
    const folder = join(home.path, "slow");
    await writeProgram(folder, "git", slowGit);
    const env = { PATH: [folder, path].join(delimiter) };
    model.reply("Nothing to change.");
    await fairlead(home.path, ["run", "--worktree", "Look"], { cwd: repository.path, env });
    const { stdout } = await fairlead(home.path, ["doctor", "--offline"], { cwd: repository.path });
    expect(stdout).not.toContain("Worktree");
  } finally {
    await model.close();
  }
});
