import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import type { Editor } from "../../support/editor/editor.ts";
import { draftStoriesOfOneAgent, isTurnEnd } from "../../support/editor/draft-editor.ts";
import { expectFailure } from "../../support/failure.ts";
import { toObject } from "../../support/json.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();
const draftStory = draftStoriesOfOneAgent();

const says = (text: string) => (update: SessionUpdate) => JSON.stringify(update).includes(text);

const userTexts = (request: ModelRequest | undefined) =>
  request?.messages.filter(({ role }) => role === "user").map(({ content }) => JSON.stringify(content));

function steer(editor: Editor, sessionId: string, text: string): Promise<unknown> {
  const prompt = [{ type: "text", text }];
  return editor.request("_session/steering", { sessionId, prompt, _meta: { steering: {} } });
}

const injected = { outcome: "injected", messageId: expect.stringMatching(/./) };

/** The text of the request's user messages, without reminders. */
const ownTexts = (request: ModelRequest | undefined) =>
  request?.messages
    .filter(({ role }) => role === "user")
    .map(({ content }) => JSON.stringify(content).replaceAll(/<system-reminder>.*?<\/system-reminder>/g, ""));

const refused = (code: number, reason: string) => ({ code, data: { reason } });

describe("prompts while a turn runs", () => {
  test("wait in order, and each is answered once, with its own end", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      model.reply(gate, reply.say("First. ")).reply("Second, ", reply.finish("length")).reply("third.");
      const ended: string[] = [];
      const turns = ["One", "Two", "Three"].map(async (text) => {
        const { stopReason } = await editor.prompt(sessionId, text);
        ended.push(`${text}: ${stopReason}`);
      });
      await model.request(1);
      await editor.list();
      expect(model.requests).toHaveLength(1);
      gate.release();
      await Promise.all(turns);
      expect(ended).toEqual(["One: end_turn", "Two: max_tokens", "Three: end_turn"]);
      expect(agentText(editor.updates(sessionId))).toBe("First. Second, third.");
      expect(model.requests.map(({ userText }) => userText)).toEqual(["One", "Two", "Three"]);
      expect(userTexts(model.requests[2])).toEqual(['"One"', '"Two"', '"Three"']);
    });
  });

  test("can be cancelled one by one while they wait, and the running turn continues", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      model.reply(gate, reply.say("First.")).reply("Third.");
      const first = editor.prompt(sessionId, "One");
      await model.request(1);
      const params = { sessionId, prompt: [{ type: "text", text: "Two" }] };
      const second = { jsonrpc: "2.0", id: "second", method: "session/prompt", params };
      await editor.write(`${JSON.stringify(second)}\n`);
      const third = editor.prompt(sessionId, "Three");
      await editor.notify("$/cancel_request", { requestId: "second" });
      expect((await editor.response("second")).result).toMatchObject({ stopReason: "cancelled" });
      gate.release();
      expect((await first).stopReason).toBe("end_turn");
      expect((await third).stopReason).toBe("end_turn");
      expect(model.requests.map(({ userText }) => userText)).toEqual(["One", "Three"]);
    });
  });

  test("of two sessions do not wait for each other", async () => {
    await story({}, async ({ editor, model }) => {
      const [one, two] = [await editor.newSession(), await editor.newSession()];
      const gate = reply.gate();
      model.when(({ userText }) => userText === "Slow", [gate, reply.say("Slow.")]);
      model.when(({ userText }) => userText === "Fast", "Fast.");
      const slow = editor.prompt(one.sessionId, "Slow");
      await model.request(1);
      expect((await editor.prompt(two.sessionId, "Fast")).stopReason).toBe("end_turn");
      gate.release();
      expect((await slow).stopReason).toBe("end_turn");
      expect(agentText(editor.updates(one.sessionId))).toBe("Slow.");
      expect(agentText(editor.updates(two.sessionId))).toBe("Fast.");
    });
  });

  test("are answered after a turn that failed", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.failure(400, "No")).reply("Yes.");
      const turns = await Promise.allSettled([
        editor.prompt(sessionId, "One"),
        editor.prompt(sessionId, "Two"),
      ]);
      expect(turns.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    });
  });
});

