import { readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { plain, type ClientKind } from "../../support/editor/clients.ts";
import type { Editor } from "../../support/editor/editor.ts";
import { expectFailure } from "../../support/failure.ts";
import { toList, toObject, toText, type JsonObject } from "../../support/json.ts";
import { startModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { collectUnrequestedMessages } from "../../support/editor/silence.ts";
import { story as ownStory, storiesOfOneAgent } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const unknownId = "ses_00000000000000000000000000000000";

/** An editor that uses the unstable part of version 1. */
function curious(): ClientKind {
  const capabilities = { session: {}, plan: {} };
  return { ...plain(), capabilities };
}

async function ask(editor: Editor, method: string, params: JsonObject): Promise<JsonObject> {
  return toObject(await editor.request(method, params));
}

const idsOf = (answer: JsonObject): unknown[] =>
  toList(answer.sessions).map((session) => toObject(session).sessionId);

const texts = (messages: readonly JsonObject[]): string =>
  JSON.stringify(messages.filter(({ role }) => role !== "system"));

describe("session/fork", () => {
  test("creates another session with all messages, independent of the first", async () => {
    await story({ permission: "allow_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo hi" })).reply("It says hi.");
      await editor.prompt(sessionId, "Say hi");
      await editor.setMode(sessionId, "plan");
      const forked = await ask(editor, "session/fork", { sessionId, cwd: repository.path, mcpServers: [] });
      const fork = String(forked.sessionId);
      expect(fork).not.toBe(sessionId);
      expect(toObject(forked.modes).currentModeId).toBe("plan");
      await editor.waitForKind(fork, "available_commands_update");
      expect(agentText(editor.updates(fork)), "a fork is not replayed").toBe("");

      model.reply("In the fork.").reply("In the source.");
      await editor.prompt(fork, "And now?");
      expect(texts(model.requests[2]?.messages ?? [])).toContain("It says hi.");
      await editor.prompt(sessionId, "Go on");
      expect(texts(model.requests[3]?.messages ?? [])).not.toContain("In the fork.");

      const before = editor.updates(fork).length;
      await editor.load(fork);
      const again = editor.updates(fork).slice(before);
      expect(agentText(again)).toBe("It says hi.In the fork.");
      expect(toolCalls(again)).toMatchObject([{ title: "echo hi", status: "completed" }]);
      expect(idsOf(await ask(editor, "session/list", {}))).toEqual(expect.arrayContaining([fork, sessionId]));
    });
  });

  test("ends at the named message, by the id of any of its chunks", async () => {
    await story({}, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply("First answer.").reply("Second answer.").reply("Third.");
      await editor.prompt(sessionId, "One");
      await editor.prompt(sessionId, "Two");
      const [first] = editor.updates(sessionId, "agent_message_chunk");
      const params = { sessionId, cwd: repository.path, mcpServers: [] };
      const _meta = { messageId: first?.messageId };
      const fork = String((await ask(editor, "session/fork", { ...params, _meta })).sessionId);
      await editor.load(fork);
      expect(agentText(editor.updates(fork))).toBe("First answer.");
      const [own] = editor.updates(fork, "agent_message_chunk");
      expect(own?.messageId, "a fork has new ids").not.toBe(first?.messageId);
      await editor.prompt(fork, "Otherwise");
      expect(model.requests[2]?.messages.map(({ role }) => role)).toEqual([
        "system",
        "user",
        "assistant",
        "user",
      ]);
      const unknown = { ...params, _meta: { messageId: "msg_0" } };
      expect(await expectFailure(editor.request("session/fork", unknown))).toMatchObject({ code: -32602 });
    });
  });

  test("copies only finished messages of a busy session, and rejects an unknown session", async () => {
    await story({}, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      model.reply("Whole.").reply(reply.say("Half"), gate);
      await editor.prompt(sessionId, "One");
      const turn = editor.prompt(sessionId, "Two");
      await gate.reached();
      const cwd = repository.path;
      const fork = String((await ask(editor, "session/fork", { sessionId, cwd })).sessionId);
      gate.release();
      expect(await turn).toMatchObject({ stopReason: "end_turn" });
      await editor.load(fork);
      expect(agentText(editor.updates(fork))).toBe("Whole.");
      expect(
        await expectFailure(editor.request("session/fork", { sessionId: unknownId, cwd })),
      ).toMatchObject({
        code: -32002,
      });
    });
  });
});

