import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { describe, expect, test, vi } from "vitest";
import type { Editor } from "../../support/editor/editor.ts";
import { storiesOfOneAgent, story as singleStory, type StoryContext } from "../../support/editor/story.ts";
import { listen } from "../../support/listen.ts";
import * as reply from "../../support/model/reply.ts";
import { findLeftoversWith, findProcessesWith } from "../../support/program/processes.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { thoughtText } from "../../support/transcript.ts";
import { findBubblewrapProblem } from "./sandbox-problem.ts";

const problem = await findBubblewrapProblem();
const story = storiesOfOneAgent();

const bash = (command: string) => reply.call("bash", { command });
const choose = (editor: Editor, sessionId: string) =>
  editor.setConfigOption(sessionId, "approval", "sandboxed");

/** Runs one command in a new session whose approval setting is Sandboxed, and returns its result for the model. */
async function runSandboxed(context: StoryContext, command: string): Promise<string> {
  const { editor, model } = context;
  const { sessionId } = await editor.newSession();
  await choose(editor, sessionId);
  model.reply(bash(command)).reply("Done.");
  await editor.prompt(sessionId, "Go");
  return String(model.requests.at(-1)?.messages.findLast(({ role }) => role === "tool")?.content);
}

const countQuestions = ({ editor }: StoryContext) => editor.permissionRequests.length;

