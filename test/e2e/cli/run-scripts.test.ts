import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { isRecord } from "../../../src/base/text/record.ts";
import { type ModelServer, startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { environment } from "../../support/program/environment.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";
import { lacksSignals, lacksWatchdog } from "../../support/platform/platform.ts";

const program = fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url));

interface Place {
  model: ModelServer;
  /** The folder of the run. */
  folder: string;
  home: string;
  /** The system's folder for temporary files. */
  temporary: string;
  start: (args: string[], input?: string | Buffer) => Running;
  run: (...args: string[]) => Running["ended"];
}

interface Running {
  child: ChildProcess;
  ended: Promise<{ code: unknown; stdout: string; stderr: string }>;
}

async function inPlace(play: (place: Place) => Promise<void>, config?: Record<string, unknown>) {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository({ "a.txt": "one\n" });
  const model = await startModelServer();
  const temporary = join(home.path, "tmp");
  await mkdir(temporary);
  const start: Place["start"] = (args, input = "") => {
    const child = spawn(process.execPath, [program, ...args], {
      cwd: repository.path,
      env: { ...environment(home.path), TMPDIR: temporary },
      stdio: "pipe",
    });
    // A program that rejects its input does not read all of it.
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    const closed = once(child, "close").then(([code, signal]): unknown => code ?? signal);
    const ended = Promise.all([closed, text(child.stdout), text(child.stderr)]);
    return { child, ended: ended.then(([code, stdout, stderr]) => ({ code, stdout, stderr })) };
  };
  try {
    await writeConfig(home.path, model.url, config);
    await play({
      model,
      folder: repository.path,
      home: home.path,
      temporary,
      start,
      run: (...args) => start(["run", ...args]).ended,
    });
    model.assertClean();
  } finally {
    await model.close();
  }
}

const jsonLines = (stdout: string): Record<string, unknown>[] =>
  stdout
    .trim()
    .split("\n")
    .map((line) => {
      const value: unknown = JSON.parse(line);
      return isRecord(value) ? value : {};
    });

const look = () => reply.say("Looking.");
const readCall = () => reply.call("read", { filePath: "a.txt" });

describe("stdout of a run in a pipe", () => {
  test("contains only the answer; commentary goes to stderr, and --all prints it too", async () => {
    await inPlace(async ({ model, run }) => {
      model.reply(look(), readCall()).reply("It says one.");
      const { code, stdout, stderr } = await run("Look");
      expect([code, stdout]).toEqual([0, "It says one.\n"]);
      expect(stderr).toContain("Looking.");
      expect(stderr).not.toContain("It says one.");
      model.reply(look(), readCall()).reply("It says one.");
      expect((await run("--all", "Look")).stdout).toBe("Looking.\nIt says one.\n");
    });
  });

  test("is empty when the model fails, with exit code 5", async () => {
    await inPlace(async ({ model, run }) => {
      model.reply(look(), readCall()).reply(reply.failure(401, "Your key has expired"));
      const { code, stdout, stderr } = await run("Look");
      expect([code, stdout]).toEqual([5, ""]);
      expect(stderr).toContain("Your key has expired");
    });
  });

  test("is empty for an unknown slash command, with exit code 2", async () => {
    await inPlace(async ({ model, run }) => {
      const { code, stdout, stderr } = await run("/contxt");
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toContain("There is no command `/contxt`. Did you mean `/context`?");
      const known = await run("/help");
      expect([known.code, known.stdout]).toEqual([0, expect.stringContaining("**Commands**")]);
      expect(model.requests).toHaveLength(0);
    });
  });

  test("is the table of context usage for /context", async () => {
    await inPlace(async ({ model, run }) => {
      const { code, stdout } = await run("/context");
      expect(code).toBe(0);
      expect(stdout).toMatch(/^\| System prompt +\| +[\d,]+ \| +[\d.]+ % \|$/m);
      expect(stdout).toMatch(/^\| Built-in tools \(\d+\) +\|/m);
      expect(stdout).toMatch(/^\| Sum +\|/m);
      expect(model.requests).toHaveLength(0);
    });
  });

  test.skipIf(lacksSignals)("is empty after SIGTERM, with exit code 143", async () => {
    await inPlace(async ({ model, start }) => {
      const gate = reply.gate();
      model.reply(reply.say("Beginning"), gate, reply.say(" and end"));
      const { child, ended } = start(["run", "Talk"]);
      await gate.reached();
      child.kill("SIGTERM");
      const { code, stdout } = await ended;
      expect([code, stdout]).toEqual([143, ""]);
      gate.release();
    });
  });
});

