import { expect, test } from "vitest";
import { z } from "zod";
import { plain } from "../../support/editor/clients.ts";
import * as reply from "../../support/model/reply.ts";
import { story } from "../../support/editor/story.ts";
import { agentText } from "../../support/transcript.ts";

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
    // What passes under the child's session is no turn of a session that this editor opened.
    editor.allow("session", "turn");
    const turn = editor.prompt(sessionId, "Please");
    await waits.reached();
    const { sessionId: childId } = childSchema.parse(await editor.waitFor(sessionId, isOfChild));
    await editor.waitFor(childId, (update) => JSON.stringify(update).includes("I dig."));
    expect(editor.permissionRequests.map(({ sessionId: under }) => under)).toEqual([childId]);
    // The brief stands on the task's card, and a question's title gives way to the call's own.
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
