import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { storiesOfOneAgent, type StoryContext } from "../../support/editor/story.ts";
import { toText } from "../../support/json.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const task = (prompt: string, more: Record<string, unknown> = {}) =>
  reply.call("task", { description: prompt, prompt, subagent_type: "general", background: true, ...more });
const job = (action: string, more: Record<string, unknown> = {}) => reply.call("job", { action, ...more });

/** Requests of a child session: its first, and its later ones. */
const isOf = (prompt: string) => (request: ModelRequest) => firstText(request).includes(prompt);
const begins = (prompt: string) => (request: ModelRequest) =>
  isOf(prompt)(request) && request.toolResults.length === 0;
const goesOn = (prompt: string) => (request: ModelRequest) =>
  isOf(prompt)(request) && request.toolResults.length > 0;
const firstText = ({ messages }: ModelRequest) =>
  JSON.stringify(messages.find((message) => JSON.stringify(message).includes('"user"')) ?? "");

const resultsOf = ({ model }: StoryContext): string[] =>
  model.requests.flatMap(({ toolResults }) => toolResults.map((result) => toText(result) ?? ""));
const hasStatus = (status: string) => (update: object) => "status" in update && update.status === status;
const lastMessage = ({ model }: StoryContext) => JSON.stringify(model.requests.at(-1)?.messages.at(-1));

test("a background task asks and reports after the turn that started it", async () => {
  await story({ config: { permission: { bash: "ask" } } }, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    const mayAnswer = Promise.withResolvers<void>();
    editor.permission = async () => {
      await mayAnswer.promise;
      return "allow_once" as const;
    };
    const isAsked = reply.gate();
    model.when(begins("Print it"), reply.call("bash", { command: "echo printed" }));
    model.when(goesOn("Print it"), "It printed what it should.");
    model.reply(task("Print it")).reply(isAsked, "It works on it.");
    const turn = editor.prompt(sessionId, "Have it printed");
    await editor.permissionRequest(1);
    isAsked.release();
    expect(await turn).toMatchObject({ stopReason: "end_turn" });
    expect(resultsOf(context)[0]).toMatch(
      /^The task runs in the background as job 1\. [^]*task_id: ses_\w+\nagent: general\nstate: running\n/,
    );
    expect(editor.permissionRequests).toMatchObject([
      { sessionId, toolCall: { title: "@general: echo printed" } },
    ]);
    const [card] = toolCalls(editor.updates(sessionId));
    expect(card).toMatchObject({ title: "Print it (@general)", kind: "think", status: "in_progress" });
    await editor.prompt(sessionId, "/jobs");
    expect(agentText(editor.updates(sessionId))).toMatch(/- \*\*1\*\* Print it \(@general\): runs for \d+ s/);
    mayAnswer.resolve();
    await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("It printed what it should"));
    await editor.waitFor(
      sessionId,
      (update) =>
        hasStatus("completed")(update) && "toolCallId" in update && update.toolCallId === card?.toolCallId,
    );
    expect(toolCalls(editor.updates(sessionId)).map(({ title, status }) => [title, status])).toEqual([
      ["Print it (@general)", "completed"],
      ["@general: echo printed", "completed"],
    ]);
    const { length } = model.requests;
    model.reply("I see.").reply("Nothing new.");
    await editor.prompt(sessionId, "And now?");
    expect(model.requests).toHaveLength(length + 1);
    expect(JSON.stringify(editor.updates(sessionId))).toContain(
      "Job 1 (Print it (@general)) has finished. The model learns of it with your next message.",
    );
    expect(lastMessage(context)).toMatch(
      /Job 1 \(Print it \(@general\)\) has finished\. Its report:\\n\\nIt printed what it should\.[^]*task_id: ses_/,
    );
    await editor.prompt(sessionId, "Again");
    expect(JSON.stringify(model.requests.at(-1)?.messages).match(/has finished\. Its report/g)).toHaveLength(
      1,
    );
  });
});