describe("--output", () => {
  test("writes the answer to a file, and does not change the file without an answer", async () => {
    await inPlace(async ({ model, folder, run }) => {
      const file = join(folder, "answer.md");
      model.reply(look(), readCall()).reply("It says one.");
      const { code, stdout } = await run("-o", "answer.md", "Look");
      expect([code, stdout, await readFile(file, "utf8")]).toEqual([0, "It says one.\n", "It says one.\n"]);
      model.reply(reply.failure(401, "Your key has expired"));
      expect((await run("-o", "answer.md", "Look")).code).toBe(5);
      expect(await readFile(file, "utf8")).toBe("It says one.\n");
      const lost = await run("--output", "missing/answer.md", "Look");
      expect([lost.code, lost.stderr]).toEqual([2, expect.stringContaining("folder of this file")]);
      expect(model.requests).toHaveLength(3);
    });
  });
});

describe("--json", () => {
  test("begins with the session, reports decisions, and ends with the result", async () => {
    await inPlace(
      async ({ model, folder, run }) => {
        const bash = (command: string) => reply.call("bash", { command });
        model.reply(look(), readCall(), bash("make")).reply("Not made.");
        const { code, stdout } = await run("--json", "--agent", "plan", "Make it");
        const lines = jsonLines(stdout);
        expect(code).toBe(4);
        expect(lines.every(({ type }) => typeof type === "string")).toBe(true);
        expect(lines[0]).toEqual({
          type: "start",
          session: expect.stringMatching(/^ses_/),
          folder,
          agent: "plan",
          model: "test/scripted",
        });
        const session = lines[0]?.["session"];
        const ofType = (wanted: string) => lines.filter(({ type }) => type === wanted);
        expect(ofType("question")).toMatchObject([{ tool: "bash", title: "make" }]);
        expect(ofType("decision")).toMatchObject([
          { outcome: "allowed", by: "rules", permission: "read" },
          { outcome: "not_asked", by: "nobody", reason: expect.stringContaining("no terminal") },
        ]);
        expect(lines.at(-1)).toMatchObject({
          type: "result",
          exitReason: "refused_calls",
          exitCode: 4,
          answer: "Not made.",
          session,
          durationMs: expect.any(Number),
          refused: [{ tool: "bash", title: "make" }],
        });
        expect(lines.at(-1)).toHaveProperty("cost");
      },
      { permission: { bash: "ask" } },
    );
  });
});

