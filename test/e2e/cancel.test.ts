import { execFile } from "node:child_process";
import { join } from "node:path";
import { methods, type SessionUpdate } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import type { Editor } from "../support/editor.ts";
import { processesWith } from "../support/processes.ts";
import * as reply from "../support/reply.ts";
import { story, type Stage, type StoryOptions } from "../support/story.ts";
import { agentText, toolCalls } from "../support/transcript.ts";

/** Milliseconds; on a busy machine too, since the promise of one second holds on an idle one. */
const cancelLimitMs = 3_000;

interface Cancelled {
  sessionId: string;
  turn: Promise<{ stopReason: string }>;
}

/** Cancels a turn in the state into which `reach` brings it, and checks what holds after every cancel. */
async function cancelStory(options: StoryOptions, reach: (stage: Stage) => Promise<Cancelled>): Promise<void> {
  await story(options, async (stage) => {
    const { editor, model } = stage;
    const { sessionId, turn } = await reach(stage);
    const requests = model.requests.length;
    await expectCancelled(editor, sessionId, turn);
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
  const begun = performance.now();
  await editor.cancel(sessionId);
  expect((await turn).stopReason).toBe("cancelled");
  expect(performance.now() - begun).toBeLessThan(cancelLimitMs);
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

test("cancels in the middle of a thought, and tells the provider", async () => {
  await cancelStory({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.think("Let me see"), reply.stall());
    const turn = editor.prompt(sessionId, "Think");
    await editor.waitFor(sessionId, says("Let me see"));
    void turn.then(async () => expect(await model.requests[0]?.ended).toBe("cut"));
    return { sessionId, turn };
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
