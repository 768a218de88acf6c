import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { plain, zedLike } from "../../support/editor/clients.ts";
import type { Editor } from "../../support/editor/editor.ts";
import { toObject } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";

const story = storiesOfOneAgent();

const bash = (command: string) => reply.call("bash", { command });
const goOn = { experimental: { continue_loop_on_deny: true } };
const askBash = { ...goOn, permission: { bash: "ask" } };

/** The text of the agent's last answer. */
function lastText(editor: Editor, sessionId: string): string {
  const chunks = editor.updates(sessionId, "agent_message_chunk");
  const last = chunks.at(-1)?.messageId;
  return chunks
    .filter(({ messageId }) => messageId === last)
    .map(({ content }) => (content.type === "text" ? content.text : ""))
    .join("");
}

const options = (editor: Editor, number: number) =>
  editor.permissionRequests[number]?.options.map(({ optionId, name, kind }) => [optionId, name, kind]);

describe("the options of a question", () => {
  test("are one per kind for an unknown client, with pattern and scope", async () => {
    await story({ config: askBash, client: plain(), permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("git branch x")).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(options(editor, 0)).toEqual([
        ["allow_once", "Allow once", "allow_once"],
        ["allow_always", "Always allow `git branch *` in this session", "allow_always"],
        ["reject_once", "Reject", "reject_once"],
      ]);
    });
  });

  test("name both scopes in an editor that shows both; outside paths only the session", async () => {
    const config = { ...askBash, permission: { bash: "ask" } };
    await story({ config, client: zedLike(), permission: "allow_once" }, async ({ editor, model, home }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(bash("git branch x"))
        .reply(reply.call("write", { filePath: join(home.path, "x"), content: "x" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(options(editor, 0)?.map(([id, name]) => [id, name])).toEqual([
        ["allow_once", "Allow once"],
        ["allow_always", "Always allow `git branch *` in this session"],
        ["allow_always_project", "Always allow `git branch *` in this project"],
        ["reject_once", "Reject"],
        ["reject_with_reason", "Reject, and say why"],
      ]);
      expect(options(editor, 1)?.map(([id]) => id)).not.toContain("allow_always_project");
    });
  });
});

describe("an approval for the session", () => {
  test("is loaded with the session, in its folder only, and not copied to a fork", async () => {
    await using elsewhere = await temporaryFolder();
    await story({ config: askBash, permission: "allow_always" }, async ({ editor, model, repository }) => {
      const asks = async (sessionId: string) => {
        const before = editor.permissionRequests.length;
        model.reply(bash(`git branch n${model.requests.length}`)).reply("Done.");
        await editor.prompt(sessionId, "Go");
        return editor.permissionRequests.length - before;
      };
      const { sessionId } = await editor.newSession();
      expect([await asks(sessionId), await asks(sessionId)]).toEqual([1, 0]);
      await editor.restart();
      await editor.initialize();
      await editor.load(sessionId);
      expect(await asks(sessionId)).toBe(0);
      const place = { cwd: repository.path, mcpServers: [] };
      const fork = toObject(await editor.request("session/fork", { sessionId, ...place }));
      expect(await asks(String(fork.sessionId))).toBe(1);
      await editor.prompt(sessionId, "/permissions revoke 1");
      await editor.closeSession(sessionId);
      await editor.resume(sessionId);
      expect([await asks(sessionId), await asks(sessionId)]).toEqual([1, 0]);
      await editor.closeSession(sessionId);
      await editor.load(sessionId, { cwd: elsewhere.path });
      expect(await asks(sessionId)).toBe(1);
    });
  });
});

describe("an approval for the project", () => {
  test("outlives the process, is listed, and has no effect once it is revoked", async () => {
    const always = { outcome: "selected", optionId: "allow_always_project" } as const;
    await story({ config: askBash, client: zedLike(), permission: always }, async ({ editor, model }) => {
      const { sessionId: first } = await editor.newSession();
      model.reply(bash("git branch one")).reply("Done.");
      await editor.prompt(first, "Go");
      await editor.restart();
      await editor.initialize();
      const { sessionId } = await editor.newSession();
      model.reply(bash("git branch two")).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(1);
      await editor.prompt(sessionId, "/permissions");
      expect(lastText(editor, sessionId)).toContain("1. bash `git branch *` (this project)");
      await editor.prompt(sessionId, "/permissions revoke 1");
      expect(lastText(editor, sessionId)).toMatch(/^Revoked: bash `git branch \*`/);
      editor.permission = "reject_once";
      model.reply(bash("git branch three")).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(2);
    });
  });

  test("has no effect here after another session revoked it", async () => {
    const always = { outcome: "selected", optionId: "allow_always_project" } as const;
    await story({ config: askBash, client: zedLike(), permission: always }, async ({ editor, model }) => {
      const { sessionId: one } = await editor.newSession();
      model.reply(bash("git branch one")).reply("Done.");
      await editor.prompt(one, "Go");
      const { sessionId: two } = await editor.newSession();
      await editor.prompt(two, "/permissions revoke 1");
      editor.permission = "reject_once";
      model.reply(bash("git branch two")).reply("Done.");
      await editor.prompt(one, "Go");
      expect(editor.permissionRequests).toHaveLength(2);
    });
  });
});

describe("/permissions", () => {
  test("lists rules, keeps an approval of the session, and explains itself", async () => {
    await story({ config: askBash, permission: "allow_always" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("git branch one")).reply("Done.");
      await editor.prompt(sessionId, "Go");
      await editor.prompt(sessionId, "/permissions keep 1");
      expect(lastText(editor, sessionId)).toBe("Stored: bash `git branch *` (this project).");
      await editor.prompt(sessionId, "/permissions");
      const text = lastText(editor, sessionId);
      expect(text).toMatch(
        /^\*\*Rules of build\*\*, in order; the last match wins:\n\n- everything: allow what can be undone\n/,
      );
      expect(text).toContain("- bash: ask");
      expect(text).toContain("1. bash `git branch *` (this project)");
      await editor.prompt(sessionId, "/permissions revoke 7");
      expect(lastText(editor, sessionId)).toMatch(/^Approval "7" not found\./);
    });
  });

  test("log shows who decided what, also after the session was closed", async () => {
    const permission = { bash: { "*": "ask", "git status": "allow", "rm *": "deny" } };
    await story(
      { config: { ...goOn, permission }, permission: "allow_always" },
      async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        model
          .reply(bash("git status"))
          .reply(bash("rm x"))
          .reply(bash("git branch one"))
          .reply(bash("git branch two"))
          .reply("Done.");
        await editor.prompt(sessionId, "Go");
        const log = [
          '- allowed by the rules: bash: bash `git status` (bash: "git status" allow)',
          '- denied by the rules: bash: bash `rm x` (bash: "rm *" deny)',
          "- allowed by you: bash: bash `git branch one`",
          '- allowed by an approval: bash: bash `git branch two` (bash: "git branch *" allow)',
        ].join("\n");
        await editor.prompt(sessionId, "/permissions log");
        expect(lastText(editor, sessionId)).toBe(log);
        await editor.closeSession(sessionId);
        await editor.load(sessionId);
        await editor.prompt(sessionId, "/permissions log");
        expect(lastText(editor, sessionId)).toBe(log);
      },
    );
  });
});

