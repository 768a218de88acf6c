import { fileURLToPath } from "node:url";
import { describe, test } from "vitest";
import { plain, withElicitation, withFs, zedLike, type ClientKind } from "../../support/editor/clients.ts";
import { type DraftOptions, draftStoriesOfOneAgent } from "../../support/editor/draft-editor.ts";
import { waitForEverything } from "../../support/mcp/mcp.ts";
import { expectGolden } from "../../support/wire/golden.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent, type StoryContext, type StoryOptions } from "../../support/editor/story.ts";

const story = storiesOfOneAgent();
const draftStory = draftStoriesOfOneAgent();

const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const ask = { permission: { edit: "ask", bash: "ask" } };
const aFile = { "a.txt": "one\ntwo\n" };
const full = (tokens: number) => reply.usage({ promptTokens: tokens, completionTokens: 10 });
const indent = {
  question: "Tabs or spaces?",
  header: "Indent",
  options: [
    { label: "Tabs", description: "One for each step" },
    { label: "Spaces", description: "" },
  ],
};

const everything = [
  process.execPath,
  fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js")),
];

function withFsAndForms(): ClientKind {
  const [fs, forms] = [withFs(), withElicitation()];
  return { ...fs, ...forms, capabilities: { ...fs.capabilities, ...forms.capabilities } };
}

const clients: readonly [string, () => ClientKind][] = [
  ["plain", plain],
  ["zed", zedLike],
  ["fs-and-forms", withFsAndForms],
];

interface GoldenStory {
  name: string;
  options?: StoryOptions;
  play: (context: StoryContext, sessionId: string) => Promise<unknown>;
}

/**
 * Waits until the model is in the middle of its answer and the client has received the text before that
 * point.
 */
async function cancelAt(
  context: StoryContext,
  sessionId: string,
  text: string,
  reached: () => Promise<unknown>,
) {
  const turn = context.editor.prompt(sessionId, text);
  await reached();
  await context.editor.cancel(sessionId);
  await turn;
}

const backgroundCommand = {
  command: "echo ready; until [ -e go ]; do sleep 0.05; done; exit 3",
  background: true,
};

/** Instead of "sleep 60": on Windows a cancel does not end `sleep`, nor other programs of its bash. */
const longCommand = "until [ -e never ]; do sleep 0.05; done";

/** A background task that starts its work after the turn of its call. */
function backgroundTask({ model }: Pick<StoryContext, "model">) {
  const mayBegin = reply.gate();
  const prompt = "Count the lines of a.txt.";
  model.when(
    ({ messages }) => JSON.stringify(messages[1]).includes(prompt),
    ({ toolResults }) =>
      toolResults.length === 0
        ? [mayBegin, reply.call("bash", { command: "wc -l < a.txt" })]
        : "There are two.",
  );
  const task = { description: "Count lines", prompt, subagent_type: "general", background: true };
  model.reply(reply.call("task", task)).reply("It counts.");
  return mayBegin;
}

/** Has a task count the lines of a file. */
function countLines(model: StoryContext["model"]): void {
  const prompt = "Count the lines of a.txt.";
  model.when(
    ({ userText }) => userText.includes(prompt),
    ({ toolResults }) =>
      toolResults.length === 0 ? reply.call("bash", { command: "wc -l < a.txt" }) : "There are two.",
  );
  model.reply(reply.call("task", { description: "Count lines", prompt, subagent_type: "general" }));
  model.reply("Two lines.");
}

const hasCompleted = (update: object) =>
  "status" in update && update.status === "completed" && "rawOutput" in update;
const hasFailed = (update: object) => "status" in update && update.status === "failed";

const isText = ({ sessionUpdate }: { sessionUpdate: string }) => sessionUpdate === "agent_message_chunk";

