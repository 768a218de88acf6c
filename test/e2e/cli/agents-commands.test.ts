import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import { type ModelServer, startModelServer } from "../../support/model/model-server.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";

interface Place {
  model: ModelServer;
  cwd: string;
  home: string;
  run: (args: string[], input?: string) => ReturnType<typeof fairlead>;
}

async function inPlace(play: (place: Place) => Promise<void>): Promise<void> {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository({
    ".fairlead/agents/poet.md":
      "---\ndescription: Answers in verse\nmode: primary\n---\nYou answer in verse.\n",
  });
  const model = await startModelServer();
  try {
    await writeConfig(home.path, model.url);
    const run = (args: string[], input = "") => fairlead(home.path, args, { cwd: repository.path, input });
    await play({ model, cwd: repository.path, home: home.path, run });
    model.assertClean();
  } finally {
    await model.close();
  }
}

describe("fairlead agents", () => {
  test("lists agents, and shows one with mode, rules and prompt", async () => {
    await inPlace(async ({ run }) => {
      const { stdout } = await run(["agents"]);
      const rows = stdout.split("\n").map((line) => line.split("\t"));
      expect(rows.map(([name, mode, , from]) => [name, mode, from])).toEqual([
        ["build", "primary, default", "built in"],
        ["plan", "primary", "built in"],
        ["general", "subagent", "built in"],
        ["explore", "subagent", "built in"],
        ["poet", "primary", "yours"],
      ]);
      const all: unknown = JSON.parse((await run(["agent", "list", "--all", "--json"])).stdout);
      expect(all).toContainEqual(expect.objectContaining({ name: "title", hidden: true }));
      const poet = (await run(["agents", "show", "poet"])).stdout;
      expect(poet).toContain("description\tAnswers in verse");
      expect(poet).toContain("Prompt:\nYou answer in verse.");
      expect((await run(["agents", "show", "plan"])).stdout).toContain("Limits:");
      const wrong = await run(["agents", "show", "pot"]);
      expect([wrong.exitCode, wrong.stderr]).toEqual([1, expect.stringContaining("did you mean poet?")]);
    });
  });

  test("lets a model write an agent that can be used immediately", async () => {
    await inPlace(async ({ run, model, cwd, home }) => {
      const agent = {
        name: "sql-reviewer",
        description: 'Finds "slow" SQL',
        prompt: "You read SQL.\n\n---\nBe brief.",
      };
      model.reply(`Here it is:\n\`\`\`json\n${JSON.stringify(agent)}\n\`\`\``);
      const made = await run([
        "agent",
        "create",
        "--deny",
        "edit",
        "--mode",
        "subagent",
        "finds",
        "slow SQL",
      ]);
      const path = join(cwd, ".fairlead/agents/sql-reviewer.md");
      expect([made.exitCode, made.stdout]).toEqual([0, path]);
      expect(model.requests[0]?.userText).toBe("finds slow SQL");
      expect(model.requests[0]?.body).toMatchObject({ temperature: 0.3 });
      expect(JSON.stringify(model.requests[0]?.body.messages)).toContain("build, plan, general, explore");
      expect(await readFile(path, "utf8")).toBe(
        '---\ndescription: "Finds \\"slow\\" SQL"\nmode: subagent\npermission:\n  "edit": deny\n---\nYou read SQL.\n\n---\nBe brief.\n',
      );
      const shown = (await run(["agents", "show", "sql-reviewer"])).stdout;
      expect(shown).toContain('description\tFinds "slow" SQL');
      expect(shown).toContain("You read SQL.\n\n---\nBe brief.");

      model.reply(JSON.stringify(agent));
      const again = await run(["agents", "create", "finds slow SQL"]);
      expect([again.exitCode, again.stderr]).toEqual([1, expect.stringContaining("--force overwrites it")]);
      model.reply(JSON.stringify(agent));
      await run(["agents", "create", "--global", "--name", "db/tuner"], "finds slow SQL\n");
      expect(model.requests[2]?.userText).toBe("finds slow SQL");
      expect(await readFile(join(home, ".config/fairlead/agents/db/tuner.md"), "utf8")).toContain(
        "mode: all",
      );
    });
  });

  test("rejects existing names, before a model request if possible", async () => {
    await inPlace(async ({ run, model }) => {
      const builtIn = await run(["agents", "create", "--force", "--name", "plan", "plans"]);
      expect([builtIn.exitCode, builtIn.stderr]).toEqual([1, expect.stringContaining("cannot be replaced")]);
      const own = await run(["agents", "create", "--name", "poet", "writes verse"]);
      expect([own.exitCode, own.stderr]).toEqual([1, expect.stringContaining("--force overwrites it")]);
      expect(model.requests).toHaveLength(0);
      model.reply(JSON.stringify({ name: "explore", description: "x", prompt: "y" }));
      const chosen = await run(["agents", "create", "looks around"]);
      expect([chosen.exitCode, chosen.stderr]).toEqual([1, expect.stringContaining("cannot be replaced")]);
      model.reply(JSON.stringify({ name: "poet", description: "x", prompt: "y" }));
      expect((await run(["agents", "create", "--force", "writes verse"])).exitCode).toBe(0);
    });
  });

  test("writes nothing when the model's answer is invalid or its name leaves the folder", async () => {
    await inPlace(async ({ run, model }) => {
      model.reply("I would rather not.");
      const none = await run(["agents", "create", "x"]);
      expect([none.exitCode, none.stderr]).toEqual([1, expect.stringContaining("I would rather not.")]);
      model.reply(JSON.stringify({ name: "../../escape", description: "x", prompt: "y" }));
      const away = await run(["agents", "create", "x"]);
      expect([away.exitCode, away.stderr]).toEqual([1, expect.stringContaining("is not a valid agent name")]);
      expect((await run(["agents", "create", "--name", "../x", "x"])).exitCode).toBe(2);
    });
  });
});
