import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import { type ModelServer, startModelServer } from "../../support/model/model-server.ts";
import { temporaryFolder, writeConfig } from "../../support/temp.ts";

interface Place {
  model: ModelServer;
  run: (...args: string[]) => ReturnType<typeof fairlead>;
  runWith: (env: Record<string, string>, ...args: string[]) => ReturnType<typeof fairlead>;
}

async function inPlace(play: (place: Place) => Promise<void>): Promise<void> {
  await using home = await temporaryFolder({}, "fairlead-home-");
  const model = await startModelServer();
  try {
    const models = { coder: { reasoning: true, variants: { high: { reasoningEffort: "high" } } }, plain: {} };
    const local = { options: { baseURL: model.url, apiKey: "test-key" }, models };
    await writeConfig(home.path, model.url, { model: "local/plain", provider: { local } });
    await play({
      model,
      run: (...args) => fairlead(home.path, args),
      runWith: (env, ...args) => fairlead(home.path, args, { env }),
    });
    model.assertClean();
  } finally {
    await model.close();
  }
}

describe("run", () => {
  test("accepts a thinking level after the model's name", async () => {
    await inPlace(async ({ model, run }) => {
      model.reply("Thought.");
      expect((await run("run", "-m", "local/coder:high", "Hi")).stdout).toBe("Thought.");
      expect(model.requests[0]?.body).toMatchObject({ model: "coder", reasoning_effort: "high" });
      const unknown = await run("run", "-m", "local/coder:huge", "Hi");
      expect([unknown.exitCode, unknown.stderr]).toEqual([
        1,
        expect.stringMatching(/The model local\/coder has no effort "huge"; it has .*high/),
      ]);
      expect((await run("run", "-m", "local/plain:high", "Hi")).exitCode).toBe(1);
    });
  });

  test("takes the effort from --effort, for the named model and the configured one", async () => {
    await inPlace(async ({ model, run }) => {
      const replyText = async (...args: string[]) =>
        (await run("run", ...args, "Hi")).stderr.split("\n").at(-1);
      model.reply("Thought.");
      expect((await run("run", "-m", "local/coder", "--effort", "high", "Hi")).stdout).toBe("Thought.");
      expect(model.requests[0]?.body).toMatchObject({ model: "coder", reasoning_effort: "high" });
      model.reply("Thought again.");
      expect((await run("run", "--continue", "--effort", "high", "Hi")).stdout).toBe("Thought again.");
      expect(model.requests[1]?.body).toMatchObject({ model: "coder", reasoning_effort: "high" });
      expect(await replyText("-m", "local/coder", "--effort", "max")).toBe(
        'fairlead: The model local/coder has no effort "max"; it has default, high.',
      );
      expect(await replyText("--effort", "high")).toBe(
        'fairlead: The model local/plain has no effort "high"; it has none.',
      );
      expect(await replyText("-m", "local/coder:high", "--effort", "default")).toContain(
        "--model local/coder:high and --effort default name different efforts",
      );
    });
  });

  test("accepts FAIRLEAD_MODEL with an effort, and rejects one that the model lacks", async () => {
    await inPlace(async ({ model, runWith }) => {
      model.reply("Thought.");
      const named = await runWith({ FAIRLEAD_MODEL: "local/coder:high" }, "run", "Hi");
      expect(named.stdout).toBe("Thought.");
      expect(model.requests[0]?.body).toMatchObject({ model: "coder", reasoning_effort: "high" });
      const refused = await runWith({ FAIRLEAD_MODEL: "local/coder:max" }, "run", "Hi");
      expect(refused.exitCode).toBe(1);
      expect(refused.stderr).toContain('The model local/coder has no effort "max"; it has high.');
    });
  });

  test("suggests a usable model for one that cannot be used", async () => {
    await inPlace(async ({ run }) => {
      const replyText = async (name: string) =>
        (await run("run", "-m", name, "Hi")).stderr.split("\n").at(-1);
      const hint = "fairlead models lists those that can.";
      expect(await replyText("coder")).toBe(
        `fairlead: The model coder cannot be used. Did you mean local/coder? ${hint}`,
      );
      expect(await replyText("local/codr")).toContain("Did you mean local/coder?");
      expect(await replyText("nobody/nothing-like-it")).toBe(
        `fairlead: The model nobody/nothing-like-it cannot be used. ${hint}`,
      );
    });
  });

  test("explains why an agent cannot be chosen and lists the others", async () => {
    await inPlace(async ({ run }) => {
      const replyText = async (name: string) => {
        const { exitCode, stderr } = await run("run", "--agent", name, "Hi");
        expect(exitCode).toBe(1);
        return stderr.split("\n").at(-1);
      };
      expect(await replyText("nobody")).toBe(
        'fairlead: There is no agent "nobody". --agent takes build, plan.',
      );
      expect(await replyText("paln")).toBe(
        'fairlead: There is no agent "paln". Did you mean plan? --agent takes build, plan.',
      );
      expect(await replyText("explore")).toBe(
        "fairlead: The agent explore is a subagent and cannot be chosen. --agent takes build, plan. Mention it in the prompt instead: @explore.",
      );
      expect(await replyText("title")).toContain("The agent title is hidden and cannot be chosen.");
      expect((await run("sessions")).stdout).toBe("");
    });
  });
});

test("an unknown command suggests run, and acp on a terminal explains its purpose", async () => {
  await inPlace(async ({ run }) => {
    const words = await run("explain this repository");
    expect([words.exitCode, words.stderr.split("\n")[0]]).toEqual([
      2,
      'fairlead: unknown command "explain this repository". Did you mean fairlead run "explain this repository"?',
    ]);
    const more = await run("explain", "this", "repository");
    expect(more.stderr).toContain('Did you mean fairlead run "explain this repository"?');
    expect((await run("fly")).stderr).not.toContain("fairlead run");
  });
  await using home = await temporaryFolder({}, "fairlead-home-");
  const terminal = join(import.meta.dirname, "../../support/program/preload/as-terminal.cjs");
  const served = await fairlead(home.path, ["acp"], { env: { NODE_OPTIONS: `--require=${terminal}` } });
  expect(served).toEqual({
    exitCode: 0,
    stdout: "",
    stderr:
      "Editors start this, without a terminal (ssh -T, docker exec -i). To work in a terminal, use: fairlead run",
  });
  expect((await fairlead(home.path, ["acp"])).stderr).toBe("");
});