describe("managing sessions", () => {
  test("a title from the user is kept, normalized, in live and closed sessions", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const title = "  My \n title  ";
      expect(await ask(editor, "session/set_title", { sessionId, title })).toEqual({ title: "My title" });
      expect(await editor.waitForKind(sessionId, "session_info_update")).toMatchObject({ title: "My title" });
      model.title(["Generated"]).reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      await editor.closeSession(sessionId);
      expect(await editor.list()).toMatchObject({ sessions: [{ title: "My title" }] });
      const long = "x".repeat(1_000);
      const set = await ask(editor, "session/set_title", { sessionId, title: long });
      expect(set).toEqual({ title: long.slice(0, 256) });
      expect(await editor.list()).toMatchObject({ sessions: [{ title: long.slice(0, 256) }] });
      await editor.restart();
      await editor.initialize();
      await editor.load(sessionId);
      expect(editor.updates(sessionId, "session_info_update")).toMatchObject([{ title: long.slice(0, 256) }]);
      const failures = await Promise.all([
        expectFailure(editor.request("session/set_title", { sessionId, title: " \n" })),
        expectFailure(editor.request("session/set_title", { sessionId: unknownId, title: "x" })),
      ]);
      expect(failures.map(({ code }) => code)).toEqual([-32602, -32002]);
    });
  });

  test("an archived session leaves the list, ends its turn, and returns", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const { sessionId: other } = await editor.newSession();
      const gate = reply.gate();
      model.reply(reply.say("Working"), gate);
      const turn = editor.prompt(sessionId, "Work");
      await gate.reached();
      expect(await ask(editor, "session/archive", { sessionId })).toEqual({});
      expect(await turn).toMatchObject({ stopReason: "cancelled" });
      const list = async (archived?: string) =>
        idsOf(await ask(editor, "session/list", archived === undefined ? {} : { archived }));
      expect(await list()).toEqual([other]);
      expect(await list("exclude")).toEqual([other]);
      expect(await list("only")).toEqual([sessionId]);
      expect(new Set(await list("include"))).toEqual(new Set([other, sessionId]));
      expect(await expectFailure(editor.request("session/list", { archived: "_x" }))).toMatchObject({
        code: -32602,
      });
      expect(await ask(editor, "session/archive", { sessionId })).toEqual({});
      expect(await ask(editor, "session/unarchive", { sessionId })).toEqual({});
      expect(await ask(editor, "session/unarchive", { sessionId: other })).toEqual({});
      expect(new Set(await list())).toEqual(new Set([other, sessionId]));
      for (const method of ["session/archive", "session/unarchive"])
        expect(await expectFailure(editor.request(method, { sessionId: unknownId }))).toMatchObject({
          code: -32002,
        });
    });
  });

  test("the status of a session says whether it is open here, and changes nothing", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      expect(await ask(editor, "session/status", { sessionId })).toEqual({ status: "open" });
      await editor.closeSession(sessionId);
      expect(await ask(editor, "session/status", { sessionId })).toEqual({ status: "saved" });
      expect(await ask(editor, "session/status", { sessionId })).toEqual({ status: "saved" });
      const failure = await expectFailure(editor.request("session/status", { sessionId: unknownId }));
      expect(failure).toMatchObject({ code: -32002, data: { sessionId: unknownId } });
    });
  });
});

