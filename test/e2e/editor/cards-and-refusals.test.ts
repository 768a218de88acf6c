import { describe, expect, test } from "vitest";
import { zedLike } from "../../support/editor/clients.ts";
import type { Editor } from "../../support/editor/editor.ts";
import { toList, toObject, toText } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { lacksSignals } from "../../support/platform/platform.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

/** Returns what the client's terminal shows of a call after all updates. */
const terminalOf = (editor: Editor, sessionId: string): string =>
  editor
    .updates(sessionId)
    .map((update) => toText(toObject(toObject(update._meta).terminal_output).data) ?? "")
    .join("");

describe("a request with wrong parameters", () => {
  const server = (more: object) => ({ mcpServers: [{ name: "s", ...more }] });
  const missing = (field: string, type: string) =>
    `Invalid params: ${field}: Invalid input: expected ${type}, received undefined`;
  test.each<[string, object, string]>([
    [
      "a program without its arguments",
      server({ command: "x", env: [] }),
      missing("mcpServers.0.args", "array"),
    ],
    [
      "an address without headers",
      server({ type: "http", url: "http://127.0.0.1:1" }),
      missing("mcpServers.0.headers", "array"),
    ],
    ["no list of servers", { mcpServers: undefined }, missing("mcpServers", "array")],
  ])("names the wrong value for the intended kind: %s", async (_, more, words) => {
    await story({}, async ({ editor, repository }) => {
      const params = { cwd: repository.path, mcpServers: [], ...more };
      await editor.writeLine({ jsonrpc: "2.0", id: "bad", method: "session/new", params });
      const { error } = await editor.response("bad");
      expect(error).toEqual({ code: -32602, message: words, data: { details: words } });
    });
  });

  test.each<[string, object, string]>([
    [
      "a link without its name",
      { type: "resource_link", uri: "file:///a" },
      missing("prompt.0.name", "string"),
    ],
    ["an image without its kind", { type: "image", data: "AAAA" }, missing("prompt.0.mimeType", "string")],
    ["a text that is none", { type: "text" }, missing("prompt.0.text", "string")],
  ])("names the wrong value for the intended block: %s", async (_, block, words) => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      const params = { sessionId, prompt: [block] };
      await editor.writeLine({ jsonrpc: "2.0", id: "bad", method: "session/prompt", params });
      const { error } = await editor.response("bad");
      expect(error).toEqual({ code: -32602, message: words, data: { details: words } });
    });
  });

  test("gets a short answer even if its problem is long", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      const long = "x".repeat(2_000_000);
      const requests: [string, object][] = [
        ["session/set_mode", { sessionId, modeId: long }],
        ["session/load", { sessionId: long, cwd: "/", mcpServers: [] }],
        ["session/new", { cwd: long, mcpServers: [] }],
        ["authenticate", { methodId: long }],
        ["session/set_model", { sessionId, modelId: long }],
        [`_${long}`, {}],
      ];
      for (const [at, [method, params]] of requests.entries()) {
        await editor.writeLine({ jsonrpc: "2.0", id: `long ${at}`, method, params });
        const { error } = await editor.response(`long ${at}`);
        expect(toObject(error).message).toMatch(/… \(\d+ characters more\)$/);
        expect(JSON.stringify(error).length).toBeLessThan(20_000);
      }
      await editor.writeLine({ jsonrpc: "2.0", id: true, method: "session/list", params: { long } });
      const { error } = await editor.response(null);
      expect(error).toMatchObject({
        code: -32600,
        message: "Invalid request: id must be a string or an integer.",
      });
    });
  });
});

describe("a message without content for the model", () => {
  test("is not a prompt, even if the user would see it", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const text = { type: "text", text: "For you" };
      const prompt = [
        { ...text, annotations: { audience: ["user"] } },
        { type: "text", text: " " },
      ];
      const params = { sessionId, prompt };
      await editor.writeLine({ jsonrpc: "2.0", id: "empty", method: "session/prompt", params });
      expect(toObject((await editor.response("empty")).error)).toMatchObject({ code: -32602 });
      expect(model.requests).toEqual([]);
    });
  });

  test("is reported if it is a command that expands to an empty text", async () => {
    const command = { ".fairlead/commands/say.md": "---\ndescription: Say it\n---\n$ARGUMENTS\n" };
    await story({ files: command }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "/say");
      expect(agentText(editor.updates(sessionId))).toContain("Its prompt is empty");
      expect(model.requests).toEqual([]);
    });
  });
});