describe("the approval setting", () => {
  test("accept edits lets workspace files change and asks for commands and configuration", async () => {
    const config = { ...goOn, permission: { edit: "ask", bash: "ask" } };
    await story({ config, permission: "reject_once" }, async ({ editor, model, repository, home }) => {
      const { sessionId } = await editor.newSession();
      await editor.setConfigOption(sessionId, "approval", "accept-edits");
      const { configOptions } = await editor.waitForKind(sessionId, "config_option_update");
      expect(configOptions.find(({ id }) => id === "approval")?.currentValue).toBe("accept-edits");
      const write = (filePath: string) => reply.call("write", { filePath, content: "x\n" });
      model
        .reply(write("a.txt"))
        .reply(bash("touch b.txt"))
        .reply(write(join(home.path, "c.txt")))
        .reply(write("fairlead.json"))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const titles = editor.permissionRequests.map(({ toolCall }) => toolCall.title);
      expect(titles).toEqual([
        "touch b.txt",
        // A long path is cut at its start.
        expect.stringMatching(new RegExp(`^Write .*${basename(home.path)}/c\\.txt \\(new\\)$`)),
        "Write fairlead.json (new)",
      ]);
      expect(await repository.git("status", "--porcelain")).toBe("?? a.txt");
    });
  });

  test("auto answers questions, obeys denies, and asks before protected changes", async () => {
    const config = { ...goOn, permission: { edit: "ask", bash: { "*": "ask", "rm *": "deny" } } };
    await story({ config, permission: "reject_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.setConfigOption(sessionId, "approval", "auto");
      model
        .reply(bash("touch a.txt"))
        .reply(bash("rm a.txt"))
        .reply(bash('X=rm; eval "$X a.txt"'))
        .reply(bash("touch .git/hooks/pre-commit"))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const titles = editor.permissionRequests.map(({ toolCall }) => toolCall.title);
      expect(titles.slice(-1)).toEqual(["touch .git/hooks/pre-commit"]);
      expect(await repository.git("status", "--porcelain")).toBe("?? a.txt");
    });
  });

  test("is stored with the session and settles the open question", async () => {
    await story({ config: askBash, permission: () => new Promise(() => {}) }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("git branch one")).reply("Done.");
      const turn = editor.prompt(sessionId, "Go");
      await editor.permissionRequest(1);
      await editor.setConfigOption(sessionId, "approval", "auto");
      expect((await turn).stopReason).toBe("end_turn");
      await editor.closeSession(sessionId);
      const { configOptions } = await editor.load(sessionId);
      expect(configOptions?.find(({ id }) => id === "approval")?.currentValue).toBe("auto");
    });
  });
});
