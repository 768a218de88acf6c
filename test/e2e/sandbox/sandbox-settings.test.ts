import { join } from "node:path";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, symlink } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { story, type StoryContext } from "../../support/editor/story.ts";
import { toObject } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { fairlead } from "../../support/program/cli.ts";
import { findBubblewrapProblem } from "./sandbox-problem.ts";
import { thoughtText } from "../../support/transcript.ts";
import { temporaryFolder, writeConfig } from "../../support/temp.ts";
import { startModelServer } from "../../support/model/model-server.ts";

const problem = await findBubblewrapProblem();

/** A PATH with a shell and no sandbox. */
async function pathWithoutSandbox(folder: string): Promise<string> {
  const path = join(folder, "programs");
  await mkdir(path);
  for (const name of ["sh", "cat", "git", "node"]) {
    const found = (process.env["PATH"] ?? "").split(":").map((one) => join(one, name));
    await symlink(found.find((one) => !one.includes("node_modules")) ?? "", join(path, name)).catch(() => {});
  }
  return path;
}

async function run({ editor, model }: StoryContext, command: string): Promise<string> {
  const { sessionId } = await editor.newSession();
  model.reply(reply.call("bash", { command })).reply("Done.");
  await editor.prompt(sessionId, "Go");
  return String(model.requests.at(-1)?.messages.findLast(({ role }) => role === "tool")?.content);
}

const missing = "is not installed. Install the package bubblewrap";
const onLinux = process.platform === "linux";

test.runIf(onLinux)("without a sandbox, required refuses commands and names what to install", async () => {
  await using folder = await temporaryFolder();
  const env = { PATH: await pathWithoutSandbox(folder.path) };
  await story({ env, config: { sandbox: "required" } }, async (context) => {
    const result = await run(context, "echo ran");
    expect(result).toContain('Not run: the configuration sets "sandbox" to "required".');
    expect(result).toContain(missing);
  });
});

test.runIf(onLinux)("without a sandbox, auto runs commands and informs the user", async () => {
  await using folder = await temporaryFolder();
  const env = { PATH: await pathWithoutSandbox(folder.path) };
  await story({ env, config: { sandbox: "auto" } }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "echo ran > ran.txt" })).reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(thoughtText(editor.updates(sessionId))).toContain("Commands run without a sandbox.");
  });
});

test.runIf(onLinux)("without a sandbox, the level Sandboxed is refused with what to install", async () => {
  await using folder = await temporaryFolder();
  const env = { PATH: await pathWithoutSandbox(folder.path) };
  await story({ env }, async ({ editor }) => {
    const { sessionId } = await editor.newSession();
    await expect(editor.setConfigOption(sessionId, "approval", "sandboxed")).rejects.toThrow(missing);
  });
});

describe.runIf(problem === undefined)("with a sandbox", () => {
  const path = `/var/tmp/fairlead-settings-${process.pid}.txt`;
  const files = { Makefile: `outside:\n\techo x > ${path}\n` };

  test("auto confines a command that rules allow, and the user may let it run outside", async () => {
    const config = { sandbox: "auto", permission: "allow" };
    await story({ config, files, permission: "allow_once" }, async (context) => {
      expect(await run(context, "make outside")).toContain("It failed in the sandbox because");
      expect(context.editor.permissionRequests).toHaveLength(1);
      expect(await readFile(path, "utf8")).toBe("x\n");
      await rm(path);
    });
  });

  test("required lets no command run outside, and does not ask", async () => {
    const config = { sandbox: "required", permission: { sandbox: "allow" } };
    await story({ config, files, permission: "allow_once" }, async (context) => {
      const result = await run(context, "make outside");
      expect(result).toContain("[Blocked by the sandbox: it may write only in the workspace");
      expect(result).toContain(
        "[It did not run outside the sandbox: The configuration requires the sandbox.",
      );
      expect(context.editor.permissionRequests).toEqual([]);
      expect(existsSync(path)).toBe(false);
    });
  });

  test("approval in the configuration is the level of new sessions, not of forks", async () => {
    await story({ config: { approval: "sandboxed" }, files, permission: "reject_once" }, async (context) => {
      expect(await run(context, "make outside")).toContain("[Blocked by the sandbox:");
      const { editor } = context;
      const { sessionId, configOptions } = await editor.newSession();
      const sandboxed = expect.objectContaining({ id: "approval", currentValue: "sandboxed" });
      expect(configOptions).toContainEqual(sandboxed);
      await editor.setConfigOption(sessionId, "approval", "ask");
      const place = { cwd: context.repository.path, mcpServers: [] };
      const fork = toObject(await editor.request("session/fork", { sessionId, ...place }));
      expect(fork["configOptions"]).not.toContainEqual(sandboxed);
    });
  });

  test("a command may write a folder that the settings allow", async () => {
    await using folder = await temporaryFolder({}, "fairlead-cache-");
    const config = { sandbox: { mode: "required", writable: [folder.path] } };
    await story({ config, files: { "w.sh": `echo x > ${folder.path}/cache.txt\n` } }, async (context) => {
      expect(await run(context, "sh w.sh")).toBe("(no output)");
      expect(existsSync(join(folder.path, "cache.txt"))).toBe(true);
    });
  });
});

test("off refuses the level Sandboxed", async () => {
  await story({ config: { sandbox: "off" } }, async ({ editor }) => {
    const { sessionId } = await editor.newSession();
    await expect(editor.setConfigOption(sessionId, "approval", "sandboxed")).rejects.toThrow(
      'the configuration sets "sandbox" to "off"',
    );
  });
});

test("a configured command runs every command, with its folder and the profile", async () => {
  const wrapper = `#!/bin/sh
cd "$1" && shift
echo "in the container: $#"
echo "$FAIRLEAD_SANDBOX_PROFILE" | grep -c '"network":false'
exec "$@"
`;
  await using folder = await temporaryFolder({ "container.sh": wrapper });
  const command = ["sh", join(folder.path, "container.sh"), "{cwd}"];
  await story({ config: { sandbox: { mode: "required", command } } }, async (context) => {
    const result = await run(context, 'echo "a b"; pwd');
    expect(result).toBe(`in the container: 3\n1\na b\n${context.repository.path}`);
  });
});

test("a configured command may get the command as text for another shell", async () => {
  const config = {
    sandbox: { mode: "required", command: ["sh", "-c", "echo there; cd {cwd} && {command}"] },
  };
  await story({ config }, async (context) => {
    expect(await run(context, `echo 'it'"'"'s $HOME' | tr s S`)).toBe("there\nit'S $HOME");
  });
});

test("doctor names what is missing if a sandbox is required", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using folder = await temporaryFolder();
  const env = { PATH: onLinux ? await pathWithoutSandbox(folder.path) : "/nowhere" };
  const model = await startModelServer();
  await writeConfig(home.path, model.url, { sandbox: "required" });
  const { stdout, exitCode } = await fairlead(home.path, ["doctor", "--offline"], { cwd: folder.path, env });
  await model.close();
  expect(stdout).toMatch(
    /todo Sandbox +configured \("required"\), but not available\n +Commands cannot run in a sandbox: /,
  );
  expect(exitCode).toBe(1);
});
