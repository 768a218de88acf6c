import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { withElicitation, withFs } from "../../support/editor/clients.ts";
import { Editor, type EditorOptions } from "../../support/editor/editor.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { agentText, thoughtText, toolCalls } from "../../support/transcript.ts";

const fakeAgent = [fileURLToPath(new URL("../../support/program/fake-agent-program.ts", import.meta.url))];

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

describe("the editor", () => {
  async function start(more: Partial<EditorOptions> = {}): Promise<Editor> {
    const home = await temporaryFolder();
    const editor = new Editor({ home: home.path, cwd: home.path, program: fakeAgent, ...more });
    cleanups.push(() => home.remove());
    cleanups.push(() => editor.close());
    await editor.initialize();
    return editor;
  }

  test("holds a conversation and leaves a clean wire", async () => {
    const editor = await start();
    const { sessionId } = await editor.newSession();
    expect(await editor.prompt(sessionId, "hello")).toEqual({ stopReason: "end_turn" });
    expect(agentText(editor.updates(sessionId))).toBe("Hello there.");
    expect(thoughtText(editor.updates(sessionId))).toBe("Easy.");
    await editor.prompt(sessionId, "tool");
    expect(toolCalls(editor.updates(sessionId))).toEqual([
      { toolCallId: "call-a", title: "Write a file", status: "completed" },
    ]);
    expect(await editor.close()).toEqual({ code: 0, signal: null });
    editor.assertClean();
  });

  test.each([
    ["allow_once", "completed"],
    ["reject_once", "failed"],
    ["cancelled", "failed"],
  ] as const)("answers a permission request with %s", async (permission, status) => {
    const editor = await start({ permission });
    const { sessionId } = await editor.newSession();
    await editor.prompt(sessionId, "ask");
    expect(toolCalls(editor.updates(sessionId)).map((call) => call.status)).toEqual([status]);
    expect(editor.permissionRequests).toHaveLength(1);
    editor.assertClean();
  });

  test("answers open permission requests with cancelled when the turn is cancelled", async () => {
    const editor = await start({ permission: () => new Promise(() => {}) });
    const { sessionId } = await editor.newSession();
    const turn = editor.prompt(sessionId, "ask");
    await editor.permissionRequest(1);
    await editor.cancel(sessionId);
    expect(await turn).toEqual({ stopReason: "cancelled" });
  });

  test("fails a question without a policy or with an option that does not exist", async () => {
    const editor = await start();
    const { sessionId } = await editor.newSession();
    await editor.prompt(sessionId, "ask");
    editor.permission = "allow_always";
    await editor.prompt((await editor.newSession()).sessionId, "ask");
    expect(editor.problems()).toEqual([
      "Permission was asked for, but the test has no answer: Write a file",
      "The permission policy failed: Error: The agent offered no option of the kind allow_always.",
    ]);
  });

  test("waits for updates and cancels a turn", async () => {
    const editor = await start();
    const { sessionId } = await editor.newSession();
    const turn = editor.prompt(sessionId, "wait");
    expect(await editor.waitForKind(sessionId, "agent_message_chunk")).toMatchObject({
      content: { text: "Waiting." },
    });
    await editor.cancel(sessionId);
    expect(await turn).toEqual({ stopReason: "cancelled" });
    editor.assertClean();
  });

  test("names what it waited for when the deadline has passed", async () => {
    const editor = await start();
    const { sessionId } = await editor.newSession();
    await expect(editor.waitFor(sessionId, (update) => update.sessionUpdate === "plan", 20)).rejects.toThrow(
      /Waited 20 ms for an update that satisfies .*plan/,
    );
  });

  test("serves files from its buffers and from disk", async () => {
    const buffers = new Map<string, string>();
    const editor = await start({ client: withFs(buffers) });
    const { sessionId } = await editor.newSession();
    await expect(editor.prompt(sessionId, "read")).rejects.toThrow("Resource not found");
    const { cwd } = JSON.parse(
      editor.wire.entries.find(({ line }) => line.includes("session/new"))?.line ?? "",
    ).params;
    buffers.set(join(cwd, "buffer.txt"), "unsaved");
    await editor.prompt(sessionId, "read");
    expect(agentText(editor.updates(sessionId))).toBe("unsaved");
    editor.assertClean();
  });

  test("answers forms", async () => {
    const editor = await start({ client: withElicitation(() => ({ action: "accept", content: {} })) });
    const { sessionId } = await editor.newSession();
    await editor.prompt(sessionId, "form");
    expect(agentText(editor.updates(sessionId))).toBe("accept");
    expect(editor.elicitations.map(({ message }) => message)).toEqual(["Which one?"]);
    editor.assertClean();
  });

  test("writes raw bytes and separates the responses to them", async () => {
    const editor = await start();
    await editor.write('{"jsonrpc":"2.0","id":"raw-1","method":"no/such');
    await editor.write('_method"}\nnot json\n');
    expect(await editor.response("raw-1")).toMatchObject({ error: { code: -32601 } });
    expect(await editor.response(null)).toMatchObject({ error: { code: -32700 } });
    editor.assertClean();
  });

  test("restarts on the same home and loads", async () => {
    const editor = await start();
    const { sessionId } = await editor.newSession();
    const before = editor.pid;
    await editor.kill();
    await editor.restart();
    await editor.initialize();
    await editor.load(sessionId);
    expect(agentText(editor.updates(sessionId))).toBe("Replayed.");
    expect(editor.pid).not.toBe(before);
    editor.assertClean();
  });

  test("reports an agent that does not exit at the end of its input", async () => {
    const editor = await start();
    await editor.prompt((await editor.newSession()).sessionId, "linger");
    expect(await editor.close(50)).toEqual({ code: null, signal: "SIGKILL" });
    expect(editor.problems()).toEqual(["Error: Waited 50 ms for the agent to exit. It was killed."]);
  });

  test("reports stray lines and updates after the turn, unless the test allows them", async () => {
    const editor = await start();
    const { sessionId } = await editor.newSession();
    await editor.prompt(sessionId, "noise");
    await editor.prompt(sessionId, "late");
    await editor.waitForKind(sessionId, "agent_message_chunk");
    expect(editor.problems()).toEqual([
      "[line] line 5: A line is not a JSON object: a stray line",
      `[turn] line 9: agent_message_chunk came outside of a turn (session ${sessionId}).`,
    ]);
    editor.allow("line", "turn");
    editor.assertClean();
  });
});
