import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { plain, withElicitation, withFs, zedLike, type ClientKind } from "../../support/editor/clients.ts";
import type { Editor } from "../../support/editor/editor.ts";
import { expectFailure } from "../../support/failure.ts";
import { isObject, toList, toObject, type JsonObject } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { collectUnrequestedMessages } from "../../support/editor/silence.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { lacksSignals } from "../../support/platform/platform.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { agentText, thoughtText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

/** Known habits of clients, each played on the wire. Sources: their code and their issues. */

const ask = { permission: { bash: "ask", edit: "ask" } };
const indent = {
  questions: [
    {
      question: "Tabs or spaces?",
      header: "Indent",
      options: [
        { label: "Tabs", description: "One for each step" },
        { label: "Spaces", description: "Two of them" },
      ],
    },
  ],
};

const named = (name: string, kind: ClientKind = plain()): ClientKind => ({
  ...kind,
  info: { name, version: "1" },
});

const requestsOf = (editor: Editor): { method: string; params: JsonObject }[] =>
  editor.wire.entries.flatMap(({ direction, message }) =>
    direction === "fromAgent" && message?.kind === "request" ? [message] : [],
  );

/** Messages that the agent sends without a request, by kind. */
const kindsSent = (editor: Editor): Set<string> =>
  new Set(editor.wire.updates.map(({ update }) => update.sessionUpdate));

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

describe("Zed", () => {
  test("applies default mode and options set right after session/new", async () => {
    await story({ client: zedLike() }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const [, options] = await Promise.all([
        editor.setMode(sessionId, "plan"),
        editor.setConfigOption(sessionId, "approval", "auto"),
      ]);
      const values = options.configOptions.map(({ id, currentValue }) => [id, currentValue]);
      expect(values).toEqual(
        expect.arrayContaining([
          ["mode", "plan"],
          ["approval", "auto"],
        ]),
      );
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
    });
  });

  test("sees a replayed terminal opened, filled and ended, under the id of the call", async () => {
    await story({ client: zedLike() }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo out; exit 4" })).reply("Done.");
      await editor.prompt(sessionId, "Run it");
      await editor.restart();
      await editor.initialize();
      await editor.load(sessionId);
      const [call] = editor.updates(sessionId, "tool_call");
      const id = call?.toolCallId;
      expect(call?._meta).toMatchObject({
        terminal_info: { terminal_id: id, cwd: repository.path },
        terminal_output: { terminal_id: id, data: "out" },
        terminal_exit: { terminal_id: id, exit_code: 4, signal: null },
      });
      expect(call?.content).toEqual([{ type: "terminal", terminalId: id }]);
    });
  });

  test("sees in a replayed terminal only what its command printed", async () => {
    await story({ client: zedLike() }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      for (const command of ["exit 3", "echo gone; kill -9 $$"]) model.reply(reply.call("bash", { command }));
      model.reply("Done.");
      await editor.prompt(sessionId, "Run them");
      const before = editor.updates(sessionId).length;
      await editor.load(sessionId);
      const killed = lacksSignals
        ? { exit_code: expect.any(Number), signal: null }
        : { exit_code: null, signal: "SIGKILL" };
      const metas = toolCalls(editor.updates(sessionId).slice(before)).map(({ _meta }) => _meta);
      expect(metas).toMatchObject([
        { terminal_exit: { exit_code: 3, signal: null } },
        { terminal_output: { data: "gone" }, terminal_exit: killed },
      ]);
      expect(metas[0]).not.toHaveProperty("terminal_output");
    });
  });

  test("shows the raw command as the title of the call and of its permission", async () => {
    await story({ client: zedLike(), config: ask, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const command = "printf '%s' *x*";
      model.reply(reply.call("bash", { command, description: "Print a star" })).reply("Done.");
      await editor.prompt(sessionId, "Run it");
      expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ title: command, kind: "execute" }]);
      expect(editor.permissionRequests[0]?.toolCall).toMatchObject({ title: command, rawInput: { command } });
    });
  });

  test("takes a question as an update of its call, whose terminal returns when it runs", async () => {
    await story({ client: zedLike(), config: ask, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "true" })).reply("Done.");
      await editor.prompt(sessionId, "Run it");
      expect(editor.permissionRequests[0]?.toolCall.content).not.toEqual([]);
      const [call] = editor.updates(sessionId, "tool_call");
      const runs = editor
        .updates(sessionId, "tool_call_update")
        .find(({ status }) => status === "in_progress");
      expect(runs?.content).toEqual([{ type: "terminal", terminalId: call?.toolCallId }]);
    });
  });

  test("cancels and prompts at once: the old prompt is cancelled, the new one answered", async () => {
    await story({ client: zedLike() }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      model.reply(reply.say("Old"), gate).reply("New.");
      const old = editor.prompt(sessionId, "Old");
      await editor.waitForKind(sessionId, "agent_message_chunk");
      await editor.cancel(sessionId);
      const fresh = editor.prompt(sessionId, "New");
      expect(await old).toMatchObject({ stopReason: "cancelled" });
      expect(await fresh).toMatchObject({ stopReason: "end_turn" });
      expect(agentText(editor.updates(sessionId))).toBe("OldNew.");
    });
  });

  test("reads a failure in data.details, and no failure cuts its thread as a refusal", async () => {
    await story({ client: zedLike(), config: { retry: { attempts: 1 } } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.failure(500, "the provider broke"));
      const failure = await expectFailure(editor.prompt(sessionId, "Hi"));
      expect(failure).toEqual({
        code: -32603,
        message: expect.stringMatching(/^[^\n]*the provider broke[^\n]*$/),
        data: { details: failure.message },
      });
    });
  });

  test("receives a message for its login view if a login is required", async () => {
    await story({ client: zedLike() }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.failure(401, "wrong key"));
      expect(await expectFailure(editor.prompt(sessionId, "Hi"))).toMatchObject({
        code: -32000,
        message: expect.stringMatching(/^Authentication required: /),
      });
    });
  });

  test("closes a session with its view and loads it again at the same time", async () => {
    await story({ client: zedLike() }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.").reply("Still here.");
      await editor.prompt(sessionId, "Hi");
      const loads = [editor.closeSession(sessionId), editor.load(sessionId), editor.load(sessionId)];
      await Promise.all(loads);
      expect(await collectUnrequestedMessages(editor)).toEqual([]);
      await editor.prompt(sessionId, "Are you there?");
    });
  });

  test.skipIf(lacksSignals)("learns that the agent was killed, and has no open request left", async () => {
    await story({ client: zedLike() }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      model.reply(reply.say("Working"), gate);
      const turn = editor.prompt(sessionId, "Work").catch((error: unknown) => error);
      await gate.reached();
      await editor.kill("SIGTERM");
      expect(await turn).toBeDefined();
      const answers = editor.wire.entries.filter(
        ({ direction, message }) => direction === "fromAgent" && message?.kind === "response",
      );
      expect(answers).toHaveLength(3);
    });
  });

  test("gets a title by session_info_update only, and no unstable updates", async () => {
    await story({ client: zedLike() }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      expect(await editor.waitForKind(sessionId, "session_info_update")).toMatchObject({ title: "Hi" });
      for (const kind of ["notice", "compaction_update", "plan_update"])
        expect(kindsSent(editor)).not.toContain(kind);
    });
  });
});

