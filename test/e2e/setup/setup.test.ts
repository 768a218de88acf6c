import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { listen } from "../../support/listen.ts";
import { fairlead } from "../../support/program/cli.ts";
import { type ModelServer, startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { writeProgram } from "../../support/platform/path-program.ts";
import { shownMode, zedSettings } from "../../support/platform/platform.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { findSandboxProblem } from "../sandbox/sandbox-problem.ts";

const sandboxProblem = await findSandboxProblem();

interface Place {
  home: string;
  model: ModelServer;
  /** Runs the program with lines as the answers. */
  run: (
    args: string[],
    lines?: string[],
    env?: Record<string, string>,
    cwd?: string,
  ) => ReturnType<typeof fairlead>;
  file: (path: string) => Promise<string>;
}

async function inPlace(play: (place: Place) => Promise<void>): Promise<void> {
  await using home = await temporaryFolder({}, "fairlead-home-");
  const model = await startModelServer();
  try {
    await play({
      home: home.path,
      model,
      run: (args, lines = [], env = {}, cwd = home.path) =>
        fairlead(home.path, args, { input: lines.map((line) => `${line}\n`).join(""), env, cwd }),
      file: (path) => readFile(join(home.path, path), "utf8"),
    });
    model.assertClean();
  } finally {
    await model.close();
  }
}

const configPath = ".config/fairlead/fairlead.json";
const keyPath = ".local/share/fairlead/credentials.json";

/** Arguments of a setup that asks and tests nothing. */
const unattended = "setup --provider openai --model gpt-5 --key-from env:KEY --no-test --editor none".split(
  " ",
);

describe("fairlead setup", () => {
  test("asks for provider and key, tests and stores them, and shows the editor's snippet", async () => {
    await inPlace(async ({ home, model, run, file }) => {
      model.reply("ready");
      const answers = [
        "custom",
        model.url,
        "work",
        "type",
        "sk-pasted-0123456789",
        "scripted",
        "",
        "zed",
        "y",
      ];
      const { exitCode, stdout } = await run(["setup"], answers);
      expect(exitCode).toBe(0);
      expect(stdout).not.toContain("sk-pasted");
      expect(stdout).toContain("programs that Fairlead does not know. What cannot be undone asks.");
      expect(model.requests[0]?.headers.authorization).toBe("Bearer sk-pasted-0123456789");
      expect(JSON.parse(await file(configPath))).toEqual({
        model: "work/scripted",
        provider: { work: { options: { baseURL: model.url }, models: { scripted: {} } } },
      });
      expect(JSON.parse(await file(keyPath))).toEqual({ work: { apiKey: "sk-pasted-0123456789" } });
      expect((await stat(join(home, keyPath))).mode & 0o777).toBe(shownMode(0o600));
      expect(JSON.parse(await file(zedSettings))).toMatchObject({
        agent_servers: { Fairlead: { type: "custom", args: expect.arrayContaining(["acp"]) } },
      });
      model.reply("Hello.");
      expect((await run(["run", "Hi"])).stdout).toBe("Hello.");
    });
  });

  test("asks about language servers that are installed for the project", async () => {
    await using project = await temporaryFolder({ "go.mod": "module a\n", "a.go": "package a\n" });
    await using programs = await temporaryFolder();
    await writeProgram(programs.path, "gopls");
    await inPlace(async ({ model, run }) => {
      const env = { PATH: [programs.path, process.env["PATH"]].join(delimiter) };
      const answers = ["custom", model.url, "work", "type", "sk-pasted-0123456789", "scripted", "", "none"];
      const setup = (answer: string) => run(["setup", "--no-test"], [...answers, answer], env, project.path);
      expect((await setup("later")).stdout).toContain(`Installed for ${project.path}: gopls.`);
      expect((await setup("no")).stdout).toContain("gopls");
      expect((await setup("later")).stdout).not.toContain("gopls");
      const { stdout } = await run(["doctor", "--offline"], [], env, project.path);
      expect(stdout).toMatch(/gopls.*not used, as you answered/);
    });
  });

  test("asks again when the provider refuses the key, and stores nothing on stop", async () => {
    await inPlace(async ({ model, run, file }) => {
      model.reply(reply.failure(401, "That key has expired"));
      const start = ["setup", "--provider", "work", "--base-url", model.url, "--model", "coder"];
      const stopped = await run(start, ["type", "sk-old-0123456789", "stop"]);
      expect([stopped.exitCode, stopped.stdout]).toEqual([
        130,
        expect.stringContaining("That key has expired"),
      ]);
      await expect(file(configPath)).rejects.toThrow("ENOENT");
      await expect(file(keyPath)).rejects.toThrow("ENOENT");

      model.reply(reply.failure(401, "That key has expired")).reply("ready");
      const answers = ["type", "sk-old-0123456789", "again", "type", "sk-new-0123456789", "", "none"];
      expect((await run(start, answers)).exitCode).toBe(0);
      expect(JSON.parse(await file(keyPath))).toEqual({ work: { apiKey: "sk-new-0123456789" } });
    });
  });

  test.each([
    ["messages", "claude-opus-4.5", "x-api-key", "key-of-work-0123456789"],
    ["responses", "gpt-5.5", "authorization", "Bearer key-of-work-0123456789"],
  ])("stores and tests the API %s of a custom address", async (api, name, header, key) => {
    await inPlace(async ({ model, run, file }) => {
      const where = ["--provider", "work", "--base-url", model.url, "--api", api];
      const what = ["--model", name, "--key-from", "env:WORK_KEY", "--editor", "none"];
      const env = { WORK_KEY: "key-of-work-0123456789" };
      model.reply("ready");
      expect(await run(["setup", ...where, ...what], [], env)).toMatchObject({ exitCode: 0 });
      expect(JSON.parse(await file(configPath))).toMatchObject({ provider: { work: { api } } });
      expect([model.requests[0]?.api, model.requests[0]?.headers[header]]).toEqual([api, key]);
      model.reply("Hello.");
      expect((await run(["run", "Hi"], [], env)).stdout).toBe("Hello.");
      const { body } = model.requests[1] ?? {};
      expect(body?.reasoning ?? body?.output_config).toMatchObject({ effort: "medium" });
    });
  });

  test("asks nothing if flags answer everything, and preserves comments", async () => {
    await inPlace(async ({ model, run, file }) => {
      await using own = await temporaryFolder({ "key.txt": "sk-in-a-file-0123\n" });
      const where = ["setup", "--provider", "work", "--base-url", model.url, "--model", "coder"];
      model.reply("ready");
      await run([...where, "--key-from", `file:${own.path}/key.txt`, "--editor", "none"]);
      expect(model.requests[0]?.headers.authorization).toBe("Bearer sk-in-a-file-0123");
      model.reply("ready");
      const node = `command:"${process.execPath}" -p '"sk-printed-0123456789"'`;
      const { exitCode } = await run([...where, "--key-from", node, "--editor", "codecompanion"]);
      expect(exitCode).toBe(0);
      expect(model.requests[1]?.headers.authorization).toBe("Bearer sk-printed-0123456789");
      expect(JSON.parse(await file(configPath))).toMatchObject({
        provider: {
          work: { options: { apiKeyCommand: [process.execPath, "-p", '"sk-printed-0123456789"'] } },
        },
      });
    });
  });

  test("writes which calls need permission, and overwrites no other rules", async () => {
    await inPlace(async ({ run, file }) => {
      const setup = (level: string) => run([...unattended, "--ask-for", level]);
      const stored = async (): Promise<unknown> => JSON.parse(await file(configPath)).permission;
      await setup("all");
      expect(await stored()).toEqual({ edit: "ask", bash: "ask" });
      await setup("nothing");
      expect(await stored()).toEqual({ edit: "allow", bash: "allow" });
      expect((await run(["permissions", "check", "git push"])).stdout).toMatch(
        /^allow git push\n.*cannot be undone: sends commits to a remote; the rule bash: "\*" says allow/,
      );
      await setup("irreversible");
      expect(await stored()).toBeUndefined();
      expect((await run(["permissions", "check", "git push"])).stdout).toMatch(
        /^ask {3}git push\n.*it cannot be undone: sends commits to a remote, and no rule of yours allows it/,
      );
      const wrong = await setup("some");
      expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining("irreversible")]);
    });
    await inPlace(async ({ home, run, file }) => {
      await mkdir(join(home, ".config/fairlead"), { recursive: true });
      await writeFile(join(home, configPath), '{"permission": {"bash": {"rm *": "deny"}}}');
      const { stdout } = await run([...unattended, "--ask-for", "nothing"]);
      expect(stdout).toContain("Your own rules for permissions stay as they are");
      expect(JSON.parse(await file(configPath)).permission).toEqual({ bash: { "rm *": "deny" } });
    });
  });

  test.runIf(sandboxProblem === undefined)("stores Sandboxed as the approval level", async () => {
    await inPlace(async ({ run, file }) => {
      const stored = async (): Promise<unknown> => JSON.parse(await file(configPath));
      await run([...unattended, "--ask-for", "all"]);
      const { stdout } = await run([...unattended, "--ask-for", "sandboxed"]);
      expect(stdout).toContain("New sessions are set to Sandboxed");
      expect(await stored()).toMatchObject({ approval: "sandboxed" });
      expect(await stored()).not.toHaveProperty("permission");
      await run([...unattended, "--ask-for", "irreversible"]);
      expect(await stored()).not.toHaveProperty("approval");
    });
  });

  test("does not offer Sandboxed without a sandbox, and names what is missing", async () => {
    await inPlace(async ({ run, model }) => {
      const env = { PATH: dirname(process.execPath) };
      const { exitCode, stderr } = await run([...unattended, "--ask-for", "sandboxed"], [], env);
      expect(exitCode).toBe(1);
      expect(stderr).toContain("Commands cannot run in a sandbox");
      model.reply("ready");
      const where = ["--provider", "work", "--base-url", model.url, "--model", "coder", "--key-from", "none"];
      const { stdout } = await run(["setup", ...where], ["sandboxed", "irreversible"], env);
      expect(stdout).toContain("The setting Sandboxed is not offered. Commands cannot run in a sandbox");
    });
  });

  test("reports a failing key command before it lists models", async () => {
    await inPlace(async ({ model, run }) => {
      const where = ["setup", "--provider", "work", "--base-url", model.url];
      const { stdout } = await run([...where, "--key-from", "command:false"]);
      expect(stdout).toContain("The command for the key, false, failed");
    });
  });

  test("reports missing answers and invalid flags", async () => {
    await inPlace(async ({ run }) => {
      const silent = await run(["setup"]);
      expect([silent.exitCode, silent.stderr]).toEqual([
        130,
        expect.stringContaining("no answer to: Which provider"),
      ]);
      const editor = await run(["setup", "--editor", "ed"]);
      expect([editor.exitCode, editor.stderr]).toEqual([2, expect.stringContaining("zed, jetbrains")]);
      const provider = await run(["setup", "--provider", "nobody"]);
      expect([provider.exitCode, provider.stderr]).toEqual([2, expect.stringContaining("openrouter")]);
      const key = await run(["setup", "--provider", "openai", "--key-from", "nowhere"]);
      expect([key.exitCode, key.stderr]).toEqual([2, expect.stringContaining("env:NAME")]);
      const model = await run(["setup", "--provider", "openai", "--model", "gpt 5"]);
      expect([model.exitCode, model.stderr]).toEqual([2, expect.stringContaining("has no blanks")]);
    });
  });

  test("reports a missing key with its source and exits with 1", async () => {
    await inPlace(async ({ home, run, file }) => {
      const keyFrom = (way: string) =>
        run(["setup", "--provider", "openai", "--model", "gpt-5", "--editor", "none", "--key-from", way]);
      const found = [await keyFrom("env:NOT_SET"), await keyFrom("file:no.txt")];
      expect(found.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual(
        Array.from({ length: 2 }, () => [
          1,
          "fairlead: Nothing was stored; --no-test stores it without a test.",
        ]),
      );
      expect(found.map(({ stdout }) => stdout.split("\n").at(-1))).toEqual([
        "The test failed: the variable NOT_SET is not set.",
        `The test failed: ${join(home, "no.txt")} cannot be read: ENOENT.`,
      ]);
      await expect(file(configPath)).rejects.toThrow("ENOENT");
    });
  });

  test("runs when an editor appends it to the server's arguments", async () => {
    await inPlace(async ({ run }) => {
      expect((await run(["acp", "setup", "--help"])).stdout).toContain("fairlead setup");
    });
  });
});

