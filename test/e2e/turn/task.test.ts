import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { plain, zedLike } from "../../support/editor/clients.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, shown, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const task = (prompt: string, more: Record<string, unknown> = {}) =>
  reply.callScript("task", { description: prompt, prompt, subagent_type: "general", ...more });

/** A child's first request, and its later ones. */
const begins = (prompt: string) => (request: ModelRequest) =>
  request.userText.includes(prompt) && request.toolResults.length === 0;
const goesOn = (prompt: string) => (request: ModelRequest) =>
  request.userText.includes(prompt) && request.toolResults.length > 0;

const report = (text: string) =>
  expect.stringMatching(
    new RegExp(`^${text}\n\n<task_metadata>\ntask_id: ses_\\w+\nagent: \\w+\nstate: \\w+\n</task_metadata>$`),
  );
const allowBash = { permission: { bash: "allow" } } as const;
const taskIdIn = (result: string | undefined) => /task_id: (\S+)/.exec(result ?? "")?.[1];

describe("a task", () => {
  test("runs in a child session, shows its steps on the card and reports to the model", async () => {
    await story({ files: { "a.txt": "one\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const isSeen = reply.gate();
      model.reply(reply.together(task("Count the lines")));
      model.when(begins("Count the lines"), reply.call("read", { filePath: "a.txt" }));
      model.when(goesOn("Count the lines"), [isSeen, "There is one line."]);
      model.reply("It has one line.");
      const turn = editor.prompt(sessionId, "How long is it?");
      await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("→ Read a.txt"));
      isSeen.release();
      expect(await turn).toMatchObject({ stopReason: "end_turn" });
      const [first, child] = model.requests;
      const description = descriptionOf("task", first);
      expect(description).toContain("\n- explore: ");
      expect(description).toContain("\n- general: ");
      expect(description).not.toMatch(/\n- (?:build|plan|title): /);
      const offered = new Set(child?.toolNames);
      for (const name of ["task", "todowrite", "todoread", "question", "plan_enter", "plan_exit"])
        expect(offered).not.toContain(name);
      expect(model.requests.at(-1)?.toolResults).toEqual([report("There is one line\\.")]);
      expect(toolCalls(editor.updates(sessionId))).toEqual([
        expect.objectContaining({
          title: "Count the lines (@general)",
          kind: "think",
          status: "completed",
          content: [{ type: "content", content: { type: "text", text: "There is one line." } }],
        }),
      ]);
      expect(agentText(editor.updates(sessionId))).toBe("It has one line.");
      expect((await editor.list()).sessions.map((one) => one.sessionId)).toEqual([sessionId]);
    });
  });

  test("runs in parallel; its question names the agent and belongs to the session", async () => {
    const config = { permission: { bash: "ask" } };
    await story({ config }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const otherIsDone = Promise.withResolvers<void>();
      editor.permission = async () => {
        await otherIsDone.promise;
        return "allow_once" as const;
      };
      model.reply(
        reply.together(task("Print it"), task("Say it", { subagent_type: "explore", task_id: "" })),
      );
      model.when(begins("Print it"), reply.call("bash", { command: "echo printed" }));
      model.when(goesOn("Print it"), "Printed.");
      model.when(begins("Say it"), "Said.");
      model.reply("Both are done.");
      const turn = editor.prompt(sessionId, "Do both");
      await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes('"Said."'));
      expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toContain("in_progress");
      otherIsDone.resolve();
      await turn;
      expect(model.requests.at(-1)?.toolResults).toEqual([report("Printed\\."), report("Said\\.")]);
      const [requested, ...others] = editor.permissionRequests;
      expect(others).toEqual([]);
      expect(requested).toMatchObject({ sessionId, toolCall: { title: "@general: echo printed" } });
      expect(toolCalls(editor.updates(sessionId)).map(({ title, status }) => [title, status])).toEqual([
        ["Print it (@general)", "completed"],
        ["Say it (@explore)", "completed"],
        ["@general: echo printed", "completed"],
      ]);
    });
  });

  test("that waits for an answer ends with its parent's cancel and starts no request", async () => {
    const config = { permission: { bash: "ask" } };
    await story({ config, permission: "never" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.together(task("Print it")));
      model.when(begins("Print it"), reply.call("bash", { command: "echo printed" }));
      const turn = editor.prompt(sessionId, "Do it");
      await editor.permissionRequest(1);
      const before = Date.now();
      await editor.cancel(sessionId);
      expect(await turn).toMatchObject({ stopReason: "cancelled" });
      expect(Date.now() - before).toBeLessThan(2_000);
      expect(model.requests).toHaveLength(2);
      expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual(["failed", "failed"]);
      model.reply("Here.");
      expect(await editor.prompt(sessionId, "Still there?")).toMatchObject({ stopReason: "end_turn" });
    });
  });

  test("may use a hidden agent, which no list names", async () => {
    const helper = { mode: "subagent", hidden: true, description: "Counts quietly." };
    await story({ config: { agent: { helper } } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const hidden = { description: "Count", prompt: "Count it", subagent_type: "helper" };
      model.reply(reply.call("task", hidden));
      model.when(begins("Count it"), "Three.");
      model.reply("It is three.");
      await editor.prompt(sessionId, "@helper count it");
      expect(JSON.stringify(model.requests[0]?.messages)).toContain("named the agent helper");
      expect(JSON.stringify(model.requests[0])).not.toContain("Counts quietly.");
      expect(model.requests.at(-1)?.toolResults).toEqual([
        expect.stringMatching(/^Three\.[^]*agent: helper\nstate: finished/),
      ]);
    });
  });

  test("whose question is rejected ends, and the model reads why", async () => {
    const config = { permission: { bash: "ask" } };
    await story({ config, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.together(task("Print it")));
      model.when(begins("Print it"), reply.call("bash", { command: "echo printed" }));
      model.reply("You did not want that.");
      await editor.prompt(sessionId, "Do it");
      expect(model.requests.at(-1)?.toolResults).toEqual([
        expect.stringMatching(/^The user rejected "echo printed", which ended the task\.[^]*state: stopped/),
      ]);
    });
  });

  test("continues if the editor fails to answer its question, without claiming a refusal", async () => {
    const config = { permission: { bash: "ask" } };
    await story({ config, permission: "never" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.together(task("Print it")));
      model.when(begins("Print it"), reply.call("bash", { command: "echo printed" }));
      model.when(
        ({ toolResults }) => toolResults.at(-1)?.startsWith("Not run") ?? false,
        "It could not be asked.",
      );
      model.reply("You could not be asked.");
      const turn = editor.prompt(sessionId, "Do it");
      const requested = await editor.waitForEntry(
        ({ message }) => message?.kind === "request" && message.method === "session/request_permission",
        "the question",
      );
      const id = requested.message?.kind === "request" ? requested.message.id : null;
      await editor.writeLine({ jsonrpc: "2.0", id, error: { code: -32603, message: "The dialog broke" } });
      await turn;
      expect(model.requests.at(-1)?.toolResults).toEqual([
        expect.stringMatching(/^It could not be asked\.[^]*state: finished/),
      ]);
    });
  });

  test("continues under its id with its history, only from its own session", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.together(task("Find it")));
      model.when(begins("Find it"), "Found in a.ts.");
      model.replyWith(({ toolResults }) =>
        reply.together(task("And the tests?", { task_id: taskIdIn(toolResults[0]) })),
      );
      model.when(begins("And the tests?"), "In a.test.ts.");
      model.replyWith(() =>
        reply.together(task("Hello", { session_id: sessionId }), task("Hello", { task_id: "ses_0" })),
      );
      model.reply("Done.");
      await editor.prompt(sessionId, "Find both");
      const resumed = model.requests.find(begins("And the tests?"));
      expect(JSON.stringify(resumed?.messages)).toContain("Found in a.ts.");
      expect(model.requests.at(-1)?.toolResults).toEqual([
        `Task "${sessionId}" not found in this session. Call task without task_id to start a new one.`,
        'Task "ses_0" not found in this session. Call task without task_id to start a new one.',
      ]);
    });
  });

  test("attaches no file that its prompt names with @, since no user was asked", async () => {
    await story({ files: { ".env": "KEY=hidden-value\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.together(task("Sum up @.env")));
      model.when(begins("Sum up @.env"), "I have not seen it.");
      model.reply("Nobody has.");
      await editor.prompt(sessionId, "Go on.");
      expect(model.requests.length).toBe(3);
      expect(JSON.stringify(model.requests)).not.toContain("hidden-value");
    });
  });

  test("has no more permissions than its parent", async () => {
    const agent = {
      writer: { mode: "subagent", description: "Writes.", permission: { edit: "allow", bash: "allow" } },
    };
    const permission = { bash: { "*": "allow", "git push *": "deny" }, task: { "*": "allow" } };
    await story(
      { config: { agent, permission }, permission: "reject_once" },
      async ({ editor, model, repository }) => {
        const { sessionId } = await editor.newSession();
        await editor.setMode(sessionId, "plan");
        model.reply(
          reply.together(
            task("Write it", { subagent_type: "writer" }),
            task("Survey it", { subagent_type: "explore" }),
          ),
        );
        model.when(begins("Survey it"), reply.call("bash", { command: "echo x > x.txt" }));
        model.when(goesOn("Survey it"), "I could not.");
        model.reply("I may not.");
        await editor.prompt(sessionId, "Write a file");
        expect(model.requests.at(-1)?.toolResults).toEqual([
          expect.stringContaining('A rule forbids task for "writer"'),
          expect.stringContaining("state: "),
        ]);
        await expect(readFile(repository.path + "/x.txt")).rejects.toThrow("ENOENT");

        await editor.setMode(sessionId, "build");
        model.reply(reply.together(task("Push it", { subagent_type: "writer" })));
        model.when(begins("Push it"), reply.call("bash", { command: "git push origin main" }));
        model.when(goesOn("Push it"), "It is forbidden.");
        model.reply("It is forbidden.");
        await editor.prompt(sessionId, "Push");
        expect(model.requests.find(goesOn("Push it"))?.toolResults).toEqual([
          expect.stringContaining("A rule forbids bash"),
        ]);
      },
    );
  });

  test("counts in cost and usage, and the cost limit applies to it", async () => {
    const priced = {
      test: {
        models: { scripted: { cost: { input: 10, output: 0 }, limit: { context: 1e6, output: 1e3 } } },
      },
    };
    const env = {
      FAIRLEAD_CONFIG_CONTENT: JSON.stringify({ provider: priced, max_cost: { session: 3 } }),
    };
    await story({ env, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const used = reply.usage({ promptTokens: 100_000, completionTokens: 0 });
      model.reply([reply.together(task("Dig")), used]);
      model.when(begins("Dig"), [reply.call("glob", { pattern: "*" }), used]);
      model.when(goesOn("Dig"), ["Nothing there.", used]);
      const answer = await editor.prompt(sessionId, "Please");
      expect(
        editor.permissionRequests.map(({ sessionId: under, toolCall }) => [under, toolCall.title]),
      ).toEqual([[sessionId, expect.stringMatching(/^This session has cost \$3\.\d+\. Continue/)]]);
      expect(answer).toMatchObject({ _meta: { usage: { inputTokens: 300_000 } } });
      expect(editor.updates(sessionId, "usage_update").at(-1)?.cost?.amount).toBeGreaterThanOrEqual(3);
    });
  });

  test("has its changes shown on its card, and they are undone with the turn", async () => {
    await story({ files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.together(task("Change it")));
      model.when(begins("Change it"), [
        reply.together(
          reply.callScript("read", { filePath: "a.txt" }),
          reply.callScript("write", { filePath: "b.txt", content: "new\n" }),
        ),
      ]);
      let edits = 0;
      model.when(goesOn("Change it"), () =>
        edits++ < 2
          ? reply.call("edit", {
              filePath: "a.txt",
              oldString: edits === 1 ? "one" : "two",
              newString: edits === 1 ? "two" : "three",
            })
          : "Changed.",
      );
      model.reply("Done.");
      await editor.prompt(sessionId, "Please");
      const [card] = toolCalls(editor.updates(sessionId));
      expect(card?.content).toMatchObject([
        { type: "diff", path: `${repository.path}/b.txt`, oldText: null, newText: "new\n" },
        { type: "diff", path: `${repository.path}/a.txt`, oldText: "one\n", newText: "three\n" },
        { type: "content", content: { text: "Changed." } },
      ]);
      await editor.prompt(sessionId, "/undo");
      expect(await readFile(`${repository.path}/a.txt`, "utf8")).toBe("one\n");
      await expect(readFile(`${repository.path}/b.txt`)).rejects.toThrow("ENOENT");
    });
  });

  test("starts without asking when the user names the agent, unless a rule denies it", async () => {
    const permission = { task: { "*": "ask", general: "deny" } };
    await story({ config: { permission } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.together(task("Find it", { subagent_type: "explore" })));
      model.when(begins("Find it"), "Found.");
      model.reply("Found.");
      await editor.prompt(sessionId, "@explore where is it? Not by mail to a@explore.");
      expect(model.requests[0]?.userText).toContain('subagent_type "explore"');
      expect(model.requests.at(-1)?.toolResults).toEqual([report("Found\\.")]);
      model.reply(reply.together(task("Find it"))).reply("No.");
      await editor.prompt(sessionId, "@general do it");
      expect(model.requests.at(-1)?.toolResults).toEqual([
        expect.stringContaining('There is no agent "general" for tasks'),
      ]);
    });
  });

  test("runs a command with subtask, in the command's model", async () => {
    const files = {
      ".opencode/command/audit.md":
        "---\ndescription: Audit.\nagent: explore\nmodel: test/other\n---\nAudit $ARGUMENTS.",
      ".opencode/command/dig.md": "---\nsubtask: true\n---\nDig for $1.",
    };
    const other = { provider: { test: { models: { other: { name: "Other" } } } } };
    const env = { FAIRLEAD_CONFIG_CONTENT: JSON.stringify(other) };
    await story({ files, env }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.when(begins("Audit the door."), "The door is open.");
      model.reply("It is open.");
      await editor.prompt(sessionId, "/audit the door");
      expect(model.requests.map(({ body }) => body["model"])).toEqual(["other", "scripted"]);
      expect(model.requests[1]?.toolResults).toEqual([report("The door is open\\.")]);
      model.when(begins("Dig for gold."), "No gold.");
      model.reply("None.");
      await editor.prompt(sessionId, "/dig gold");
      expect(toolCalls(editor.updates(sessionId)).map(({ title, status }) => [title, status])).toEqual([
        ["/audit (@explore)", "completed"],
        ["/dig (@build)", "completed"],
      ]);
      expect(agentText(editor.updates(sessionId))).toBe("It is open.None.");
    });
  });

  test("interrupted by the program's end can continue, and its changes can be undone", async () => {
    await story({}, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const isWritten = reply.gate();
      model.reply(reply.together(task("Write it")));
      model.when(begins("Write it"), reply.call("write", { filePath: "b.txt", content: "new\n" }));
      model.when(goesOn("Write it"), [isWritten, "Never said."]);
      void editor.prompt(sessionId, "Please").catch(() => undefined);
      await isWritten.reached();
      await editor.kill();
      await editor.restart();
      await editor.initialize();
      await editor.load(sessionId);
      const calls = toolCalls(editor.updates(sessionId));
      expect(calls.map(({ title, status }) => [title, status])).toEqual([["Write it (@general)", "failed"]]);
      await editor.prompt(sessionId, "/undo");
      await expect(readFile(`${repository.path}/b.txt`)).rejects.toThrow("ENOENT");
    });
  });

  test("has its commands' changes undone with the turn; unknown changes are named", async () => {
    await story({ files: { a: "one\n" }, config: allowBash }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const command = "echo two > a && git -c user.name=a -c user.email=a@example.com commit -qam two";
      model.reply(reply.together(task("Commit it")));
      model.when(begins("Commit it"), reply.call("bash", { command }));
      model.when(goesOn("Commit it"), "Committed.");
      model.reply("Done.");
      await editor.prompt(sessionId, "Please");
      await editor.prompt(sessionId, "/undo");
      expect(await readFile(`${repository.path}/a`, "utf8")).toBe("one\n");
      const shown = agentText(editor.updates(sessionId));
      expect(shown).toMatch(/- `echo two > a && git .*`: git's HEAD moved from \w+ \(\w{8}\) to/);
    });
  });

  test("interrupted by the program's end during a command is named by undo", async () => {
    await story({ files: { a: "one\n" }, config: allowBash }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const command = "echo more >> a; sleep 600";
      model.reply(reply.together(task("Run it")));
      model.when(begins("Run it"), reply.call("bash", { command }));
      void editor.prompt(sessionId, "Please").catch(() => undefined);
      await expect.poll(() => readFile(`${repository.path}/a`, "utf8")).toBe("one\nmore\n");
      await editor.kill();
      await editor.restart();
      await editor.initialize();
      await editor.load(sessionId);
      await editor.prompt(sessionId, "/undo");
      expect(agentText(editor.updates(sessionId))).toContain(
        `- \`${command}\`: the program ended while it ran, so its changes are unknown`,
      );
    });
  });

  test("ends at its step limit, or after a time without activity", async () => {
    const config = {
      subagent_idle_seconds: 0.3,
      agent: { quick: { mode: "subagent", description: "Is quick.", steps: 2 } },
    };
    await story({ config }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.together(task("Dig", { subagent_type: "quick" }), task("Wait")));
      model.when(begins("Dig"), reply.call("glob", { pattern: "*" }));
      model.when(({ userText }) => userText.includes("used all of its steps"), "Not done.");
      model.when(begins("Wait"), [reply.say("I wait."), reply.stall()]);
      model.reply("Both were cut short.");
      await editor.prompt(sessionId, "Do both");
      expect(model.requests.at(-1)?.toolResults).toEqual([
        expect.stringMatching(/limit of steps\.\n\nIts last message:\nNot done\.[^]*state: cutShort/),
        expect.stringMatching(
          /nothing happened in it for 0\.3 seconds\.\n\nIts last message:\nI wait\.[^]*state: cutShort/,
        ),
      ]);
    });
  });
});

