import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { plain } from "../../support/editor/clients.ts";
import { draftStoriesOfOneAgent, draftText } from "../../support/editor/draft-editor.ts";
import { type JsonObject, toObject } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { story } from "../../support/editor/story.ts";
import { agentText } from "../../support/transcript.ts";

const draftStory = draftStoriesOfOneAgent();
const isUpdateOfChild = ({ sessionUpdate }: JsonObject) => sessionUpdate === "subagent_update";

const childSchema = z.object({ sessionId: z.string() });
const isOfChild = ({ sessionUpdate }: { sessionUpdate: string }) => sessionUpdate === "subagent_update";

test("an editor that knows child sessions sees, answers and cancels a task's session", async () => {
  const client = { ...plain(), capabilities: { session: {}, subagents: {} } };
  const config = { permission: { bash: "ask" } };
  await story({ client, config, permission: "allow_once" }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    const waits = reply.gate();
    model.reply(reply.call("task", { description: "Dig", prompt: "Dig deep.", subagent_type: "general" }));
    model.when(
      ({ userText }) => userText.includes("Dig deep."),
      ({ toolResults }) =>
        toolResults.length === 0 ? reply.call("bash", { command: "echo dug" }) : [reply.say("I dig."), waits],
    );
    model.reply("It was stopped.");
    // Messages with the child's session id are not a turn of a session that this editor opened.
    editor.allow("session", "turn");
    const turn = editor.prompt(sessionId, "Please");
    await waits.reached();
    const { sessionId: childId } = childSchema.parse(await editor.waitFor(sessionId, isOfChild));
    await editor.waitFor(childId, (update) => JSON.stringify(update).includes("I dig."));
    expect(editor.permissionRequests.map(({ sessionId: under }) => under)).toEqual([childId]);
    // The task's card shows the brief, and the call's title replaces that of a question.
    expect(agentText(editor.updates(childId))).toBe("I dig.");
    expect(editor.permissionRequests[0]?.toolCall.title).toBe("@general: echo dug");
    expect(editor.updates(childId, "tool_call_update")).toContainEqual(
      expect.objectContaining({ status: "in_progress", title: "echo dug" }),
    );
    await editor.cancel(childId);
    await turn;
    expect(model.requests.at(-1)?.toolResults).toEqual([expect.stringContaining("state: cancelled")]);
    expect(editor.updates(sessionId).filter(isOfChild)).toMatchObject([
      { sessionId: childId, title: "Dig (@general)", state: { state: "running" } },
      { sessionId: childId, state: { state: "idle" } },
    ]);
  });
});

test("version 2 shows, cancels and replays child sessions, and asks under their ids", async () => {
  const config = { permission: { bash: "ask" } };
  const permission = () => ({ outcome: "selected", optionId: "allow_once" }) as const;
  await draftStory({ config, permission }, async ({ editor, model, repository }) => {
    const cwd = repository.path;
    const sessionId = String((await editor.request("session/new", { cwd })).sessionId);
    const waits = reply.gate();
    model.reply(reply.call("task", { description: "Dig", prompt: "Dig deep.", subagent_type: "general" }));
    model.when(
      ({ userText }) => userText.includes("Dig deep."),
      ({ toolResults }) =>
        toolResults.length === 0 ? reply.call("bash", { command: "echo dug" }) : [reply.say("I dig."), waits],
    );
    model.reply("It was stopped.");
    const turn = editor.turn(sessionId, "Please");
    await waits.reached();
    const announced = await editor.waitFor(sessionId, isUpdateOfChild);
    const childId = String(announced.sessionId);
    await editor.waitFor(childId, (update) => JSON.stringify(update).includes("I dig."));
    expect(editor.permissionRequests.map((request) => request.sessionId)).toEqual([childId]);
    expect(editor.kinds(childId)).toEqual(
      expect.arrayContaining(["state_update", "tool_call_update", "terminal_update", "agent_message"]),
    );
    await editor.notify("session/cancel", { sessionId: childId });
    expect((await turn).idle).toMatchObject({ stopReason: "end_turn" });
    expect(model.requests.at(-1)?.toolResults).toEqual([expect.stringContaining("state: cancelled")]);
    const states = (from = 0) =>
      editor
        .updates(sessionId)
        .slice(from)
        .filter(isUpdateOfChild)
        .map(({ state }) => toObject(state).state);
    expect(states()).toEqual(["running", "idle"]);
    expect(editor.updates(childId).at(-1)).toMatchObject({ sessionUpdate: "state_update", state: "idle" });

    const [ofParent, ofChild] = [editor.updates(sessionId).length, editor.updates(childId).length];
    await editor.request("session/resume", { sessionId, cwd, replayFrom: { type: "start" } });
    expect(states(ofParent)).toEqual(["running", "idle"]);
    expect(draftText(editor.updates(childId).slice(ofChild), "agent_message_chunk")).toBe("I dig.");
  });
});

test("version 2 shows plan files as Markdown, live and replayed, and their removal", async () => {
  await draftStory({ config: { permission: { edit: "allow" } } }, async ({ editor, model, repository }) => {
    const cwd = repository.path;
    const sessionId = String((await editor.request("session/new", { cwd })).sessionId);
    const path = join(cwd, ".fairlead/plans/new.md");
    const patch = `*** Begin Patch\n*** Delete File: ${path}\n*** End Patch`;
    model.reply(reply.call("write", { filePath: path, content: "# Plan\n" })).reply("Planned.");
    await editor.turn(sessionId, "Plan it");
    const plans = () =>
      editor.updates(sessionId).filter(({ sessionUpdate }) => String(sessionUpdate).startsWith("plan_"));
    const plan = { type: "markdown", planId: path, content: "# Plan\n" };
    expect(plans()).toEqual([{ sessionUpdate: "plan_update", plan }]);
    await editor.request("session/resume", { sessionId, cwd, replayFrom: { type: "start" } });
    expect(plans()).toEqual([
      { sessionUpdate: "plan_update", plan },
      { sessionUpdate: "plan_update", plan },
    ]);
    model.reply(reply.call("apply_patch", { patchText: patch })).reply("Removed.");
    await editor.turn(sessionId, "Remove it");
    expect(plans().at(-1)).toEqual({ sessionUpdate: "plan_removed", planId: path });
  });
});
