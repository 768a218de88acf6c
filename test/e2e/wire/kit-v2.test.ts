import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import {
  type DraftEditor,
  draftStoriesOfOneAgent,
  draftText,
  isTurnEnd,
  type DraftStoryContext,
} from "../../support/editor/draft-editor.ts";
import { expectFailure } from "../../support/failure.ts";
import { isObject, toList, toObject, type JsonObject } from "../../support/json.ts";
import { memory } from "../../support/mcp/mcp.ts";
import { startHttpMcp } from "../../support/mcp/mcp-http.ts";
import { withSlashes } from "../../support/platform/path-spelling.ts";
import { lacksSignals } from "../../support/platform/platform.ts";
import * as reply from "../../support/model/reply.ts";
import { story, type StoryOptions } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";

const draftStory = draftStoriesOfOneAgent();

const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const stopReasons = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"];
const toolKinds = ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"];

/** A command that does not end by itself. On Windows a cancel does not end `sleep`, nor other programs of its bash. */
const endless = "echo begun; until [ -e never ]; do sleep 0.05; done";
const info = { name: "kit", version: "1" };
const isText = ({ sessionUpdate }: JsonObject) => sessionUpdate === "agent_message_chunk";
const isState = ({ sessionUpdate }: JsonObject) => sessionUpdate === "state_update";

async function newSession({ editor, repository }: DraftStoryContext, more: JsonObject = {}): Promise<string> {
  return String((await editor.request("session/new", { cwd: repository.path, ...more })).sessionId);
}

/** A session whose turn waits in the middle of the model's text. */
async function busySession(context: DraftStoryContext): Promise<string> {
  const { editor, model } = context;
  const sessionId = await newSession(context);
  model.reply(reply.say("Working"), reply.gate());
  await editor.request("session/prompt", { sessionId, prompt: [{ type: "text", text: "Work for long" }] });
  await editor.waitFor(sessionId, isText);
  return sessionId;
}

/** A session after one turn. */
async function usedSession(context: DraftStoryContext): Promise<string> {
  const sessionId = await newSession(context);
  context.model.reply("Hello.");
  await context.editor.turn(sessionId, "Hi");
  return sessionId;
}

/** Sends raw lines that no client library would send, and returns the responses. */
async function rawAnswers(
  editor: DraftEditor,
  lines: readonly string[],
  count: number,
): Promise<JsonObject[]> {
  const before = editor.wire.entries.length;
  await editor.write(lines.map((line) => `${line}\n`).join(""));
  const answers = () =>
    editor.wire.entries
      .slice(before)
      .filter(({ direction, message }) => direction === "fromAgent" && message?.kind === "response")
      .map(({ message }) => toObject(message?.json));
  await editor.wire.bell.until(() => (answers().length >= count ? true : undefined), `${count} answers`);
  await expectFailure(editor.request("_test/fence"));
  return answers().slice(0, -1);
}

describe("negotiation", () => {
  test("ACP-INIT-001 ACP-INIT-201 ACP-INIT-203 ACP-INIT-204 ACP-SCHEMA-001 answers version 2 to version 2, with info and markers that are objects", async () => {
    await draftStory({ initialize: false }, async ({ editor }) => {
      const answer = await editor.initialize();
      expect(answer.protocolVersion).toBe(2);
      expect(answer.info).toMatchObject({ name: "fairlead", version: expect.stringMatching(/\d/) });
      const { session } = toObject(answer.capabilities);
      expect(isObject(session)).toBe(true);
      expect(JSON.stringify(session)).not.toMatch(/true|false/);
    });
  });

  test("ACP-INIT-202 a request for version 1 returns version 1 and its methods", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      expect(await editor.prompt(sessionId, "Hi")).toMatchObject({ stopReason: "end_turn" });
    });
  });

  test("ACP-INIT-003 a request for version 65535 returns version 2", async () => {
    await draftStory({ initialize: false }, async ({ editor }) => {
      expect(await editor.initialize({ protocolVersion: 65_535 })).toMatchObject({ protocolVersion: 2 });
    });
  });

  test("version 2 can be disabled in the user's own configuration, not by a project", async () => {
    const off = { experimental: { acp_v2: false } };
    const answers = async (options: StoryOptions, protocolVersion: number) =>
      story({ initialize: false, ...options }, async ({ editor }) => {
        const request = { protocolVersion: 2, info, capabilities: {} };
        expect(await editor.request("initialize", request)).toMatchObject({ protocolVersion });
      });
    await answers({ config: off }, 1);
    await answers({ files: { "fairlead.json": JSON.stringify(off) } }, 2);
  });

  test("a newer version in a request of version 1 returns version 1", async () => {
    await story({ initialize: false }, async ({ editor }) => {
      const clientInfo = { name: "older", version: "1" };
      const request = { protocolVersion: 2, clientInfo, clientCapabilities: {} };
      expect(await editor.request("initialize", request)).toMatchObject({ protocolVersion: 1 });
    });
  });
});