describe("a client with an unstable capability", () => {
  test("gets the turn's usage in the answer and plan files as plans, live and replayed", async () => {
    const files = { ".fairlead/plans/old.md": "# Old\n" };
    await story({ client: curious(), files, permission: "allow_once" }, async (context) => {
      const { editor, model, repository } = context;
      const { sessionId } = await editor.newSession();
      const path = join(repository.path, ".fairlead/plans/new.md");
      model.reply(reply.call("write", { filePath: path, content: "# Plan\n" })).reply("Planned.");
      expect(await editor.prompt(sessionId, "Plan it")).toMatchObject({
        stopReason: "end_turn",
        usage: { inputTokens: expect.any(Number), totalTokens: expect.any(Number) },
      });
      const isPlan = ({ sessionUpdate }: { sessionUpdate: string }) => sessionUpdate === "plan_update";
      const plans = () => editor.updates(sessionId).filter(isPlan);
      const plan = { type: "file", planId: path, uri: pathToFileURL(path).href };
      expect(plans()).toEqual([{ sessionUpdate: "plan_update", plan }]);
      await editor.load(sessionId);
      expect(plans()).toEqual([
        { sessionUpdate: "plan_update", plan },
        { sessionUpdate: "plan_update", plan },
      ]);

      // An editor that opened the folder through a link expects files under it.
      await using place = await temporaryFolder();
      const link = join(place.path, "link");
      await symlink(repository.path, link, "junction");
      await editor.load(sessionId, { cwd: link });
      const uri = pathToFileURL(join(link, ".fairlead/plans/new.md")).href;
      expect(plans().slice(2)).toEqual([{ sessionUpdate: "plan_update", plan: { ...plan, uri } }]);
    });
  });
});

describe("a system prompt from the client", () => {
  const of = (mode: string, ...texts: string[]) => ({
    systemPrompt: { mode, content: texts.map((text) => ({ type: "text", text })) },
  });

  test("is added to the built-in prompt or replaces it, and stays with the session", async () => {
    await story({ files: { "AGENTS.md": "Use tabs.\n" } }, async ({ editor, model, repository }) => {
      const folder = { cwd: repository.path, mcpServers: [] };
      const systemOf = async (sessionId: string) => {
        model.reply("Yes.");
        await editor.prompt(sessionId, "Hi");
        return model.requests.at(-1)?.system ?? "";
      };
      const { sessionId: own } = await editor.newSession();
      const [builtIn = ""] = (await systemOf(own)).split("# Environment");
      const added = String(
        (await ask(editor, "session/new", { ...folder, ...of("append", "Be brief.") })).sessionId,
      );
      const both = await systemOf(added);
      expect(both.startsWith(builtIn)).toBe(true);
      expect(both).toContain("Be brief.");

      await ask(editor, "session/close", { sessionId: added });
      const replaced = of("override", "You are a parrot.", "Repeat.");
      await ask(editor, "session/resume", { sessionId: added, ...folder });
      expect(await systemOf(added)).toContain("Be brief.");
      await ask(editor, "session/load", { sessionId: added, ...folder, ...replaced });
      const parrot = await systemOf(added);
      expect(parrot).toMatch(/^You are a parrot\.\n\nRepeat\./);
      expect(parrot).not.toContain("Be brief.");
      expect(parrot, "the project's own instructions stay").toContain("Use tabs.");
      const fork = await ask(editor, "session/fork", { sessionId: added, ...folder });
      expect(await systemOf(String(fork.sessionId))).toContain("parrot");

      for (const systemPrompt of ["You are a fish.", { append: "Be a fish." }]) {
        const older = await ask(editor, "session/new", { ...folder, _meta: { systemPrompt } });
        const system = await systemOf(String(older.sessionId));
        expect(system).toMatch(typeof systemPrompt === "string" ? /^You are a fish\./ : /Be a fish\.$/);
      }
    });
  });

  test("is rejected if it is not supported, and no session is created", async () => {
    await story({}, async ({ editor, repository }) => {
      const folder = { cwd: repository.path, mcpServers: [] };
      const image = {
        systemPrompt: { mode: "append", content: [{ type: "image", data: "", mimeType: "image/png" }] },
      };
      for (const odd of [
        of("_vendor", "x"),
        of("append"),
        of("append", " "),
        of("append", "x".repeat(100_001)),
        image,
      ])
        expect(await expectFailure(editor.request("session/new", { ...folder, ...odd }))).toMatchObject({
          code: -32602,
        });
      expect(idsOf(await ask(editor, "session/list", {}))).toEqual([]);
    });
  });
});