describe.runIf(problem === undefined)("at the level Sandboxed", () => {
  const config = { permission: { bash: "ask", edit: "ask" } };

  test("a command writes in the workspace and the temporary folder without a question", async () => {
    await story({ config }, async (context) => {
      const command = "sh -c 'mkdir d; echo b > d/b.txt; echo t > /tmp/t; cat /tmp/t $TMPDIR/t'";
      expect(await runSandboxed(context, command)).toBe("t\nt");
      expect(countQuestions(context)).toBe(0);
      expect(await readFile(join(context.repository.path, "d/b.txt"), "utf8")).toBe("b\n");
      expect(existsSync("/tmp/t")).toBe(false);
    });
  });

  test("a program that writes outside the workspace fails, and the user is asked why", async () => {
    const path = `/var/tmp/fairlead-${process.pid}.txt`;
    const files = { "w.sh": `echo x > ${path}\n` };
    await story({ config, files, permission: "reject_once" }, async (context) => {
      const result = await runSandboxed(context, "sh w.sh");
      expect(result).toContain("Read-only file system");
      expect(result).toContain(
        "[Blocked by the sandbox: it may write only in the workspace and in the folder for temporary files.]",
      );
      expect(result).toContain("[It did not run outside the sandbox: the user did not allow it.");
      expect(JSON.stringify(context.editor.permissionRequests[0]?.toolCall.content)).toContain(
        "Asked because it failed in the sandbox: it may write only in the workspace",
      );
      expect(existsSync(path)).toBe(false);
    });
  });

  test("a command that the user allows outside runs again, and always stores that", async () => {
    await using port = await listen(() => {});
    const script = `require("net").connect(${port.port}, "127.0.0.1").on("connect", () => process.exit(0)).on("error", () => {
      console.log("getaddrinfo EAI_AGAIN");
      process.exit(1);
    });`;
    const files = { Makefile: "reach:\n\t@node c.js\n", "c.js": script };
    await story({ config, files, permission: "allow_always" }, async (context) => {
      const { editor, model } = context;
      const { sessionId } = await editor.newSession();
      await choose(editor, sessionId);
      model.reply(bash("make reach")).reply(bash("make reach")).reply("Done.");
      await editor.prompt(sessionId, "Go");
      const results = model.requests.at(-1)?.messages.filter(({ role }) => role === "tool") ?? [];
      expect(String(results[0]?.content)).toContain(
        "[It failed in the sandbox because it has no network; the output above is of another run, outside it.]",
      );
      expect(String(results[1]?.content)).toBe("(no output)");
      expect(editor.permissionRequests).toHaveLength(1);
      const names = editor.permissionRequests[0]?.options.map(({ name }) => name);
      expect(names?.[1]).toMatch(/^Always allow `make .*` outside the sandbox in this session$/);
    });
  });

  test("files protected by rules for read, and keys in the home folder, cannot be read", async () => {
    const files = {
      "r.sh": "cat .env; cat ~/.ssh/id; cat ~/.config/fairlead/fairlead.json; mv .env other; true\n",
    };
    const homeFiles = { ".ssh/id": "KEY-TEXT" };
    await story({ config, files, homeFiles }, async (context) => {
      await writeFile(join(context.repository.path, ".env"), "SECRET-TEXT");
      const result = await runSandboxed(context, "sh r.sh");
      expect(result).not.toMatch(/KEY-TEXT|SECRET-TEXT|provider/);
      expect(result.match(/Permission denied/g)).toHaveLength(3);
      expect(await readFile(join(context.repository.path, ".env"), "utf8")).toBe("SECRET-TEXT");
    });
  });

  test("a protected file that the user allows to be read is readable for that command", async () => {
    await story({ config, permission: "allow_once" }, async (context) => {
      await writeFile(join(context.repository.path, ".env"), "A=1\n");
      expect(await runSandboxed(context, "cat .env")).toBe("A=1");
      expect(countQuestions(context)).toBe(1);
    });
  });

  test("a protected file is deleted after the user allowed it once", async () => {
    await story({ config, permission: "allow_once" }, async (context) => {
      const path = join(context.repository.path, ".env");
      await writeFile(path, "A=1\n");
      expect(await runSandboxed(context, "rm .env")).toBe("(no output)");
      expect(existsSync(path)).toBe(false);
      expect(countQuestions(context)).toBe(1);
    });
  });

  test("scripts of a skill run although they are in the hidden configuration folder", async () => {
    const skill = ".config/fairlead/skills/tidy";
    const homeFiles = {
      [`${skill}/SKILL.md`]: "---\nname: tidy\ndescription: Tidies.\n---\nRun run.sh.\n",
      [`${skill}/run.sh`]:
        '. "$(dirname "$0")/lib.sh"; cat ~/.config/fairlead/fairlead.json || echo hidden\n',
      [`${skill}/lib.sh`]: "echo from lib\n",
    };
    await singleStory({ config, homeFiles, permission: "reject_once" }, async (context) => {
      const path = join(context.home.path, skill, "run.sh");
      const result = await runSandboxed(context, `cat ${path} > copy.txt; sh ${path}`);
      expect(result).toMatch(/^from lib\ncat: .*fairlead\.json: Permission denied\nhidden$/m);
    });
  });

  test("programs of the PATH are found in /tmp and /run, used by version managers", async () => {
    await using tools = await temporaryFolder(
      { "v1/lib/hello.sh": "#!/bin/sh\necho from v1\n" },
      "fairlead-path-",
    );
    await mkdir(join(tools.path, "v1/bin"));
    await chmod(join(tools.path, "v1/lib/hello.sh"), 0o755);
    await symlink("../lib/hello.sh", join(tools.path, "v1/bin/hello"));
    await symlink(join(tools.path, "v1"), join(tools.path, "current"));
    const env = { PATH: `${join(tools.path, "current/bin")}:${process.env["PATH"] ?? ""}` };
    await singleStory({ config, env }, async (context) => {
      expect(await runSandboxed(context, "hello")).toBe("from v1");
    });
  });

  test("git commits, and hooks and configuration cannot be changed or moved away", async () => {
    const script = [
      "git add -A && git -c user.name=a -c user.email=a@b.c commit -qm second && git log --format=%s -n 1",
      "echo evil > .git/hooks/pre-commit; git config core.pager evil; mv .git .old; rm -rf .git/hooks",
      "true",
    ];
    await story({ config, files: { "g.sh": script.join("\n"), "a.txt": "" } }, async (context) => {
      const configFile = join(context.repository.path, ".git/config");
      const before = await readFile(configFile, "utf8");
      await writeFile(join(context.repository.path, "a.txt"), "changed");
      const result = await runSandboxed(context, "sh g.sh");
      expect(result).toContain("second");
      expect(await readFile(configFile, "utf8")).toBe(before);
      expect(existsSync(join(context.repository.path, ".git/hooks/pre-commit"))).toBe(false);
      expect(existsSync(join(context.repository.path, ".old"))).toBe(false);
    });
  });

  test("a file that would redirect git is renamed, and new configuration is named", async () => {
    const files = {
      "e.sh":
        "echo /evil > .git/commondir; echo '{}' > fairlead.json; mkdir -p .git/hooks; echo x > .git/hooks/a\n",
    };
    await story({ config, files, permission: "reject_once" }, async (context) => {
      const result = await runSandboxed(context, "sh e.sh");
      const { path } = context.repository;
      expect(result).toContain("/.git/commondir would redirect git: renamed to end in .blocked");
      expect(result).toContain("/fairlead.json appeared and may change what the agent or git runs");
      expect(existsSync(join(path, ".git/commondir"))).toBe(false);
      expect(existsSync(join(path, ".git/hooks/a"))).toBe(false);
    });
  });

  test("a running job cannot redirect git or change its hooks", async () => {
    const files = {
      "job.sh":
        "sleep 0.5; echo /evil > .git/commondir; echo x > .git/hooks/a; echo x > .git/config; sleep 300\n",
    };
    await story({ config, files }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await choose(editor, sessionId);
      model.reply(reply.call("bash", { command: "sh job.sh", background: true })).reply("Done.");
      await editor.prompt(sessionId, "Start");
      const git = join(repository.path, ".git");
      const isRenamed = () => expect(existsSync(join(git, "commondir.blocked"))).toBe(true);
      await vi.waitFor(isRenamed, { timeout: 20_000 });
      expect(existsSync(join(git, "commondir"))).toBe(false);
      model.reply(reply.call("job", { action: "stop", job: 1 })).reply("Done.");
      await editor.prompt(sessionId, "Stop");
      expect(existsSync(join(git, "hooks/a"))).toBe(false);
      expect(await readFile(join(git, "config"), "utf8")).toContain("[core]");
      expect(thoughtText(editor.updates(sessionId))).toContain(
        ".git/commondir, which would redirect git: renamed",
      );
    });
  });

  test("a change of git's hooks asks, and works for that command if it is allowed", async () => {
    await story({ config, permission: "allow_once" }, async (context) => {
      await runSandboxed(context, "git config user.name ada && git config user.name");
      expect(countQuestions(context)).toBe(1);
      expect(await readFile(join(context.repository.path, ".git/config"), "utf8")).toContain("name = ada");
    });
  });

  test("an irreversible command asks", async () => {
    await story({ config, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await choose(editor, sessionId);
      model.reply(bash("git branch -D none"));
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(1);
    });
  });

  test("an allowed irreversible command reads the keys of its program only", async () => {
    const script = "cat ~/.ssh/id >&2; test -r ~/.aws/credentials || echo no others >&2; exit 1";
    await using tools = await temporaryFolder({ ssh: `#!/bin/sh\n${script}\n` }, "fairlead-ssh-");
    await chmod(join(tools.path, "ssh"), 0o755);
    const env = { PATH: `${tools.path}:${process.env["PATH"] ?? ""}` };
    const homeFiles = { ".ssh/id": "SSH-KEY\n", ".aws/credentials": "AWS-KEY\n" };
    await singleStory({ config, env, homeFiles, permission: "allow_once" }, async (context) => {
      const result = await runSandboxed(context, "git push ssh://example.invalid/a.git HEAD");
      expect(result).toMatch(/^SSH-KEY\nno others\nfatal: /);
      expect(await runSandboxed(context, "sh -c ssh")).toContain("in the sandbox because it may not read");
    });
  });

  test("loopback ports work inside, and those of the computer are out of reach", async () => {
    await using port = await listen(() => {});
    const files = {
      "l.js": `
        const net = require("net");
        const inner = net.createServer((socket) => socket.end("inner"));
        inner.listen(0, "127.0.0.1", () => {
          net.connect(inner.address().port, "127.0.0.1").on("data", (data) => {
            console.log(String(data));
            net.connect(${port.port}, "127.0.0.1").on("connect", () => console.log("outer")).on("error", (error) => {
              console.log(error.code);
              process.exit(0);
            });
          });
        });`,
    };
    await story({ config, files }, async (context) => {
      expect(await runSandboxed(context, "node l.js")).toBe("inner\nECONNREFUSED");
    });
  });

  test("processes of the computer cannot be seen or ended", async () => {
    await story({ config }, async (context) => {
      const result = await runSandboxed(context, `sh -c 'kill -0 ${process.pid} 2>/dev/null || echo unseen'`);
      expect(result).toBe("unseen");
    });
  });

  test("a time limit ends everything that a command started", async () => {
    await story({ config }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await choose(editor, sessionId);
      model
        .reply(reply.call("bash", { command: "setsid sleep 300 & sleep 300", timeout: 500 }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const result = model.requests.at(-1)?.messages.findLast(({ role }) => role === "tool");
      expect(String(result?.content)).toContain("its time of 500 ms was up");
    });
  });

  test("a background process survives its command and ends with the program", async () => {
    await singleStory({ config }, async (context) => {
      const result = await runSandboxed(context, "sleep 300 & echo started");
      expect(result).toContain("started");
      expect(result).toContain("[Processes that it started still run in the background, unseen.");
    });
  });

  test("output is live; a cancel ends the command, a killed program ends everything", async () => {
    const plugin = ["./plugin.mjs", { sandbox: true }];
    const homeFiles = { ".config/fairlead/plugin.mjs": "export default async () => ({ event() {} });\n" };
    await singleStory({ config: { ...config, plugin: [plugin] }, homeFiles }, async (context) => {
      const { editor, model, home } = context;
      const { sessionId } = await editor.newSession();
      await choose(editor, sessionId);
      const shows = (text: string) => (update: SessionUpdate) => JSON.stringify(update).includes(text);
      model.reply(bash("echo first $((1+1)); setsid sleep 1000 & sleep 1000"));
      const cancelled = editor.prompt(sessionId, "Wait");
      await editor.waitFor(sessionId, shows("first 2"));
      await editor.cancel(sessionId);
      expect((await cancelled).stopReason).toBe("cancelled");
      const sleeping = async () =>
        (await findProcessesWith("HOME", home.path)).filter(({ command }) => command.startsWith("sleep"));
      expect(await sleeping()).toEqual([]);

      model.reply(bash("echo second $((1+1)); setsid sleep 1000 & sleep 1000"));
      const killed = editor.prompt(sessionId, "Wait again").catch(() => undefined);
      await editor.waitFor(sessionId, shows("second 2"));
      await vi.waitFor(async () => expect(await sleeping()).toHaveLength(2));
      await editor.kill();
      await killed;
      expect(await findLeftoversWith("HOME", home.path)).toEqual([]);
    });
  });
});
