import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import { startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { environment } from "../../support/program/environment.ts";
import { startInTerminal } from "../../support/program/terminal.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";

const program = fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url));

test("other terminals list, show, answer and cancel a turn without a terminal", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository({ "make.sh": "echo made by make\n" });
  const { path: cwd } = repository;
  const model = await startModelServer();
  const run = (...args: string[]) => fairlead(home.path, args, { cwd });
  const attach = (...args: string[]) =>
    startInTerminal(home.path, ["attach", ...args], { cwd, columns: 300 });
  try {
    await writeConfig(home.path, model.url, { permission: { bash: "ask" } });
    model
      .reply("Making. ", reply.call("bash", { command: "sh make.sh", description: "Make" }))
      .reply("Made.");
    const started = await run("run", "--detach", "Make it");
    expect([started.exitCode, started.stdout]).toEqual([0, expect.stringMatching(/^ses_\w+$/)]);
    const id = started.stdout;
    expect(started.stderr).toContain(`at most 60 minutes. Show it: fairlead attach ${id}`);
    expect((await run("sessions")).stdout).toMatch(/\t\(running\)/);

    const first = attach(id);
    await first.shows(`Attached to ${id}`);
    await first.shows(". Reject");
    first.type("\u0003");
    expect(await first.ended).toBe(0);
    expect(first.screen()).toContain("Making.");
    expect(first.screen()).toContain("Detached. The turn goes on.");

    const second = attach("last");
    await second.shows(". Reject");
    second.type("1");
    expect(await second.ended).toBe(0);
    expect(second.screen()).toMatch(/made by make\nMade\./);
    expect(model.requests).toHaveLength(2);
    expect((await run("sessions")).stdout).not.toContain("(running)");
    const third = await run("attach", id);
    expect([third.exitCode, third.stdout]).toEqual([0, "Made."]);
    expect(third.stderr).toContain(`The last turn of ${id}`);
    const uncancelled = await run("attach", id, "--cancel");
    expect([uncancelled.exitCode, uncancelled.stderr]).toEqual([
      1,
      expect.stringContaining(`No turn is running in ${id}.`),
    ]);

    model.reply("Waiting. ", reply.call("bash", { command: "sh make.sh", description: "Make" }));
    await run("run", "--detach", "--continue", "Again");
    const cancelled = await run("attach", id, "--cancel");
    expect([cancelled.exitCode, cancelled.stdout]).toEqual([130, ""]);
    expect(cancelled.stderr).toContain("Waiting.");
    expect(model.requests).toHaveLength(3);
    // In a pipe, stdout contains only the answer, as with run.
    const gate = reply.gate();
    model
      .reply("Making. ", reply.call("bash", { command: "sh make.sh", description: "Make" }))
      .reply(gate, "Made once more.");
    await run("run", "--detach", "--allow", "bash", "--continue", "Once more");
    const piped = execa(process.execPath, [program, "attach", id], {
      cwd,
      env: environment(home.path),
      extendEnv: false,
      stdin: "ignore",
    });
    for await (const line of piped.iterable({ from: "stderr" }))
      if (line.startsWith("Attached")) gate.release();
    expect((await piped).stdout).toBe("Made once more.");
    const refused = await run("run", "--detach", "--json", "Again");
    expect([refused.exitCode, refused.stderr]).toEqual([
      2,
      expect.stringContaining("--json needs this program until the turn ends; use it without --detach"),
    ]);
    model.assertClean();
  } finally {
    await model.close();
  }
});

test("a turn without a terminal that fails at once is reported, also on first use", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository({});
  const model = await startModelServer();
  await writeConfig(home.path, model.url, {});
  await model.close();
  const started = await fairlead(home.path, ["run", "--detach", "Make it"], { cwd: repository.path });
  expect([started.exitCode, started.stdout]).toEqual([1, ""]);
  expect(started.stderr).toContain("Nothing listens on ");
});

test("attach shows how the last turn failed while no terminal was attached", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository({});
  const model = await startModelServer();
  const run = (...args: string[]) => fairlead(home.path, args, { cwd: repository.path });
  try {
    await writeConfig(home.path, model.url, {});
    const gate = reply.gate();
    model
      .reply("Looking. ", reply.call("bash", { command: "echo looked", description: "Look" }))
      .reply(gate, reply.failure(401, "The key has expired."));
    await run("run", "--detach", "Look");
    gate.release();
    await expect.poll(async () => (await run("sessions")).stdout).not.toContain("(running)");
    const ended = await run("attach", "last");
    expect([ended.exitCode, ended.stdout]).toEqual([5, ""]);
    expect(ended.stderr).toContain("The key has expired.");
    expect(ended.stderr).not.toContain("The turn failed");
  } finally {
    await model.close();
  }
});