const stories: readonly GoldenStory[] = [
  {
    name: "reject",
    options: { files: aFile, config: ask, permission: "reject_once" },
    async play({ editor, model }, sessionId) {
      model
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply(reply.call("edit", { filePath: "a.txt", oldString: "one", newString: "1" }));
      await editor.prompt(sessionId, "Change it");
    },
  },
  {
    name: "always",
    options: { config: ask, permission: "allow_always" },
    async play({ editor, model }, sessionId) {
      model
        .reply(reply.call("bash", { command: "echo one" }))
        .reply(reply.call("bash", { command: "echo two" }))
        .reply("Said both.");
      await editor.prompt(sessionId, "Say both");
    },
  },
  {
    name: "cancel-in-text",
    async play(context, sessionId) {
      context.model.reply(reply.say("Half a sentence"), reply.gate());
      await cancelAt(context, sessionId, "Talk", () => context.editor.waitFor(sessionId, isText));
    },
  },
  {
    name: "cancel-in-tool",
    async play(context, sessionId) {
      context.model.reply(reply.call("bash", { command: `echo be'gun'; ${longCommand}` }));
      const hasBegun = (update: unknown) => JSON.stringify(update).includes("begun");
      await cancelAt(context, sessionId, "Sleep", () => context.editor.waitFor(sessionId, hasBegun));
    },
  },
  {
    name: "cancel-in-question",
    options: { config: ask, permission: "never" },
    async play(context, sessionId) {
      context.model.reply(reply.call("bash", { command: "touch x" }));
      await cancelAt(context, sessionId, "Touch", () => context.editor.permissionRequest(1));
    },
  },
  {
    name: "question",
    options: { permission: "allow_once" },
    async play({ editor, model }, sessionId) {
      model.reply(reply.call("question", { questions: [indent] })).reply("As you say.");
      await editor.prompt(sessionId, "Ask me");
    },
  },
  {
    name: "parallel-tools",
    options: { files: { ...aFile, "b.txt": "three\n" } },
    async play({ editor, model }, sessionId) {
      model
        .reply(
          reply.together(
            reply.callScript("read", { filePath: "a.txt" }),
            reply.callScript("glob", { pattern: "b.*" }),
          ),
        )
        .reply("Looked twice.");
      await editor.prompt(sessionId, "Look");
    },
  },
  {
    name: "rate-limit",
    options: { config: { retry: { delay_ms: 1 } } },
    async play({ editor, model }, sessionId) {
      model.reply(reply.failure(429, "slow down")).reply("Now it works.");
      await editor.prompt(sessionId, "Hi");
    },
  },
  {
    name: "overflow",
    options: { files: aFile, config: { compaction: { reserved: 0 } } },
    async play({ editor, model }, sessionId) {
      model.when(
        ({ userText }) => userText.includes("Summarise"),
        () => [reply.say("We read a.txt."), full(500)],
      );
      model
        .reply(reply.call("read", { filePath: "a.txt" }), full(99_500))
        .reply(reply.say("It has two lines."), full(900));
      await editor.prompt(sessionId, "How many lines?");
    },
  },
  {
    name: "mode-and-model",
    async play({ editor, model }, sessionId) {
      await editor.setMode(sessionId, "plan");
      await editor.setConfigOption(sessionId, "model", "test/scripted");
      await editor.setConfigOption(sessionId, "mode", "build");
      model.reply("In build again.");
      await editor.prompt(sessionId, "Hi");
    },
  },
  {
    name: "load",
    options: { files: aFile },
    async play({ editor, model }, sessionId) {
      model
        .reply(reply.think("A look."), reply.call("read", { filePath: "a.txt" }))
        .reply(reply.call("bash", { command: "echo hi" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Look");
      await editor.load(sessionId);
    },
  },
  {
    name: "command",
    options: {
      files: { ".fairlead/command/greet.md": "---\ndescription: Greets\n---\nGreet $ARGUMENTS warmly.\n" },
    },
    async play({ editor, model }, sessionId) {
      model.reply("Hello Ada!");
      await editor.prompt(sessionId, "/greet Ada");
      await editor.prompt(sessionId, "/cost");
    },
  },
  {
    name: "skill",
    async play({ editor, model }, sessionId) {
      model.reply(reply.call("skill", { name: "code-review" })).reply("I know how to review.");
      await editor.prompt(sessionId, "Learn to review");
    },
  },
  {
    name: "task",
    options: { files: aFile, config: { permission: { bash: "ask" } }, permission: "allow_once" },
    async play({ editor, model }, sessionId) {
      countLines(model);
      await editor.prompt(sessionId, "How long is it?");
      await editor.load(sessionId);
    },
  },
  {
    name: "job",
    async play({ editor, model, repository }, sessionId) {
      model.reply(reply.call("bash", backgroundCommand)).reply("It runs.");
      await editor.prompt(sessionId, "Start it");
      await repository.write({ go: "" });
      await editor.waitFor(sessionId, hasFailed);
      model.reply("It ended.");
      await editor.prompt(sessionId, "And now?");
      await editor.load(sessionId);
    },
  },
  {
    name: "background-task",
    options: { files: aFile, config: { permission: { bash: "ask" } }, permission: "allow_once" },
    async play({ editor, model }, sessionId) {
      const mayBegin = backgroundTask({ model });
      await editor.prompt(sessionId, "How long is it?");
      mayBegin.release();
      await editor.waitFor(sessionId, hasCompleted);
      model.reply("Two lines.");
      await editor.prompt(sessionId, "And now?");
      await editor.load(sessionId);
    },
  },
  {
    name: "mcp",
    options: { config: { mcp: { all: { type: "local", command: everything } } }, permission: "allow_once" },
    async play({ editor, model }, sessionId) {
      await waitForEverything(editor, sessionId, "all");
      model.reply(reply.call("all_echo", { message: "hi" })).reply("It says hi.");
      await editor.prompt(sessionId, "Ask the server");
    },
  },
  {
    name: "image",
    async play({ editor, model }, sessionId) {
      model.reply("A pixel.");
      await editor.prompt(sessionId, [
        { type: "text", text: "What is it?" },
        { type: "image", mimeType: "image/png", data: pixel },
      ]);
      await editor.load(sessionId);
    },
  },
  {
    name: "undo",
    options: { files: aFile, permission: "allow_once" },
    async play({ editor, model }, sessionId) {
      model.reply(reply.call("write", { filePath: "b.txt", content: "new\n" })).reply("Written.");
      await editor.prompt(sessionId, "Write b.txt");
      await editor.prompt(sessionId, "/undo");
    },
  },
];

/** Kinds of version 2 clients, by their capabilities. */
const draftClients: readonly [string, NonNullable<DraftOptions["capabilities"]>][] = [
  ["draft", {}],
  ["draft-forms", { elicitation: { form: {}, url: {} } }],
  ["draft-unattended", { _meta: { unattended: true } }],
];

describe.each(draftClients)("to the client %s of version 2", (kind, capabilities) => {
  test("the story job matches its golden file", async () => {
    await draftStory({ capabilities }, async ({ editor, model, repository, home }) => {
      model.title(reply.gate());
      const sessionId = String((await editor.request("session/new", { cwd: repository.path })).sessionId);
      model.reply(reply.call("bash", backgroundCommand)).reply("It runs.");
      await editor.turn(sessionId, "Start it");
      await repository.write({ go: "" });
      await editor.waitFor(sessionId, hasFailed);
      await editor.waitFor(sessionId, ({ sessionUpdate }) => sessionUpdate === "notice");
      model.reply("It ended.");
      await editor.turn(sessionId, "And now?");
      await expectGolden(`job.${kind}`, editor.wire, { cwd: repository.path, home });
    });
  });

  test("the story task matches its golden file", async () => {
    const config = { permission: { bash: "ask" } };
    const permission = () => ({ outcome: "selected" as const, optionId: "allow_once" });
    const options = { files: aFile, config, capabilities, permission };
    await draftStory(options, async ({ editor, model, repository, home }) => {
      model.title(reply.gate());
      const folders = { cwd: repository.path };
      const sessionId = String((await editor.request("session/new", folders)).sessionId);
      countLines(model);
      await editor.turn(sessionId, "How long is it?");
      const replay = { replayFrom: { type: "start" } };
      await editor.request("session/resume", { sessionId, ...folders, ...replay });
      await expectGolden(`task.${kind}`, editor.wire, { cwd: repository.path, home });
    });
  });

  test("the story background-task matches its golden file", async () => {
    const config = { permission: { bash: "ask" } };
    const permission = () => ({ outcome: "selected" as const, optionId: "allow_once" });
    const options = { files: aFile, config, capabilities, permission };
    await draftStory(options, async ({ editor, model, repository, home }) => {
      model.title(reply.gate());
      const sessionId = String((await editor.request("session/new", { cwd: repository.path })).sessionId);
      const mayBegin = backgroundTask({ model });
      await editor.turn(sessionId, "How long is it?");
      mayBegin.release();
      await editor.waitFor(sessionId, hasCompleted);
      await editor.waitFor(sessionId, ({ sessionUpdate }) => sessionUpdate === "notice");
      model.reply("Two lines.");
      await editor.turn(sessionId, "And now?");
      await expectGolden(`background-task.${kind}`, editor.wire, { cwd: repository.path, home });
    });
  });
});

describe.each(clients)("to the client %s", (kind, client) => {
  test.each(stories)("the story $name matches its golden file", async ({ name, options, play }) => {
    await story({ ...options, client: client() }, async (context) => {
      const { editor, model, repository, home } = context;
      // A generated title arrives at any time, which would change the order on the wire.
      model.title(reply.gate());
      const { sessionId } = await editor.newSession();
      await editor.waitForKind(sessionId, "available_commands_update");
      await play(context, sessionId);
      const names = { [longCommand]: "sleep 60" };
      await expectGolden(`${name}.${kind}`, editor.wire, { cwd: repository.path, home: home.path, names });
    });
  });
});