describe("a card", () => {
  test("has the command or file as title if the call is refused before it is parsed", async () => {
    await story({}, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const inputs = [{ command: "ls", workdir: "no/such/folder" }, { command: "ls", timeout: -1 }, {}];
      for (const input of inputs) model.reply(reply.call("bash", input));
      const filePath = `${repository.path}/README.md`;
      model.reply(reply.call("edit", { filePath, oldString: "not there", newString: "x" })).reply("Done.");
      await editor.prompt(sessionId, "Try them");
      const titles = toolCalls(editor.updates(sessionId)).map(({ title, status }) => [title, status]);
      expect(titles).toEqual([
        ["ls", "failed"],
        ["ls", "failed"],
        ["bash", "failed"],
        ["Edit README.md", "failed"],
      ]);
    });
  });

  test("has a title and a name of bounded length, live, asked about and loaded", async () => {
    const config = { permission: { bash: "ask" } };
    await story({ config, permission: "allow_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const command = `true '${"\u{1}".repeat(300_000)}'`;
      model.reply(reply.call("bash", { command })).reply(reply.call("n".repeat(200_000), {}));
      model.reply("Done.");
      await editor.prompt(sessionId, "Run it");
      await editor.load(sessionId, { cwd: repository.path });
      for (const { title = "", name, _meta } of editor.updates(sessionId, "tool_call")) {
        expect(title?.length).toBeLessThan(20_100);
        expect(name?.length).toBeLessThan(300);
        expect(toText(_meta?.tool_name)).toBe(name);
      }
      expect(editor.permissionRequests[0]?.toolCall.title).toMatch(/characters more\)$/);
    });
  });

  test("of a cancelled command shows its output unchanged", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo '# not a heading'; sleep 30" }));
      const turn = editor.prompt(sessionId, "Run it");
      await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("not a heading\\n"));
      await editor.cancel(sessionId);
      await turn;
      const [call] = toolCalls(editor.updates(sessionId));
      const [content] = toList(call?.content).map(toObject);
      expect(toObject(content?.content).text).toMatch(/^```\n# not a heading\n\n\[Cancelled after/);
    });
  });

  test.skipIf(lacksSignals)("names the signal that ended its command, live and loaded", async () => {
    await story({ client: zedLike() }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "kill -9 $$" })).reply("Done.");
      await editor.prompt(sessionId, "Run it");
      await editor.load(sessionId, { cwd: repository.path });
      const exits = editor.updates(sessionId).flatMap(({ _meta }) => toList([_meta?.terminal_exit]));
      const ends = exits.map(toObject).filter(({ terminal_id }) => terminal_id !== undefined);
      expect(ends.map(({ exit_code, signal }) => [exit_code, signal])).toEqual([
        [null, "SIGKILL"],
        [null, "SIGKILL"],
      ]);
    });
  });
});

describe("a terminal in the editor", () => {
  test("shows why a command ended, live and loaded", async () => {
    await story({ client: zedLike() }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo out; sleep 30", timeout: 200 })).reply("Done.");
      await editor.prompt(sessionId, "Run it");
      const live = terminalOf(editor, sessionId);
      expect(live).toMatch(/^out\r\n\r\n\[Ended after [\d.]+ s because its time of 200 ms was up/);
      await editor.load(sessionId, { cwd: repository.path });
      expect(terminalOf(editor, sessionId)).toBe(live + live);
    });
  });

  test("shows the end of an output that was too fast to show completely", async () => {
    await story({ client: zedLike() }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "seq 1 200000" })).reply("Done.");
      await editor.prompt(sessionId, "Count");
      const shown = terminalOf(editor, sessionId);
      expect(shown).toContain("too fast to show");
      expect(shown.trimEnd().split("\r\n").slice(-2)).toEqual(["199999", "200000"]);
      expect(shown.length).toBeLessThan(200_000);
    });
  });
});

test("a title from a command is one line of bounded length", async () => {
  await story({}, async ({ editor }) => {
    const { sessionId } = await editor.newSession();
    await editor.prompt(sessionId, "/rename A  long\n title");
    await editor.prompt(sessionId, `/rename ${"x".repeat(400)}`);
    const titles = editor.updates(sessionId, "session_info_update").map(({ title }) => title);
    expect(titles).toEqual(["A long title", "x".repeat(256)]);
  });
});

test("closing an unknown session is not an error, whatever its id looks like", async () => {
  await story({}, async ({ editor }) => {
    for (const id of ["", "nope", "../x", "ses_00000000000000000000000000000000"])
      expect(await editor.closeSession(id)).toEqual({});
  });
});

test("does not offer to always allow if that option would be unreadable", async () => {
  const config = { permission: { bash: "ask" } };
  await story({ config, permission: "allow_once" }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    const many = Array.from({ length: 40 }, (_, at) => `some-program-${at} x`).join("; ");
    model.reply(reply.call("bash", { command: many })).reply(reply.call("bash", { command: "true" }));
    model.reply("Done.");
    await editor.prompt(sessionId, "Run them");
    const kinds = editor.permissionRequests.map(({ options }) => options.map(({ kind }) => kind));
    expect(kinds).toEqual([
      ["allow_once", "reject_once"],
      ["allow_once", "allow_always", "reject_once"],
    ]);
  });
});