describe("lines", () => {
  test("ACP-TRANSPORT-201 ACP-TRANSPORT-002 ACP-TRANSPORT-203 ACP-JSONRPC-001 ACP-JSONRPC-002 ACP-JSONRPC-003 ACP-JSONRPC-004 ACP-JSONRPC-005 ACP-BATCH-201 ACP-EXT-001 ACP-EXT-201 ACP-ERROR-001 ACP-INFO-PARSE-001 ACP-INFO-INVALIDREQ-001 ACP-STDERR-001 answers with the id of the request, one line each, and survives bad lines", async () => {
    await draftStory({}, async (context) => {
      const { editor, repository } = context;
      const request = (id: unknown, method: string, params: JsonObject) =>
        JSON.stringify({ jsonrpc: "2.0", id, method, params });
      const answers = await rawAnswers(
        editor,
        [
          request("text", "session/list", {}),
          request(7_001, "session/new", { cwd: repository.path }),
          "[]",
          "{ not json",
          request("custom", "_custom/request", {}),
          request("unknown", "no/such", {}),
          JSON.stringify({ jsonrpc: "2.0", method: "_unknown/notification", params: {} }),
          request("bad", "session/new", { cwd: 5 }),
          "5",
          request("after", "session/list", {}),
        ],
        9,
      );
      const byId = new Map(answers.map((answer) => [answer.id, answer]));
      expect([...byId.keys()]).toEqual(
        expect.arrayContaining(["text", 7_001, null, "custom", "unknown", "bad", "after"]),
      );
      for (const answer of answers) expect("result" in answer).not.toBe("error" in answer);
      const errors = answers.flatMap(({ error }) => (isObject(error) ? [error] : []));
      for (const { code, message } of errors) {
        expect(Number.isInteger(code)).toBe(true);
        expect(message).toMatch(/^[^\n]*\S[^\n]*$/);
      }
      expect(answers.filter(({ id }) => id === null).map(({ error }) => toObject(error).code)).toEqual(
        expect.arrayContaining([-32600, -32700]),
      );
      expect(toObject(byId.get("unknown")?.error).code).toBe(-32601);
      expect(answers).toHaveLength(9);
      expect(editor.stderr).toBe("");
      expect(isObject(byId.get("after")?.result)).toBe(true);
      const fromAgent = editor.wire.entries.filter(({ direction }) => direction === "fromAgent");
      expect(fromAgent.filter(({ problem }) => problem)).toEqual([]);
    });
  });

  test("ACP-EXT-203 an unknown notification of the protocol is ignored", async () => {
    await draftStory({}, async ({ editor }) => {
      const odd = JSON.stringify({ jsonrpc: "2.0", method: "$/unknown", params: {} });
      expect(await rawAnswers(editor, [odd], 0)).toEqual([]);
      expect(editor.stderr).toBe("");
    });
  });

  test("ACP-SHUTDOWN-001 exits when stdin closes", async () => {
    await draftStory({}, async (context) => {
      await busySession(context);
      await context.editor.close();
    });
  });

  test.skipIf(lacksSignals)(
    "a signal ends a turn whose command ignores it, and the client learns why",
    async () => {
      await draftStory({}, async (context) => {
        const { editor, model } = context;
        const sessionId = await newSession(context);
        const command = "trap '' TERM INT HUP; echo begun; while :; do sleep 1; done";
        model.reply(reply.call("bash", { command }));
        const prompt = [{ type: "text", text: "Wait" }];
        await editor.request("session/prompt", { sessionId, prompt });
        await editor.waitFor(sessionId, ({ sessionUpdate }) => sessionUpdate === "terminal_output_chunk");
        if (editor.pid !== undefined) process.kill(editor.pid, "SIGTERM");
        const error = { code: -32603, message: "The program was ended by SIGTERM." };
        expect(await editor.waitFor(sessionId, isTurnEnd)).toMatchObject({ stopReason: "error", error });
        await editor.close();
        expect(editor.updates(sessionId).filter(isTurnEnd)).toHaveLength(1);
      });
    },
  );
});

