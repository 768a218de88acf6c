import { mkdir, readdir, readFile, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { RequestPermissionOutcome } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { toSlashes } from "../../../src/base/files/paths.ts";
import { toList } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const bash = (command: string) => reply.call("bash", { command });
const askBash = { permission: { bash: "ask" } };

describe("a question", () => {
  test("shows the whole command and offers to remember a pattern that it names", async () => {
    await story({ config: askBash, permission: "allow_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const command = `git status && echo "${"long ".repeat(100)}" > out.txt`;
      model.reply(bash(command)).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toMatchObject([
        { toolCall: { title: command, kind: "execute", rawInput: { command } } },
      ]);
      const kinds = editor.permissionRequests[0]?.options.map(({ kind }) => kind);
      expect(kinds).toEqual(["allow_once", "allow_always", "reject_once"]);
      const always = editor.permissionRequests[0]?.options.find(({ kind }) => kind === "allow_always");
      expect(always?.name).toContain("git status");
      expect(await readFile(join(repository.path, "out.txt"), "utf8")).toContain("long");
    });
  });

  test("about an edit shows the whole file before and after", async () => {
    const options = { config: { permission: { edit: "ask" } }, files: { "a.txt": "one\ntwo\n" } };
    await story({ ...options, permission: "allow_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply(reply.call("edit", { filePath: "a.txt", oldString: "one", newString: "1" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const path = join(repository.path, "a.txt");
      expect(editor.permissionRequests).toMatchObject([
        {
          toolCall: {
            title: "Edit a.txt",
            kind: "edit",
            content: [
              { type: "diff", path, oldText: "one\ntwo\n", newText: "1\ntwo\n" },
              { type: "content", content: { text: 'Asked because the rule edit: "*" says ask.' } },
            ],
          },
        },
      ]);
    });
  });

  test("names each part of a command that asks", async () => {
    const config = { permission: { bash: "ask", edit: "ask" } };
    await story({ config, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "git status --short && mkdir build" }));
      await editor.prompt(sessionId, "Go");
      const text = JSON.stringify(editor.permissionRequests[0]?.toolCall.content);
      for (const part of [
        "Asked because it runs git status --short (the rule bash: ",
        ", and it writes build (the rule edit: ",
        ", and it runs mkdir build (the rule bash: ",
      ])
        expect(text).toContain(part);
    });
  });
});

describe("answers to a question", () => {
  test("once allows this call only", async () => {
    await story({ config: askBash, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("git status")).reply(bash("git status")).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(2);
    });
  });

  test("always allows similar calls from now on, also in later turns, but no others", async () => {
    await story({ config: askBash, permission: "allow_always" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("git log -1")).reply(bash("git log -2")).reply(bash("touch made")).reply("Done.");
      await editor.prompt(sessionId, "Go");
      model.reply(bash("git log -3")).reply("Done.");
      await editor.prompt(sessionId, "Again");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
        "git log -1",
        "touch made",
      ]);
    });
  });

  test("a rejection ends the turn, changes no file, and reaches the model in the next", async () => {
    await story({ config: askBash, permission: "reject_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("touch made"));
      expect((await editor.prompt(sessionId, "Go")).stopReason).toBe("end_turn");
      expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ title: "touch made", status: "failed" }]);
      expect(await repository.git("status", "--porcelain")).toBe("");
      model.reply("I see.");
      await editor.prompt(sessionId, "And?");
      const notice = model.requests[1]?.messages.find(({ role }) => role === "tool")?.content;
      expect(notice).toMatch(/^Not run\. The user rejected/);
    });
  });

  test("a rejection lets the turn continue if configured", async () => {
    const config = { ...askBash, experimental: { continue_loop_on_deny: true } };
    await story({ config, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("touch made")).reply("Then not.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests[1]?.toolResults).toEqual([expect.stringMatching(/^Not run\. The user rejected/)]);
    });
  });

  const strange: [string, RequestPermissionOutcome][] = [
    ["an option that was not offered", { outcome: "selected", optionId: "allow_everything" }],
    ["an option with a prototype's name", { outcome: "selected", optionId: "__proto__" }],
    ["an empty option", { outcome: "selected", optionId: "" }],
  ];
  test.each(strange)("%s runs nothing", async (_, outcome) => {
    await story({ config: askBash, permission: outcome }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("touch made")).reply("Then not.");
      await editor.prompt(sessionId, "Go");
      expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ status: "failed" }]);
      expect(await repository.git("status", "--porcelain")).toBe("");
    });
  });

  /** Raw responses, since the official client would not send them. */
  const broken: [string, Record<string, unknown>][] = [
    ["an error", { error: { code: -32603, message: "The dialog broke" } }],
    ["no outcome", { result: { outcome: null } }],
    ["nothing", { result: null }],
    ["an unknown outcome", { result: { outcome: { outcome: "approved" } } }],
    ["an option that is no text", { result: { outcome: { outcome: "selected", optionId: 1 } } }],
  ];
  test.each(broken)("%s runs nothing, and the model learns that nobody answered", async (_, answer) => {
    await story({ config: askBash, permission: "never" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("touch made")).reply("Then without it.");
      const turn = editor.prompt(sessionId, "Go");
      const requested = await editor.waitForEntry(
        ({ message }) => message?.kind === "request" && message.method === "session/request_permission",
        "the question",
      );
      await editor.writeLine({ jsonrpc: "2.0", id: requested.message?.json.id, ...answer });
      expect((await turn).stopReason).toBe("end_turn");
      expect(model.requests[1]?.toolResults).toEqual([
        expect.stringMatching(/^Not run\. The user could not be asked, so there is no decision: /),
      ]);
      expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ status: "failed" }]);
      expect(await repository.git("status", "--porcelain")).toBe("");
    });
  });
});