describe("--schema", () => {
  const schema = {
    type: "object",
    properties: { name: { type: "string" }, lines: { type: "integer" } },
    required: ["name", "lines"],
    additionalProperties: false,
  };

  test("prints only the JSON value, and asks again once if it is invalid", async () => {
    await inPlace(async ({ model, folder, run }) => {
      await writeFile(join(folder, "schema.json"), JSON.stringify(schema));
      model.reply('Here it is:\n\n```json\n{"name": "a.txt", "lines": 1}\n```\n');
      const first = await run("--schema", "schema.json", "Describe it");
      expect([first.code, first.stdout]).toEqual([0, '{"name":"a.txt","lines":1}\n']);
      expect(JSON.stringify(model.requests[0]?.messages)).toContain("additionalProperties");

      model.reply('{"name": "a.txt", "lines": "one"}').reply('{"name": "a.txt", "lines": 1}');
      const second = await run("--json", "--schema", "schema.json", "Describe it");
      expect(second.code).toBe(0);
      expect(jsonLines(second.stdout).at(-1)).toMatchObject({ value: { name: "a.txt", lines: 1 } });
      expect(JSON.stringify(model.requests[2]?.messages.at(-1))).toMatch(/lines: Invalid input: expected/);
    });
  });

  test("ends with exit code 6 and the reason if the second answer is invalid too", async () => {
    await inPlace(async ({ model, folder, run }) => {
      await writeFile(join(folder, "schema.json"), JSON.stringify(schema));
      model.reply("It has one line.").reply('{"name": "a.txt"}');
      const { code, stdout, stderr } = await run("--schema", "schema.json", "Describe it");
      expect([code, stdout]).toEqual([6, ""]);
      expect(stderr).toMatch(/does not match the schema: lines: Invalid input/);
      await writeFile(join(folder, "schema.json"), '{"type": "strng"}');
      const wrong = await run("--schema", "schema.json", "Describe it");
      expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("cannot be used")]);
      expect(model.requests).toHaveLength(2);
    });
  });
});

describe("--allow", () => {
  test("allows calls that a rule asks about, in this run only, but no denied calls", async () => {
    await inPlace(
      async ({ model, run }) => {
        const calls = () => [
          reply.call("bash", { command: "echo made > made.txt" }),
          reply.call("bash", { command: "rm a.txt" }),
        ];
        model.reply(...calls()).reply("Made.");
        const allowed = await run("--allow", "bash", "Make it");
        expect([allowed.code, allowed.stdout]).toEqual([0, "Made.\n"]);
        expect(model.requests[1]?.toolResults[1]).toMatch(/rule/);
        model.reply(reply.call("bash", { command: "echo made > made.txt" })).reply("Not made.");
        expect((await run("--continue", "Again")).code).toBe(4);
      },
      { permission: { bash: { "*": "ask", "rm *": "deny" } } },
    );
  });

  test("refuses rules that it cannot apply", async () => {
    await inPlace(async ({ run }) => {
      const problem = async (rule: string) => {
        const { code, stderr } = await run("--allow", rule, "Hi");
        return [code, stderr.split("\n")[0]];
      };
      expect(await problem("*")).toEqual([2, expect.stringContaining("begins with one permission")]);
      expect(await problem("Bash(npm test*)")).toEqual([2, expect.stringContaining("bash:npm test*")]);
      expect(await problem("doom_loop")).toEqual([2, expect.stringContaining("needs a user")]);
    });
  });
});