describe("keys and providers", () => {
  test("auth/status names the providers, and a missing one is not an error", async () => {
    await story({}, async ({ editor, home }) => {
      const status = await ask(editor, "auth/status", {});
      expect(status).toMatchObject({ state: "authenticated", accounts: [{ label: expect.any(String) }] });
      await writeFile(join(home.path, ".config/fairlead/fairlead.json"), "{}");
      expect(await ask(editor, "auth/status", {})).toEqual({ state: "unauthenticated", accounts: [] });
    });
  });

  test("logout removes the stored keys, and sessions notice", async () => {
    const key = { groq: { apiKey: "stored-key" } };
    const homeFiles = { ".local/share/fairlead/credentials.json": JSON.stringify(key) };
    await story({ homeFiles }, async ({ editor, home }) => {
      const status = async () => JSON.stringify(await ask(editor, "auth/status", {}));
      expect(await status()).toContain("credentials.json");
      const { sessionId, configOptions } = await editor.newSession();
      expect(JSON.stringify(configOptions)).toContain("groq/");
      expect(await ask(editor, "logout", {})).toEqual({});
      expect(await status()).not.toContain("credentials.json");
      const stored = await readFile(join(home.path, ".local/share/fairlead/credentials.json"), "utf8");
      expect(stored).not.toContain("stored-key");
      const update = await editor.waitForKind(sessionId, "config_option_update");
      expect(JSON.stringify(update)).not.toContain("groq/");
      expect(await ask(editor, "logout", {}), "twice is no error").toEqual({});
    });
  });

  test("only clients that requested the status are notified of changes", async () => {
    await ownStory({}, async ({ editor, model }) => {
      const notice = () =>
        editor.wire.entries.flatMap(({ message }) =>
          message?.kind === "notification" && message.method === "auth/status_update" ? [message.params] : [],
        );
      const route = { providerId: "test", apiType: "openai", baseUrl: model.url };
      await ask(editor, "providers/disable", { providerId: "test" });
      await ask(editor, "providers/set", route);
      expect(notice()).toEqual([]);
      const before = await ask(editor, "auth/status", {});
      await ask(editor, "authenticate", { methodId: "fairlead" });
      expect(notice(), "nothing changed").toEqual([]);
      await ask(editor, "providers/disable", { providerId: "test" });
      expect(notice()).toEqual([{ state: "unauthenticated", accounts: [] }]);
      await expectFailure(editor.request("authenticate", { methodId: "fairlead" }));
      await ask(editor, "providers/set", route);
      expect(notice().slice(1)).toEqual([before]);
    });
  });

  test("providers are listed, redirected without our key, and disabled", async () => {
    await ownStory({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const supported = ["openai", "anthropic", "azure"];
      const listed = (providerId: string, current: unknown) => ({
        providerId,
        supported,
        required: false,
        current,
      });
      const unused = [listed("openai", null), listed("anthropic", null)];
      expect(await ask(editor, "providers/list", {})).toEqual({
        providers: [listed("test", { apiType: "openai", baseUrl: model.url }), ...unused],
      });
      const elsewhere = await startModelServer();
      try {
        elsewhere.title(reply.gate()).reply("From elsewhere.");
        const headers = { authorization: "Bearer of-the-editor" };
        const route = { providerId: "test", apiType: "openai", baseUrl: elsewhere.url, headers };
        expect(await ask(editor, "providers/set", route)).toEqual({});
        await editor.prompt(sessionId, "Hi");
        expect(agentText(editor.updates(sessionId))).toBe("From elsewhere.");
        expect(elsewhere.requests[0]?.headers.authorization).toBe("Bearer of-the-editor");
        expect(model.requests).toEqual([]);
        expect(await ask(editor, "providers/disable", { providerId: "test" })).toEqual({});
        expect(await expectFailure(editor.prompt(sessionId, "Hi"))).toMatchObject({ code: -32000 });
        expect(await ask(editor, "providers/list", {})).toEqual({
          providers: [listed("test", null), ...unused],
        });
        const refused = [
          { ...route, apiType: "vertex" },
          { ...route, baseUrl: "ftp://x" },
        ];
        for (const params of refused)
          expect(await expectFailure(editor.request("providers/set", params))).toMatchObject({
            code: -32602,
          });
      } finally {
        await editor.close();
        await elsewhere.close();
      }
    });
  });
});

