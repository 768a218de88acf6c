import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { ContentBlock, SessionUpdate } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import type { Editor } from "../../support/editor/editor.ts";
import { expectFailure } from "../../support/failure.ts";
import { toList, toObject } from "../../support/json.ts";
import type { ModelServer } from "../../support/model/model-server.ts";
import { temporaryFolder } from "../../support/temp.ts";
import * as reply from "../../support/model/reply.ts";
import { collectUnrequestedMessages } from "../../support/editor/silence.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const unusedId = "tck-never-created-session";
const historyKinds = new Set(["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"]);
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const kinds = (updates: readonly SessionUpdate[]) => updates.map(({ sessionUpdate }) => sessionUpdate);
const isText = (update: SessionUpdate) => update.sessionUpdate === "agent_message_chunk";

/** A session whose turn waits in the middle of the model's text. */
async function busySession(editor: Editor, model: ModelServer) {
  const { sessionId } = await editor.newSession();
  model.reply(reply.say("Working"), reply.gate());
  const turn = editor.prompt(sessionId, "Work for long");
  await editor.waitFor(sessionId, isText);
  return { sessionId, turn };
}

/** A session after one turn. */
async function usedSession(editor: Editor, model: ModelServer): Promise<string> {
  const { sessionId } = await editor.newSession();
  model.reply("Hello.");
  await editor.prompt(sessionId, "Hi");
  return sessionId;
}

