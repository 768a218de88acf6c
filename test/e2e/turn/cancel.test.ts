import { basename, join } from "node:path";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import type { Editor } from "../../support/editor/editor.ts";
import { waitForFile } from "../../support/file-watch.ts";
import { findLeftoversWith } from "../../support/program/processes.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent, type StoryContext, type StoryOptions } from "../../support/editor/story.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

/**
 * Milliseconds until the end of a cancelled turn on a busy machine; the promise of one second is for an idle
 * one.
 */
const cancelLimitMs = 3_000;

interface Cancelled {
  sessionId: string;
  turn: Promise<{ stopReason: string }>;
  /** A further check for the moment when the turn has ended. */
  afterwards?: () => Promise<void>;
}

/** Cancels a turn in the state that `reach` produces, and checks the invariants of every cancel. */
async function cancelStory(
  options: StoryOptions,
  reach: (context: StoryContext) => Promise<Cancelled>,
): Promise<void> {
  await story(options, async (context) => {
    const { editor, model } = context;
    const { sessionId, turn, afterwards } = await reach(context);
    const requests = model.requests.length;
    await expectCancelled(editor, sessionId, turn);
    await afterwards?.();
    const open = toolCalls(editor.updates(sessionId)).filter(
      ({ status }) => status === "pending" || status === "in_progress",
    );
    expect(open).toEqual([]);
    model.reply("Here again.");
    editor.permission = undefined;
    expect((await editor.prompt(sessionId, "Go on")).stopReason).toBe("end_turn");
    expect(agentText(editor.updates(sessionId))).toMatch(/Here again\.$/);
    expect(model.requests).toHaveLength(requests + 1);
  });
}

async function expectCancelled(
  editor: Editor,
  sessionId: string,
  turn: Promise<{ stopReason: string }>,
): Promise<void> {
  const started = performance.now();
  await editor.cancel(sessionId);
  expect((await turn).stopReason).toBe("cancelled");
  expect(performance.now() - started).toBeLessThan(cancelLimitMs);
}

const says = (text: string) => (update: SessionUpdate) => JSON.stringify(update).includes(text);

test("cancels in the middle of a text", async () => {
  await cancelStory({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.say("Once upon"), reply.stall());
    const turn = editor.prompt(sessionId, "Tell");
    await editor.waitFor(sessionId, says("Once upon"));
    return { sessionId, turn };
  });
});

test("cancels during a thought and aborts the provider request", async () => {
  await cancelStory({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.think("Let me see"), reply.stall());
    const turn = editor.prompt(sessionId, "Think");
    await editor.waitFor(sessionId, says("Let me see"));
    const afterwards = async () => expect(await model.requests[0]?.ended).toBe("cut");
    return { sessionId, turn, afterwards };
  });
});

test("cancels while the model is silent", async () => {
  await cancelStory({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.stall());
    const turn = editor.prompt(sessionId, "Think");
    await model.request(1);
    return { sessionId, turn };
  });
});

test("cancels while the model sends only keep-alive comments", async () => {
  await cancelStory({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.headers(), reply.commentsOnly(5));
    const turn = editor.prompt(sessionId, "Think");
    await model.request(1);
    return { sessionId, turn };
  });
});

test("cancels while a call is being written, which is never run", async () => {
  await cancelStory({ files: {} }, async ({ editor, model, repository }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", '{"command":"touch made', { pieces: 1 }), reply.stall());
    const turn = editor.prompt(sessionId, "Make it");
    await editor.waitForKind(sessionId, "tool_call");
    const afterwards = async () => expect(await repository.git("status", "--porcelain")).toBe("");
    return { sessionId, turn, afterwards };
  });
});

test("cancels a command with all its processes", async () => {
  await cancelStory({ config: { permission: { bash: "allow" } } }, async ({ editor, model, home }) => {
    const { sessionId } = await editor.newSession();
    const mark = basename(home.path);
    const command = `export STORY=${mark}; sleep 300 & (trap '' TERM; sleep 301 & setsid sleep 302 & wait) & echo up; wait`;
    model.reply(reply.call("bash", { command }));
    const turn = editor.prompt(sessionId, "Run it");
    await editor.waitFor(sessionId, says("```\\nup"));
    const afterwards = async () =>
      expect(await findLeftoversWith("STORY", mark, { deadlineMs: 5_000 })).toEqual([]);
    return { sessionId, turn, afterwards };
  });
});