describe("several questions", () => {
  const both = (one: string, two: string) =>
    reply.together(
      reply.callScript("write", { filePath: one, content: "1\n" }),
      reply.callScript("bash", { command: two }),
    );
  const config = { permission: { bash: "ask", edit: "ask" } };

  test("are asked one after the other", async () => {
    const first = Promise.withResolvers<"allow_once">();
    const permission = () => first.promise;
    await story({ config, permission }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(
        reply.together(
          reply.callScript("write", { filePath: "one.txt", content: "1\n" }),
          reply.callScript("write", { filePath: "two.txt", content: "2\n" }),
        ),
      );
      model.reply("Done.");
      const turn = editor.prompt(sessionId, "Go");
      await editor.permissionRequest(1);
      await editor.list();
      expect(editor.permissionRequests).toHaveLength(1);
      first.resolve("allow_once");
      await turn;
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
        "Write one.txt (new)",
        "Write two.txt (new)",
      ]);
      expect(await repository.git("status", "--porcelain")).toBe("?? one.txt\n?? two.txt");
    });
  });

  test("always settles the others that it covers", async () => {
    const options = { config: { permission: { read: "ask" } }, files: { "a.txt": "one\ntwo\n" } };
    await story({ ...options, permission: "allow_always" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const line = (offset: number) => reply.callScript("read", { filePath: "a.txt", offset, limit: 1 });
      model.reply(reply.together(line(1), line(2))).reply("Both.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(1);
      expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual([
        "completed",
        "completed",
      ]);
    });
  });

  const rejectedSteps: [string, Record<string, unknown>][] = [
    ["are rules that ask", { permission: { bash: "ask" } }],
    ["is a rule that allows them", { permission: { bash: { "*": "allow", "touch one": "ask" } } }],
  ];
  test.each(rejectedSteps)("no ends the step: later calls do not run if there %s", async (_, given) => {
    const config = { ...given, experimental: { continue_loop_on_deny: true } };
    await story({ config, permission: "reject_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const touch = (name: string) => reply.callScript("bash", { command: `touch ${name}` });
      model.reply(reply.together(touch("one"), touch("two"), touch("three"))).reply("Then not.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual(["touch one"]);
      expect(model.requests[1]?.toolResults).toEqual([
        expect.stringMatching(/^Not run\. The user rejected this call/),
        "Not run. The user rejected another call of this step. Ask what to do instead.",
        "Not run. The user rejected another call of this step. Ask what to do instead.",
      ]);
      expect(await repository.git("status", "--porcelain")).toBe("");
    });
  });

  test("no rejects the step's other calls too, and none of them runs", async () => {
    await story({ config, permission: "reject_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(both("one.txt", "touch two.txt"));
      await editor.prompt(sessionId, "Go");
      const statuses = toolCalls(editor.updates(sessionId)).map(({ status }) => status);
      expect(statuses).toEqual(["failed", "failed"]);
      expect(await repository.git("status", "--porcelain")).toBe("");
    });
  });
});