describe("mandatory rows", () => {
  test("ACP-TRANSPORT-001 stdout has one JSON-RPC message per line, also after stdin ends", async () => {
    await story({}, async ({ editor, model }) => {
      const { turn } = await busySession(editor, model);
      await editor.close();
      expect(await turn).toMatchObject({ stopReason: "cancelled" });
      expect(editor.wire.entries.filter(({ problem }) => problem)).toEqual([]);
      expect(editor.wire.unfinished).toBe("");
    });
  });

  test("ACP-TRANSPORT-002 stdout is UTF-8, whatever the model writes", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const between = reply.gate();
      model.reply(reply.splitCharacter("größer 日本 🦊", between));
      const turn = editor.prompt(sessionId, "Grüße 🦊");
      await between.reached();
      between.release();
      await turn;
      expect(agentText(editor.updates(sessionId))).toBe("größer 日本 🦊");
      expect(editor.wire.entries.filter(({ problem }) => problem)).toEqual([]);
    });
  });

  test.each([1, 0, -7, "text", "", "ünï"])(
    "ACP-JSONRPC-001 a response has the id %j of its request",
    async (id) => {
      await story({ initialize: false }, async ({ editor }) => {
        await editor.writeLine({ jsonrpc: "2.0", id, method: "initialize", params: { protocolVersion: 1 } });
        expect(await editor.response(id)).toMatchObject({ id, result: { protocolVersion: 1 } });
      });
    },
  );

  test("ACP-JSONRPC-002 a response has a result or an error with code and message", async () => {
    await story({}, async ({ editor, repository }) => {
      const params = { cwd: repository.path, mcpServers: [] };
      await editor.writeLine({ jsonrpc: "2.0", id: "good", method: "session/new", params });
      await editor.writeLine({ jsonrpc: "2.0", id: "bad", method: "session/new", params: { cwd: 5 } });
      expect(Object.keys(await editor.response("good")).sort()).toEqual(["id", "jsonrpc", "result"]);
      const bad = await editor.response("bad");
      expect(Object.keys(bad).sort()).toEqual(["error", "id", "jsonrpc"]);
      expect(bad.error).toMatchObject({ code: -32602, message: expect.any(String) });
    });
  });

  test("ACP-JSONRPC-003 notifications get no response", async () => {
    await story({}, async ({ editor }) => {
      await editor.notify("session/cancel", { sessionId: unusedId });
      await editor.notify("session/cancel", {});
      await editor.notify("no/such/notification", {});
      await editor.notify("_test/unknown", {});
      expect(await collectUnrequestedMessages(editor)).toEqual([]);
      expect(editor.wire.entries.filter(({ direction }) => direction === "fromAgent")).toHaveLength(2);
    });
  });

  test("ACP-INIT-001 initialize succeeds with an integer version", async () => {
    await story({ initialize: false }, async ({ editor }) => {
      const answer = await editor.initialize();
      expect(Number.isInteger(answer.protocolVersion)).toBe(true);
    });
  });

  test("ACP-INIT-002 a request for version 1 returns version 1", async () => {
    await story({ initialize: false }, async ({ editor }) => {
      expect(await editor.initialize()).toMatchObject({ protocolVersion: 1 });
    });
  });

  test("ACP-INIT-003 a request for version 65535 returns a supported version", async () => {
    await story({ initialize: false }, async ({ editor }) => {
      const params = {
        protocolVersion: 65_535,
        clientInfo: { name: "kit", version: "1" },
        info: { name: "kit", version: "1" },
        clientCapabilities: {},
        capabilities: {},
      };
      expect(await editor.request("initialize", params)).toMatchObject({ protocolVersion: 2 });
    });
  });

  test("ACP-SCHEMA-001 every message of a session with all kinds of updates is valid", async () => {
    await story({ files: { "a.txt": "one\n" }, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const todos = [{ id: "1", content: "Look", status: "pending", priority: "high" }];
      model
        .reply(reply.think("Hm."), reply.call("read", { filePath: "a.txt" }))
        .reply(reply.call("todowrite", { todos }))
        .reply(reply.call("edit", { filePath: "a.txt", oldString: "one", newString: "two" }))
        .reply(reply.call("bash", { command: "ls -l" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Do everything");
      await editor.load(sessionId);
      expect(new Set(kinds(editor.updates(sessionId)))).toEqual(
        new Set([
          "available_commands_update",
          "session_info_update",
          "user_message_chunk",
          "agent_thought_chunk",
          "agent_message_chunk",
          "tool_call",
          "tool_call_update",
          "plan",
          "usage_update",
        ]),
      );
      expect(editor.problems()).toEqual([]);
    });
  });

  test("ACP-SESSION-001 session/new with an absolute folder returns an id", async () => {
    await story({}, async ({ editor }) => {
      expect((await editor.newSession()).sessionId).toMatch(/./);
    });
  });

  test("ACP-SESSION-002 two sessions have different ids", async () => {
    await story({}, async ({ editor }) => {
      const [one, other] = await Promise.all([editor.newSession(), editor.newSession()]);
      expect(one.sessionId).not.toBe(other.sessionId);
    });
  });

  test("ACP-PROMPT-001 a text prompt ends with a stop reason", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      expect(await editor.prompt(sessionId, "Hi")).toMatchObject({ stopReason: "end_turn" });
    });
  });

  test("ACP-PROMPT-002 updates carry the id of the prompted session", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId: other } = await editor.newSession();
      await editor.waitForKind(other, "available_commands_update");
      const before = editor.updates(other).length;
      const sessionId = await usedSession(editor, model);
      expect(editor.wire.updates.filter((item) => item.sessionId !== sessionId)).toHaveLength(before);
      expect(agentText(editor.updates(sessionId))).toBe("Hello.");
    });
  });

  test("ACP-CANCEL-001 a cancelled prompt returns the stop reason cancelled", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId, turn } = await busySession(editor, model);
      await editor.cancel(sessionId);
      expect(await turn).toMatchObject({ stopReason: "cancelled" });
    });
  });

  test("ACP-CANCEL-002 no update follows the response to a cancelled prompt", async () => {
    await story({}, async ({ editor, model }) => {
      const titleGate = reply.gate();
      model.title([titleGate, "A late title"]);
      const { sessionId, turn } = await busySession(editor, model);
      await editor.cancel(sessionId);
      await turn;
      titleGate.release();
      expect(await collectUnrequestedMessages(editor)).toEqual([]);
    });
  });

  test("ACP-CONFIG-003 no option is boolean for a client that did not advertise it", async () => {
    await story({}, async ({ editor }) => {
      const { configOptions } = await editor.newSession();
      expect(new Set(configOptions?.map(({ type }) => type))).toEqual(new Set(["select"]));
    });
  });

  test("ACP-AUTH-002 no terminal login is offered to a client that did not advertise it", async () => {
    await story({ initialize: false }, async ({ editor }) => {
      const { authMethods } = await editor.initialize();
      expect(authMethods?.map((method) => ("type" in method ? method.type : "agent"))).toEqual(["agent"]);
    });
  });

  test("ACP-CLIENTCAP-001 ACP-CLIENTCAP-002 ACP-CLIENTCAP-003 uses no files, terminals and forms that the client lacks", async () => {
    const files = { "a.txt": "one\n" };
    const config = { permission: { bash: "ask", edit: "ask" } };
    await story({ files, config, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply(reply.call("edit", { filePath: "a.txt", oldString: "one", newString: "two" }))
        .reply(reply.call("bash", { command: "cat a.txt" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Work");
      const requested = editor.wire.entries.flatMap(({ direction, message }) =>
        direction === "fromAgent" && message?.kind === "request" ? [message.method] : [],
      );
      expect(requested.filter((method) => method !== "session/request_permission")).toEqual([]);
    });
  });

  test("ACP-EXT-001 an unknown extension request is answered", async () => {
    await story({}, async ({ editor }) => {
      expect(await expectFailure(editor.request("_custom/request", { any: 1 }))).toMatchObject({
        code: -32601,
      });
    });
  });
});

describe("capability rows", () => {
  test("the rows below test each advertised capability", async () => {
    await story({ initialize: false }, async ({ editor }) => {
      const { agentCapabilities } = await editor.initialize();
      expect(agentCapabilities).toMatchObject({
        loadSession: true,
        promptCapabilities: { image: true, embeddedContext: true },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, additionalDirectories: {} },
      });
    });
  });

  test("ACP-LOAD-001 loads an open session without prompts", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      expect(await editor.load(sessionId)).toMatchObject({ modes: { currentModeId: "build" } });
      expect(kinds(editor.updates(sessionId)).filter((kind) => historyKinds.has(kind))).toEqual([]);
    });
  });

  test("ACP-LOAD-002 every update of a load comes before its response", async () => {
    await story({}, async ({ editor, model }) => {
      const sessionId = await usedSession(editor, model);
      const before = editor.updates(sessionId).length;
      await editor.load(sessionId);
      const replayed = kinds(editor.updates(sessionId).slice(before));
      expect(replayed).toEqual([
        "user_message_chunk",
        "agent_message_chunk",
        "available_commands_update",
        "usage_update",
        "session_info_update",
      ]);
      expect(await collectUnrequestedMessages(editor)).toEqual([]);
    });
  });

  test("ACP-LOAD-002 loads a session without prompts and one of an earlier process", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId: fresh } = await editor.newSession();
      const used = await usedSession(editor, model);
      await editor.load(fresh);
      expect(await collectUnrequestedMessages(editor)).toEqual([]);
      await editor.restart();
      await editor.initialize();
      for (const sessionId of [fresh, used]) {
        await editor.load(sessionId);
        expect(await collectUnrequestedMessages(editor)).toEqual([]);
      }
    });
  });

  test("ACP-RESUME-001 resumes a session without prompts and without mcpServers", async () => {
    await story({}, async ({ editor, repository }) => {
      const { sessionId } = await editor.newSession();
      const result = await editor.request("session/resume", { sessionId, cwd: repository.path });
      expect(result).toMatchObject({ modes: { currentModeId: "build" } });
    });
  });

  test("ACP-RESUME-002 a resume shows no history", async () => {
    await story({}, async ({ editor, model }) => {
      const sessionId = await usedSession(editor, model);
      const before = editor.updates(sessionId).length;
      await editor.resume(sessionId);
      await collectUnrequestedMessages(editor);
      expect(kinds(editor.updates(sessionId).slice(before))).toEqual([
        "available_commands_update",
        "usage_update",
        "session_info_update",
      ]);
    });
  });

  test("ACP-LIST-001 a list without a filter is an array", async () => {
    await story({}, async ({ editor, repository }) => {
      expect(await editor.list()).toEqual({ sessions: [] });
      const { sessionId } = await editor.newSession();
      expect(await editor.list()).toMatchObject({ sessions: [{ sessionId, cwd: repository.path }] });
    });
  });

  test("ACP-LIST-002 a folder without sessions gives an empty list", async () => {
    await story({}, async ({ editor }) => {
      await editor.newSession();
      expect(await editor.list({ cwd: "/no/session/was/ever/here" })).toEqual({ sessions: [] });
    });
  });

  test("ACP-DELETE-001 deletes a session without prompts and removes it from the list", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      expect(await editor.delete(sessionId)).toEqual({});
      expect(await editor.list()).toEqual({ sessions: [] });
      expect(await expectFailure(editor.load(sessionId))).toMatchObject({ code: -32002 });
    });
  });

  test("ACP-CLOSE-001 closing an idle session returns an empty object", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      expect(await editor.closeSession(sessionId)).toEqual({});
    });
  });

  test("ACP-CLOSE-002 closing a busy session cancels its prompt", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId, turn } = await busySession(editor, model);
      expect(await editor.closeSession(sessionId)).toEqual({});
      expect(await turn).toMatchObject({ stopReason: "cancelled" });
      expect(await collectUnrequestedMessages(editor)).toEqual([]);
    });
  });

  test("ACP-CLOSE-002 closing cancels the prompt while a permission is pending", async () => {
    await story(
      { permission: "never", config: { permission: { bash: "ask" } } },
      async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        model.reply(reply.call("bash", { command: "touch made" }));
        const turn = editor.prompt(sessionId, "Make a file");
        await editor.permissionRequest(1);
        expect(await editor.closeSession(sessionId)).toEqual({});
        expect(await turn).toMatchObject({ stopReason: "cancelled" });
      },
    );
  });

  test("ACP-ADDDIRS-001 absolute additional folders are accepted, listed and readable", async () => {
    await using other = await temporaryFolder({ "b.txt": "beside\n" });
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession({ additionalDirectories: [other.path] });
      expect(await editor.list()).toMatchObject({
        sessions: [{ sessionId, additionalDirectories: [other.path] }],
      });
      model.reply(reply.call("read", { filePath: join(other.path, "b.txt") })).reply("Read.");
      await editor.prompt(sessionId, "Read b.txt");
      expect(model.requests[1]?.toolResults).toEqual([expect.stringContaining("beside")]);
    });
  });

  test("ACP-ADDDIRS-001 each load and resume lists all additional folders again", async () => {
    await using other = await temporaryFolder({ "b.txt": "beside\n" });
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const read = reply.call("read", { filePath: join(other.path, "b.txt") });
      await editor.resume(sessionId, { additionalDirectories: [other.path] });
      model.reply(read).reply("Read.");
      await editor.prompt(sessionId, "Read b.txt");
      await editor.load(sessionId, { additionalDirectories: [other.path] });
      model.reply(read).reply("Read.");
      await editor.prompt(sessionId, "Read b.txt");
      expect(editor.permissionRequests).toEqual([]);
      editor.permission = "reject_once";
      await editor.load(sessionId);
      model.reply(read);
      await editor.prompt(sessionId, "Read b.txt");
      expect(editor.permissionRequests).toHaveLength(1);
    });
  });

  test("ACP-MODES-001 the current mode is in the list", async () => {
    await story({}, async ({ editor }) => {
      const { modes } = await editor.newSession();
      expect(modes?.availableModes.map(({ id }) => id)).toContain(modes?.currentModeId);
    });
  });

  test("ACP-MODES-002 set_mode works and the update names currentModeId", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      expect(await editor.setMode(sessionId, "plan")).toEqual({});
      expect(await editor.waitForKind(sessionId, "current_mode_update")).toEqual({
        sessionUpdate: "current_mode_update",
        currentModeId: "plan",
      });
    });
  });

  test("ACP-CONFIG-001 each option's value is in its list", async () => {
    await story({}, async ({ editor }) => {
      const { configOptions } = await editor.newSession();
      const sound = configOptions?.map((option) =>
        option.type === "select"
          ? toList(option.options).some((choice) => toObject(choice).value === option.currentValue)
          : option.type,
      );
      expect(new Set(sound)).toEqual(new Set([true]));
    });
  });

  test("ACP-CONFIG-002 setting an option returns all options with the new value", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId, configOptions } = await editor.newSession();
      const result = await editor.setConfigOption(sessionId, "mode", "plan");
      expect(result.configOptions).toEqual(
        configOptions?.map((option) => (option.id === "mode" ? { ...option, currentValue: "plan" } : option)),
      );
    });
  });

  const embedded = { uri: "file:///notes.txt", mimeType: "text/plain", text: "A note" };
  test.each<[string, ContentBlock]>([
    ["an image", { type: "image", mimeType: "image/png", data: pixel }],
    ["an embedded resource", { type: "resource", resource: embedded }],
  ])("ACP-PROMPTCAP-001 ACP-PROMPTCAP-003 %s is accepted", async (_name, block) => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Seen.");
      const prompt: ContentBlock[] = [{ type: "text", text: "Look" }, block];
      expect(await editor.prompt(sessionId, prompt)).toMatchObject({ stopReason: "end_turn" });
    });
  });

  test("ACP-AUTH-004 logout succeeds, and models without a stored key still work", async () => {
    await story({}, async ({ editor, model }) => {
      expect(await editor.request("logout")).toEqual({});
      expect(agentText(editor.updates(await usedSession(editor, model)))).toBe("Hello.");
    });
  });

  test("ACP-AUTH-003 session/new is never refused for a missing login after authenticate", async () => {
    await story({ initialize: false }, async ({ editor }) => {
      const { authMethods } = await editor.initialize();
      expect(await editor.request("authenticate", { methodId: authMethods?.[0]?.id })).toEqual({});
      expect((await editor.newSession()).sessionId).toMatch(/./);
    });
  });
});

