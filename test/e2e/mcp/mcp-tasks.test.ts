import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withElicitation } from "../../support/editor/clients.ts";
import { everything, faulty, waitForEverything } from "../../support/mcp/mcp.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

test("a tool that works as a task shows its state, asks the user and gives its result", async () => {
  const client = withElicitation(() => ({ action: "accept", content: { interpretation: "snake" } }));
  const config = { mcp: { everything: everything() }, permission: { "everything_*": "allow" } };
  await story({ config, client }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    await waitForEverything(editor, sessionId);
    const research = { topic: "python", ambiguous: true };
    model.reply(reply.call("everything_simulate-research-query", research)).reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(model.requests[1]?.toolResults[0]).toContain("# Research Report: python (snake)");
    const shown = JSON.stringify(editor.updates(sessionId, "tool_call_update"));
    expect(shown).toContain("Gathering sources...");
    expect(shown).toContain("Found multiple interpretations");
  });
});

test("a running task is cancelled with its turn", async () => {
  await using folder = await temporaryFolder();
  const memory = join(folder.path, "memory");
  await writeFile(memory, "");
  const config = { mcp: { bad: faulty("endless-task", memory) }, permission: { "bad_*": "allow" } };
  await story({ config }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bad_work", { text: "hello" }));
    const turn = editor.prompt(sessionId, "Go");
    await expect.poll(() => JSON.stringify(editor.updates(sessionId))).toContain("Digging.");
    await editor.cancel(sessionId);
    expect((await turn).stopReason).toBe("cancelled");
    await expect.poll(() => readFile(memory, "utf8")).toContain("tasks/cancel");
    expect(toolCalls(editor.updates(sessionId))[0]?.status).toBe("failed");
  });
});

test("a task is not started again when its server ends", async () => {
  await using folder = await temporaryFolder();
  const memory = join(folder.path, "memory");
  await writeFile(memory, "dies\n");
  const config = { mcp: { bad: faulty("endless-task", memory) }, permission: { "bad_*": "allow" } };
  await story({ config }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bad_work", { text: "hello" })).reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(model.requests[1]?.toolResults[0]).toContain("It is unknown whether the task goes on.");
    expect((await readFile(memory, "utf8")).match(/^call /gm)).toHaveLength(1);
  });
});