describe("batches", () => {
  const call = (id: unknown, method: string, params: JsonObject = {}) => ({
    jsonrpc: "2.0",
    id,
    method,
    params,
  });
  const invalid = { jsonrpc: "2.0", id: null, error: { code: -32600, message: expect.any(String) } };
  /** Number of messages in the line of this answer; undefined if it was alone. */
  const batchOf = (editor: DraftEditor, id: string) =>
    editor.wire.entries.find(({ message }) => message?.kind === "response" && message.id === id)?.batchOf;

  test("ACP-BATCH-201 an empty array returns one error and no array", async () => {
    await draftStory({}, async ({ editor }) => {
      expect(await rawAnswers(editor, ["[]"], 1)).toEqual([invalid]);
      expect(editor.wire.entries.some(({ direction, batchOf }) => direction === "fromAgent" && batchOf)).toBe(
        false,
      );
    });
  });

  test("ACP-BATCH-202 ACP-JSONRPC-003 a batch of notifications gets no response", async () => {
    await draftStory({}, async ({ editor }) => {
      const notes = [
        { jsonrpc: "2.0", method: "_test/note" },
        { jsonrpc: "2.0", method: "session/cancel", params: { sessionId: "ses_unknown" } },
      ];
      expect(await rawAnswers(editor, [JSON.stringify(notes)], 0)).toEqual([]);
    });
  });

  test("ACP-BATCH-203 ACP-JSONRPC-005 answers each invalid entry with an error and runs the others", async () => {
    await draftStory({}, async ({ editor }) => {
      const odd = [17, true, null, [call("nested", "session/list")], {}, { jsonrpc: "2.0" }];
      expect(await rawAnswers(editor, [JSON.stringify(odd)], odd.length)).toEqual(odd.map(() => invalid));
      const mixed = [
        call("good", "session/list"),
        "text",
        call(null, "session/list"),
        call(1.5, "session/list"),
      ];
      const answers = await rawAnswers(editor, [JSON.stringify(mixed)], mixed.length);
      expect(answers.filter(({ id }) => id === null)).toEqual([invalid, invalid, invalid]);
      expect(answers.find(({ id }) => id === "good")).toMatchObject({ result: { sessions: [] } });
      expect(batchOf(editor, "good")).toBe(4);
    });
  });

  test("ACP-BATCH-204 ACP-BATCH-205 ACP-JSONRPC-001 answers requests of a batch in one array, also failed ones", async () => {
    await draftStory({}, async ({ editor }) => {
      const batch = [
        call("a", "session/list"),
        { jsonrpc: "2.0", method: "_test/note" },
        call(7, "no/such"),
        call("b", "session/list", { cwd: "relative" }),
      ];
      const answers = await rawAnswers(editor, [JSON.stringify(batch)], 3);
      const byId = new Map(answers.map((answer) => [answer.id, answer]));
      expect(byId.get("a")).toMatchObject({ result: { sessions: [] } });
      expect(byId.get(7)).toMatchObject({ error: { code: -32601 } });
      expect(byId.get("b")).toMatchObject({ error: { code: -32602 } });
      expect(batchOf(editor, "a")).toBe(3);
    });
  });

  test("ACP-BATCH-206 runs entries of a batch in parallel: a waiting prompt delays the array only", async () => {
    await draftStory({}, async (context) => {
      const { editor, model, repository } = context;
      const sessionId = await newSession(context);
      const gate = reply.gate();
      model.reply(reply.say("One."), gate).reply("Two.");
      await editor.request("session/prompt", { sessionId, prompt: [{ type: "text", text: "First" }] });
      await gate.reached();
      const prompt = [{ type: "text", text: "Second" }];
      const batch = [
        call("waits", "session/prompt", { sessionId, prompt }),
        call("new", "session/new", { cwd: repository.path }),
      ];
      await editor.write(`${JSON.stringify(batch)}\n`);
      const listed = async () => toList((await editor.request("session/list")).sessions).length;
      while ((await listed()) < 2);
      expect(batchOf(editor, "new")).toBeUndefined();
      gate.release();
      await editor.waitForEntry(
        ({ message }) => message?.kind === "response" && message.id === "new",
        "the array",
      );
      expect(batchOf(editor, "waits")).toBe(2);
      await editor.wire.bell.until(
        () => (editor.updates(sessionId).filter(isTurnEnd).length === 2 ? true : undefined),
        "two ends",
      );
    });
  });

  test("a request of a batch is cancelled like any other, and the array is sent", async () => {
    await draftStory({}, async (context) => {
      const { editor } = context;
      const sessionId = await busySession(context);
      const prompt = [{ type: "text", text: "Second" }];
      const batch = [call("queued", "session/prompt", { sessionId, prompt }), call("list", "session/list")];
      await editor.write(`${JSON.stringify(batch)}\n`);
      await expectFailure(editor.request("_test/fence"));
      await editor.notify("session/cancel", { sessionId });
      const { message } = await editor.waitForEntry(
        (entry) => entry.message?.kind === "response" && entry.message.id === "queued",
        "the array",
      );
      expect(message?.json).toMatchObject({ error: { code: -32800 } });
      expect(batchOf(editor, "list")).toBe(2);
    });
  });

  test("ACP-BATCH-207 ACP-BATCH-208 creates and closes sessions in batches, and sends their updates afterwards", async () => {
    await draftStory({}, async ({ editor, repository }) => {
      const params = { cwd: repository.path };
      const batch = [call("one", "session/new", params), call("two", "session/new", params)];
      const answers = await rawAnswers(editor, [JSON.stringify(batch)], 2);
      const ids = answers.map(({ result }) => String(toObject(result).sessionId));
      expect(new Set(ids).size).toBe(2);
      const answered = editor.wire.entries.findIndex(({ batchOf }) => batchOf !== undefined);
      const updates = editor.wire.updates.filter(({ sessionId }) => ids.includes(sessionId));
      for (const { order } of updates) expect(order).toBeGreaterThan(answered);
      for (const { order } of updates) expect(editor.wire.entries[order]?.batchOf).toBeUndefined();
      const closes = ids.map((sessionId, index) => call(`close ${index}`, "session/close", { sessionId }));
      expect(await rawAnswers(editor, [JSON.stringify(closes)], 2)).toMatchObject([
        { result: {} },
        { result: {} },
      ]);
    });
  });

  test("ACP-INFO-BATCH-201 ACP-INFO-BATCH-202 answers an invalid array with a parse error, and accepts mixed-in responses", async () => {
    await draftStory({}, async ({ editor }) => {
      const broken = await rawAnswers(editor, ['[{"jsonrpc": "2.0", "id": 1, "method": '], 1);
      expect(broken).toMatchObject([{ id: null, error: { code: -32700 } }]);
      const mixed = [call("call", "no/such"), { jsonrpc: "2.0", id: "answer", result: {} }];
      const answers = await rawAnswers(editor, [JSON.stringify(mixed)], 1);
      expect(answers).toMatchObject([{ id: "call", error: { code: -32601 } }]);
      expect(batchOf(editor, "call")).toBe(1);
    });
  });

  test("rejects a whole batch if it is too long or sent before version 2 is agreed on", async () => {
    await draftStory({ initialize: false }, async ({ editor }) => {
      const early = [{ jsonrpc: "2.0", method: "_test/note" }];
      await editor.write(`${JSON.stringify(early)}\n`);
      await editor.waitForEntry(
        ({ message }) => message?.kind === "response" && message.id === null,
        "a refusal",
      );
      await editor.initialize();
      const long = Array.from({ length: 101 }, () => ({ jsonrpc: "2.0", method: "_test/note" }));
      expect(await rawAnswers(editor, [JSON.stringify(long)], 1)).toMatchObject([
        { id: null, error: { code: -32600, message: expect.stringContaining("100") } },
      ]);
    });
  });
});

describe("logging in", () => {
  test("ACP-AUTH-201 ACP-AUTH-202 ACP-AUTH-206 ACP-AUTH-207 ACP-AUTH-203 ACP-AUTH-204 ACP-AUTH-205 lists typed methods, logs in and out", async () => {
    await draftStory({ initialize: false }, async (context) => {
      const { editor } = context;
      const { authMethods } = await editor.initialize();
      expect(toList(authMethods).map((method) => toObject(method).type)).toEqual(["agent"]);
      expect(await editor.request("auth/login", { methodId: "fairlead" })).toEqual({});
      expect(await newSession(context)).toMatch(/./);
      expect(await editor.request("auth/logout")).toEqual({});
      expect(await expectFailure(editor.request("auth/login", { methodId: "other" }))).toMatchObject({
        code: -32602,
      });
    });
  });

  test("ACP-AUTH-202 ACP-AUTH-207 offers a terminal login to clients with terminals", async () => {
    const capabilities = { auth: { terminal: {} } };
    await draftStory({ initialize: false, capabilities }, async ({ editor }) => {
      const { authMethods } = await editor.initialize();
      const ids = toList(authMethods).map((method) => toObject(method).methodId);
      expect(new Set(ids).size).toBe(ids.length);
      expect(toList(authMethods)[1]).toMatchObject({ type: "terminal", args: ["setup"], env: [] });
    });
  });
});

