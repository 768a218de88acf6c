import { join } from "node:path";
import type { CreateElicitationRequest } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import { plain, zedLike } from "../../support/editor/clients.ts";
import { everything, modern, waitForEverything } from "../../support/mcp/mcp.ts";
import * as reply from "../../support/model/reply.ts";
import { type StoryContext, storiesOfOneAgent } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();
const permission = { "everything_*": "allow", "new_*": "allow" };
const question = (prompt: string) =>
  reply.call("everything_trigger-sampling-request", { prompt, maxTokens: 50 });
const isSampling = ({ userText }: { userText: string }) => userText.includes("context: ");

/** Plays one turn in which the model makes the call. Returns the result that the model receives. */
async function call({ editor, model }: StoryContext, sessionId: string, step: reply.Step) {
  model.reply(step).reply("Done.");
  await editor.prompt(sessionId, "Go");
  return model.requests.at(-1)?.toolResults.at(-1);
}

test("a server uses the model if the user allows it, once or always", async () => {
  const config = { mcp: { everything: everything() }, permission: { ...permission, "*": "allow" } };
  await story({ config, permission: "reject_once" }, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    await waitForEverything(editor, sessionId);
    await editor.setConfigOption(sessionId, "approval", "auto");
    model.when(isSampling, "Twelve.");

    expect(await call(context, sessionId, question("refused"))).toContain(
      "the user rejected the request to the model",
    );
    expect(model.requests.filter(isSampling)).toEqual([]);
    const [asked] = editor.permissionRequests;
    expect(asked?.toolCall.title).toBe("Let the MCP server everything ask Scripted?");
    expect(JSON.stringify(asked?.toolCall.content)).toContain("context: refused");

    editor.permission = "allow_once";
    expect(await call(context, sessionId, question("once"))).toContain("Twelve.");
    const [sampled] = model.requests.filter(isSampling);
    expect(sampled?.body).toMatchObject({ max_tokens: 50 });
    expect(sampled?.system).toBe("You are a helpful test server.");
    expect(sampled?.toolNames).toEqual([]);
    expect(JSON.stringify(sampled?.messages)).not.toContain("Go");

    editor.permission = "allow_always";
    expect(await call(context, sessionId, question("always"))).toContain("Twelve.");
    expect(await call(context, sessionId, question("again"))).toContain("Twelve.");
    expect(editor.permissionRequests).toHaveLength(3);
    const cards = toolCalls(editor.updates(sessionId)).filter(({ title }) => title.startsWith("Let the"));
    expect(cards.map(({ status }) => status)).toEqual(["failed", "completed", "completed", "completed"]);
    expect(JSON.stringify(cards.at(-1)?.content)).toContain("Twelve.");
  });
});

test("a server cannot use the model in a run that asks no questions", async () => {
  const client = { ...plain(), capabilities: { _meta: { unattended: true } } };
  await story({ config: { mcp: { everything: everything() } }, client }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    await waitForEverything(editor, sessionId);
    model.reply("Hello.");
    await editor.prompt(sessionId, "Hi");
    expect(model.requests[0]?.toolNames).toContain("everything_echo");
    expect(model.requests[0]?.toolNames).not.toContain("everything_trigger-sampling-request");
  });
});

test("a server of 2026-07-28 uses the model and opens an address by its responses", async () => {
  await using folder = await temporaryFolder();
  const visited: CreateElicitationRequest[] = [];
  const client = zedLike(new Map(), (request) => {
    visited.push(request);
    return { action: "accept" };
  });
  const config = { mcp: { new: modern(join(folder.path, "asked")) }, permission };
  await story({ config, client, permission: "allow_once" }, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    model.when(({ userText }) => userText === "How many?", "Twelve.");
    const thought = await call(context, sessionId, reply.call("new_think", {}));
    expect(JSON.parse(thought ?? "")).toMatchObject({
      role: "assistant",
      content: { type: "text", text: "Twelve." },
      stopReason: "endTurn",
    });
    expect(await call(context, sessionId, reply.call("new_visit", {}))).toContain('"action":"accept"');
    expect(visited).toEqual([
      expect.objectContaining({ mode: "url", url: "https://example.com/sign-in", sessionId }),
    ]);
    const completed = editor.wire.entries.find(({ line }) => line.includes('"elicitation/complete"'));
    expect(completed?.line).toContain(JSON.stringify(Reflect.get(visited[0] ?? {}, "elicitationId")));
    expect(JSON.stringify(editor.updates(sessionId))).not.toContain("Fulfilling input");
    editor.permission = "reject_once";
    expect(await call(context, sessionId, reply.call("new_think", {}))).toContain(
      "the user rejected the request to the model",
    );
  });
});
