import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { startInTerminal, type Terminal } from "../../support/program/terminal.ts";
import { type ModelServer, startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";

interface Place {
  model: ModelServer;
  cwd: string;
  run: (prompt: string, how?: { columns?: number; env?: Record<string, string> }) => Terminal;
}

async function inPlace(
  play: (place: Place) => Promise<void>,
  config: Record<string, unknown> = {},
): Promise<void> {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository({ "a.txt": "one\n", "日本.txt": "二\n" });
  const model = await startModelServer();
  try {
    await writeConfig(home.path, model.url, config);
    const { path: cwd } = repository;
    await play({
      model,
      cwd,
      run: (prompt, how = {}) => startInTerminal(home.path, ["run", prompt], { cwd, ...how }),
    });
    model.assertClean();
  } finally {
    await model.close();
  }
}

const bash = (command: string) => reply.call("bash", { command });
const asks = { permission: { bash: "ask" } };

/** Masks what differs from run to run. */
const masked = (screen: string) =>
  screen
    .replaceAll(/ses_\w+/g, "ses_ID")
    .replaceAll(/\d+(?:\.\d)? s\b/g, "N s")
    .replaceAll(/[\d,]+ tokens/g, "N tokens");

describe("a question about a permission", () => {
  test.each([
    ["1", 0],
    ["\u001b[B\u001b[A\r", 0],
    ["y\r", 0],
    ["4", 130],
    ["n\r", 130],
    ["\u001b[A\r", 130],
    ["\u001b", 130],
    ["\u0004", 130],
  ])("is answered by %j", async (keys, code) => {
    await inPlace(async ({ model, run }) => {
      model.reply(bash("make me"));
      if (code === 0) model.reply("Made.");
      const terminal = run("Make");
      await terminal.shows("4. Reject");
      terminal.type(keys);
      expect(await terminal.ended).toBe(code);
      expect(terminal.screen()).toContain(code === 0 ? "→ Allow once" : "→ Reject");
    }, asks);
  });

  test("takes typed text as a rejection with a reason, which reaches the model", async () => {
    await inPlace(async ({ model, run }) => {
      model.reply(bash("npm test")).reply("Right.");
      const terminal = run("Test");
      await terminal.shows("4. Reject");
      terminal.type("no, but use 世界 pnmp\u007f\u007f\u007fpm\r");
      expect(await terminal.ended).toBe(0);
      expect(model.requests[1]?.toolResults[0]).toContain("but use 世界 ppm");
      expect(terminal.screen()).toMatch(/→ No: but use 世界 ppm\n✗ \$ npm test \(rejected\)\nRight\./);
    }, asks);
  });

  test("offers three ways to continue after a plan", async () => {
    await inPlace(
      async ({ model, cwd, run }) => {
        const write = reply.call("write", { filePath: "b.txt", content: "two\n" });
        model
          .reply(reply.call("plan_enter", {}))
          .reply(reply.call("plan_exit", {}))
          .reply(reply.call("plan_exit", {}))
          .reply(write)
          .reply("Built.");
        const terminal = run("Plan it");
        await terminal.shows("2. Reject");
        terminal.type("1");
        await terminal.shows("3. Keep planning");
        expect(terminal.screen()).toMatch(/1\. Build, ask for edits\s+2\. Build, accept edits\s+3\. Keep/);
        terminal.type("use two files\r");
        await terminal.shows("No: use two files");
        await terminal.shows("3. Keep planning");
        terminal.type("2");
        expect(await terminal.ended).toBe(0);
        expect(terminal.screen()).toContain("→ Build, accept edits");
        expect(await readFile(join(cwd, "b.txt"), "utf8")).toBe("two\n");
      },
      { permission: { edit: "ask" } },
    );
  });

  test("is not repeated in the project after an answer for the project", async () => {
    await inPlace(async ({ model, run }) => {
      model.reply(bash("make me")).reply("Made.");
      const first = run("Make");
      await first.shows("in this project");
      first.type("3");
      expect(await first.ended).toBe(0);
      model.reply(bash("make me")).reply("Made again.");
      const second = run("Make");
      expect(await second.ended).toBe(0);
      expect(second.screen()).not.toContain("Allow once");
    }, asks);
  });

  test("ignores keys typed before it, and rejects numbers that it does not list", async () => {
    await inPlace(async ({ model, run }) => {
      const gate = reply.gate();
      model.reply(gate, bash("make me")).reply("Made.");
      const terminal = run("Make");
      await gate.reached();
      terminal.type("\r1y");
      gate.release();
      await terminal.shows("4. Reject");
      terminal.type("17\r");
      await terminal.shows("Answer with a number from 1 to 4 or text.");
      terminal.type("\u007f\u007f1");
      expect(await terminal.ended).toBe(0);
    }, asks);
  });

  test("cancels the turn at Ctrl-C", async () => {
    await inPlace(async ({ model, run }) => {
      model.reply(bash("make me"));
      const terminal = run("Make");
      await terminal.shows("4. Reject");
      terminal.type("\u0003");
      expect(await terminal.ended).toBe(130);
      expect(terminal.screen()).toMatch(/cancelling; press Ctrl-C again[\s\S]*cancelled in /);
    }, asks);
  });

  test("is a list of lines if the terminal cannot draw", async () => {
    await inPlace(async ({ model, run }) => {
      model.reply(bash("make me")).reply("Other.");
      const terminal = run("Make", { env: { TERM: "dumb" } });
      await terminal.shows("Number, or type what to do instead: ");
      terminal.type("9\n");
      await terminal.shows("Answer with a number from 1 to 4 or text.");
      terminal.type("use ninja\n");
      expect(await terminal.ended).toBe(0);
      expect(model.requests[1]?.toolResults[0]).toContain("use ninja");
    }, asks);
  });
});

describe("a question from the model", () => {
  const options = [{ label: "Postgres", description: "a server" }, { label: "SQLite" }, { label: "日本語" }];
  const store = { header: "Store", question: "Which store?", options };
  const ask = (...questions: object[]) => reply.call("question", { questions });

  test.each([
    ["2", '"SQLite"'],
    ["\u001b[B\u001b[B\r", '"日本語"'],
    ["postgres\r", '"Postgres"'],
    ["MySQL 8\r", "MySQL 8"],
    ["\u001b", "The user skipped this."],
  ])("is answered by %j", async (keys, answer) => {
    await inPlace(async ({ model, run }) => {
      model.reply(ask(store)).reply("Good.");
      const terminal = run("Choose");
      await terminal.shows("3. 日本語");
      expect(terminal.screen()).toContain("? Store: Which store?\n  ❯ 1. Postgres (a server)\n    2. SQLite");
      terminal.type(keys);
      expect(await terminal.ended).toBe(0);
      expect(model.requests[1]?.toolResults[0]).toContain(answer);
    });
  });

  test("may be one of several, with several answers", async () => {
    await inPlace(async ({ model, run }) => {
      model.reply(ask(store, { ...store, header: "Also", multiple: true })).reply("Good.");
      const terminal = run("Choose");
      await terminal.shows("? 1/2 Store");
      await terminal.shows("3. 日本語");
      terminal.type("1");
      await terminal.shows("? 2/2 Also");
      await terminal.shows("3. [ ] 日本語");
      terminal.type("3");
      await terminal.shows("3. [x] 日本語");
      terminal.type("\u001b[A ");
      await terminal.shows("2. [x] SQLite");
      terminal.type("and Redis\r");
      expect(await terminal.ended).toBe(0);
      expect(terminal.screen()).toContain("→ SQLite, 日本語, and Redis");
      const result = model.requests[1]?.toolResults[0];
      for (const part of ['"Postgres"', '"SQLite"', '"日本語"', "and Redis"]) expect(result).toContain(part);
    });
  });
});

describe("a turn on a terminal", () => {
  const costs = { provider: { test: { models: { scripted: { cost: { input: 1_000, output: 1_000 } } } } } };
  const prices = { FAIRLEAD_CONFIG_CONTENT: JSON.stringify(costs) };

  test("shows each call with its own output, and ends with one line of costs", async () => {
    await inPlace(async ({ model, run }) => {
      const counts = reply.usage({ promptTokens: 1_000, completionTokens: 1_000 });
      model
        .reply(
          reply.say("I look first."),
          reply.together(
            reply.callScript("read", { filePath: "a.txt" }),
            reply.callScript("glob", { pattern: "日*.txt" }),
            reply.callScript("bash", { command: "for n in $(seq 14); do echo 行 $n; done; exit 3" }),
            reply.callScript("read", { filePath: "none.txt" }),
          ),
          counts,
        )
        .reply(reply.say("All of it ", "is there."), counts);
      const terminal = run("Look", { columns: 100, env: prices });
      expect(await terminal.ended).toBe(0);
      const lines = masked(terminal.screen()).split("\n");
      expect(lines[0]).toBe("I look first.");
      // Calls that run side by side end in any order.
      const blocks = lines
        .slice(1, -2)
        .join("\n")
        .split(/\n(?=[✓✗])/);
      expect(blocks.sort()).toMatchInlineSnapshot(`
        [
          "✓ Find 日*.txt
          日本.txt",
          "✓ Read a.txt",
          "✗ $ for n in $(seq 14); do echo 行 $n; done; exit 3 (exit 3)
          行 1
          行 2
          行 3
          … 3 lines
          行 7
          行 8
          行 9
          行 10
          行 11
          行 12
          行 13
          行 14",
          "✗ Read none.txt
          none.txt does not exist. Look for it with glob or list.",
        ]
      `);
      expect(lines.slice(-2)).toEqual([
        "All of it is there.",
        "done in N s, N tokens, $5.02 (session ses_ID)",
      ]);
    });
  });

  test("shows a command's output while it runs, and what it waits for", async () => {
    await inPlace(async ({ model, run, cwd }) => {
      const gate = reply.gate();
      model.reply(gate, bash("echo begun; until [ -e go ]; do sleep 0.05; done")).reply("Done.");
      const terminal = run("Wait");
      await terminal.shows("Waiting for the model");
      gate.release();
      await terminal.shows("$ echo begun");
      await terminal.shows("\n  begun");
      await terminal.shows("1 s");
      await writeFile(join(cwd, "go"), "");
      expect(await terminal.ended).toBe(0);
      expect(terminal.screen()).toMatch(/^✓ \$ echo begun; until.* \(\d.* s\)\n {2}begun\nDone\.\ndone in/);
    });
  });

  test("counts down to the next attempt after a failure of the provider", async () => {
    await inPlace(async ({ model, run }) => {
      model.reply(reply.failure(503, "Overloaded", { "retry-after": "1" })).reply("Here.");
      const terminal = run("Hi");
      await terminal.shows("Waiting to try again 1 s");
      expect(await terminal.ended).toBe(0);
      expect(terminal.screen()).toMatch(
        /^The provider is overloaded.*\nTrying again in 1 s.*\nHere\.\ndone in/,
      );
    });
  });
});