describe("the session of a run", () => {
  test("has a title, further folders and a system prompt", async () => {
    await inPlace(async ({ model, home, run, start }) => {
      const other = join(home, "other");
      await mkdir(other);
      await writeFile(join(other, "b.txt"), "two\n");
      model.reply(reply.call("read", { filePath: join(other, "b.txt") })).reply("Read.");
      const flags = ["--title", "My title", "--add-dir", other, "--append-system", "Answer in rhymes."];
      const { code, stdout } = await run(...flags, "Read it");
      expect([code, stdout]).toEqual([0, "Read.\n"]);
      expect(model.requests[1]?.toolResults[0]).toContain("two");
      expect(JSON.stringify(model.requests[0]?.messages)).toContain("Answer in rhymes.");
      expect((await start(["sessions"]).ended).stdout).toContain("My title");
    });
  });

  test("is a copy with --fork", async () => {
    await inPlace(async ({ model, run, start }) => {
      model.reply("First.");
      await run("One");
      model.reply("Second.");
      expect((await run("--continue", "--fork", "Two")).stdout).toBe("Second.\n");
      expect(JSON.stringify(model.requests[1]?.messages)).toContain("First.");
      expect((await start(["sessions"]).ended).stdout.trim().split("\n")).toHaveLength(2);
      const alone = await run("--fork", "Two");
      expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining("--session ID")]);
    });
  });

  test.skipIf(lacksWatchdog)(
    "leaves nothing on disk with --ephemeral, also when the run is killed",
    async () => {
      await inPlace(async ({ model, home, temporary, run, start }) => {
        const sessions = async () => (await start(["sessions", "--all"]).ended).stdout;
        const stored = async () => {
          const names = await readdir(join(home, ".local"), { recursive: true });
          const files = names.filter((name) => /(message|snapshot|tool-output|journal)\/./.test(name));
          const logs = await readFile(join(home, ".local/state/fairlead/fairlead.log"), "utf8").catch(
            () => "",
          );
          return [...files, ...(logs.includes("Write it") ? ["log"] : [])];
        };
        model.reply(reply.call("write", { filePath: "new.txt", content: "new\n" })).reply("Written.");
        expect((await run("--ephemeral", "Write it")).stdout).toBe("Written.\n");
        expect([await readdir(temporary), await sessions(), await stored()]).toEqual([[], "", []]);

        const gate = reply.gate();
        model.reply(reply.say("Beginning"), gate, reply.say(" and end"));
        const { child, ended } = start(["run", "--ephemeral", "Talk"]);
        await gate.reached();
        expect(await readdir(temporary)).toHaveLength(1);
        child.kill("SIGKILL");
        await ended;
        gate.release();
        await expect.poll(() => readdir(temporary)).toEqual([]);
      });
    },
  );
});

describe("/changes in a run", () => {
  test("prints a diff with the numbers for /drop, and then the list", async () => {
    await inPlace(async ({ model, start }) => {
      model.reply(reply.call("bash", { command: "printf 'two\\n' > made.txt" })).reply("Made.");
      await start(["run", "--permission", "allow", "Make it"], "").ended;
      const changes = await start(["run", "--continue", "/changes"], "").ended;
      expect(changes.stdout).toBe(
        [
          "made.txt",
          "[1] created, +1",
          "  +two",
          "",
          '**Changes of the turn "Make it"**: 1 file, +1 -0',
          "",
          "- `1` made.txt: created, +1",
          "",
          "`/drop 1` undoes one change, `/drop 1 3` several, `/drop FILE` those of a file, `/drop all` all of them.",
          "",
        ].join("\n"),
      );
      const dropped = await start(["run", "--continue", "/drop 1"], "").ended;
      expect([dropped.code, dropped.stdout]).toEqual([0, expect.stringContaining("Dropped:")]);
    });
  });
});

describe("piped input", () => {
  test("is marked with tags that it does not contain, and may be the whole prompt", async () => {
    await inPlace(async ({ model, start }) => {
      model.reply("Done.");
      await start(["run", "Review"], "a </stdin> b\n").ended;
      expect(JSON.stringify(model.requests[0]?.messages)).toContain(
        String.raw`Review\n\n<stdin-2>\na </stdin> b\n</stdin-2>`,
      );
      model.reply("Done.");
      await start(["run"], "Only this\n").ended;
      expect(JSON.stringify(model.requests[1]?.messages)).not.toContain("<stdin>");
    });
  });

  test("is truncated at 2 MB, and rejected if it is not text", async () => {
    await inPlace(async ({ model, start }) => {
      model.reply("Done.");
      const long = await start(["run", "Review"], "ä".repeat(1_100_000)).ended;
      expect([long.code, long.stderr]).toEqual([0, expect.stringContaining("more than 2 MB")]);
      expect(JSON.stringify(model.requests[0]?.messages)).toContain("(stdin was longer");
      const binary = await start(["run", "Review"], Buffer.from([0x89, 0x50, 0, 1, 0xff])).ended;
      expect([binary.code, binary.stderr]).toEqual([2, expect.stringContaining("stdin is not text")]);
      const empty = await start(["run"], "").ended;
      expect([empty.code, empty.stderr]).toEqual([2, expect.stringContaining("run needs a prompt")]);
    });
  });
});
