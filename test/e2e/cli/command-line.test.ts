import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { environment } from "../../support/program/environment.ts";
import { type ModelServer, startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";

const program = fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url));

interface Place {
  home: string;
  cwd: string;
  model: ModelServer;
  /** Runs the program as a shell would. */
  run: (args: string[], how?: { input?: string; env?: Record<string, string> }) => Promise<Outcome>;
}

interface Outcome {
  code: number | null;
  stdout: string;
  stderr: string;
}

async function inPlace(
  play: (place: Place) => Promise<void>,
  config?: Record<string, unknown>,
): Promise<void> {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository({ "a.txt": "one\n" });
  const model = await startModelServer();
  try {
    await writeConfig(home.path, model.url, config);
    const run: Place["run"] = async (args, { input = "", env = {} } = {}) => {
      const child = spawn(process.execPath, [program, ...args], {
        cwd: repository.path,
        env: { ...environment(home.path), ...env },
        stdio: "pipe",
      });
      child.stdin.end(input);
      const [stdout, stderr, code] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        new Promise<number | null>((resolve) => child.once("close", resolve)),
      ]);
      return { code, stdout, stderr };
    };
    await play({ home: home.path, cwd: repository.path, model, run });
    model.assertClean();
  } finally {
    await model.close();
  }
}

describe("fairlead run", () => {
  test("prints the answer to stdout and progress to stderr", async () => {
    await inPlace(async ({ model, run }) => {
      model
        .reply(reply.say("Reading."), reply.call("read", { filePath: "a.txt" }))
        .reply(reply.say("It says one."));
      const { code, stdout, stderr } = await run(["run", "What", "does a.txt say?"]);
      expect([code, stdout]).toEqual([0, "It says one.\n"]);
      expect(stderr).toContain("Reading.");
      expect(stderr).toContain("✓ Read a.txt");
      expect(stderr).toMatch(/done in \d.* s, [\d,]+ tokens \(session ses_\w+\)/);
      expect(model.requests[0]?.userText).toContain("What does a.txt say?");
    });
  });

  test("reads the prompt, or its remaining text, from a pipe", async () => {
    await inPlace(async ({ model, run }) => {
      model.reply(reply.say("Three lines."));
      const { code } = await run(["run", "Count the lines:"], { input: "a\nb\nc\n" });
      expect(code).toBe(0);
      expect(model.requests[0]?.userText).toContain("Count the lines:\n\n<stdin>\na\nb\nc\n</stdin>");
    });
  });

  test("prints updates as JSON, one per line", async () => {
    await inPlace(async ({ model, run }) => {
      model.reply(reply.say("Hello."));
      const { code, stdout } = await run(["run", "--format", "json", "Hi"]);
      const updates = stdout
        .trim()
        .split("\n")
        .map((line): unknown => JSON.parse(line));
      expect(code).toBe(0);
      expect(updates).toContainEqual(expect.objectContaining({ type: "agent_message_chunk" }));
      expect(updates.at(-1)).toMatchObject({ type: "result", stopReason: "end_turn" });
    });
  });

  test("without a terminal refuses calls that must ask, unless --permission allows them", async () => {
    const write = reply.call("bash", { command: "echo new > a.txt" });
    await inPlace(
      async ({ cwd, model, run }) => {
        model.reply(write).reply(reply.say("I may not."));
        const denied = await run(["run", "Change it"]);
        expect([denied.code, await readFile(join(cwd, "a.txt"), "utf8")]).toEqual([4, "one\n"]);
        expect(denied.stderr).toContain("no terminal to ask on");
        model.reply(write).reply(reply.say("Changed."));
        const allowed = await run(["run", "--permission", "allow", "Change it"]);
        expect([allowed.code, await readFile(join(cwd, "a.txt"), "utf8")]).toEqual([0, "new\n"]);
      },
      { permission: { bash: "ask" } },
    );
  });

  test("continues the newest session of the folder", async () => {
    await inPlace(async ({ model, run }) => {
      model.reply(reply.say("Noted."));
      await run(["run", "Remember: rosebud"]);
      model.reply(reply.say("Rosebud."));
      const { code, stdout } = await run(["run", "--continue", "What was the word?"]);
      expect([code, stdout]).toEqual([0, "Rosebud.\n"]);
      expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("Remember: rosebud");
    });
  });

  test("continues a session named by the end of its id, and reports an unknown one", async () => {
    await inPlace(async ({ model, run }) => {
      model.reply(reply.say("Noted."));
      const first = await run(["run", "Remember: rosebud"]);
      const [id = ""] = /ses_\w+/.exec(first.stderr) ?? [];
      model.reply(reply.say("Rosebud."));
      const next = await run(["run", "--session", id.slice(-6), "What was the word?"]);
      expect([next.code, next.stdout]).toEqual([0, "Rosebud.\n"]);
      expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("Remember: rosebud");
      const none = await run(["run", "--session", "nowhere", "Hi"]);
      expect([none.code, none.stderr]).toEqual([1, expect.stringContaining("There is no session nowhere.")]);
    });
  });

  test("exits with 5 and the provider's message on a failure, with 3 at a limit", async () => {
    await inPlace(async ({ model, run }) => {
      model.reply(reply.failure(401, "Your key has expired"));
      const failed = await run(["run", "Hi"]);
      expect([failed.code, failed.stdout]).toEqual([5, ""]);
      expect(failed.stderr).toContain("Your key has expired");
      model.reply(reply.say("Half an ans"), reply.finish("length"));
      expect((await run(["run", "Hi"])).code).toBe(3);
    });
  });

  test("reports wrong usage with exit code 2", async () => {
    await inPlace(async ({ run }) => {
      const nothing = await run(["run"]);
      expect([nothing.code, nothing.stderr]).toEqual([2, expect.stringContaining("needs a prompt")]);
      const flag = await run(["run", "--fast", "Hi"]);
      expect([flag.code, flag.stderr]).toEqual([2, expect.stringContaining("--fast")]);
      const value = await run(["run", "--format", "xml", "Hi"]);
      expect([value.code, value.stderr]).toEqual([2, expect.stringContaining("text, json")]);
      const mode = await run(["run", "--mode", "fly", "Hi"]);
      expect([mode.code, mode.stderr]).toEqual([1, expect.stringContaining('There is no agent "fly"')]);
      const listed = await run(["sessions", "list", "--json"]);
      expect(JSON.parse(listed.stdout), "nothing is left to be continued").toEqual([]);
    });
  });

  test("explains what to do without a model", async () => {
    await using home = await temporaryFolder({}, "fairlead-home-");
    const child = spawn(process.execPath, [program, "run", "Hi"], {
      env: environment(home.path),
      stdio: "pipe",
    });
    child.stdin.end();
    const [stderr, code] = await Promise.all([
      text(child.stderr),
      new Promise<number | null>((resolve) => child.once("close", resolve)),
    ]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^fairlead: No model is set up\..*OPENAI_API_KEY/m);
  });
});