describe("the editor", () => {
  const kinds = { plain, "one that draws calls below calls": zedLike };
  for (const [name, client] of Object.entries(kinds)) {
    test(`that is ${name} receives a loaded task as in the live session`, async () => {
      const config = { permission: { bash: "ask" } };
      await story({ client: client(), config, permission: "allow_once" }, async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        model.reply(reply.together(task("Print it")));
        model.when(begins("Print it"), reply.call("bash", { command: "echo printed" }));
        model.when(goesOn("Print it"), "Printed.");
        model.reply("Done.");
        await editor.prompt(sessionId, "Do it");
        const live = shown(editor.updates(sessionId)).map(withoutOutput);
        const nested = client === zedLike;
        expect(toolCalls(editor.updates(sessionId)).map(({ title }) => title)).toEqual([
          "Print it (@general)",
          nested ? "echo printed" : "@general: echo printed",
        ]);
        await editor.restart();
        await editor.initialize();
        await editor.load(sessionId);
        const replayed = shown(editor.updates(sessionId)).map(withoutOutput);
        expect(replayed.slice(1)).toEqual(live);
        const below = toolCalls(editor.updates(sessionId)).at(-1)?._meta?.["claudeCode"];
        const [card] = toolCalls(editor.updates(sessionId));
        expect(below).toEqual({ parentToolUseId: card?.toolCallId });
      });
    });
  }
});

/** Terminal output arrives in chunks during the call, and complete afterwards. */
function withoutOutput(item: unknown): unknown {
  if (typeof item !== "object" || item === null || !("_meta" in item)) return item;
  const { _meta, ...rest } = item;
  return rest;
}

function descriptionOf(name: string, request: ModelRequest | undefined): string {
  const tools = request?.body["tools"];
  const found: unknown = Array.isArray(tools)
    ? tools.find((tool) => JSON.stringify(tool).includes(`"name":"${name}"`))
    : undefined;
  return JSON.parse(JSON.stringify(found ?? { function: {} })).function.description ?? "";
}