describe("steering", () => {
  test("adds a message to the running turn; the model reads it in the next step", async () => {
    await story({}, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("bash", { command: "echo up; until [ -e go ]; do sleep 0.05; done" }))
        .reply("I mind the tests.");
      const turn = editor.prompt(sessionId, "Work");
      await editor.waitFor(sessionId, says("```\\nup"));
      expect(await steer(editor, sessionId, "Mind the tests")).toEqual(injected);
      await repository.write({ go: "" });
      expect((await turn).stopReason).toBe("end_turn");
      expect(model.requests).toHaveLength(2);
      expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual([
        "system",
        "user",
        "assistant",
        "tool",
        "user",
      ]);
      const [, steering] = userTexts(model.requests[1]) ?? [];
      expect(steering).toMatch(/Mind the tests.*<system-reminder>.*while you were working/);
      expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ status: "completed" }]);
    });
  });

  test("accepts and rejects the same content as a prompt", async () => {
    await story({ files: { "a.txt": "linked\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      model.reply(reply.say("Done. "), gate).reply("All of it.");
      const turn = editor.prompt(sessionId, "Work");
      await editor.waitFor(sessionId, says("Done."));
      const steering = (prompt: unknown) => editor.request("_session/steering", { sessionId, prompt });
      const uri = `file://${repository.path}/a.txt`;
      const blocks = [
        { type: "text", text: "See these", annotations: null, _meta: {} },
        { type: "resource", resource: { uri: "file:///b.txt", text: "embedded" } },
        { type: "resource_link", uri, name: "a.txt" },
      ];
      expect(await steering(blocks)).toEqual(injected);
      for (const bad of [
        [],
        [{ type: "audio", data: "AAAA", mimeType: "audio/wav" }],
        [{ type: "odd" }],
        "x",
      ])
        expect(await expectFailure(steering(bad))).toMatchObject({ code: -32602 });
      gate.release();
      await turn;
      const replyText = JSON.stringify(userTexts(model.requests[1]));
      expect(replyText).toMatch(/See these.*embedded.*linked/);
    });
  });

  test("near the end of a turn makes it continue", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      model.reply(reply.say("Done. "), gate).reply("The tests too.");
      const turn = editor.prompt(sessionId, "Work");
      await editor.waitFor(sessionId, says("Done."));
      expect(await steer(editor, sessionId, "And the tests?")).toEqual(injected);
      gate.release();
      expect((await turn).stopReason).toBe("end_turn");
      expect(agentText(editor.updates(sessionId))).toBe("Done. The tests too.");
    });
  });

  test("of a turn that is then cancelled reaches the model in the next turn, in order", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.say("Once"), reply.stall()).reply("Yes.");
      const turn = editor.prompt(sessionId, "Work");
      await editor.waitFor(sessionId, says("Once"));
      await steer(editor, sessionId, "Mind the tests");
      await editor.cancel(sessionId);
      expect((await turn).stopReason).toBe("cancelled");
      await editor.prompt(sessionId, "Did you?");
      const all = JSON.stringify(userTexts(model.requests[1]));
      expect(all).toMatch(/Work.*Mind the tests.*Did you\?/);
    });
  });

  test("can be replaced and revoked until the model receives it", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      model.reply(reply.say("Done. "), gate).reply("Yes.");
      const turn = editor.prompt(sessionId, "Work");
      await editor.waitFor(sessionId, says("Done."));
      const ids: string[] = [];
      for (const text of ["Mind the tests", "Mind the docs", "Mind the gap"])
        ids.push(String(toObject(await steer(editor, sessionId, text)).messageId));
      const [tests = "", docs = "", gap = ""] = ids;
      const revoke = (messageId: string) =>
        editor.request("_session/revoke_inject", { sessionId, messageId });
      const replace = (messageId: string, text: string) =>
        editor.request("_session/replace_inject", {
          sessionId,
          messageId,
          content: [{ type: "text", text }],
        });
      expect(await revoke(tests)).toEqual({});
      expect(await replace(docs, "Mind the manual")).toEqual({ messageId: docs });
      expect(await expectFailure(replace(docs, ""))).toMatchObject({ code: -32602 });
      expect(await expectFailure(revoke(tests))).toMatchObject(refused(-32002, "unknown_message_id"));
      gate.release();
      await turn;
      expect(ownTexts(model.requests[1])?.slice(1)).toEqual([
        expect.stringContaining("Mind the manual"),
        expect.stringContaining("Mind the gap"),
      ]);
      const late = refused(-32010, "already_delivered");
      expect(await expectFailure(revoke(gap))).toMatchObject(late);
      expect(await expectFailure(replace(docs, "Mind nothing"))).toMatchObject(late);
    });
  });

  test("needs a turn that runs", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const required = { outcome: "promptRequired", reason: "noRunningTurn" };
      expect(await steer(editor, sessionId, "Hello?")).toEqual(required);
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      expect(await steer(editor, sessionId, "Hello?")).toEqual(required);
      expect(model.requests).toHaveLength(1);
    });
  });
});

