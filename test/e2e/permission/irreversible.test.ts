import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Editor } from "../../support/editor/editor.ts";
import { zedLike } from "../../support/editor/clients.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { startModelServer } from "../../support/model/model-server.ts";
import { fairlead } from "../../support/program/cli.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";
import * as reply from "../../support/model/reply.ts";

const story = storiesOfOneAgent();

const bash = (command: string) => reply.call("bash", { command });

/** Returns the text of a question. */
const questionText = (editor: Editor, number: number) =>
  JSON.stringify(editor.permissionRequests[number]?.toolCall.content);

describe("by default", () => {
  test("a command that cannot be undone asks, says why and offers that command alone", async () => {
    await story({ client: zedLike(), permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("echo hi && git push origin main && npm publish"));
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(1);
      expect(questionText(editor, 0)).toContain(
        "Asked because it cannot be undone: sends commits to a remote, publishes a package.",
      );
      const offered = editor.permissionRequests[0]?.options.filter(({ kind }) => kind.startsWith("allow"));
      expect(offered?.map(({ name }) => name)).toEqual([
        "Allow once",
        "Always allow `git push origin main`, `npm publish` in this session",
        "Always allow `git push origin main`, `npm publish` in this project",
      ]);
    });
  });

  test("a command that can be undone, and an unknown program, run without a question", async () => {
    const files = { "dist/a.js": "", "tool.sh": "echo made > made.txt\n" };
    await story({ files }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("rm -rf dist && git status && sh tool.sh")).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toEqual([]);
      expect(await readFile(join(repository.path, "made.txt"), "utf8")).toBe("made\n");
    });
  });

  test("an approval of the exact command applies to it alone", async () => {
    await story({ permission: "allow_always" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(bash("git branch -D none"))
        .reply(bash("git branch -D none"))
        .reply(bash("git branch -D other"))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
        "git branch -D none",
        "git branch -D other",
      ]);
    });
  });
});

test("commands that the README lists ask by default, and all others run", async () => {
  const asks = [
    "git push",
    "npm publish",
    "kubectl apply -f app.yaml",
    "git push --force",
    "git branch -D old",
    "git reset --hard HEAD~1",
    "aws s3 rm s3://bucket/key",
    "dropdb app",
    "npm install --global x",
    "cat ../other/a.txt",
    "rm ../other/a.txt",
    "cat .env",
    "rm .env",
    "npm run ship",
    "npm run release",
  ];
  const runs = [
    "frobnicate --all",
    "./script.sh",
    "npm test",
    "npm run build",
    "rm -rf dist",
    "git commit -m x",
  ];
  const scripts = {
    test: "node --test",
    build: "unknown-builder",
    ship: "kubectl apply -f .",
    release: "npm publish",
  };
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository({ "package.json": JSON.stringify({ scripts }) });
  const { stdout } = await fairlead(home.path, ["permissions", "check"], {
    cwd: repository.path,
    input: `${[...asks, ...runs].join("\n")}\n`,
  });
  const decided = stdout.split("\n").filter((line) => /^(?:allow|ask|deny)\b/.test(line));
  expect(decided.map((line) => line.replace(/ +/, " "))).toEqual([
    ...asks.map((line) => `ask ${line}`),
    ...runs.map((line) => `allow ${line}`),
  ]);
});

test.each([
  ["a rule for everything", { "*": "allow" }],
  ["a rule for commands", { bash: "allow" }],
  ["a rule for the command", { bash: { "git branch *": "allow" } }],
])("%s of the user allows irreversible commands", async (_, permission) => {
  await story({ config: { permission } }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(bash("git branch -D none")).reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(editor.permissionRequests).toEqual([]);
  });
});

test("an unattended run refuses what cannot be undone; --permission allow runs it", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository({ "a.txt": "one\n" });
  const model = await startModelServer();
  try {
    await writeConfig(home.path, model.url);
    const run = (...more: string[]) => {
      model.reply(bash("git branch -D none")).reply("Done.");
      return fairlead(home.path, ["run", ...more, "Go"], { cwd: repository.path });
    };
    const refused = await run();
    expect([refused.exitCode, refused.stderr]).toEqual([
      4,
      expect.stringContaining("bash `git branch -D none`"),
    ]);
    await run("--permission", "allow");
    expect(model.requests.at(-1)?.toolResults.at(-1)).toContain("branch 'none' not found");
    model.assertClean();
  } finally {
    await model.close();
  }
});