describe("sessions", () => {
  test("ACP-SESSION-001 ACP-SESSION-002 ACP-SESSION-203 ACP-META-001 ACP-META-201 creates sessions with and without servers, each with a new id", async () => {
    await draftStory({}, async (context) => {
      const ids = [
        await newSession(context),
        await newSession(context, { mcpServers: [] }),
        await newSession(context, { _meta: { "vendor.example": [1] } }),
      ];
      expect(new Set(ids).size).toBe(3);
      const { editor, repository } = context;
      const params = { cwd: repository.path, mcpServers: [{ type: "sse", name: "x", url: "http://x" }] };
      expect(await expectFailure(editor.request("session/new", params))).toMatchObject({ code: -32602 });
    });
  });

  test("ACP-MCP-201 ACP-MCP-202 accepts local and remote servers, working or not, and offers their tools", async () => {
    await using remote = await startHttpMcp({ speaks: "http" });
    await draftStory({}, async (context) => {
      const { command } = memory();
      const [file = "", ...args] = command;
      const servers = [
        { type: "stdio", name: "memory", command: file, args },
        { type: "stdio", name: "absent", command: "/no/such/program" },
        { type: "http", name: "remote", url: remote.url },
        { type: "http", name: "gone", url: "http://127.0.0.1:9/mcp", headers: [{ name: "x", value: "y" }] },
      ];
      const sessionId = await newSession(context, { mcpServers: servers });
      context.model.otherwise("Hello.");
      // A turn that begins before a server is connected has no tools of it.
      const findServers = async () => {
        await context.editor.turn(sessionId, "Hi");
        const names = context.model.requests.at(-1)?.toolNames ?? [];
        return ["memory", "remote"].filter((server) => names.some((name) => name.startsWith(server)));
      };
      await expect.poll(findServers).toEqual(["memory", "remote"]);
    });
  });

  test("ACP-LIST-201 ACP-LIST-202 ACP-LIST-203 ACP-LIST-204 ACP-DELETE-201 ACP-DELETE-202 ACP-DELETE-203 ACP-CLOSE-201 filters the list by folder; closing keeps a session, deleting removes it", async () => {
    await draftStory({}, async (context) => {
      const { editor, repository } = context;
      const sessionId = await newSession(context);
      const list = async (params: JsonObject = {}) =>
        toList((await editor.request("session/list", params)).sessions).map(toObject);
      expect(await list({ cwd: "/no/session/was/ever/here" })).toEqual([]);
      expect((await list({ cwd: repository.path })).map(({ cwd }) => cwd)).toEqual([repository.path]);
      expect(await expectFailure(editor.request("session/list", { cwd: "relative" }))).toMatchObject({
        code: -32602,
      });
      expect(await editor.request("session/close", { sessionId })).toEqual({});
      expect(await list()).toMatchObject([{ sessionId }]);
      expect(await editor.request("session/delete", { sessionId })).toEqual({});
      expect(await list()).toEqual([]);
      expect(await editor.request("session/delete", { sessionId: "tck-never-created-session" })).toEqual({});
    });
  });

  test("ACP-ADDDIRS-201 ACP-ADDDIRS-202 ACP-RESUME-201 new and resume accept additional directories", async () => {
    await using other = await temporaryFolder();
    await draftStory({}, async (context) => {
      const { editor, repository } = context;
      const more = { additionalDirectories: [other.path] };
      const sessionId = await newSession(context, more);
      await editor.request("session/close", { sessionId });
      const resumed = await editor.request("session/resume", { sessionId, cwd: repository.path, ...more });
      expect(toList(resumed.configOptions)).not.toEqual([]);
    });
  });

  test("ACP-CONFIG-201 ACP-CONFIG-202 ACP-CONFIG-203 ACP-CONFIG-204 ACP-CONFIG-206 sends complete and valid options in every response and update", async () => {
    await draftStory({}, async (context) => {
      const { editor, repository } = context;
      const created = await editor.request("session/new", { cwd: repository.path });
      const sessionId = String(created.sessionId);
      const idsOf = (options: unknown) => toList(options).map((option) => toObject(option).configId);
      const ids = idsOf(created.configOptions);
      expect(ids).toEqual(expect.arrayContaining(["mode", "model"]));
      for (const option of toList(created.configOptions).map(toObject)) expectValid(option);
      const params = { sessionId, configId: "mode", type: "id", value: "plan" };
      const set = await editor.request("session/set_config_option", params);
      expect(idsOf(set.configOptions)).toEqual(ids);
      expect(toObject(toList(set.configOptions)[0]).currentValue).toBe("plan");
      const resumed = await editor.request("session/resume", { sessionId, cwd: repository.path });
      expect(toObject(toList(resumed.configOptions)[0]).currentValue).toBe("plan");
      const changes = editor.updates(sessionId).filter((one) => one.sessionUpdate === "config_option_update");
      for (const { configOptions } of changes) expect(idsOf(configOptions)).toEqual(ids);
      expect(
        await expectFailure(editor.request("session/set_config_option", { ...params, value: "no" })),
      ).toMatchObject({ code: -32602 });
    });
  });
});

function expectValid({ type, name, currentValue, options }: JsonObject): void {
  expect(name).toMatch(/./);
  if (type === "boolean") return;
  const entries = toList(options).map(toObject);
  const isGrouped = entries.some((entry) => "groupId" in entry);
  expect(entries.every((entry) => "groupId" in entry === isGrouped)).toBe(true);
  const values = entries.flatMap((entry) => (isGrouped ? toList(entry.options).map(toObject) : [entry]));
  expect(values.map(({ value }) => value)).toContain(currentValue);
}

