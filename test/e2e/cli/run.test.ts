import { spawn } from "node:child_process";
import { once } from "node:events";
import { delimiter } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { canAsk } from "../../../src/cli/run/run-options.ts";
import { createPermissionPrompt } from "../../../src/cli/run/run-answers.ts";
import { readTyped } from "../../../src/cli/ask/prompt.ts";
import { environment } from "../../support/program/environment.ts";
import { type ModelRequest, type ModelServer, startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";
import { writeProgram } from "../../support/platform/path-program.ts";
import { lacksSignals } from "../../support/platform/platform.ts";

const program = fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url));

interface Place {
  model: ModelServer;
  /** Starts the program; its stdin stays open unless input is given. */
  start: (args: string[], how?: { input?: string; env?: Record<string, string> }) => Running;
}

function start(home: string, cwd: string): Place["start"] {
  return (args, { input, env = {} } = {}) => {
    const child = spawn(process.execPath, [program, ...args], {
      cwd,
      env: { ...environment(home), ...env },
      stdio: "pipe",
    });
    if (input !== undefined) child.stdin.end(input);
    const closed = once(child, "close").then(([code]): unknown => code);
    // A reader that closes the pipe has read nothing.
    const ended = Promise.all([closed, text(child.stdout).catch(() => ""), text(child.stderr)]);
    return { child, ended: ended.then(([code, stdout, stderr]) => ({ code, stdout, stderr })) };
  };
}

interface Running {
  child: ReturnType<typeof spawn>;
  ended: Promise<{ code: unknown; stdout: string; stderr: string }>;
}

async function inPlace(
  play: (place: Place) => Promise<void>,
  config?: Record<string, unknown>,
  files: Record<string, string> = {},
) {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository({ "a.txt": "one\n", "b/c.txt": "two\n", ...files });
  const model = await startModelServer();
  try {
    await writeConfig(home.path, model.url, config);
    await play({ model, start: start(home.path, repository.path) });
    model.assertClean();
  } finally {
    await model.close();
  }
}

const jsonLines = (stdout: string): unknown[] =>
  stdout
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line));

describe("limits of a run", () => {
  test("stop it with exit code 3: model calls, and costs whatever is allowed", async () => {
    await inPlace(async ({ model, start }) => {
      const more = reply.call("read", { filePath: "a.txt" });
      model.reply(more).reply(reply.say("So far."));
      const steps = await start(["run", "--max-steps", "2", "Go on"], { input: "" }).ended;
      expect([steps.code, steps.stdout]).toEqual([3, "So far.\n"]);
      expect(model.requests.map(({ body }) => body.tool_choice)).toEqual(["auto", "none"]);

      const price = {
        provider: { test: { models: { scripted: { cost: { input: 1_000, output: 1_000 } } } } },
      };
      const env = { FAIRLEAD_CONFIG_CONTENT: `// prices\n${JSON.stringify(price)}` };
      model.reply(more, reply.usage({ promptTokens: 1_000, completionTokens: 1_000 }));
      const args = ["run", "--max-cost", "1.5", "--permission", "allow", "Go on"];
      const cost = await start(args, { input: "", env }).ended;
      expect([cost.code, cost.stderr]).toEqual([3, expect.stringContaining("This turn has cost $2.00")]);
    });
  });
});

test("a run lists the background work that ended with it", async () => {
  await inPlace(
    async ({ model, start }) => {
      model
        .reply(reply.call("bash", { command: "echo begun; sleep 600", background: true }))
        .reply("It runs.");
      const { code, stderr } = await start(["run", "Start it"], { input: "" }).ended;
      expect(code).toBe(0);
      expect(stderr).toContain("Ended with this run: echo begun; sleep 600");
    },
    { permission: { bash: "allow" } },
  );
});