describe("an injection in version 2", () => {
  test("steers or waits for the next turn, is replaced or revoked, and keeps its id", async () => {
    await draftStory({}, async ({ editor, model, repository }) => {
      const sessionId = String((await editor.request("session/new", { cwd: repository.path })).sessionId);
      const content = (text: string) => [{ type: "text", text }];
      const inject = async (mode: string, text: string) => {
        const params = { sessionId, mode, content: content(text) };
        return String((await editor.request("session/inject", params)).messageId);
      };
      const revoke = (messageId: string) => editor.request("session/revoke_inject", { sessionId, messageId });
      const replace = (messageId: string, text: string) =>
        editor.request("session/replace_inject", { sessionId, messageId, content: content(text) });
      expect(await expectFailure(inject("steer", "Hm?"))).toMatchObject(refused(-32010, "no_running_turn"));
      expect(await expectFailure(inject("shout", "Hm?"))).toMatchObject({ code: -32602 });

      const gate = reply.gate();
      model.reply(reply.say("Working. "), gate).reply("Noted.").reply("Next.");
      const first = await inject("queue", "Work");
      await editor.waitFor(sessionId, ({ sessionUpdate }) => sessionUpdate === "agent_message_chunk");
      const [steered, gone, queued, dropped] = [
        await inject("steer", "Mind the tests"),
        await inject("steer", "Mind the gap"),
        await inject("queue", "And then?"),
        await inject("queue", "And why?"),
      ];
      await replace(steered, "Mind the docs");
      await replace(queued, "And now?");
      await revoke(gone);
      await revoke(dropped);
      gate.release();
      const echoes = () =>
        editor
          .updates(sessionId)
          .flatMap(({ sessionUpdate, messageId, content: blocks }) =>
            sessionUpdate === "user_message" ? [[messageId, blocks]] : [],
          );
      await editor.waitFor(
        sessionId,
        ({ sessionUpdate, content: chunk }) =>
          sessionUpdate === "agent_message_chunk" && toObject(chunk).text === "Next.",
      );
      await editor.waitFor(
        sessionId,
        isTurnEnd,
        editor.updates(sessionId).findIndex(({ messageId }) => messageId === queued),
      );
      expect(echoes()).toEqual([
        [first, content("Work")],
        [steered, content("Mind the docs")],
        [queued, content("And now?")],
      ]);
      expect(model.requests).toHaveLength(3);
      for (const id of [first, steered, queued])
        expect(await expectFailure(revoke(id))).toMatchObject(refused(-32010, "already_delivered"));

      const before = editor.updates(sessionId).length;
      const replayFrom = { type: "start" };
      await editor.request("session/resume", { sessionId, cwd: repository.path, replayFrom });
      const replayed = editor.updates(sessionId).slice(before);
      const ids = replayed.flatMap(({ sessionUpdate, messageId }) =>
        sessionUpdate === "user_message" ? [messageId] : [],
      );
      expect(ids).toEqual([first, steered, queued]);
      const rewound = await editor.request("session/rewind", { sessionId, toMessageId: steered });
      expect(rewound).toEqual({ lastMessageId: steered });
    });
  });
});