describe("turns", () => {
  test("ACP-PROMPT-201 ACP-PROMPT-203 ACP-PROMPT-205 ACP-STATE-201 ACP-STATE-202 ACP-STATE-203 ACP-PATCH-201 ACP-PATCH-203 answers a prompt while its turn runs, and ends the turn with an idle state", async () => {
    await draftStory({}, async (context) => {
      const { editor, model } = context;
      const sessionId = await newSession(context);
      const gate = reply.gate();
      model.title(reply.gate()).reply(reply.think("Hm."), gate, reply.say("Hello.")).reply("Again.");
      const prompt = [{ type: "text", text: "Hi" }];
      const { messageId } = await editor.request("session/prompt", { sessionId, prompt });
      expect(messageId).toMatch(/./);
      await gate.reached();
      expect(editor.updates(sessionId).some(isTurnEnd), "the receipt came before the end").toBe(false);
      gate.release();
      expect(await editor.waitFor(sessionId, isTurnEnd)).toMatchObject({ stopReason: "end_turn" });
      const updates = editor.updates(sessionId);
      expect(updates.filter(isState).map(({ state }) => state)).toEqual(["running", "idle"]);
      expect(updates).toContainEqual({ sessionUpdate: "user_message", messageId, content: prompt });
      expect(draftText(updates, "agent_message_chunk")).toBe("Hello.");
      expect(draftText(updates, "agent_thought_chunk")).toBe("Hm.");
      const second = await editor.turn(sessionId, "Again");
      expect(second.messageId).not.toBe(messageId);
    });
  });

  test("ACP-PROMPTCAP-001 ACP-PROMPTCAP-003 ACP-PROMPT-003 accepts images, embedded and linked resources, and refuses sound", async () => {
    await draftStory({ files: { "a.txt": "one\n" } }, async (context) => {
      const { editor, model, repository } = context;
      const sessionId = await newSession(context);
      model.reply("Seen.");
      const prompt = [
        { type: "text", text: "Look" },
        { type: "image", data: pixel, mimeType: "image/png" },
        { type: "resource", resource: { uri: "file:///x.txt", text: "embedded" } },
        { type: "resource_link", name: "a.txt", uri: pathToFileURL(join(repository.path, "a.txt")).href },
      ];
      await editor.request("session/prompt", { sessionId, prompt });
      await editor.waitFor(sessionId, isTurnEnd);
      expect(JSON.stringify(model.requests[0]?.messages)).toContain("embedded");
      for (const block of [
        { type: "audio", data: pixel, mimeType: "audio/wav" },
        { type: "_odd", any: 1 },
      ])
        expect(
          await expectFailure(editor.request("session/prompt", { sessionId, prompt: [block] })),
        ).toMatchObject({
          code: -32602,
        });
    });
  });

  test("ACP-INFO-CONCURRENT-201 a second prompt waits and gets its own receipt and turn", async () => {
    await draftStory({}, async (context) => {
      const { editor, model } = context;
      const sessionId = await newSession(context);
      const gate = reply.gate();
      model.reply(reply.say("One."), gate).reply("Two.");
      const ask = (text: string) =>
        editor.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
      const first = await ask("First");
      const second = ask("Second");
      gate.release();
      expect((await second).messageId).not.toBe(first.messageId);
      await editor.wire.bell.until(
        () => (editor.updates(sessionId).filter(isTurnEnd).length === 2 ? true : undefined),
        "two ends",
      );
      expect(
        editor
          .updates(sessionId)
          .filter(isState)
          .map(({ state }) => state),
      ).toEqual(["running", "idle", "running", "idle"]);
    });
  });

  test("ends a failed turn with an idle state that names the error; sessions continue", async () => {
    await draftStory({ config: { retry: { attempts: 1 } } }, async (context) => {
      const { editor, model } = context;
      const sessionId = await newSession(context);
      model.reply(reply.status(401, { error: { message: "bad key" } })).reply("Hello.");
      const { idle } = await editor.turn(sessionId, "Hi");
      expect(idle).toMatchObject({ stopReason: "error", error: { code: -32000 } });
      expect(await editor.turn(sessionId, "Again")).toMatchObject({ idle: { stopReason: "end_turn" } });
    });
  });

  test("ACP-CANCEL-201 ACP-CANCEL-202 ACP-CANCEL-203 ACP-CANCEL-205 ACP-CANCEL-206 ACP-CANCEL-207 a cancel ends the turn with an idle state and without later updates", async () => {
    await draftStory({}, async (context) => {
      const { editor, model } = context;
      for (const _meta of [undefined, { any: 1 }]) {
        const sessionId = await busySession(context);
        const before = editor.wire.entries.length;
        await editor.notify("session/cancel", { sessionId, ...(_meta && { _meta }) });
        const end = await editor.waitFor(sessionId, isTurnEnd);
        expect(stopReasons).toContain(end.stopReason);
        expect(end).toMatchObject({ state: "idle", stopReason: "cancelled" });
        await expectFailure(editor.request("_test/fence"));
        const answers = editor.wire.entries
          .slice(before)
          .filter(({ message }) => message?.kind === "response");
        expect(answers).toHaveLength(1);
        expect(editor.updates(sessionId).at(-1)).toEqual(end);
        model.reply("Fresh.");
        expect(await editor.turn(sessionId, "Again")).toMatchObject({ messageId: expect.any(String) });
      }
    });
  });

  test("ACP-CANCEL-204 a cancel ends the running command", async () => {
    await draftStory({ config: { permission: { bash: "allow" } } }, async (context) => {
      const { editor, model } = context;
      const sessionId = await newSession(context);
      model.reply(reply.call("bash", { command: endless }));
      const prompt = [{ type: "text", text: "Work" }];
      await editor.request("session/prompt", { sessionId, prompt });
      await editor.waitFor(sessionId, ({ sessionUpdate }) => sessionUpdate === "terminal_output_chunk");
      await editor.notify("session/cancel", { sessionId });
      expect(await editor.waitFor(sessionId, isTurnEnd)).toMatchObject({ stopReason: "cancelled" });
      // No process remains after the story, which checks that at its end.
    });
  });

  test("ACP-BACKGROUND-201 ACP-BACKGROUND-202 ACP-BACKGROUND-203 ACP-BACKGROUND-204 ACP-BACKGROUND-205 ACP-BACKGROUND-206 lists background work in every state, also of an idle session, and cancels it", async () => {
    await draftStory({ config: { permission: { bash: "allow" } } }, async (context) => {
      const { editor, model, repository } = context;
      const sessionId = await newSession(context);
      const look = { description: "Look", prompt: "Look at it.", subagent_type: "general", background: true };
      model.when(({ userText }) => userText.includes("Look at it."), [reply.say("I look."), reply.gate()]);
      model
        .reply(reply.call("bash", { command: endless, background: true }))
        .reply(reply.call("task", look))
        .reply("Both run.");
      await editor.turn(sessionId, "Work");
      const states = () => editor.updates(sessionId).filter(isState);
      const listed = () => toList(states().at(-1)?.background).map(toObject);
      expect(states().every(({ background }) => Array.isArray(background))).toBe(true);
      expect(states().at(-1)).toMatchObject({ state: "idle", stopReason: "end_turn" });
      const both = listed();
      expect(both).toEqual([
        { type: "terminal", terminalId: expect.any(String) },
        { type: "tool_call", toolCallId: expect.any(String) },
      ]);

      await editor.notify("session/cancel", { sessionId });
      const replayFrom = { type: "start" };
      for (const more of [{}, { replayFrom }]) {
        const before = states().length;
        await editor.request("session/resume", { sessionId, cwd: repository.path, ...more });
        expect(states().length).toBeGreaterThan(before);
        expect(listed()).toEqual(both);
      }

      for (const [at, item] of both.entries()) {
        const from = editor.updates(sessionId).length;
        const [method, id] =
          item.type === "terminal" ? ["terminal/cancel", "terminalId"] : ["tool_call/cancel", "toolCallId"];
        await editor.request(method, { sessionId, [id]: item[id] });
        const isShorter = (update: JsonObject) =>
          isState(update) && toList(update.background).length === both.length - at - 1;
        await editor.waitFor(sessionId, isShorter, from);
      }
      const updates = editor.updates(sessionId);
      const exit = updates.findLastIndex(({ exitStatus }) => exitStatus !== undefined);
      const ends = updates.flatMap(({ status }, at) => (status === "completed" ? [at] : []));
      expect(exit).toBeGreaterThan(-1);
      expect(ends).toHaveLength(2);
      expect(updates.findLastIndex(isState)).toBeGreaterThan(Math.max(exit, ...ends));
    });
  });

  test("ACP-INFO-CANCEL-201 a cancel of an idle or unknown session does nothing", async () => {
    await draftStory({}, async (context) => {
      const { editor } = context;
      const sessionId = await usedSession(context);
      const before = editor.wire.entries.length;
      for (const id of [sessionId, "ses_00000000000000000000000000000000", "odd"])
        await editor.notify("session/cancel", { sessionId: id });
      await expectFailure(editor.request("_test/fence"));
      const answers = editor.wire.entries
        .slice(before)
        .filter(({ direction }) => direction === "fromAgent")
        .map(({ message }) => message?.kind);
      expect(answers).toEqual(["response"]);
      context.model.reply("Here.");
      expect(await editor.turn(sessionId, "Again")).toMatchObject({ idle: { stopReason: "end_turn" } });
    });
  });

  test("ACP-CANCEL-208 ACP-CLOSE-202 closing a busy session cancels its turn", async () => {
    await draftStory({}, async (context) => {
      const { editor } = context;
      const sessionId = await busySession(context);
      expect(await editor.request("session/close", { sessionId })).toEqual({});
      expect(editor.updates(sessionId).filter(isTurnEnd)).toMatchObject([{ stopReason: "cancelled" }]);
    });
  });
});