test("a background task asks after its turn was cancelled", async () => {
  await story({ config: { permission: { bash: "ask" } }, permission: "allow_once" }, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    const mayAsk = reply.gate();
    model.when(begins("Print it"), [mayAsk, reply.call("bash", { command: "echo printed" })]);
    model.when(goesOn("Print it"), "Printed.");
    model.reply(task("Print it")).reply(reply.say("It works"), reply.gate());
    const turn = editor.prompt(sessionId, "Have it printed");
    await editor.waitForKind(sessionId, "agent_message_chunk");
    await editor.cancel(sessionId);
    expect(await turn).toMatchObject({ stopReason: "cancelled" });
    mayAsk.release();
    await editor.permissionRequest(1);
    expect(editor.permissionRequests).toMatchObject([
      { sessionId, toolCall: { title: "@general: echo printed" } },
    ]);
    await model.request(4);
    model.reply("I see.");
    await editor.prompt(sessionId, "And now?");
    await editor.waitFor(sessionId, hasStatus("completed"));
  });
});

test("the report of a task that ends within the turn comes with the next step", async () => {
  await story({}, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    const [mayEnd, hasEnded] = [reply.gate(), reply.gate()];
    model.when(begins("Look"), [mayEnd, "Nothing there."]);
    model
      .reply(task("Look"))
      .reply(hasEnded, reply.call("bash", { command: "echo other" }))
      .reply("Seen.");
    const turn = editor.prompt(sessionId, "Go");
    await model.request(3);
    mayEnd.release();
    await editor.waitFor(sessionId, hasStatus("completed"));
    hasEnded.release();
    await turn;
    expect(lastMessage(context)).toContain("has finished. Its report:\\n\\nNothing there.");
    expect(JSON.stringify(editor.updates(sessionId))).not.toContain("The model learns of it");
  });
});

test("background tasks are limited, read, awaited and stopped, and survive a cancel", async () => {
  await story({ config: { jobs: { tasks: 1 }, permission: { bash: "allow" } } }, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    const never = reply.gate();
    model.when(begins("Wait"), reply.call("bash", { command: "echo waited" }));
    model.when(goesOn("Wait"), [never, "Waited."]);
    model
      .reply(
        reply.together(
          reply.callScript("task", {
            description: "Wait",
            prompt: "Wait",
            subagent_type: "general",
            background: true,
          }),
          reply.callScript("task", {
            description: "Two",
            prompt: "Two",
            subagent_type: "general",
            background: true,
          }),
        ),
      )
      .reply(job("wait", { pattern: "echo waited" }))
      .reply(job("write", { text: "Hello" }))
      .reply(reply.say("Waiting"), reply.gate());
    const turn = editor.prompt(sessionId, "Go");
    await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("Waiting"));
    await editor.cancel(sessionId);
    expect(await turn).toMatchObject({ stopReason: "cancelled" });
    const results = resultsOf(context);
    expect(results).toContain(
      "Not started. 1 background tasks already run, as jobs 1, and no more are allowed. Stop one, or wait for its end.",
    );
    expect(results.join("\n")).toMatch(/→ echo waited\n[^]*\[Job 1 has run for /);
    expect(results.join("\n")).toContain("Job 1 is a task, which takes no input.");
    model.reply(job("stop")).reply("Stopped.");
    await editor.prompt(sessionId, "Stop it");
    expect(resultsOf(context).at(-1)).toMatch(
      /The task was cancelled\.[^]*\[Job 1 was stopped by the model after /,
    );
    expect(toolCalls(editor.updates(sessionId))[0]).toMatchObject({ status: "completed" });
  });
});