test("a run waits for its background tasks and answers with their reports", async () => {
  await inPlace(async ({ model, start }) => {
    const mayEnd = reply.gate();
    const isOfTask = ({ messages }: ModelRequest) => JSON.stringify(messages[1]).includes("Count the files");
    model.when(isOfTask, [mayEnd, "There are seven files."]);
    const task = { description: "Count", prompt: "Count the files", subagent_type: "general" };
    model.reply(reply.call("task", { ...task, background: true })).reply("I have started it.");
    const running = start(["run", "How many files are there?"], { input: "" });
    await model.request(3);
    model.reply("Seven.");
    let log = "";
    running.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      log += text;
      if (log.includes("Waiting for tasks")) mayEnd.release();
    });
    const { code, stdout, stderr } = await running.ended;
    expect([code, stdout]).toEqual([0, "Seven.\n"]);
    expect(stderr).toContain("Waiting for tasks in the background: Count (@general)");
    expect(stderr).not.toContain("Ended with this run");
    expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("There are seven files.");
  });
});

test("a run answers with the report of a task that ends within its turn", async () => {
  await inPlace(async ({ model, start }) => {
    const mayAnswer = reply.gate();
    const isOfTask = ({ messages }: ModelRequest) => JSON.stringify(messages[1]).includes("Count the files");
    model.when(isOfTask, "There are seven files.");
    const task = { description: "Count", prompt: "Count the files", subagent_type: "general" };
    model
      .reply(reply.call("task", { ...task, background: true }))
      .reply([mayAnswer, "I have started it."])
      .reply("Seven.");
    const running = start(["run", "--json", "How many files are there?"], { input: "" });
    let events = "";
    running.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      events += text;
      if (events.includes("There are seven files.")) mayAnswer.release();
    });
    const { code, stdout } = await running.ended;
    expect([code, JSON.parse(stdout.trim().split("\n").at(-1) ?? "")]).toEqual([
      0,
      expect.objectContaining({ answer: "Seven." }),
    ]);
  });
});

describe("the evidence of a run", () => {
  const edited = { permission: { edit: "allow", bash: "ask" }, evidence: {} };
  const write = reply.call("write", { filePath: "b.ts", content: "export {};\n" });
  const notRun = "1 file changed; nothing was run after the last change";

  test("is one line on stderr, and in the list of a session's turns", async () => {
    await inPlace(async ({ model, start }) => {
      model.reply(write).reply("All tests pass.");
      const { code, stdout, stderr } = await start(["run", "Write b.ts"], { input: "" }).ended;
      expect([code, stdout]).toEqual([0, "All tests pass.\n"]);
      const line =
        "1 file changed; the model says that tests pass, but no test was run after the last change";
      expect(stderr.split("\n").filter((text) => text.includes("after the last change"))).toEqual([line]);
      const { stdout: shown } = await start(["sessions", "show", "last"], { input: "" }).ended;
      expect(shown).toMatch(/^1\t[^\t]+\tWrite b\.ts\t1 file changed; the model says/m);
    }, edited);
  });

  test("is a field of the last line of its JSON, if files changed", async () => {
    await inPlace(async ({ model, start }) => {
      model.reply(write).reply("Written.").reply("Nothing to do.");
      const changed = await start(["run", "--json", "Write b.ts"], { input: "" }).ended;
      const evidence = { files: ["b.ts"], after: [], before: [], unproven: [] };
      expect(jsonLines(changed.stdout)).toContainEqual(expect.objectContaining({ title: notRun }));
      expect(jsonLines(changed.stdout).at(-1)).toMatchObject({ type: "result", evidence });
      const { stdout } = await start(["run", "--json", "Go on"], { input: "" }).ended;
      expect(jsonLines(stdout).at(-1)).not.toHaveProperty("evidence");
    }, edited);
  });

  test("includes a reminder only if commands can be answered", async () => {
    await inPlace(async ({ model, start }) => {
      model.reply(write).reply("Written.").reply("There is no check.");
      await start(["run", "--permission", "allow", "Write b.ts"], { input: "" }).ended;
      expect(model.requests[2]?.userText).toContain("ran nothing after the last change");
    }, edited);
  });
});

/** 200 steps take long on a busy machine. */
const manySteps = { timeout: 120_000 };