describe("advisory rows", () => {
  test("ACP-JSONRPC-004 an unknown method returns -32601", async () => {
    await story({}, async ({ editor }) => {
      expect(await expectFailure(editor.request("no/such/method"))).toMatchObject({ code: -32601 });
    });
  });

  test("ACP-JSONRPC-005 the connection works after an error", async () => {
    await story({}, async ({ editor, model }) => {
      await expectFailure(editor.request("session/prompt", { sessionId: 5 }));
      await expectFailure(editor.request("no/such/method"));
      expect(agentText(editor.updates(await usedSession(editor, model)))).toBe("Hello.");
    });
  });

  test("ACP-INIT-004 initialize returns the agent's name and version", async () => {
    await story({ initialize: false }, async ({ editor }) => {
      const { agentInfo } = await editor.initialize();
      expect(agentInfo).toEqual({
        name: "fairlead",
        title: "Fairlead",
        version: expect.stringMatching(/^\d/),
      });
    });
  });

  test("ACP-PROMPT-003 a resource link is accepted and its file sent to the model", async () => {
    await story({ files: { "a.txt": "linked text\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Read.");
      const uri = pathToFileURL(join(repository.path, "a.txt")).href;
      await editor.prompt(sessionId, [
        { type: "text", text: "What is in it?" },
        { type: "resource_link", uri, name: "a.txt" },
      ]);
      expect(JSON.stringify(model.requests[0]?.messages)).toContain("linked text");
    });
  });

  test("ACP-LOAD-003 load and resume of a session without prompts return an object", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      for (const result of [await editor.load(sessionId), await editor.resume(sessionId)]) {
        expect(result).toBeTypeOf("object");
        expect(result).not.toBeNull();
      }
    });
  });

  test("ACP-DELETE-002 deleting an unknown session is not an error, twice and with odd ids", async () => {
    await story({}, async ({ editor }) => {
      for (const id of [unusedId, unusedId, "", "../../etc/passwd", "__proto__"])
        expect(await editor.delete(id)).toEqual({});
    });
  });

  test("ACP-META-001 _meta is accepted everywhere", async () => {
    await story({ initialize: false }, async ({ editor, model, repository }) => {
      const _meta = { "vendor.example": { any: [1, null] }, traceparent: "00-1" };
      await editor.request("initialize", { protocolVersion: 1, clientCapabilities: { _meta }, _meta });
      const opened = await editor.request("session/new", { cwd: repository.path, mcpServers: [], _meta });
      const sessionId = String(toObject(opened).sessionId);
      model.reply("Hello.");
      const prompt = [{ type: "text", text: "Hi", _meta }];
      expect(await editor.request("session/prompt", { sessionId, prompt, _meta })).toMatchObject({
        stopReason: "end_turn",
      });
      await editor.notify("session/cancel", { sessionId, _meta });
      expect(await editor.request("session/list", { _meta })).toMatchObject({ sessions: [{ sessionId }] });
    });
  });

  test("ACP-ERROR-001 error messages have one line", async () => {
    await story({}, async ({ editor, repository }) => {
      const { sessionId } = await editor.newSession();
      const failures = await Promise.all([
        expectFailure(editor.request("no/such/method")),
        expectFailure(editor.request("session/new", { cwd: 1 })),
        expectFailure(editor.newSession({ cwd: "relative" })),
        expectFailure(editor.newSession({ cwd: join(repository.path, "line\nbreak") })),
        expectFailure(editor.load(unusedId)),
        expectFailure(editor.prompt(unusedId, "Hi")),
        expectFailure(editor.setMode(sessionId, "no\nmode")),
        expectFailure(editor.setConfigOption(sessionId, "no", "no")),
        expectFailure(editor.list({ cursor: "no" })),
        expectFailure(editor.request("authenticate", { methodId: "no" })),
      ]);
      for (const { message } of failures) expect(message).toMatch(/^[^\n]*\S[^\n]*$/);
    });
  });

  test("ACP-SHUTDOWN-001 exits when stdin closes, before and after initialize", async () => {
    await story({ initialize: false }, async ({ editor }) => {
      expect(await editor.close()).toEqual({ code: 0, signal: null });
      await editor.restart();
      await editor.initialize();
      expect(await editor.close()).toEqual({ code: 0, signal: null });
    });
  });

  test("ACP-SCHEMA-002 responses have no root keys outside the schema", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId, ...rest } = await editor.newSession();
      expect(Object.keys(rest).sort()).toEqual(["configOptions", "modes"]);
      model.reply("Hello.");
      expect(Object.keys(await editor.prompt(sessionId, "Hi")).sort()).toEqual(["_meta", "stopReason"]);
      expect(Object.keys(await editor.load(sessionId)).sort()).toEqual(["configOptions", "modes"]);
      expect(Object.keys(await editor.resume(sessionId)).sort()).toEqual(["configOptions", "modes"]);
    });
  });

  test("ACP-AUTH-001 login methods have unique ids", async () => {
    await story({ initialize: false }, async ({ editor }) => {
      const ids = (await editor.initialize()).authMethods?.map(({ id }) => id) ?? [];
      expect(new Set(ids).size).toBe(ids.length);
    });
  });

  test("ACP-AUTH-005 with a usable model no request requires a login", async () => {
    await story({ initialize: false }, async ({ editor, model }) => {
      await editor.initialize();
      expect(agentText(editor.updates(await usedSession(editor, model)))).toBe("Hello.");
    });
  });
});

