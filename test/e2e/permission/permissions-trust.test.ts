import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RequestPermissionRequest } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import * as reply from "../../support/model/reply.ts";
import { story as ownStory, storiesOfOneAgent } from "../../support/editor/story.ts";
import { thoughtText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const question = "Trust this project's configuration?";
const config = { permission: { bash: "ask" }, experimental: { continue_loop_on_deny: true } };
const loosening = JSON.stringify({ permission: { bash: { "git branch *": "allow" } } });
const agentFile = "---\ndescription: Ours.\npermission:\n  bash: allow\n---\nWork.";

/** The text of the question below its title. */
const shownText = (request: RequestPermissionRequest | undefined) =>
  (request?.toolCall.content ?? [])
    .map((block) => (block.type === "content" && block.content.type === "text" ? block.content.text : ""))
    .join("\n");

const branch = (name: string) => reply.call("bash", { command: `git branch ${name}` });

describe("a project with a configuration file", () => {
  test("is asked about once, with its contents, and applies completely from then on", async () => {
    const files = { "fairlead.json": loosening, ".fairlead/agents/ours.md": agentFile };
    await story({ config, files, permission: "allow_once" }, async ({ editor, model, repository }) => {
      const { sessionId, configOptions } = await editor.newSession();
      expect(editor.permissionRequests).toEqual([]);
      model.reply(branch("one")).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toMatchObject([
        {
          toolCall: { title: question, kind: "other" },
          options: [{ kind: "allow_once" }, { kind: "reject_once" }],
        },
      ]);
      const shown = shownText(editor.permissionRequests[0]);
      expect(shown).toContain('- permission.bash.git branch *: "allow"\n');
      expect(shown).toContain("ours.md: permission rules that could loosen others");
      expect(toolCalls(editor.updates(sessionId)).map(({ title, status }) => [title, status])).toEqual([
        [question, "completed"],
        ["git branch one", "completed"],
      ]);
      expect(configOptions).toBeDefined();
      model.reply(branch("two")).reply("Done.");
      await editor.prompt(sessionId, "Again");
      await editor.restart();
      await editor.initialize();
      const { sessionId: later } = await editor.newSession();
      model.reply(branch("three")).reply("Done.");
      await editor.prompt(later, "Go");
      expect(editor.permissionRequests).toHaveLength(1);
      expect(await repository.git("branch", "--list")).toBe("* main\n  one\n  three\n  two");
    });
  });

  test("stays restricted in the session after a rejection, and the turn continues", async () => {
    await story(
      { config, files: { "fairlead.json": loosening }, permission: "reject_once" },
      async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        model.reply(branch("one")).reply("Done.");
        expect((await editor.prompt(sessionId, "Go")).stopReason).toBe("end_turn");
        model.reply("Yes.");
        await editor.prompt(sessionId, "And?");
        expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
          question,
          "git branch one",
        ]);
        expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual([
          "failed",
          "failed",
        ]);
      },
    );
  });

  test("is asked about again when its content changed, with a note about that", async () => {
    const files = { "fairlead.json": loosening };
    await story({ config, files, permission: "allow_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Yes.");
      await editor.prompt(sessionId, "Go");
      await writeFile(join(repository.path, "fairlead.json"), JSON.stringify({ permission: "allow" }));
      editor.permission = "reject_once";
      const { sessionId: later } = await editor.newSession();
      model.reply(branch("one")).reply("No.");
      await editor.prompt(later, "Go");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
        question,
        question,
        "git branch one",
      ]);
      expect(JSON.stringify(editor.permissionRequests[1])).toContain("has changed since you trusted it");
    });
  });

  test("is not trusted after a cancel or by auto-approve, and is asked about next turn", async () => {
    await story(
      { config, files: { "fairlead.json": loosening }, permission: "never" },
      async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        await editor.setConfigOption(sessionId, "approval", "auto");
        const turn = editor.prompt(sessionId, "Go");
        await editor.permissionRequest(1);
        await editor.cancel(sessionId);
        expect((await turn).stopReason).toBe("cancelled");
        editor.permission = "reject_once";
        model.reply("Yes.");
        await editor.prompt(sessionId, "Go");
        expect(editor.permissionRequests).toHaveLength(2);
      },
    );
  });

  test("ends the turn if the editor answers the question with cancelled", async () => {
    await story(
      { config, files: { "fairlead.json": loosening }, permission: "cancelled" },
      async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        expect((await editor.prompt(sessionId, "Go")).stopReason).toBe("cancelled");
        expect(model.requests).toEqual([]);
        const [request] = editor.permissionRequests;
        expect(JSON.stringify(request?.toolCall.content)).toContain(
          "only you can decide which configuration",
        );
      },
    );
  });

  test("is not asked about if it only tightens and describes", async () => {
    const tightening = JSON.stringify({
      permission: { edit: "deny" },
      agent: { ours: { description: "Ours." } },
    });
    await story({ config, files: { "fairlead.json": tightening } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Yes.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests.at(-1)?.toolNames).not.toContain("edit");
    });
  });

  test.each([
    ["fairlead.json", JSON.stringify({ agent: { plan: { mode: "subagent" } } })],
    [".fairlead/agents/plan.md", "---\nhidden: true\n---\nNo more plans."],
    [".claude/agents/plan.md", "---\nname: plan\ndescription: A subagent.\n---\nNo more plans."],
  ])("cannot remove the user's default agent by %s", async (path, text) => {
    const options = { config: { ...config, default_agent: "plan" }, files: { [path]: text } };
    await story({ ...options, permission: "reject_once" }, async ({ editor, model, repository }) => {
      const { sessionId, modes } = await editor.newSession();
      expect(modes?.currentModeId).toBe("plan");
      model.reply(reply.call("write", { filePath: "new.txt", content: "new\n" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(await repository.git("status", "--porcelain")).toBe("");
    });
  });

  test.each([
    ["fairlead.json", JSON.stringify({ command: { review: { template: "Go", agent: "build" } } })],
    [".fairlead/commands/review.md", "---\nagent: build\n---\nGo"],
    [".claude/commands/review.md", "---\nagent: build\n---\nGo"],
  ])("cannot leave plan mode by a command in %s", async (path, text) => {
    const options = { config: { ...config, default_agent: "plan" }, files: { [path]: text } };
    await story({ ...options, permission: "reject_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("write", { filePath: "new.txt", content: "new\n" })).reply("Done.");
      await editor.prompt(sessionId, "/review");
      expect(model.requests[0]?.userText).toContain("Go");
      expect(thoughtText(editor.updates(sessionId))).toContain("/review names build, but plan answers");
      expect(await repository.git("status", "--porcelain")).toBe("");
    });
  });

  test.each([
    ["fairlead.json", JSON.stringify({ agent: { plan: { disable: true } }, default_agent: "build" })],
    [".fairlead/agents/plan.md", "---\ndisable: true\n---\nNo more plans."],
  ])("cannot end a session's plan mode by %s", async (path, text) => {
    const options = { config, files: { "a.txt": "one\n" }, permission: "reject_once" } as const;
    await story(options, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      await repository.write({ [path]: text });
      model.reply(reply.call("write", { filePath: "made.txt", content: "x" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(await repository.git("status", "--porcelain")).not.toContain("made.txt");
      expect(JSON.stringify(editor.permissionRequests[0]?.toolCall.content)).toContain("disable");
    });
  });

  test.each([
    ["chooses no model where costs are limited", { max_cost: { turn: 1 } }, "reject_once", "scripted"],
    ["chooses it there after a yes", { max_cost: { turn: 1 } }, "allow_once", "other"],
    ["chooses it unasked where costs have no limit", {}, undefined, "other"],
  ] as const)("%s", async (_, limits, permission, answering) => {
    const files = {
      "fairlead.json": JSON.stringify({
        model: "test/other",
        command: { go: { template: "Go", model: "test/other" } },
      }),
      ".fairlead/agents/build.md": "---\nmodel: test/other\n---\nBuild.",
      ".fairlead/commands/run.md": "---\nmodel: test/other\n---\nRun",
    };
    await story({ config: { ...config, ...limits }, files, permission }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.otherwise("Yes.");
      for (const text of ["Hi", "/go", "/run"]) await editor.prompt(sessionId, text);
      expect(model.requests.map(({ body }) => body.model)).toEqual([answering, answering, answering]);
      if (permission === undefined) return;
      const wants = shownText(editor.permissionRequests[0]);
      for (const want of ["model", "command.go.model", "build.md: model"]) expect(wants).toContain(want);
    });
  });

  test("cannot hide characters in the question", async () => {
    const mcp = { odd: { type: "local", command: ["/bin/sh\u202e\u001b[2K"] } };
    const files = { "fairlead.json": JSON.stringify({ mcp }) };
    await story({ config, files, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Yes.");
      await editor.prompt(sessionId, "Go");
      const shown = shownText(editor.permissionRequests[0]);
      expect(shown).toContain("\\u{202e}");
      expect(shown).not.toMatch(/\u202e/);
    });
  });
});

describe("fairlead trust", () => {
  test("adds, lists and removes trust, which applies to sessions", async () => {
    await ownStory(
      { config, files: { "fairlead.json": loosening }, permission: "reject_once" },
      async (context) => {
        const { editor, model, repository, home } = context;
        const cli = (...args: string[]) => fairlead(home.path, ["trust", ...args]);
        expect((await cli()).stdout).toBe("No folder is trusted.");
        const added = await cli("add", repository.path);
        expect(added.stdout).toContain('- permission.bash.git branch *: "allow"');
        expect((await cli()).stdout).toMatch(new RegExp(`^${repository.path}  since 20`));
        const { sessionId } = await editor.newSession();
        model.reply(branch("one")).reply("Done.");
        await editor.prompt(sessionId, "Go");
        expect(editor.permissionRequests).toEqual([]);
        expect((await cli("revoke", repository.path)).stdout).toBe(
          `${repository.path} is no longer trusted.`,
        );
        expect((await cli("revoke", repository.path)).exitCode).toBe(1);
        const { sessionId: later } = await editor.newSession();
        model.reply("Yes.");
        await editor.prompt(later, "Go");
        expect(editor.permissionRequests).toHaveLength(1);
      },
    );
  });

  test("reports wrong arguments", async () => {
    await ownStory({}, async ({ home, repository }) => {
      const codes = [["add"], ["add", join(home.path, "none")], ["add", repository.path], ["what"]];
      const results = await Promise.all(codes.map((args) => fairlead(home.path, ["trust", ...args])));
      expect(results.map(({ exitCode }) => exitCode)).toEqual([2, 1, 0, 2]);
      expect(results[2]?.stdout).toMatch(/needs your trust\.$/);
    });
  });
});

describe("fairlead run", () => {
  test("trusts with --trust alone, not with --permission allow", async () => {
    const files = { "fairlead.json": JSON.stringify({ permission: { bash: "allow" } }) };
    await ownStory({ config, files }, async ({ model, repository, home }) => {
      const run = (...args: string[]) =>
        fairlead(home.path, ["run", "--cwd", repository.path, ...args, "Go"]);
      model.reply(branch("one")).reply("Done.");
      const allowed = await run("--permission", "allow");
      expect(allowed.stderr).toContain("--trust trusts it");
      expect((await fairlead(home.path, ["trust"])).stdout).toBe("No folder is trusted.");
      model.reply(branch("two")).reply("Done.");
      const trusted = await run("--trust", "--permission", "deny");
      expect(trusted.stderr).not.toContain("rejected");
      expect(await repository.git("branch", "--list")).toBe("* main\n  one\n  two");
      expect(await readFile(join(repository.path, "fairlead.json"), "utf8")).toContain("allow");
    });
  });
});
