import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
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