test("a key command's failure is reported and its key is hidden", async () => {
  await inPlace(async ({ model, run }) => {
    const config = (command: string[]) => ({
      FAIRLEAD_CONFIG_CONTENT: JSON.stringify({
        model: "work/coder",
        provider: {
          work: { options: { baseURL: model.url, apiKeyCommand: command }, models: { coder: {} } },
        },
        permission: { bash: "allow" },
      }),
    });
    const good = config([process.execPath, "-p", '"sk-printed-" + "0123456789"']);
    model.reply(reply.call("bash", { command: "echo sk-printed-$((0))123456789" })).reply("Done.");
    expect((await run(["run", "Hi"], [], good)).exitCode).toBe(0);
    expect(model.requests[0]?.headers.authorization).toBe("Bearer sk-printed-0123456789");
    expect(model.requests[1]?.toolResults.join()).not.toContain("sk-printed-0123456789");
    const bad = await run(
      ["run", "Hi"],
      [],
      config([process.execPath, "-e", "process.stderr.write('locked');process.exit(3)"]),
    );
    expect([bad.exitCode, bad.stderr]).toEqual([5, expect.stringContaining("locked")]);
  });
});

test("fairlead logout removes one or all stored keys", async () => {
  await inPlace(async ({ run, file }) => {
    for (const id of ["openai", "mistral", "groq"])
      await run(
        ["setup", "--provider", id, "--key-from", "stdin", "--model", "m", "--editor", "none", "--no-test"],
        [`sk-${id}-0123456789`],
      );
    const which = await run(["logout"]);
    expect([which.exitCode, which.stderr]).toEqual([2, expect.stringContaining("openai, mistral, groq")]);
    expect((await run(["logout", "mistral"])).stdout).toBe("Removed the key of mistral.");
    expect(Object.keys(JSON.parse(await file(keyPath)))).toEqual(["openai", "groq"]);
    expect((await run(["logout", "--all"])).exitCode).toBe(0);
    expect((await run(["logout"])).stdout).toBe("No key is stored.");
  });
});

