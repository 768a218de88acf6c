import { stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { type StoryOptions, story, withSecond } from "../../support/editor/story.ts";
import { socketFolder } from "../../support/program/environment.ts";
import { agentText } from "../../support/transcript.ts";

const keepsRunning = (minutes: number): StoryOptions => ({
  config: { sessions: { keep_running_minutes: minutes }, permission: { bash: "ask" } },
});

test("a turn continues after its editor is gone, and the next editor joins it live", async () => {
  await story(keepsRunning(1), async (context) => {
    const { editor, model, home } = context;
    const { sessionId } = await editor.newSession();
    const [first, second] = [reply.gate(), reply.gate()];
    model.reply("One ", first, "two ", second, "three.");
    void editor.prompt(sessionId, "Count").catch(() => undefined);
    await editor.waitForKind(sessionId, "agent_message_chunk");
    const exited = editor.hangUp();
    first.release();
    await withSecond(context, async (joined) => {
      const { _meta: meta } = await joined.load(sessionId);
      expect(meta).toEqual({ turn: { state: "running" } });
      const folder = socketFolder(home.path);
      expect((await stat(folder)).mode & 0o777).toBe(0o700);
      expect((await stat(join(folder, `${editor.pid}.sock`))).mode & 0o777).toBe(0o600);
      expect(agentText(joined.updates(sessionId))).toMatch(/^One (two )?$/);
      second.release();
      const end = await joined.waitFor(sessionId, (update) => update._meta?.["turn"] !== undefined);
      expect(end._meta?.["turn"]).toMatchObject({ state: "ended", stopReason: "end_turn" });
      expect(agentText(joined.updates(sessionId))).toBe("One two three.");
      model.reply("Four.");
      expect((await joined.prompt(sessionId, "Go on")).stopReason).toBe("end_turn");
      expect(agentText(joined.updates(sessionId))).toBe("One two three.Four.");
    });
    expect(await exited).toEqual({ code: 0, signal: null });
  });
});

test("an editor that resumes a running turn gets the rest of its text once", async () => {
  await story(keepsRunning(1), async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    const gate = reply.gate();
    model.reply("One ", "two ", gate, "three.");
    void editor.prompt(sessionId, "Count").catch(() => undefined);
    await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("two"));
    const exited = editor.hangUp();
    await withSecond(context, async (joined) => {
      await joined.resume(sessionId);
      gate.release();
      await joined.waitFor(sessionId, (update) => update._meta?.["turn"] !== undefined);
      expect(agentText(joined.updates(sessionId))).toBe("three.");
    });
    expect(await exited).toEqual({ code: 0, signal: null });
  });
});

test("a question waits for the next editor, which can also cancel the turn", async () => {
  await story({ ...keepsRunning(1), permission: "never" }, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "echo first", description: "First" }));
    void editor.prompt(sessionId, "Run").catch(() => undefined);
    await editor.permissionRequest(1);
    const exited = editor.hangUp();
    await withSecond(context, async (joined) => {
      joined.permission = "never";
      await joined.load(sessionId);
      const [asked] = [await joined.permissionRequest(1)];
      expect(asked.toolCall.title).toContain("echo first");
      // The second connection breaks too: the question waits for the third.
      void joined.hangUp();
      await withSecond(context, async (third) => {
        model.reply(reply.call("bash", { command: "echo second", description: "Second" }));
        third.permission = (request) =>
          request.toolCall.title?.includes("first") === true ? "allow_once" : "never";
        await third.load(sessionId);
        const again = await third.permissionRequest(2);
        expect(again.toolCall.title).toContain("echo second");
        await third.cancel(sessionId);
        const end = await third.waitFor(sessionId, (update) => update._meta?.["turn"] !== undefined);
        expect(end._meta?.["turn"]).toMatchObject({ state: "ended", stopReason: "cancelled" });
        expect(third.permissionRequests).toHaveLength(2);
        expect(model.requests).toHaveLength(2);
      });
    });
    expect(await exited).toEqual({ code: 0, signal: null });
  });
});

test("a turn that nobody joins is cancelled after its time limit, with a message", async () => {
  await story({ ...keepsRunning(0.01), permission: "never" }, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    model.reply("Before. ", reply.call("bash", { command: "echo asked", description: "Ask" }));
    void editor.prompt(sessionId, "Run").catch(() => undefined);
    await editor.permissionRequest(1);
    expect(await editor.hangUp()).toEqual({ code: 0, signal: null });
    await withSecond(context, async (second) => {
      expect(await second.load(sessionId)).not.toHaveProperty("_meta");
      expect(agentText(second.updates(sessionId))).toBe(
        "Before. The turn was cancelled: its editor disconnected, and no other one joined it within 0.01 minutes. Send a message to continue.",
      );
      expect(second.permissionRequests).toEqual([]);
    });
    expect(model.requests).toHaveLength(1);
  });
});

test("an editor that opens a session sees why a turn failed without it", async () => {
  await story(keepsRunning(1), async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    const gate = reply.gate();
    model.reply("One ", gate, reply.errorEvent("The key has expired.", { code: "invalid_api_key" }));
    void editor.prompt(sessionId, "Count").catch(() => undefined);
    await editor.waitForKind(sessionId, "agent_message_chunk");
    const exited = editor.hangUp();
    gate.release();
    expect(await exited).toEqual({ code: 0, signal: null });
    await withSecond(context, async (second) => {
      await second.load(sessionId);
      const failure = /^One The turn failed: .*The key has expired\.$/;
      expect(agentText(second.updates(sessionId))).toMatch(failure);
      model.reply("Two.");
      await second.prompt(sessionId, "Go on");
      await withSecond(context, async (third) => {
        void second.hangUp();
        await third.load(sessionId);
        expect(agentText(third.updates(sessionId))).toMatch(/The key has expired\.Two\.$/);
      });
    });
  });
});