describe("JetBrains", () => {
  const jetBrains = () => {
    const kind = named("JetBrains.IntelliJ IDEA", withFs());
    const _meta = { "jetbrains.air": { version: 1, capabilities: ["sessionFailures"] } };
    return { ...kind, capabilities: { ...kind.capabilities, terminal: false, _meta } };
  };

  test("signs in at once with a model, and gets commands after the session", async () => {
    await story({ client: jetBrains(), initialize: false }, async ({ editor }) => {
      const { authMethods = [] } = await editor.initialize();
      const began = performance.now();
      expect(await editor.request("authenticate", { methodId: authMethods[0]?.id })).toEqual({});
      expect(performance.now() - began).toBeLessThan(5_000);
      const { sessionId, modes, configOptions } = await editor.newSession();
      expect(modes?.availableModes.length).toBeGreaterThan(1);
      expect(configOptions?.map(({ category }) => category)).toEqual(
        expect.arrayContaining(["mode", "model"]),
      );
      await editor.waitForKind(sessionId, "available_commands_update");
    });
  });

  test("has no terminals and is asked for none", async () => {
    await story({ client: jetBrains() }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo hi" })).reply("Done.");
      await editor.prompt(sessionId, "Run it");
      expect(requestsOf(editor).filter(({ method }) => method.startsWith("terminal/"))).toEqual([]);
    });
  });
});