describe("a run without a terminal", () => {
  const bash = (command: string) => reply.call("bash", { command });
  const config = { permission: { bash: "ask" } };

  test("continues after refused calls, lists them in its last line, and exits with 4", async () => {
    await inPlace(async ({ model, start }) => {
      model.reply(bash("npm test")).reply(bash("make")).reply("Without the tests it looks right.");
      const { code, stdout, stderr } = await start(["run", "Check it"], { input: "" }).ended;
      expect([code, stdout]).toEqual([4, "Without the tests it looks right.\n"]);
      expect(model.requests[1]?.toolResults).toEqual([
        expect.stringMatching(
          /^Not run\. The user could not be asked, so there is no decision: This run has no terminal on which a user could answer\. Continue without it\./,
        ),
      ]);
      expect(stderr.trim().split("\n").at(-1)).toBe(
        "2 calls were refused: bash `npm test`, bash `make`; allow them with --allow, a rule or --permission allow",
      );
    }, config);
  });

  test("lists refused calls in the last line of its JSON", async () => {
    await inPlace(async ({ model, start }) => {
      model.reply(bash("npm test")).reply("Not tested.");
      const { code, stdout } = await start(["run", "--json", "Check it"], { input: "" }).ended;
      expect([code, jsonLines(stdout).at(-1)]).toEqual([
        4,
        expect.objectContaining({
          type: "result",
          exitReason: "refused_calls",
          exitCode: 4,
          answer: "Not tested.",
          refused: [{ tool: "bash", title: "npm test", toolCallId: expect.any(String) }],
        }),
      ]);
      model.reply("Nothing to do.");
      const done = await start(["run", "--json", "Check it"], { input: "" }).ended;
      expect([done.code, jsonLines(done.stdout).at(-1)]).toEqual([
        0,
        expect.objectContaining({ refused: [] }),
      ]);
    }, config);
  });

  test.each(["allow", "deny"])(
    "and with --permission %s stops a model that repeats itself",
    async (policy) => {
      await inPlace(async ({ model, start }) => {
        for (let time = 0; time < 4; time++) model.reply(reply.call("read", { filePath: "a.txt" }));
        const args = ["run", "--permission", policy, "Read it"];
        const { code, stderr } = await start(args, { input: "" }).ended;
        expect([code, stderr]).toEqual([5, expect.stringContaining("The model repeats itself")]);
        expect(model.requests[3]?.toolResults.at(-1)).toMatch(
          /^Not run\. You have made the same calls three times with the same results/,
        );
        expect(model.requests).toHaveLength(4);
      });
    },
  );

  test("ends if the model repeats a refused call", async () => {
    await inPlace(async ({ model, start }) => {
      for (let time = 0; time < 4; time++) model.reply(bash("npm test"));
      const { code } = await start(["run", "Check it"], { input: "" }).ended;
      expect([code, model.requests.length]).toEqual([5, 4]);
    }, config);
  });

  test("allows repeating a command whose output changes", async () => {
    await inPlace(async ({ model, start }) => {
      for (let time = 0; time < 6; time++) model.reply(bash("echo x >> log; wc -l < log"));
      model.reply("Six lines.");
      const { code, stdout } = await start(["run", "Wait for it"], { input: "" }).ended;
      expect([code, stdout]).toEqual([0, "Six lines.\n"]);
    });
  });

  test("answers no question from the model, whatever is allowed", async () => {
    await inPlace(async ({ model, start }) => {
      const options = [{ label: "Postgres" }, { label: "SQLite" }];
      const questions = [{ header: "Store", question: "Which store?", options }];
      model.reply(reply.call("question", { questions })).reply("I took SQLite.");
      const args = ["run", "--permission", "allow", "Choose"];
      const { code, stdout } = await start(args, { input: "" }).ended;
      expect([code, stdout]).toEqual([0, "I took SQLite.\n"]);
      expect(model.requests[1]?.toolResults).toEqual([expect.stringMatching(/^Nobody was asked: /)]);
    });
  });

  test(
    "stops after 200 model calls, unless the configuration or a flag says otherwise",
    manySteps,
    async () => {
      await inPlace(async ({ model, start }) => {
        for (let step = 1; step < 200; step++) model.reply(reply.call("glob", { pattern: `*.${step}` }));
        model.reply("So far.");
        const { code, stdout, stderr } = await start(["run", "Go on"], { input: "" }).ended;
        expect([code, stdout, model.requests.length]).toEqual([3, "So far.\n", 200]);
        expect(stderr).toContain("makes 200 model calls unless --max-steps says otherwise");
      });
    },
  );

  test("keeps the limit of steps that the configuration sets", manySteps, async () => {
    await inPlace(
      async ({ model, start }) => {
        for (let step = 1; step < 205; step++) model.reply(reply.call("glob", { pattern: `*.${step}` }));
        model.reply("Done.");
        const { code, stdout } = await start(["run", "Go on"], { input: "" }).ended;
        expect([code, stdout]).toEqual([3, "Done.\n"]);
      },
      { max_steps: 205 },
    );
  });
});