const stays = "trap '' TERM; while :; do sleep 0.2; done";
const whole = /so far\n\n\[Cancelled after [\d.]+ s; above is what it had printed\.\]/;
const endOnly = /so far\n\n\[Cancelled after [\d.]+ s; above is the end of what it had printed\.\]/;
test.each([
  ["a command that was cancelled", "echo so far; sleep 300", whole],
  ["one that does not end then", `echo so far; ${stays}`, whole],
  ["one that does not end then and had printed much", `seq 20000; echo so far; ${stays}`, endOnly],
])("the model of the next turn learns what %s had printed", async (_, command, note) => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command })).reply("I see.");
    const turn = editor.prompt(sessionId, "Run it");
    await editor.waitFor(sessionId, says("so far\\n```"));
    await expectCancelled(editor, sessionId, turn);
    await editor.prompt(sessionId, "What did it print?");
    const notice = String(model.requests[1]?.messages.find(({ role }) => role === "tool")?.content);
    expect(notice).toMatch(note);
    const shown = toolCalls(editor.updates(sessionId)).at(-1)?.content;
    expect(JSON.stringify(shown)).toMatch(/"```.*so far\\n\\n\[Cancelled after/);
    expect(notice.length).toBeLessThan(60_000);
  });
});

test("cancels an unanswered question and withdraws it", async () => {
  const config = { permission: { bash: "ask" } };
  await cancelStory({ config, permission: "never" }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "touch made" }));
    const turn = editor.prompt(sessionId, "Make it");
    await editor.permissionRequest(1);
    const requested = editor.wire.entries.find(
      ({ message }) => message?.kind === "request" && message.method === "session/request_permission",
    )?.message;
    const afterwards = async () => {
      const taken = await editor.waitForEntry(
        ({ direction, message }) =>
          direction === "fromAgent" &&
          message?.kind === "notification" &&
          message.method === "$/cancel_request",
        "the question to be withdrawn",
      );
      expect(taken.message?.json.params).toMatchObject({
        requestId: requested?.kind === "request" ? requested.id : "none",
      });
    };
    return { sessionId, turn, afterwards };
  });
});

test("cancels a question that the client answers with cancelled", async () => {
  const config = { permission: { bash: "ask" } };
  const waiting = new Promise<"reject_once">(() => {});
  await cancelStory({ config, permission: () => waiting }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "touch made" }), reply.call("bash", { command: "touch more" }));
    const turn = editor.prompt(sessionId, "Make it");
    await editor.permissionRequest(1);
    return { sessionId, turn };
  });
});

test("takes the answer cancelled to a question as the end of the turn", async () => {
  const config = { permission: { bash: "ask" } };
  await story({ config, permission: "cancelled" }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "touch made" }));
    expect((await editor.prompt(sessionId, "Make it")).stopReason).toBe("cancelled");
    expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ status: "failed" }]);
    model.reply("Hello.");
    expect((await editor.prompt(sessionId, "Hi")).stopReason).toBe("end_turn");
    expect(model.requests).toHaveLength(2);
  });
});

test("cancels a prompt that has arrived but not started", async () => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    const prompt = [{ type: "text", text: "Hi" }];
    const lines = [
      { jsonrpc: "2.0", id: "early", method: "session/prompt", params: { sessionId, prompt } },
      { jsonrpc: "2.0", method: "session/cancel", params: { sessionId } },
    ];
    await editor.write(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    expect((await editor.response("early")).result).toMatchObject({ stopReason: "cancelled" });
    expect([model.requests, model.titleRequests]).toEqual([[], []]);
    model.reply("Hello.");
    expect((await editor.prompt(sessionId, "Hi")).stopReason).toBe("end_turn");
  });
});

test("cancels the wait before a retry", async () => {
  await cancelStory({ config: { retry: { delay_ms: 30_000 } } }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.failure(500, "out of order"));
    const turn = editor.prompt(sessionId, "Hi");
    await editor.waitFor(sessionId, says("out of order"));
    return { sessionId, turn };
  });
});