describe("CodeCompanion", () => {
  /** Its handler reads missing files as empty. */
  const codeCompanion = (): ClientKind => ({
    ...named("CodeCompanion.nvim", withFs()),
    readFile: async (path) => ({ content: await readFile(path, "utf8").catch(() => "") }),
  });

  test("authenticates with the first method always, and only chooses among options", async () => {
    await story({ client: codeCompanion(), initialize: false }, async ({ editor }) => {
      const { authMethods = [] } = await editor.initialize();
      expect(await editor.request("authenticate", { methodId: authMethods[0]?.id })).toEqual({});
      const { sessionId, configOptions = [] } = await editor.newSession();
      expect(new Set(configOptions?.map(({ type }) => type))).toEqual(new Set(["select"]));
      const { configOptions: now } = await editor.setConfigOption(sessionId, "mode", "plan");
      expect(now.find(({ id }) => id === "mode")?.currentValue).toBe("plan");
    });
  });

  test("shows the first diff and one option per kind; an empty file means a new one", async () => {
    const client = codeCompanion();
    await story({ client, config: ask, permission: "allow_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("write", { filePath: "new.txt", content: "fresh\n" })).reply("Done.");
      await editor.prompt(sessionId, "Write it");
      const [request] = editor.permissionRequests;
      const path = join(repository.path, "new.txt");
      expect(request?.toolCall.content?.[0]).toMatchObject({ type: "diff", path, newText: "fresh\n" });
      const kinds = request?.options.map(({ kind }) => kind) ?? [];
      expect(new Set(kinds).size).toBe(kinds.length);
      expect(toolCalls(editor.updates(sessionId))).toMatchObject([
        { status: "completed", content: [{ type: "diff", path, oldText: null, newText: "fresh\n" }] },
      ]);
      const statuses = editor.updates(sessionId, "tool_call_update").map(({ status }) => status);
      expect(statuses, "pending calls are hidden: the work must show as running").toContain("in_progress");
      expect(await readFile(path, "utf8")).toBe("fresh\n");
    });
  });

  test("starts a new session after a failed load, and ends the agent by SIGTERM", async () => {
    await story({ client: codeCompanion() }, async ({ editor }) => {
      expect(await expectFailure(editor.load("gone-session"))).toMatchObject({ code: -32002 });
      expect((await editor.newSession()).sessionId).toMatch(/./);
      const end = lacksSignals ? { code: null, signal: "SIGTERM" } : { code: 0, signal: null };
      expect(await editor.kill("SIGTERM")).toEqual(end);
    });
  });

  test("has no forms: a question is sent as a permission, or as text if it does not fit", async () => {
    await story({ client: codeCompanion(), permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("question", indent)).reply("Tabs.");
      await editor.prompt(sessionId, "Ask me");
      expect(model.requests[1]?.toolResults[0]).toContain("Tabs");
      const two = { questions: [...indent.questions, ...indent.questions] };
      model.reply(reply.call("question", two)).reply("Which do you want?");
      expect(await editor.prompt(sessionId, "Ask me twice")).toMatchObject({ stopReason: "end_turn" });
      expect(requestsOf(editor).map(({ method }) => method)).toEqual(["session/request_permission"]);
    });
  });
});