describe("tools", () => {
  const config = { permission: { bash: "ask", edit: "ask" } };
  const allow = (request: { options: { optionId: string; kind: string }[] }) => ({
    outcome: "selected" as const,
    optionId: request.options.find(({ kind }) => kind === "allow_once")?.optionId ?? "",
  });

  test("ACP-PERM-201 ACP-PATCH-204 ACP-PATCH-205 ACP-PATCH-206 ACP-PATCH-207 ACP-PATCH-208 ACP-PATCH-209 ACP-ENUM-201 ACP-ENUM-202 ACP-CLIENTCAP-201 ACP-CLIENTCAP-202 shows calls, terminals, diffs and plans, and asks for permission", async () => {
    const files = { "a.txt": "one\n" };
    await draftStory({ config, files, permission: allow }, async (context) => {
      const { editor, model, repository } = context;
      const sessionId = await newSession(context);
      const todos = [{ id: "1", content: "Look", status: "pending", priority: "high" }];
      model
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply(reply.call("todowrite", { todos }))
        .reply(reply.call("edit", { filePath: "a.txt", oldString: "one", newString: "two" }))
        .reply(reply.call("bash", { command: "echo grün; exit 3" }))
        .reply("Done.");
      expect(await editor.turn(sessionId, "Work")).toMatchObject({ idle: { stopReason: "end_turn" } });
      for (const request of editor.permissionRequests) {
        expect(request).toMatchObject({ sessionId, title: expect.stringMatching(/./) });
        expect(request.options.map(({ kind }) => kind)).toEqual(
          expect.arrayContaining(["allow_once", "reject_once"]),
        );
      }
      expect(editor.permissionRequests.map(({ subject }) => subject?.type)).toEqual([
        "tool_call",
        "tool_call",
      ]);
      const updates = editor.updates(sessionId);
      const states = updates.filter(isState).map(({ state }) => state);
      expect(states).toEqual(["running", "requires_action", "running", "requires_action", "running", "idle"]);
      const calls = updates.filter(({ sessionUpdate }) => sessionUpdate === "tool_call_update");
      for (const { kind } of calls) if (kind !== undefined) expect(toolKinds).toContain(kind);
      const diff = calls.flatMap(({ content }) => toList(content).map(toObject)).find(isDiff);
      const path = join(repository.path, "a.txt");
      const name = withSlashes(path);
      expect(diff).toEqual({
        type: "diff",
        changes: [{ operation: "modify", path, fileType: "text" }],
        patch: {
          format: "git_patch",
          text: `diff --git ${name} ${name}\n--- ${name}\n+++ ${name}\n@@ -1,1 +1,1 @@\n-one\n+two\n`,
        },
      });
      const output = updates
        .filter(({ sessionUpdate }) => sessionUpdate === "terminal_output_chunk")
        .map(({ data }) => Buffer.from(String(data), "base64").toString());
      expect(output.join("")).toBe("grün\r\n");
      const terminals = updates.filter(({ sessionUpdate }) => sessionUpdate === "terminal_update");
      expect(terminals).toMatchObject([
        { cwd: repository.path },
        { command: "echo grün; exit 3" },
        { exitStatus: { exitCode: 3, signal: null } },
      ]);
      expect(updates.filter(({ sessionUpdate }) => sessionUpdate === "plan_update")).toMatchObject([
        { plan: { type: "items", planId: expect.any(String), entries: [{ content: "Look" }] } },
      ]);
      const requested = editor.wire.entries.flatMap(({ direction, message }) =>
        direction === "fromAgent" && message?.kind === "request" ? [message.method] : [],
      );
      expect(new Set(requested)).toEqual(new Set(["session/request_permission"]));
    });
  });

  test.each([
    ["tool_call/cancel", "toolCallId", "tool_call_update"],
    ["terminal/cancel", "terminalId", "terminal_update"],
  ])("%s ends one command, and the turn continues without it", async (method, idName, kind) => {
    await draftStory({ config: { permission: { bash: "allow" } } }, async (context) => {
      const { editor, model } = context;
      const sessionId = await newSession(context);
      model.reply(reply.call("bash", { command: endless })).reply("Then not.");
      const turn = editor.turn(sessionId, "Work");
      await editor.waitFor(sessionId, ({ sessionUpdate }) => sessionUpdate === "terminal_output_chunk");
      const of = () => editor.updates(sessionId).filter(({ sessionUpdate }) => sessionUpdate === kind);
      expect(of()[0]).toMatchObject({ capabilities: { cancel: {} } });
      const params = { sessionId, [idName]: of()[0]?.[idName] };
      expect(await editor.request(method, params)).toEqual({});
      expect(await turn).toMatchObject({ idle: { stopReason: "end_turn" } });
      expect(of().at(-1)).toMatchObject({ capabilities: null });
      const call = editor.updates(sessionId).findLast((one) => one.sessionUpdate === "tool_call_update");
      expect(call).toMatchObject({ status: "cancelled" });
      expect(call).not.toHaveProperty("_meta");
      expect(model.requests[1]?.toolResults[0]).toMatch(/cancelled/i);
      const commands = editor.updates(sessionId).flatMap(({ command }) => command ?? []);
      expect(commands).toEqual([endless]);
      for (const odd of [params, { ...params, [idName]: "unknown" }])
        expect(await expectFailure(editor.request(method, odd))).toMatchObject({ code: -32602 });
    });
  });

  test("a call is cancelled while the user is asked, and the question is withdrawn", async () => {
    await draftStory({ config, permission: () => "never" }, async (context) => {
      const { editor, model } = context;
      const sessionId = await newSession(context);
      model.reply(reply.call("bash", { command: "touch done" })).reply("Then not.");
      const turn = editor.turn(sessionId, "Work");
      await editor.waitFor(sessionId, ({ state }) => state === "requires_action");
      const call = editor.updates(sessionId).find((one) => one.sessionUpdate === "tool_call_update");
      await editor.request("tool_call/cancel", { sessionId, toolCallId: call?.toolCallId });
      expect(await turn).toMatchObject({ idle: { stopReason: "end_turn" } });
      expect(await context.repository.git("status", "--porcelain")).toBe("");
    });
  });

  test("ACP-ENUM-203 an unknown outcome of a permission approves nothing", async () => {
    const odd = () => ({ outcome: "_later" as const });
    await draftStory({ config, permission: odd }, async (context) => {
      const sessionId = await newSession(context);
      context.model.reply(reply.call("bash", { command: "touch done" })).reply("Then not.");
      await context.editor.turn(sessionId, "Work");
      expect(await context.repository.git("status", "--porcelain")).toBe("");
    });
  });

  test("ACP-INFO-CANCEL-202 a cancel during a question ends the turn and withdraws the question", async () => {
    await draftStory({ config, permission: () => "never" }, async (context) => {
      const { editor, model } = context;
      const sessionId = await newSession(context);
      model.reply(reply.call("bash", { command: "touch done" }));
      const prompt = [{ type: "text", text: "Work" }];
      await editor.request("session/prompt", { sessionId, prompt });
      await editor.waitFor(sessionId, ({ state }) => state === "requires_action");
      await editor.notify("session/cancel", { sessionId });
      expect(await editor.waitFor(sessionId, isTurnEnd)).toMatchObject({ stopReason: "cancelled" });
      const methods = editor.wire.entries.flatMap(({ direction, message }) =>
        direction === "fromAgent" && message?.kind === "notification" ? [message.method] : [],
      );
      expect(methods).toContain("$/cancel_request");
    });
  });

  test("ACP-CLIENTCAP-201 questions are forms for clients with forms", async () => {
    const elicit = () => ({ action: "accept" as const, content: { question_1: "Tabs" } });
    await draftStory({ capabilities: { elicitation: { form: {} } }, elicit }, async (context) => {
      const { editor, model } = context;
      const sessionId = await newSession(context);
      const options = [
        { label: "Tabs", description: "" },
        { label: "Spaces", description: "" },
      ];
      const questions = [{ question: "Which?", header: "Indent", options }];
      model.reply(reply.call("question", { questions })).reply("Tabs then.");
      await editor.turn(sessionId, "Ask me");
      expect(model.requests[1]?.toolResults[0]).toContain("Tabs");
      const states = editor.updates(sessionId).filter(isState);
      expect(states.map(({ state }) => state)).toEqual(["running", "requires_action", "running", "idle"]);
    });
  });
});