test.each([
  ["y", { chosen: [0], text: "" }],
  ["Always", { chosen: [1], text: "" }],
  ["2", { chosen: [1], text: "" }],
  ["reject", { chosen: [2], text: "" }],
  ["N", { chosen: [2], text: "" }],
  ["no.", { chosen: [2], text: "" }],
  ["q", { chosen: [2], text: "" }],
  ["no, but use pnpm", { chosen: [], text: "no, but use pnpm" }],
  ["Use pnpm", { chosen: [], text: "Use pnpm" }],
  ["not here", { chosen: [], text: "not here" }],
  ["", { problem: "Answer with a number from 1 to 3 or text." }],
  ["4", { problem: "Answer with a number from 1 to 3 or text." }],
])("reads the answer %j to a permission question", (typed, answer) => {
  const kinds = ["allow_once", "allow_always", "reject_once"] as const;
  const names = ["Allow once", "Always allow", "Reject"];
  const options = kinds.map((kind, index) => ({ kind, optionId: kind, name: names[index] ?? "" }));
  expect(readTyped(typed, createPermissionPrompt(options))).toEqual(answer);
});

test("a run asks only if stdin and stderr are terminals", () => {
  const terminal = { isTTY: true };
  expect(canAsk({ stdin: terminal, stderr: terminal })).toBe(true);
  expect(canAsk({ stdin: terminal, stderr: {} })).toBe(false);
  expect(canAsk({ stdin: {}, stderr: terminal })).toBe(false);
});

test("a run with an empty answer fails with an explanation", async () => {
  await inPlace(
    async ({ model, start }) => {
      for (let call = 1; call <= 4; call++) model.reply(reply.finish("stop"));
      const { code, stdout, stderr } = await start(["run", "Hi"], { input: "" }).ended;
      expect([code, stdout]).toEqual([5, ""]);
      expect(stderr).toMatch(/gave no answer.*Send the prompt again, or choose another model/);
    },
    { retry: { delay_ms: 10 } },
  );
});

describe("attachments of a run", () => {
  test("are files, folders and stdin", async () => {
    await inPlace(async ({ model, start }) => {
      model.reply("Read.");
      const args = ["run", "--file", "a.txt", "-f", "b", "Look"];
      const { code } = await start(args, { input: "and this\n" }).ended;
      expect(code).toBe(0);
      const requested = JSON.stringify(model.requests[0]?.messages);
      expect([
        requested.includes("Look\\n\\n<stdin>\\nand this\\n</stdin>"),
        requested.includes("one"),
        requested.includes("c.txt"),
      ]).toEqual([true, true, true]);
      const missing = await start(["run", "--file", "none.txt", "Look"], { input: "" }).ended;
      expect([missing.code, missing.stderr]).toEqual([
        2,
        expect.stringContaining("file not found: none.txt"),
      ]);
    });
  });

  test("are ignored if a program left stdin open, with a message", async () => {
    await inPlace(async ({ model, start }) => {
      model.reply("Hello.");
      const { code, stdout, stderr } = await start(["run", "Hi"]).ended;
      expect([code, stdout]).toEqual([0, "Hello.\n"]);
      expect(stderr).toContain("stdin is open but silent");
    });
  });
});