describe("avante", () => {
  const avante = () => named("avante.nvim", withFs());

  test("starts without HOME and stores data in the configured folder", async () => {
    const env = { HOME: "", USERPROFILE: "" };
    await story({ client: avante(), env }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      expect(agentText(editor.updates(sessionId))).toBe("Hello.");
    });
  });

  test("a permission answer without an option approves nothing; the session continues", async () => {
    const nothing = () => ({ outcome: "selected" as const, optionId: "" });
    await story(
      { client: avante(), config: ask, permission: nothing },
      async ({ editor, model, repository }) => {
        const { sessionId } = await editor.newSession();
        model.reply(reply.call("bash", { command: "touch done" })).reply("Then not.");
        await editor.prompt(sessionId, "Touch it");
        expect(await exists(join(repository.path, "done"))).toBe(false);
        model.reply("Hello.");
        expect(await editor.prompt(sessionId, "Hi")).toMatchObject({ stopReason: "end_turn" });
      },
    );
  });

  test("chooses models by the old method, and no response has the old field", async () => {
    await story({ client: avante() }, async ({ editor }) => {
      const opened = await editor.newSession();
      const { sessionId } = opened;
      expect(opened).not.toHaveProperty("models");
      expect(await editor.request("session/set_model", { sessionId, modelId: "test/scripted" })).toEqual({});
      expect(
        await expectFailure(editor.request("session/set_model", { sessionId, modelId: "no/such" })),
      ).toMatchObject({ code: -32602 });
    });
  });

  test("reports a failed write as text, and finds a lost session in data.details", async () => {
    const client: ClientKind = { ...avante(), writeFile: async () => "E45: readonly" };
    await story({ client, files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("write", { filePath: "b.txt", content: "two\n" })).reply("Done.");
      await editor.prompt(sessionId, "Write it");
      expect(await readFile(join(repository.path, "b.txt"), "utf8"), "it is on the disk nevertheless").toBe(
        "two\n",
      );
      expect(await expectFailure(editor.prompt("ses_gone", "Hi"))).toMatchObject({
        data: { details: expect.stringContaining("Session not found") },
      });
    });
  });

  test("follows the first location of an edit, counted from 1", async () => {
    const files = { "a.txt": "one\ntwo\nthree\n" };
    await story({ client: avante(), files }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply(reply.call("edit", { filePath: "a.txt", oldString: "three", newString: "3" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Edit it");
      const [, call] = toolCalls(editor.updates(sessionId));
      expect(call).toMatchObject({ kind: "edit" });
      expect(call?.locations?.[0]).toEqual({ path: join(repository.path, "a.txt"), line: 3 });
    });
  });
});

describe("agentic.nvim", () => {
  const agentic = (): ClientKind => ({
    ...named("agentic.nvim"),
    capabilities: { session: { configOptions: { boolean: {} } } },
  });

  test("warns of kinds and methods that it does not know: only stable ones are sent", async () => {
    await story({ client: agentic(), config: ask, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo hi" })).reply("Done.");
      await editor.prompt(sessionId, "Run it");
      const known = [
        "available_commands_update",
        "session_info_update",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "usage_update",
      ];
      expect([...kindsSent(editor)].filter((kind) => !known.includes(kind))).toEqual([]);
      expect(requestsOf(editor).map(({ method }) => method)).toEqual(["session/request_permission"]);
      const [call] = toolCalls(editor.updates(sessionId));
      expect(call?.rawInput).toMatchObject({ command: "echo hi" });
    });
  });
});

describe("agent-shell", () => {
  const agentShell = () => {
    const answer = () => ({ action: "accept" as const, content: { question_1: "Spaces" } });
    return named("agent-shell", withElicitation(answer));
  };

  test("shows questions from rawInput; forms name the field of free answers", async () => {
    await story({ client: agentShell() }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("question", indent)).reply("Spaces.");
      await editor.prompt(sessionId, "Ask me");
      const [call] = toolCalls(editor.updates(sessionId));
      expect(toObject(call?.rawInput).questions).toEqual(indent.questions);
      const form = JSON.stringify(editor.elicitations[0]);
      expect(form).toContain('"_askUserQuestionCustomAnswer":{"questionId":"question_1"}');
      expect(model.requests[1]?.toolResults[0]).toContain("Spaces");
    });
  });

  test("gets no stderr output and no updates after a turn", async () => {
    await story({ client: agentShell() }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo to-stderr >&2" })).reply("Done.");
      await editor.prompt(sessionId, "Run it");
      const late = await collectUnrequestedMessages(editor);
      const kinds = late.map(({ message }) => toObject(toObject(message?.json.params).update).sessionUpdate);
      expect(kinds.filter((kind) => kind !== "session_info_update")).toEqual([]);
      expect(editor.stderr).toBe("");
    });
  });
});