describe("the other commands", () => {
  test("the demo runs to its end with the real program and a scripted model", async () => {
    await inPlace(async ({ run }) => {
      const { code, stdout, stderr } = await run(["demo"]);
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toContain("stop reason: cancelled");
      expect(stdout).toContain("Done. What you saw was the real program; only the model was a script.");
    });
  });

  test("doctor reports what works and what to fix, models lists usable models", async () => {
    await inPlace(async ({ run }) => {
      const doctor = await run(["doctor"]);
      expect(doctor.code).toBe(0);
      expect(doctor.stdout).toMatch(/ok {3}Model +test\/scripted/);
      const models = await run(["models"]);
      expect([models.code, models.stdout]).toEqual([0, expect.stringContaining("test/scripted")]);
    });
    await inPlace(
      async ({ run }) => {
        const doctor = await run(["doctor"]);
        expect(doctor.code).toBe(1);
        expect(doctor.stdout).toMatch(/fairlead\.json:\d+:\d+/);
      },
      { compaction: { auto: "maybe" } },
    );
  });

  test("commands report an unwritable output and a missing folder in one line", async () => {
    await inPlace(async ({ home, cwd, run }) => {
      const readOnly = openSync(join(cwd, "a.txt"), "r");
      const child = spawn(process.execPath, [program, "doctor"], {
        env: environment(home),
        stdio: ["ignore", readOnly, "pipe"],
      });
      const code = new Promise((resolve) => child.once("close", resolve));
      const replyText = child.stderr === null ? "" : await text(child.stderr);
      expect([await code, replyText]).toEqual([
        1,
        expect.stringMatching(/^fairlead: the output cannot be written: .+\n$/),
      ]);
      closeSync(readOnly);
      for (const args of [["doctor"], ["config", "check"], ["sessions", "list"]]) {
        const file = await run([...args, "--cwd", "a.txt"]);
        const none = await run([...args, "--cwd", "nowhere"]);
        expect([file.code, file.stderr, none.code, none.stderr]).toEqual([
          1,
          "fairlead: a.txt is not a folder.\n",
          1,
          "fairlead: Folder not found: nowhere\n",
        ]);
      }
    });
  });

  test("--help and --version work, and unknown commands are reported", async () => {
    await inPlace(async ({ run }) => {
      expect((await run(["--help"])).stdout).toContain("fairlead acp");
      expect((await run(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
      const unknown = await run(["fly"]);
      expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('unknown command "fly"')]);
    });
  });
});