test("confirms an organization's configuration, which the user can override and remove", async () => {
  await using server = await listen((request, response) => {
    if (request.url !== "/.well-known/opencode") response.writeHead(404).end();
    else
      response.end(JSON.stringify({ config: { model: "work/theirs", default_agent: "plan", nonsense: 1 } }));
  });
  await inPlace(async ({ run }) => {
    const { url } = server;
    const refused = await run(["setup", "--organization", url], ["n"]);
    expect([refused.exitCode, refused.stdout]).toEqual([130, expect.stringContaining('"work/theirs"')]);
    expect((await run(["config", "show"])).stdout).toBe("");
    expect((await run(["setup", "--organization", url], ["y"])).exitCode).toBe(0);
    const own = { FAIRLEAD_CONFIG_CONTENT: '{"model": "work/mine"}' };
    const shown = (await run(["config", "show"], [], own)).stdout;
    expect(shown.split("\n").map((line) => line.split("\t").slice(0, 2))).toEqual([
      ["default_agent", "plan"],
      ["model", "work/mine"],
    ]);
    await run(["logout", "--organization"]);
    expect((await run(["config", "show"])).stdout).toBe("");
    const nobody = await run(["setup", "--organization", "http://127.0.0.1:9"], ["y"]);
    expect([nobody.exitCode, nobody.stderr]).toEqual([
      1,
      expect.stringContaining("No configuration was found"),
    ]);
  });
});