describe("Toad", () => {
  /** Its handlers accept only these fields. */
  const fields = ["content", "limit", "line", "path", "sessionId"];

  test("rejects file calls with extra fields, and reports a missing file as empty", async () => {
    const kind = named("toad", withFs());
    const client = {
      ...kind,
      readFile: async (path: string) => ({ content: await readFile(path, "utf8").catch(() => "") }),
    };
    await story({ client, files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply(reply.call("write", { filePath: "b.txt", content: "two\n" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Work");
      const calls = requestsOf(editor).filter(({ method }) => method.startsWith("fs/"));
      expect(calls).not.toEqual([]);
      for (const { params } of calls) expect(fields).toEqual(expect.arrayContaining(Object.keys(params)));
      expect(await readFile(join(repository.path, "b.txt"), "utf8")).toBe("two\n");
    });
  });

  test("knows modes only and never answers after a cancel, which still ends the turn", async () => {
    await story({ client: named("toad"), config: ask, permission: "never" }, async ({ editor, model }) => {
      const { sessionId, modes } = await editor.newSession();
      const other = modes?.availableModes.find(({ id }) => id !== modes.currentModeId)?.id ?? "";
      await editor.setMode(sessionId, other);
      expect(await editor.waitForKind(sessionId, "current_mode_update")).toMatchObject({
        currentModeId: other,
      });
      await editor.setMode(sessionId, modes?.currentModeId ?? "");
      model.reply(reply.call("bash", { command: "touch done" }));
      const turn = editor.prompt(sessionId, "Touch it");
      await editor.permissionRequest(1);
      const began = performance.now();
      await editor.cancel(sessionId);
      expect(await turn).toMatchObject({ stopReason: "cancelled" });
      expect(performance.now() - began).toBeLessThan(3_000);
    });
  });

  test("fails on lines of 10 MiB: a huge output is truncated to shorter lines", async () => {
    await story({ client: named("toad") }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("bash", { command: "head -c 12000000 /dev/zero | tr '\\0' x" }))
        .reply(reply.say("y".repeat(3_000_000)));
      await editor.prompt(sessionId, "Much");
      const longest = Math.max(...editor.wire.entries.map(({ line }) => line.length));
      expect(longest).toBeLessThan(1024 * 1024);
      expect(agentText(editor.updates(sessionId))).toHaveLength(3_000_000);
    });
  });
});

describe("acpx", () => {
  test("restores shown output after stdin closes and a kill 100 ms later", async () => {
    await story({ client: named("acpx") }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("My answer is 42.");
      await editor.prompt(sessionId, "What is it?");
      const began = performance.now();
      expect(await editor.close()).toEqual({ code: 0, signal: null });
      expect(performance.now() - began).toBeLessThan(2_000);
      await editor.restart();
      await editor.initialize();
      await editor.resume(sessionId);
      model.reply("As I said.");
      await editor.prompt(sessionId, "And?");
      expect(JSON.stringify(model.requests[1]?.messages)).toContain("My answer is 42.");
    });
  });

  test("depends on codes and messages: lost session, login, call kinds, call input", async () => {
    await story(
      { client: named("acpx"), files: { "a.txt": "one\n" } },
      async ({ editor, model, repository }) => {
        const lost = await expectFailure(editor.resume("ses_gone"));
        expect(lost).toMatchObject({ code: -32002, message: expect.stringMatching(/session not found/i) });
        const { sessionId, configOptions = [] } = await editor.newSession();
        expect(configOptions?.some(({ category }) => category === "model")).toBe(true);
        model
          .reply(reply.call("read", { filePath: "a.txt" }))
          .reply(reply.call("grep", { pattern: "one" }))
          .reply(reply.call("bash", { command: "ls" }))
          .reply("Done.");
        await editor.prompt(sessionId, "Look");
        const calls = toolCalls(editor.updates(sessionId));
        expect(calls.map(({ kind }) => kind)).toEqual(["read", "search", "execute"]);
        expect(calls[2]?.rawInput).toMatchObject({ command: "ls" });
        model.reply(reply.failure(401, "wrong key"));
        expect(await expectFailure(editor.prompt(sessionId, "Hi"))).toMatchObject({
          code: -32000,
          message: expect.stringMatching(/authentication required/i),
        });
        expect(repository.path).toMatch(/./);
      },
    );
  });

  test("calls methods that do not exist and reads -32601", async () => {
    await story({ client: named("acpx") }, async ({ editor }) => {
      for (const method of ["session/inject", "_acpx/probe", "terminal/create"])
        expect(await expectFailure(editor.request(method, {}))).toMatchObject({ code: -32601 });
    });
  });
});