describe("an interrupt", () => {
  test.skipIf(lacksSignals)("cancels the turn, and exits with 130", async () => {
    await inPlace(async ({ model, start }) => {
      const gate = reply.gate();
      model.reply(reply.say("Beginning"), gate, reply.say(" and end"));
      const { child, ended } = start(["run", "--all", "Talk"], { input: "" });
      if (child.stdout !== null) await once(child.stdout, "data");
      child.kill("SIGINT");
      const { code, stdout, stderr } = await ended;
      expect([code, stdout]).toEqual([130, "Beginning\n"]);
      expect(stderr).toMatch(/cancelled in \d.* \(session ses_\w+\)/);
      gate.release();
    });
  });
});

describe("programs that read a run", () => {
  test("get one object per line, and the result or failure in the last one", async () => {
    await inPlace(async ({ model, start }) => {
      model.reply("Hello.");
      const good = await start(["run", "--json", "Hi"], { input: "" }).ended;
      expect(jsonLines(good.stdout).at(-1)).toMatchObject({
        type: "result",
        exitReason: "done",
        stopReason: "end_turn",
        usage: { inputTokens: expect.any(Number) },
      });
      model.reply(reply.failure(401, "Your key has expired"));
      const bad = await start(["run", "--json", "Hi"], { input: "" }).ended;
      expect(bad.code).toBe(5);
      expect(jsonLines(bad.stdout).at(-1)).toMatchObject({
        type: "result",
        exitReason: "model_failed",
        answer: null,
        error: expect.stringContaining("Your key has expired"),
      });
    });
  });

  test("may disappear: the program exits silently", async () => {
    await inPlace(async ({ model, start }) => {
      const gate = reply.gate();
      model.reply(
        reply.say("First\n"),
        gate,
        ...Array.from({ length: 50 }, () => reply.say("more\n").flat()).flat(),
      );
      const { child, ended } = start(["run", "--all", "Talk"], { input: "" });
      await gate.reached();
      child.stdout?.destroy();
      gate.release();
      const { code, stderr } = await ended;
      expect([code, stderr]).toEqual([141, expect.not.stringContaining("EPIPE")]);
    });
  });
});

test("--verbose logs internal events to stderr, with the ids of session and turn", async () => {
  await inPlace(async ({ model, start }) => {
    model.reply(reply.call("read", { filePath: "a.txt" })).reply("Read.");
    const { stderr } = await start(["run", "--verbose", "Look"], { input: "" }).ended;
    const lines = stderr.split("\n").filter((line) => line.includes("turnId="));
    expect(new Set(lines.map((line) => /sessionId=ses_\w+ turnId=msg_\w+/.exec(line)?.[0])).size).toBe(1);
    expect(lines.map((line) => /info ([a-z ]+) \w+=/.exec(line)?.[1])).toEqual([
      "turn started",
      "tool call ended",
      "model call ended",
      "model call ended",
      "turn ended",
    ]);
  });
});

test("rejects different agent names, and several options that name a session", async () => {
  await inPlace(async ({ start }) => {
    const agents = await start(["run", "--agent", "plan", "--mode", "build", "Hi"], { input: "" }).ended;
    expect([agents.code, agents.stderr]).toEqual([2, expect.stringContaining("plan and build")]);
    const sessions = await start(["run", "-c", "--session", "x", "Hi"], { input: "" }).ended;
    expect([sessions.code, sessions.stderr]).toEqual([2, expect.stringContaining("use one of them")]);
  });
});

test("a run that asks no questions continues without installed language servers", async () => {
  await using bin = await temporaryFolder();
  await writeProgram(bin.path, "gopls");
  const env = { PATH: [bin.path, "/usr/bin", "/bin"].join(delimiter) };
  const play = async ({ model, start }: Place) => {
    for (const policy of ["deny", "allow"]) {
      model.reply("Hello.");
      const { code, stderr } = await start(["run", "--permission", policy, "Hi"], { env, input: "" }).ended;
      expect([code, stderr]).toEqual([
        0,
        expect.stringContaining("Language servers are not used, because you could not be asked: gopls."),
      ]);
      expect(stderr).not.toContain("refused");
    }
    expect(model.requests.flatMap(({ toolNames }) => toolNames)).not.toContain("lsp");
  };
  await inPlace(play, { lsp: undefined }, { "main.go": "package main\n" });
});
