import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ToolCall } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { zedLike } from "../../support/editor/clients.ts";
import { draftStoriesOfOneAgent } from "../../support/editor/draft-editor.ts";
import type { Editor } from "../../support/editor/editor.ts";
import { storiesOfOneAgent, type StoryContext, type StoryOptions } from "../../support/editor/story.ts";
import { toList, toObject } from "../../support/json.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import { pathWithMake } from "../../support/program/environment.ts";
import * as reply from "../../support/model/reply.ts";
import { evidenceCards, shown, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();
const draftStory = draftStoriesOfOneAgent();

/** `make test` passes as long as a.ts has no "wrong" in it; `make broken` fails. */
const env = { PATH: pathWithMake() };
const files = {
  Makefile: "test:\n\t@! grep wrong a.ts\nbroken:\n\t@exit 3\n",
  "a.ts": "const a = 1;\n",
  "README.md": "# A\n",
};
const allowed = { permission: { bash: "allow", edit: "allow" } };
const options: StoryOptions = { files, config: allowed, env };
/** The configuration of a user who changed nothing: the reminder is on. */
const reminding: StoryOptions = { files, config: { ...allowed, evidence: {} }, env };

const edit = (from: string, to: string, filePath = "a.ts") =>
  reply.call("edit", { filePath, oldString: from, newString: to });
const read = reply.call("read", { filePath: "a.ts" });
const bash = (command: string, more: Record<string, unknown> = {}) =>
  reply.call("bash", { command, ...more });

const notRun = "nothing was run after the last change";
const passing = "All tests pass.";

/** Plays one turn of these steps and returns the evidence cards of the session. */
async function play(
  { editor, model }: Pick<StoryContext, "editor" | "model">,
  ...steps: (reply.Step | string)[]
): Promise<ToolCall[]> {
  const { sessionId } = await editor.newSession();
  for (const step of steps) model.reply(step);
  await editor.prompt(sessionId, "Change a.ts");
  return evidenceCards(editor.updates(sessionId));
}

const textOf = (card: ToolCall | undefined): string =>
  (card?.content ?? [])
    .flatMap((item) => (item.type === "content" && item.content.type === "text" ? [item.content.text] : []))
    .join("");

/** Requests of the task "Edit the file." after some calls. */
const isChild = (calls: number) => (request: ModelRequest) =>
  request.userText.includes("Edit the file.") &&
  toList(request.messages).filter((message) => toObject(message)["role"] === "tool").length === calls;

async function loadAgain(editor: Editor, sessionId: string) {
  const before = editor.updates(sessionId).length;
  await editor.load(sessionId);
  return editor.updates(sessionId).slice(before);
}

describe("the card at the end of a turn", () => {
  const stories: [name: string, steps: (reply.Step | string)[], title: string][] = [
    [
      "marks a claim after an edit after the tests",
      [read, edit("1", "2"), bash("make test"), edit("2", "3"), passing],
      "1 file changed; the model says that tests pass, but make test was not run again after the last change",
    ],
    [
      "does not mark a claim after the tests",
      [read, edit("1", "2"), bash("make test"), passing],
      "1 file changed; after the last change make test passed",
    ],
    [
      "marks a claim after a failed run",
      [read, edit("1", "'wrong'"), bash("make test"), passing],
      "1 file changed; the model says that tests pass, but make test failed with exit code 2",
    ],
    [
      "shows a failed run",
      [read, edit("1", "'wrong'"), bash("make test"), "Two tests still fail."],
      "1 file changed; after the last change make test failed with exit code 2",
    ],
    [
      "marks a claim without any run",
      [read, edit("1", "2"), passing],
      "1 file changed; the model says that tests pass, but no test was run after the last change",
    ],
    ["says that nothing was run", [read, edit("1", "2"), "Changed."], `1 file changed; ${notRun}`],
    [
      "does not count a run whose exit code a pipe hides",
      [read, edit("1", "2"), bash("make test | tail -5"), passing],
      "1 file changed; the model says that tests pass, but the exit code of make test | tail -5 does not say so",
    ],
    [
      "does not count a run whose failure is ignored",
      [read, edit("1", "2"), bash("make test || true"), "Done."],
      "1 file changed; after the last change make test || true ended, but its exit code does not say whether it passed",
    ],
    [
      "does not count a run before another command",
      [read, edit("1", "2"), bash("make test; echo done"), "Done."],
      "1 file changed; after the last change make test; echo done ended, but its exit code does not say whether it passed",
    ],
    [
      "counts a run in a chain",
      [read, edit("1", "2"), bash("cd . && make test && git status"), passing],
      "1 file changed; after the last change make test passed",
    ],
    [
      "does not count a run in the background",
      [read, edit("1", "2"), bash("make test >test.log 2>&1 &"), passing],
      "1 file changed; the model says that tests pass, but make test >test.log 2>&1 & was started in the background; its end is not known",
    ],
    [
      "does not count a run whose time was up",
      [read, edit("1", "2"), bash("make test && sleep 60", { timeout: 300 }), "Slow."],
      "1 file changed; after the last change make test && sleep 60 was stopped before it ended",
    ],
    [
      "takes a command that writes a file for a change",
      [bash("make test"), bash("sed -i s/1/2/ a.ts"), passing],
      "1 file changed; the model says that tests pass, but make test was not run again after the last change",
    ],
    [
      "takes a commit after the tests for no change",
      [read, edit("1", "2"), bash("make test"), bash("git add -A && git commit -qm x"), passing],
      "1 file changed; after the last change make test passed",
    ],
    [
      "names a command that is no known check",
      [read, edit("1", "2"), bash("node --version"), "Done."],
      "1 file changed; after the last change node --version ended with exit code 0 (no known check)",
    ],
    [
      "takes an edit of text after the tests for no change of code",
      [
        read,
        edit("1", "2"),
        bash("make test"),
        reply.call("write", { filePath: "notes.md", content: "x\n" }),
        passing,
      ],
      "2 files changed; after the last change make test passed",
    ],
    [
      "does not take a condition or a question for a claim",
      [read, edit("1", "2"), "The tests should pass now. Do all tests pass?"],
      `1 file changed; ${notRun}`,
    ],
    [
      "leaves out a file that is as it was before",
      [
        read,
        edit("1", "2"),
        reply.call("write", { filePath: "b.ts", content: "b\n" }),
        edit("2", "1"),
        "Done.",
      ],
      `1 file changed; ${notRun}`,
    ],
  ];
  test.each(stories)("%s", async (_, steps, title) => {
    await story(options, async (context) => {
      const cards = await play(context, ...steps);
      expect(cards.map((card) => card.title)).toEqual([title]);
      expect(cards[0]).toMatchObject({ kind: "other", status: "completed" });
    });
  });

  test("does not appear in a turn without changes", async () => {
    await story(options, async (context) => {
      expect(await play(context, bash("make test"), passing)).toEqual([]);
      expect(await play(context, passing)).toEqual([]);
    });
  });

  test("lists files, runs with exit codes, and runs made only before the last change", async () => {
    await story(options, async (context) => {
      const [card] = await play(
        context,
        read,
        bash("make test"),
        edit("1", "2"),
        bash("make broken test"),
        bash("node --version"),
        passing,
      );
      expect(textOf(card)).toBe(
        [
          "**Not confirmed:** the model says that tests pass, but `make broken test` failed with exit code 2.",
          "Changed: `a.ts`",
          "After the last change:\n\n- `make broken test` failed with exit code 2\n- `node --version` ended with exit code 0",
          "Only before the last change:\n\n- `make test` passed",
        ].join("\n\n"),
      );
    });
  });

  test("shows a cancelled run and a cancelled turn", async () => {
    await story(options, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(read).reply(edit("1", "2")).reply(bash("echo started; make test; sleep 60"));
      const turn = editor.prompt(sessionId, "Change a.ts");
      await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("started\\n"));
      await editor.cancel(sessionId);
      expect((await turn).stopReason).toBe("cancelled");
      expect(evidenceCards(editor.updates(sessionId)).map(({ title }) => title)).toEqual([
        "1 file changed; after the last change echo started; make test; sleep 60 was cancelled",
      ]);
    });
  });

  test("counts what a subagent changed and ran, and shows one card", async () => {
    await story(options, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const task = { description: "Edit", prompt: "Edit the file.", subagent_type: "general" };
      model.when(isChild(0), read).when(isChild(1), edit("1", "2")).when(isChild(2), bash("make test"));
      model.when(isChild(3), "Edited.");
      model.reply(reply.call("task", task)).reply(passing);
      // The agent of this session has not seen what the subagent wrote.
      model.reply(read).reply(edit("2", "3")).reply(passing);
      await editor.prompt(sessionId, "Let an agent edit it");
      await editor.prompt(sessionId, "Edit it yourself");
      expect(evidenceCards(editor.updates(sessionId)).map(({ title }) => title)).toEqual([
        "1 file changed; after the last change make test passed",
        "1 file changed; the model says that tests pass, but no test was run after the last change",
      ]);
    });
  });

  test("counts commands and tasks in the background that ended within the turn", async () => {
    const background = (target: string) => bash(`make ${target}`, { background: true });
    const job = (action: string) => reply.call("job", { action, ...(action === "write" && { text: "go" }) });
    const [write, wait] = [job("write"), job("wait")];
    const slow = { ...files, Makefile: "test:\n\t@read line; ! grep wrong a.ts\nunit:\n\t@true\n" };
    await story({ ...options, files: slow }, async (context) => {
      const { model } = context;
      const turns: [steps: (reply.Step | string)[], title: string][] = [
        [
          [read, edit("1", "2"), background("test"), write, wait, passing],
          "1 file changed; after the last change make test passed",
        ],
        [
          [read, edit("2", "'wrong'"), background("test"), write, wait, passing],
          "1 file changed; the model says that tests pass, but make test failed with exit code 2",
        ],
        [
          [read, background("test"), edit("'wrong'", "4"), write, wait, passing],
          "1 file changed; the model says that tests pass, but make test was not run again after the last change",
        ],
        [
          [read, edit("4", "5"), background("test"), passing],
          "1 file changed; the model says that tests pass, but make test was still running when the turn ended",
        ],
      ];
      for (const [steps, title] of turns)
        expect((await play(context, ...steps)).map((card) => card.title)).toEqual([title]);

      model.when(isChild(0), read).when(isChild(1), edit("5", "6"));
      model.when(isChild(2), bash("make unit")).when(isChild(3), "Edited.");
      const task = { description: "Edit", prompt: "Edit the file.", subagent_type: "general" };
      const cards = await play(context, reply.call("task", { ...task, background: true }), wait, passing);
      expect(cards.map((card) => card.title)).toEqual([
        "1 file changed; after the last change make unit passed",
      ]);

      model.when(({ userText }) => userText.includes("Look at it."), [reply.gate(), "Nothing."]);
      const look = { description: "Look", prompt: "Look at it.", subagent_type: "general", background: true };
      const running = await play(context, read, edit("6", "7"), reply.call("task", look), "It looks.");
      expect(running.map((card) => card.title)).toEqual([
        "1 file changed; after the last change Look (@general) was still running when the turn ended (no known check)",
      ]);
    });
  });

  test("is the same after session/load, and gone after an undo", async () => {
    await story({ ...options, client: zedLike() }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(read).reply(edit("1", "2")).reply(bash("make test")).reply(passing);
      await editor.prompt(sessionId, "Change a.ts");
      const live = evidenceCards(editor.updates(sessionId));
      expect(live).toHaveLength(1);
      const replayed = await loadAgain(editor, sessionId);
      expect(evidenceCards(replayed)).toEqual(live);
      expect(shown(replayed).at(-1)).toEqual(live[0]);
      await editor.prompt(sessionId, "/undo");
      expect(evidenceCards(await loadAgain(editor, sessionId))).toEqual([]);
    });
  });

  test("is not sent to the model", async () => {
    await story(options, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(read).reply(edit("1", "2")).reply("Changed.").reply("Yes.");
      await editor.prompt(sessionId, "Change a.ts");
      await editor.prompt(sessionId, "Really?");
      const [before, after] = model.requests.slice(-2).map(({ messages }) => messages);
      expect(after?.slice(0, before?.length)).toEqual(before);
      expect(JSON.stringify(after)).not.toContain("after the last change");
    });
  });

  test("counts changes before a compaction in the same turn", async () => {
    await story({ ...options, limit: { context: 20_000, output: 1_000 } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const full = reply.usage({ promptTokens: 19_500, completionTokens: 10 });
      model
        .reply(read)
        .reply(edit("1", "2"))
        .reply([bash("make test"), full])
        .reply("A summary.")
        .reply(passing);
      await editor.prompt(sessionId, "Change a.ts");
      expect(evidenceCards(editor.updates(sessionId)).map(({ title }) => title)).toEqual([
        "1 file changed; after the last change make test passed",
      ]);
    });
  });

  test("reaches clients of the draft of version 2", async () => {
    await draftStory({ files, config: allowed, env }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.request("session/new", { cwd: repository.path });
      model.reply(read).reply(edit("1", "2")).reply(bash("make test")).reply(passing);
      await editor.turn(String(sessionId), "Change a.ts");
      const calls = editor
        .updates(String(sessionId))
        .map(toObject)
        .filter(({ _meta }) => toObject(_meta)["evidence"] !== undefined);
      expect(calls.map(({ title, status }) => ({ title, status }))).toEqual([
        { title: "1 file changed; after the last change make test passed", status: "completed" },
      ]);
    });
  });

  test("is in the exported Markdown", async () => {
    await story(options, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(read).reply(edit("1", "2")).reply(bash("make test")).reply(passing);
      await editor.prompt(sessionId, "Change a.ts");
      await editor.prompt(sessionId, "/export notes.md");
      expect(await readFile(join(repository.path, "notes.md"), "utf8")).toContain(
        "All tests pass.\n\nChanged: `a.ts`\n\nAfter the last change:\n\n- `make test` passed\n",
      );
    });
  });
});