describe("any client", () => {
  test("may send null for optional fields, and send fields outside the protocol", async () => {
    await story({ initialize: false }, async ({ editor, model, repository }) => {
      const nothing = { _meta: null, unknownField: [1, { deep: true }] };
      await editor.request("initialize", {
        protocolVersion: 1,
        clientInfo: null,
        clientCapabilities: { fs: null, terminal: false, session: null, elicitation: null, ...nothing },
        ...nothing,
      });
      const opened = await editor.request("session/new", {
        cwd: repository.path,
        mcpServers: [],
        ...nothing,
      });
      const sessionId = String(toObject(opened).sessionId);
      expect(isObject(await editor.request("session/list", { cwd: null, cursor: null, ...nothing }))).toBe(
        true,
      );
      model.reply("Hello.");
      const prompt = [{ type: "text", text: "Hi", annotations: null, ...nothing }];
      expect(await editor.request("session/prompt", { sessionId, prompt, ...nothing })).toMatchObject({
        stopReason: "end_turn",
      });
    });
  });

  test.each<[string, object, string]>([
    [
      "an answer with an error of null",
      { result: { outcome: { outcome: "selected", optionId: "allow_once" } }, error: null },
      "completed",
    ],
    ["an error with a result of null", { result: null, error: { code: -32603, message: "No" } }, "failed"],
  ])("may write %s", async (_name, halves, status) => {
    const config = { permission: { bash: "ask" } };
    await story({ config, permission: "never" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo hi" })).otherwise("Done.");
      const turn = editor.prompt(sessionId, "Go");
      const requested = await editor.waitForEntry(
        ({ message }) => message?.kind === "request" && message.method === "session/request_permission",
        "the question",
      );
      await editor.writeLine({ jsonrpc: "2.0", id: requested.message?.json.id, ...halves });
      expect((await turn).stopReason).toBe("end_turn");
      expect(toolCalls(editor.updates(sessionId)).map((call) => call.status)).toEqual([status]);
    });
  });

  test.each<[string, unknown]>([
    ["an unknown option", { outcome: { outcome: "selected", optionId: "yes-please" } }],
    ["an unknown outcome", { outcome: { outcome: "postponed" } }],
    ["no outcome", {}],
    ["a text", "ok"],
    ["null", null],
  ])("that answers a permission with %s approves nothing", async (_name, result) => {
    await using elsewhere = await temporaryFolder();
    await story({ config: ask, permission: "never" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const place = join(elsewhere.path, "done");
      model.reply(reply.call("bash", { command: `touch ${place}` })).reply("Then not.");
      const turn = editor.prompt(sessionId, "Touch it");
      await editor.permissionRequest(1);
      const requested = editor.wire.entries.find(
        ({ message }) => message?.kind === "request" && message.method === "session/request_permission",
      );
      const id = requested?.message?.kind === "request" ? requested.message.id : null;
      await editor.writeLine({ jsonrpc: "2.0", id, result });
      expect(await turn).toMatchObject({ stopReason: "end_turn" });
      expect(await exists(place)).toBe(false);
      expect(toList(toolCalls(editor.updates(sessionId)))).toMatchObject([{ status: "failed" }]);
      expect(thoughtText(editor.updates(sessionId))).not.toContain("Error");
    });
  });
});