test("the changes of a background task are undone with its turn, but not while it runs", async () => {
  const config = { permission: { edit: "allow" } } as const;
  await story({ config, files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
    const { sessionId } = await editor.newSession();
    const mayEnd = reply.gate();
    model.when(begins("Change it"), reply.call("write", { filePath: "b.txt", content: "new\n" }));
    model.when(goesOn("Change it"), [mayEnd, "Changed."]);
    model.reply(task("Change it")).reply("It works.");
    await editor.prompt(sessionId, "Go");
    await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("→ Write b.txt"));
    await editor.prompt(sessionId, "/undo");
    expect(agentText(editor.updates(sessionId))).toContain(
      "Nothing is undone yet: job 1 (Change it (@general)) still works and may change files.",
    );
    mayEnd.release();
    await editor.waitFor(sessionId, hasStatus("completed"));
    expect(await readFile(join(repository.path, "b.txt"), "utf8")).toBe("new\n");
    expect(JSON.stringify(toolCalls(editor.updates(sessionId))[0]?.content)).toContain("b.txt");
    await editor.prompt(sessionId, "/undo");
    await expect(readFile(join(repository.path, "b.txt"), "utf8")).rejects.toThrow("ENOENT");
  });
});

test("changes of tasks that a task started in the background are undone", async () => {
  const boss = { mode: "subagent", description: "Leads.", permission: { task: "allow" } };
  const config = { agent: { boss }, permission: { edit: "allow", task: "allow" }, subagent_depth: 2 };
  await story({ config }, async ({ editor, model, repository }) => {
    const { sessionId } = await editor.newSession();
    model.when(begins("Write it"), reply.call("write", { filePath: "b.txt", content: "new\n" }));
    model.when(goesOn("Write it"), "Written.");
    model.when(begins("Lead it"), task("Write it"));
    model.when(
      (request) =>
        goesOn("Lead it")(request) && request.toolResults.join().includes("runs in the background"),
      job("wait"),
    );
    model.when(goesOn("Lead it"), "Led.");
    model.reply(task("Lead it", { subagent_type: "boss", background: false })).reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(await readFile(join(repository.path, "b.txt"), "utf8")).toBe("new\n");
    await editor.prompt(sessionId, "/undo");
    await expect(readFile(join(repository.path, "b.txt"), "utf8")).rejects.toThrow("ENOENT");
  });
});

test("a task that ends with its session is reported when the session is loaded", async () => {
  await story({}, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    model.when(begins("Wait"), [reply.say("Half of it."), reply.gate()]);
    model.reply(task("Wait")).reply("It works.");
    await editor.prompt(sessionId, "Go");
    await model.request(3);
    await editor.closeSession(sessionId);
    await editor.load(sessionId);
    expect(toolCalls(editor.updates(sessionId)).at(-1)).toMatchObject({ status: "completed" });
    model.reply("I see.");
    await editor.prompt(sessionId, "And now?");
    expect(lastMessage(context)).toMatch(
      /was stopped with the session\. Its report:[^]*The task was cancelled\./,
    );
  });
});

test("a task cut off by a kill is reported with its id, and its changes are undone", async () => {
  const config = { permission: { edit: "allow" } } as const;
  await story({ config }, async (context) => {
    const { editor, model, repository } = context;
    const { sessionId } = await editor.newSession();
    model.when(begins("Change it"), reply.call("write", { filePath: "b.txt", content: "new\n" }));
    model.when(goesOn("Change it"), [reply.gate(), "Changed."]);
    model.reply(task("Change it")).reply("It works.");
    await editor.prompt(sessionId, "Go");
    await model.request(4);
    await editor.kill();
    await editor.restart();
    await editor.initialize();
    await editor.load(sessionId);
    expect(toolCalls(editor.updates(sessionId)).at(-1)).toMatchObject({ status: "completed" });
    model.reply("I see.");
    await editor.prompt(sessionId, "And now?");
    expect(JSON.stringify(editor.updates(sessionId))).toContain(
      "Work in the background has ended with the program: Change it (@general).",
    );
    expect(lastMessage(context)).toMatch(
      /ended with the program\. Its report:[^]*The task was cut off[^]*task_id: ses_\w+\\nagent: general\\nstate: interrupted/,
    );
    await editor.prompt(sessionId, "/undo 2");
    await expect(readFile(join(repository.path, "b.txt"), "utf8")).rejects.toThrow("ENOENT");
  });
});