describe("rules", () => {
  test("answers a denied call with the rule, leaves the file, and continues the turn", async () => {
    const config = { permission: { edit: { "*": "allow", "src/**": "deny" } } };
    await story({ config, files: { "src/a.txt": "one\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("read", { filePath: "src/a.txt" }))
        .reply(reply.call("edit", { filePath: "src/a.txt", oldString: "one", newString: "1" }))
        .reply("Not allowed.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests[2]?.toolResults).toEqual([
        expect.stringMatching(
          /^Not run\. A rule forbids edit for "src\/a\.txt".*edit: "src\/\*\*" is set to deny/,
        ),
      ]);
      expect(await readFile(join(repository.path, "src/a.txt"), "utf8")).toBe("one\n");
    });
  });

  test("a denied part of a command is found after parts that would ask", async () => {
    const config = { permission: { bash: { "*": "ask", "rm *": "deny" } } };
    await story({ config, files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("touch b.txt && rm a.txt")).reply("Not allowed.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toEqual([]);
      expect(await repository.git("status", "--porcelain")).toBe("");
    });
  });

  test("search hides lines of files that need a question, and asks for a named file", async () => {
    const config = { permission: { read: { "keys/*": "deny" } } };
    const files = { ".env": "KEY=1\n", "keys/k.pem": "KEY=2\n", "a.txt": "KEY=3\n" };
    await story({ config, files }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      editor.permission = "allow_once";
      model
        .reply(
          reply.call("grep", { pattern: "KEY" }),
          reply.call("grep", { pattern: "KEY", path: "keys" }),
          reply.call("grep", { pattern: "KEY", path: ".env" }),
        )
        .reply("Done.");
      await editor.prompt(sessionId, "Search");
      const results = toolCalls(editor.updates(sessionId)).map(({ content }) => JSON.stringify(content));
      expect(results.map((text) => text.match(/KEY=\d/g))).toEqual([["KEY=3"], null, ["KEY=1"]]);
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.locations)).toEqual([
        [{ path: expect.stringMatching(/\.env$/) }],
      ]);
    });
  });

  test("rules for paths apply in any working directory, and the question names it", async () => {
    const deny = (path: string) => ({ [`${path}/*`]: "deny" });
    const config = {
      experimental: { continue_loop_on_deny: true },
      permission: { read: deny("keys"), edit: deny("locked"), bash: { "./run.sh": "ask" } },
    };
    const files = { "keys/k": "KEY=1\n", "locked/l": "one\n", "sub/run.sh": "echo KEY=2\n", "run.sh": "\n" };
    await story({ config, files }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      editor.permission = "reject_once";
      const inFolder = (command: string, workdir: string) => reply.callScript("bash", { command, workdir });
      const calls = [
        inFolder("cat k", "keys"),
        inFolder("cat ../keys/k", "sub"),
        inFolder("echo x > made", "locked"),
        inFolder("rm -r ../locked", "sub"),
        inFolder("./run.sh", "sub"),
      ];
      model.reply(reply.together(...calls)).reply("Done.");
      await editor.prompt(sessionId, "Go");
      const results = toolCalls(editor.updates(sessionId));
      expect(results.map(({ status }) => status)).toEqual(calls.map(() => "failed"));
      expect(JSON.stringify(results)).not.toContain("KEY=");
      expect(await repository.git("status", "--porcelain")).toBe("");
      expect(JSON.stringify(editor.permissionRequests[0]?.toolCall.content)).toContain("It runs in sub.");
    });
  });

  test("does not run a command if links created meanwhile would redirect it", async () => {
    const config = { experimental: { continue_loop_on_deny: true }, permission: { bash: "ask" } };
    await story({ config, files: { "d/a.txt": "one\n" } }, async ({ editor, model, repository, home }) => {
      const { sessionId } = await editor.newSession();
      const d = join(repository.path, "d");
      editor.permission = async () => {
        await rm(d, { recursive: true, force: true });
        await symlink(home.path, d);
        return "allow_once" as const;
      };
      for (const input of [{ command: "echo x > made", workdir: "d" }, { command: "echo x > d/made" }]) {
        await rm(d, { recursive: true, force: true });
        await mkdir(d);
        model.reply(reply.call("bash", input)).reply("Done.");
        await editor.prompt(sessionId, "Go");
      }
      const calls = toolCalls(editor.updates(sessionId));
      expect(calls.map(({ status }) => status)).toEqual(["failed", "failed"]);
      expect(await readdir(home.path)).not.toContain("made");
    });
  });

  test("a file that may not be read cannot be attached either; one that asks can", async () => {
    const config = { permission: { read: { "*.pem": "deny" } } };
    const files = { "key.pem": "hush\n", ".env": "SHOWN=1\n" };
    await story({ config, files }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Seen.");
      const link = (name: string) =>
        ({ type: "resource_link", name, uri: `file://${join(repository.path, name)}` }) as const;
      await editor.prompt(sessionId, [{ type: "text", text: "Look" }, link("key.pem"), link(".env")]);
      const notice = JSON.stringify(model.requests.at(-1)?.body.messages);
      expect(notice).not.toContain("hush");
      expect(notice).toContain("SHOWN=1");
    });
  });

  test("a tool that is always denied is not offered", async () => {
    await story({ config: { permission: { bash: "deny" } } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      expect(model.requests[0]?.toolNames).not.toContain("bash");
    });
  });

  test("always never lifts a deny", async () => {
    const config = { permission: { bash: { "*": "ask", "git push *": "deny" } } };
    await story({ config, permission: "allow_always" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(bash("git status")).reply(bash("git push origin main")).reply("No.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(1);
      expect(model.requests[2]?.toolResults).toEqual([
        expect.stringMatching(/^Not run\. A rule forbids bash/),
      ]);
    });
  });

  test.each([
    ["read", reply.call("read", { filePath: ".env" })],
    ["cat", bash("cat .env")],
  ])("the file .env needs a question for %s", async (_, step) => {
    const config = { experimental: { continue_loop_on_deny: true } };
    const files = { ".env": "SECRET=hush\n" };
    await story({ config, files, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(step).reply("No.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(1);
      expect(JSON.stringify(toList(model.requests[1]?.body.messages))).not.toContain("hush");
    });
  });

  test("a path outside the workspace needs a question for reading and writing", async () => {
    const config = { experimental: { continue_loop_on_deny: true } };
    await story({ config, permission: "reject_once" }, async ({ editor, model, home }) => {
      await home.write({ "private.txt": "hush\n" });
      const { sessionId } = await editor.newSession();
      const inside = join(home.path, "private.txt");
      model
        .reply(reply.call("read", { filePath: inside }))
        .reply(reply.call("write", { filePath: join(home.path, "new.txt"), content: "x" }))
        .reply(bash(`cat ${toSlashes(inside)}`))
        .reply(bash(`echo x > ${toSlashes(join(home.path, "new.txt"))}`))
        .reply("No.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(4);
      expect(JSON.stringify(model.requests.map(({ body }) => body.messages))).not.toContain("hush");
      await expect(readFile(join(home.path, "new.txt"))).rejects.toThrow();
    });
  });
});

describe("plan mode", () => {
  test.each([
    "echo x > f",
    "touch f",
    "sed -i s/one/1/ a.txt",
    "git commit -am x",
    "find . -delete",
    "sort -o a.txt a.txt",
  ])("%s changes nothing", async (command) => {
    const config = { experimental: { continue_loop_on_deny: true } };
    const files = { "a.txt": "one\n" };
    await story({ config, files, permission: "reject_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      model.reply(bash(command)).reply("I only plan.");
      await editor.prompt(sessionId, "Go");
      expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ title: command, status: "failed" }]);
      expect(await repository.git("status", "--porcelain")).toBe("");
      expect(await repository.git("log", "--oneline")).toMatch(/^\w+ First$/);
    });
  });

  test("reads without asking, and edits nothing", async () => {
    await story({ files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      model
        .reply(bash("git log --oneline && cat a.txt | wc -l"))
        .reply(reply.call("write", { filePath: "b.txt", content: "x" }))
        .reply("I only plan.");
      await editor.prompt(sessionId, "Go");
      expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual([
        "completed",
        "failed",
      ]);
      expect(await repository.git("status", "--porcelain")).toBe("");
    });
  });
});