describe("informational rows", () => {
  test("ACP-STDERR-001 ACP-INFO-PARSE-001 ACP-INFO-INVALIDREQ-001 ACP-INFO-UNKNOWNSESSION-001 leaves stderr empty and answers each kind of mistake with its code", async () => {
    await story({}, async ({ editor, model }) => {
      await editor.write("{ not json\n");
      expect(toObject((await editor.response(null)).error)).toMatchObject({ code: -32700 });
      await editor.writeLine(5);
      const isRefusal = ({ direction, line }: { direction: string; line: string }) =>
        direction === "fromAgent" && line.includes("-32600");
      await editor.waitForEntry(isRefusal, "the answer to a number");
      const failure = await expectFailure(editor.prompt(unusedId, "Hi"));
      expect(failure).toMatchObject({ code: -32002, message: expect.stringContaining("Session not found") });
      await usedSession(editor, model);
      expect(editor.stderr).toBe("");
    });
  });
});

describe("additional rows about background work", () => {
  test("ACP-BACKGROUND-001 ACP-BACKGROUND-002 ACP-BACKGROUND-003 ACP-BACKGROUND-004 ACP-BACKGROUND-005 a job's call stays open after its turn, ends once, and is replayed unchanged", async () => {
    await story({}, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const start = (command: string) => reply.call("bash", { command, background: true });
      const calls = (from = 0) => toolCalls(editor.updates(sessionId).slice(from));
      model
        .reply(start("echo begun; until [ -e go ]; do sleep 0.05; done; echo ended; exit 3"))
        .reply("Runs.");
      await editor.prompt(sessionId, "Start it");
      expect(calls()).toMatchObject([{ status: "in_progress", _meta: { background: { job: 1 } } }]);
      const hasFailed = (update: SessionUpdate) => "status" in update && update.status === "failed";
      await repository.write({ go: "" });
      await editor.waitFor(sessionId, hasFailed);
      expect(editor.updates(sessionId).filter(hasFailed)).toHaveLength(1);
      expect(JSON.stringify(calls())).toContain("ended");

      model.reply(start("until [ -e never ]; do sleep 0.05; done")).reply(reply.say("Waiting"), reply.gate());
      const turn = editor.prompt(sessionId, "Start another one");
      await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("Waiting"));
      await editor.cancel(sessionId);
      expect(await turn).toMatchObject({ stopReason: "cancelled" });
      const isOpen = editor.updates(sessionId).length;
      await editor.load(sessionId);
      expect(calls(isOpen)).toMatchObject([
        { status: "failed" },
        { status: "in_progress", _meta: { background: { job: 2 } } },
      ]);

      await editor.closeSession(sessionId);
      const isClosed = editor.updates(sessionId).length;
      await editor.load(sessionId);
      expect(calls(isClosed)).toMatchObject([{ status: "failed" }, { status: "completed" }]);
      expect(JSON.stringify(calls(isClosed))).toContain("[was stopped with the session]");
    });
  });
});