describe("the reminder before the end of a turn", () => {
  const isReminder = /^<system-reminder>\nYou changed 1 file in this turn and ran nothing/;
  const lastText = ({ messages }: ModelRequest) => String(toObject(toList(messages).at(-1))["content"]);

  test("asks for a check once, at the end of the conversation", async () => {
    await story(reminding, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(read)
        .reply(edit("1", "2"))
        .reply("Changed.")
        .reply(bash("make test"))
        .reply(edit("2", "3"));
      model.reply("Changed again.");
      await editor.prompt(sessionId, "Change a.ts");
      const [asked] = model.requests.slice(3);
      expect(asked === undefined ? "" : lastText(asked)).toMatch(isReminder);
      expect(model.requests).toHaveLength(6);
      const sent = model.requests.map(({ messages }) => toList(messages));
      for (const [at, messages] of sent.slice(1).entries())
        expect(messages.slice(0, sent[at]?.length)).toEqual(sent[at]);
      expect(evidenceCards(editor.updates(sessionId)).map(({ title }) => title)).toEqual([
        "1 file changed; make test was not run again after the last change",
      ]);
      expect(toolCalls(editor.updates(sessionId))).toHaveLength(4);
    });
  });

  test("asks for the run that the answer claims without one", async () => {
    await story(reminding, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(read).reply(edit("1", "2")).reply(passing).reply(bash("make test")).reply(passing);
      await editor.prompt(sessionId, "Change a.ts");
      const [asked] = model.requests.slice(3);
      expect(asked === undefined ? "" : lastText(asked)).toContain(
        "In your last answer you say that tests pass, but no test was run after the last change.",
      );
      expect(evidenceCards(editor.updates(sessionId)).map(({ title }) => title)).toEqual([
        "1 file changed; after the last change make test passed",
      ]);
    });
  });

  const silent: [name: string, steps: (reply.Step | string)[], more?: Record<string, unknown>][] = [
    ["when a check was run", [read, edit("1", "2"), bash("make test"), "Done."]],
    [
      "when the output of a hidden exit code was read",
      [read, edit("1", "2"), bash("make test | tail"), passing],
    ],
    ["when only text changed", [reply.call("write", { filePath: "notes.md", content: "x\n" }), "Done."]],
    ["when it is switched off", [read, edit("1", "2"), "Done."], { evidence: { reminder: false } }],
    [
      "when commands are denied",
      [read, edit("1", "2"), "Done."],
      { permission: { bash: "deny", edit: "allow" } },
    ],
    ["when no steps are left", [read, edit("1", "2"), "Done."], { max_steps: 4 }],
  ];
  test.each(silent)("is not sent %s", async (_, steps, more) => {
    await story({ ...reminding, config: { ...reminding.config, ...more } }, async (context) => {
      expect(await play(context, ...steps)).toHaveLength(1);
      expect(context.model.requests).toHaveLength(steps.length);
    });
  });

  test("is not sent when the user would be asked about costs", async () => {
    const cost = { provider: { test: { models: { scripted: { cost: { input: 10, output: 0 } } } } } };
    const limited = { FAIRLEAD_CONFIG_CONTENT: JSON.stringify({ ...cost, max_cost: { turn: 1 } }) };
    await story({ ...reminding, env: limited }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const costly = reply.usage({ promptTokens: 200_000, completionTokens: 1 });
      model.reply(read).reply(edit("1", "2")).reply("Changed.", costly);
      await editor.prompt(sessionId, "Change a.ts");
      expect(evidenceCards(editor.updates(sessionId))).toHaveLength(1);
      expect(model.requests).toHaveLength(3);
    });
  });

  test("is not sent after the user rejected a command", async () => {
    const config = {
      permission: { bash: "ask", edit: "allow" },
      evidence: {},
      experimental: { continue_loop_on_deny: true },
    };
    await story({ files, config, permission: "reject_once", env }, async (context) => {
      const cards = await play(context, read, edit("1", "2"), bash("make test"), "Then not.");
      expect(cards.map(({ title }) => title)).toEqual([`1 file changed; ${notRun}`]);
    });
  });
});