describe("a provider that the editor redirects", () => {
  test("is listed with the editor's API, and offers the models of the catalog", async () => {
    await ownStory({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const route = async (providerId: string, apiType: string) => {
        const headers = { "x-api-key": "of-the-editor" };
        await ask(editor, "providers/set", { providerId, apiType, baseUrl: model.url, headers });
      };
      await route("anthropic", "anthropic");
      await route("openai", "azure");
      const { providers } = toObject(await ask(editor, "providers/list", {}));
      expect(toList(providers)).toMatchObject([
        { providerId: "openai", current: { apiType: "azure", baseUrl: model.url } },
        { providerId: "anthropic", current: { apiType: "anthropic", baseUrl: model.url } },
        { providerId: "test", current: { apiType: "openai" } },
      ]);
      const { configOptions } = await editor.setConfigOption(sessionId, "model", "anthropic/claude-opus-5-5");
      const thinking = configOptions.find(({ id }) => id === "thought_level");
      expect(thinking).toMatchObject({
        currentValue: "default",
        options: expect.arrayContaining([
          { value: "default", name: "Default (medium)" },
          { value: "max", name: "Max" },
        ]),
      });
    });
  });
});

describe("logging in", () => {
  const terminal = { auth: { terminal: true } };
  const byMeta = { _meta: { "terminal-auth": true } };

  test.each([
    ["both ways", { ...terminal, ...byMeta }, "terminal"],
    ["by type", terminal, "terminal"],
    ["by _meta only, as the registry's check does", byMeta, undefined],
  ])("in a terminal is offered %s", async (_name, capabilities, type) => {
    await story({ initialize: false }, async ({ editor }) => {
      const { authMethods = [] } = await editor.initialize(capabilities);
      expect(authMethods.map(({ id }) => id)).toEqual(["fairlead", "fairlead-setup"]);
      const setup = toObject(authMethods[1]);
      expect(setup.type).toBe(type);
      if (type !== undefined) expect(setup.args).toEqual(["setup"]);
      const command = toObject(toObject(setup._meta)["terminal-auth"]);
      if ("_meta" in capabilities) {
        expect(command.command).toBe(process.execPath);
        expect(toList(command.args).map(toText)).toEqual([expect.stringMatching(/fairlead\.js$/), "setup"]);
      }
      expect(await ask(editor, "authenticate", { methodId: "fairlead-setup" })).toEqual({});
    });
  });

  test("gets the same response if the library sends it", async () => {
    await story({ initialize: false }, async ({ editor }) => {
      const first = await editor.initialize({ ...terminal, ...byMeta });
      expect(await editor.initialize({ ...terminal, ...byMeta })).toEqual(first);
    });
  });
});

test("a new title and an archive send no other update to a silent session", async () => {
  await story({}, async ({ editor }) => {
    const { sessionId } = await editor.newSession();
    await editor.load(sessionId);
    expect(await collectUnrequestedMessages(editor)).toEqual([]);
    await ask(editor, "session/status", { sessionId });
    expect(await collectUnrequestedMessages(editor)).toEqual([]);
  });
});