function isDiff({ type }: JsonObject): boolean {
  return type === "diff";
}

describe("the draft's unstable part", () => {
  test("sessions are forked, titled, archived and unarchived, and report their state", async () => {
    await draftStory({}, async (context) => {
      const { editor, model, repository } = context;
      const sessionId = await usedSession(context);
      const forked = await editor.request("session/fork", { sessionId, cwd: repository.path });
      expect(toList(forked.configOptions)).not.toEqual([]);
      model.reply("In the fork.");
      await editor.turn(String(forked.sessionId), "And now?");
      expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("Hello.");
      expect(await editor.request("session/set_title", { sessionId, title: " A  name " })).toEqual({
        title: "A name",
      });
      expect(await editor.request("session/status", { sessionId })).toEqual({
        status: "open",
        state: { state: "idle", background: [] },
      });
      expect(await editor.request("session/archive", { sessionId })).toEqual({});
      expect(await editor.request("session/status", { sessionId })).toEqual({ status: "saved" });
      const archived = await editor.request("session/list", { archived: "only" });
      expect(toList(archived.sessions)).toMatchObject([{ sessionId, title: "A name", archived: true }]);
      expect(await editor.request("session/unarchive", { sessionId })).toEqual({});
      expect(toList((await editor.request("session/list")).sessions)).toHaveLength(2);
    });
  });

  test("login status and providers are answered, and changes are sent", async () => {
    await draftStory({ initialize: false }, async ({ editor, model }) => {
      await editor.initialize();
      expect(await editor.request("auth/status")).toMatchObject({ state: "authenticated" });
      const { providers } = await editor.request("providers/list");
      expect(toList(providers)[0]).toMatchObject({ providerId: "test", current: { baseUrl: model.url } });
      await editor.request("providers/disable", { providerId: "test" });
      const { message } = await editor.waitForEntry(
        (entry) => entry.message?.kind === "notification" && entry.message.method === "auth/status_update",
        "the status",
      );
      expect(message?.json.params).toEqual({ state: "unauthenticated", accounts: [] });
      const route = { providerId: "test", apiType: "openai", baseUrl: model.url };
      expect(await editor.request("providers/set", route)).toEqual({});
    });
  });
});

