import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import type { Editor } from "../../support/editor/editor.ts";
import { expectFailure } from "../../support/failure.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const says = (text: string) => (update: SessionUpdate) => JSON.stringify(update).includes(text);

const userTexts = (request: ModelRequest | undefined) =>
  request?.messages.filter(({ role }) => role === "user").map(({ content }) => JSON.stringify(content));

function steer(editor: Editor, sessionId: string, text: string): Promise<unknown> {
  const prompt = [{ type: "text", text }];
  return editor.request("_session/steering", { sessionId, prompt, _meta: { steering: {} } });
}

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
      expect(await steer(editor, sessionId, "Mind the tests")).toEqual({ outcome: "injected" });
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
      expect(await steering(blocks)).toEqual({ outcome: "injected" });
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

  test("during the last words of a turn makes it go on", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      model.reply(reply.say("Done. "), gate).reply("The tests too.");
      const turn = editor.prompt(sessionId, "Work");
      await editor.waitFor(sessionId, says("Done."));
      expect(await steer(editor, sessionId, "And the tests?")).toEqual({ outcome: "injected" });
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