test("cancels the wait for a key that a command never prints, and ends the command", async () => {
  const script = 'require("node:fs").writeFileSync("begun", ""); setTimeout(() => {}, 600_000)';
  const work = {
    options: { baseURL: "http://127.0.0.1:9/v1", apiKeyCommand: [process.execPath, "-e", script] },
    models: { coder: {} },
  };
  await story({ config: { model: "work/coder", provider: { work } } }, async ({ editor, home }) => {
    const { sessionId } = await editor.newSession();
    const turn = editor.prompt(sessionId, "Hi");
    await waitForFile(join(home.path, "begun"));
    const started = performance.now();
    await expectCancelled(editor, sessionId, turn);
    expect(performance.now() - started, "before the hard limit").toBeLessThan(2_000);
    await editor.close();
    expect(await findLeftoversWith("HOME", home.path)).toEqual([]);
  });
});

test("cancels the running turn and the two that wait", async () => {
  await cancelStory({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.say("Once upon"), reply.stall());
    const turns = ["One", "Two", "Three"].map((text) => editor.prompt(sessionId, text));
    await editor.waitFor(sessionId, says("Once upon"));
    const all = Promise.all(turns).then((answers) => {
      expect(answers.map(({ stopReason }) => stopReason)).toEqual(["cancelled", "cancelled", "cancelled"]);
      return { stopReason: "cancelled" };
    });
    return { sessionId, turn: all };
  });
});

test("sends text from before a cancel to the model in the next turn", async () => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.think("Let me see"), reply.say("Once upon"), reply.stall()).reply("a time.");
    const turn = editor.prompt(sessionId, "Tell");
    await editor.waitFor(sessionId, says("Once upon"));
    await expectCancelled(editor, sessionId, turn);
    await editor.prompt(sessionId, "Go on");
    const notice = model.requests[1]?.messages.slice(1).map(({ role, content }) => [role, content]);
    expect(notice).toEqual([
      ["user", "Tell"],
      ["assistant", "Once upon"],
      ["user", "Go on"],
    ]);
  });
});

test("cancels one session and not the other", async () => {
  await story({}, async ({ editor, model }) => {
    const [one, two] = [await editor.newSession(), await editor.newSession()];
    const gate = reply.gate();
    model.when(({ userText }) => userText === "One", [reply.say("Once"), reply.stall()]);
    model.when(({ userText }) => userText === "Two", [reply.say("Twice"), gate]);
    const [first, second] = [editor.prompt(one.sessionId, "One"), editor.prompt(two.sessionId, "Two")];
    await editor.waitFor(one.sessionId, says("Once"));
    await editor.waitFor(two.sessionId, says("Twice"));
    await expectCancelled(editor, one.sessionId, first);
    gate.release();
    expect((await second).stopReason).toBe("end_turn");
  });
});

test("cancels by the protocol's request cancellation", async () => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.say("Once upon"), reply.stall()).reply("Hello.");
    const leaving = new AbortController();
    const turn = editor.prompt(sessionId, "Tell", leaving.signal);
    await editor.waitFor(sessionId, says("Once upon"));
    leaving.abort();
    expect((await turn).stopReason).toBe("cancelled");
    expect((await editor.prompt(sessionId, "Hi")).stopReason).toBe("end_turn");
  });
});

test("a cancel with nothing running changes nothing", async () => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    await editor.cancel(sessionId);
    model.reply("Hello.");
    expect((await editor.prompt(sessionId, "Hi")).stopReason).toBe("end_turn");
    await editor.cancel(sessionId);
    model.reply("Still here.");
    expect((await editor.prompt(sessionId, "And now")).stopReason).toBe("end_turn");
  });
});

test("nothing of a cancelled turn is sent late, not even a title, until a new request", async () => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    const gate = reply.gate();
    model
      .title([gate, reply.say("A late title")])
      .reply(reply.say("Once"), reply.stall())
      .reply("Hello.");
    const turn = editor.prompt(sessionId, "Tell");
    await editor.waitFor(sessionId, says("Once"));
    await expectCancelled(editor, sessionId, turn);
    const count = editor.updates(sessionId).length;
    gate.release();
    await model.titleRequests[0]?.ended;
    await editor.list();
    expect(editor.updates(sessionId)).toHaveLength(count);
    await editor.prompt(sessionId, "Hi");
  });
});