describe("resuming", () => {
  test("ACP-RESUME-202 ACP-RESUME-203 ACP-RESUME-204 ACP-RESUME-205 ACP-SCHEMA-002 replays everything before the response on request, otherwise no history", async () => {
    await draftStory({}, async (context) => {
      const { editor, repository } = context;
      const sessionId = await usedSession(context);
      const replyText = editor.updates(sessionId).find((one) => one.sessionUpdate === "user_message");
      await editor.request("session/close", { sessionId });

      let before = editor.updates(sessionId).length;
      await editor.request("session/resume", { sessionId, cwd: repository.path });
      await expectFailure(editor.request("_test/fence"));
      expect(editor.kinds(sessionId, before)).toEqual([
        "state_update",
        "usage_update",
        "session_info_update",
      ]);

      before = editor.updates(sessionId).length;
      const replayFrom = { type: "start" };
      await editor.request("session/resume", { sessionId, cwd: repository.path, replayFrom });
      const replayed = editor.updates(sessionId).slice(before);
      await expectFailure(editor.request("_test/fence"));
      expect(editor.updates(sessionId).slice(before)).toEqual(replayed);
      expect(replayed.map(({ sessionUpdate }) => sessionUpdate)).toEqual([
        "user_message",
        "user_message_chunk",
        "agent_message",
        "agent_message_chunk",
        "usage_update",
        "session_info_update",
        "state_update",
      ]);
      expect(replayed[0]).toMatchObject({ messageId: replyText?.messageId, content: [] });
      expect(draftText(replayed, "user_message_chunk")).toBe("Hi");

      const odd = { sessionId, cwd: repository.path, replayFrom: { type: "_middle" } };
      expect(await expectFailure(editor.request("session/resume", odd))).toMatchObject({ code: -32602 });
    });
  });

  test("a prompt sent after its resume waits for it, and can be cancelled", async () => {
    await draftStory({}, async (context) => {
      const { editor, model, repository } = context;
      const sessionId = await usedSession(context);
      model.otherwise("Here again.");
      await editor.request("session/close", { sessionId });
      const resumed = editor.request("session/resume", { sessionId, cwd: repository.path });
      expect(await editor.turn(sessionId, "Again")).toMatchObject({ idle: { stopReason: "end_turn" } });
      await resumed;

      await editor.request("session/close", { sessionId });
      const once = editor.request("session/resume", { sessionId, cwd: repository.path });
      const prompt = [{ type: "text", text: "No more" }];
      const refused = expectFailure(editor.request("session/prompt", { sessionId, prompt }));
      await editor.notify("session/cancel", { sessionId });
      expect(await refused).toMatchObject({ code: -32800 });
      await once;
    });
  });

  test("ACP-INFO-UNKNOWNSESSION-001 the error names an unknown session", async () => {
    await draftStory({}, async ({ editor, repository }) => {
      const sessionId = "ses_00000000000000000000000000000000";
      const failures = await Promise.all([
        expectFailure(editor.request("session/resume", { sessionId, cwd: repository.path })),
        expectFailure(
          editor.request("session/prompt", { sessionId, prompt: [{ type: "text", text: "Hi" }] }),
        ),
      ]);
      for (const failure of failures) expect(failure).toMatchObject({ code: -32002, data: { sessionId } });
    });
  });

  test("a message into a running turn is echoed with an id", async () => {
    await draftStory({}, async (context) => {
      const { editor, model } = context;
      const sessionId = await newSession(context);
      const gate = reply.gate();
      model.reply(reply.say("One."), gate).reply("Two.");
      const { messageId } = await editor.request("session/prompt", {
        sessionId,
        prompt: [{ type: "text", text: "First" }],
      });
      await gate.reached();
      const prompt = [{ type: "text", text: "Also this" }];
      expect(await editor.request("_session/steering", { sessionId, prompt })).toMatchObject({
        outcome: "injected",
      });
      gate.release();
      const idle = await editor.waitFor(sessionId, isTurnEnd);
      expect(toObject(toObject(idle._meta).usage)).toMatchObject({ totalTokens: expect.any(Number) });
      const replyText = editor.updates(sessionId).filter((one) => one.sessionUpdate === "user_message");
      expect(replyText.map(({ content }) => content)).toEqual([[{ type: "text", text: "First" }], prompt]);
      expect(replyText[0]?.messageId).toBe(messageId);
      expect(replyText[1]?.messageId).not.toBe(messageId);
    });
  });

  test("ACP-EXT-202 steering is an extension that the capabilities name", async () => {
    await draftStory({ initialize: false }, async (context) => {
      const { editor } = context;
      const answer = await editor.initialize();
      expect(toObject(toObject(answer.capabilities)._meta)).toEqual({
        steering: { supported: true },
        rewindSession: { modes: ["files", "conversation", "both"] },
      });
      const sessionId = await newSession(context);
      const prompt = [{ type: "text", text: "Also this" }];
      expect(await editor.request("_session/steering", { sessionId, prompt })).toEqual({
        outcome: "promptRequired",
        reason: "noRunningTurn",
      });
    });
  });
});
