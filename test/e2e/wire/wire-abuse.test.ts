import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { text as readText } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Editor } from "../../support/editor/editor.ts";
import { environment } from "../../support/program/environment.ts";
import { expectFailure } from "../../support/failure.ts";
import { toObject } from "../../support/json.ts";
import type { ModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent, story as storyOfOwnAgent } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { agentText } from "../../support/transcript.ts";
import { within } from "../../support/waiting.ts";

const story = storiesOfOneAgent();

const launcher = fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url));
const listing = (id: unknown, params: unknown = {}) => ({
  jsonrpc: "2.0",
  id,
  method: "session/list",
  params,
});
const noSessions = { sessions: [] };

/** The error codes of all responses to messages with an unknown id. */
const namelessCodes = (editor: Editor): unknown[] =>
  editor.wire.entries.flatMap(({ direction, message }) =>
    direction === "fromAgent" && message?.kind === "response" && message.id === null
      ? [message.error?.code]
      : [],
  );

/** Checks that the process still runs and works. */
async function expectUsable(editor: Editor, model: ModelServer): Promise<void> {
  const { sessionId } = await editor.newSession();
  model.reply("I work.");
  await editor.prompt(sessionId, "Do you work?");
  expect(agentText(editor.updates(sessionId))).toBe("I work.");
}

/** Resident megabytes of the process on Linux: current and peak. */
async function memoryOf(pid = 0): Promise<{ now: number; peak: number }> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const megabytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s*(\\d+) kB`, "m").exec(status)?.[1]) / 1024;
  return { now: megabytes("VmRSS"), peak: megabytes("VmHWM") };
}

describe("lines that are not messages", () => {
  test.each<[string, string | Uint8Array, number]>([
    ["half an object", "{", -32700],
    ["words", "hello agent", -32700],
    ["a comma too many", '{"jsonrpc":"2.0",}', -32700],
    ["bytes that are not UTF-8", new Uint8Array([0xff, 0xfe, 0x7b]), -32700],
    ["NUL bytes", new Uint8Array(1000), -32700],
    ["a number", "5", -32600],
    ["a text", '"initialize"', -32600],
    ["null", "null", -32600],
    ["true", "true", -32600],
    ["an empty list", "[]", -32600],
    ["a batch", JSON.stringify([listing("a"), listing("b")]), -32600],
    ["an empty object", "{}", -32600],
    ["another JSON-RPC", '{"jsonrpc":"1.0","method":"session/list"}', -32600],
    ["only a version", '{"jsonrpc":"2.0"}', -32600],
    ["a method that is no text", '{"jsonrpc":"2.0","method":5}', -32600],
    ["100,000 opening brackets", "[".repeat(100_000), -32700],
    ["100,000 lists in each other", "[".repeat(100_000) + "]".repeat(100_000), -32600],
  ])("%s is answered once with an error, without an id", async (_name, line, code) => {
    await story({}, async ({ editor, model }) => {
      await editor.write(Buffer.concat([Buffer.from(line), Buffer.from("\n")]));
      await editor.response(null);
      await expectUsable(editor, model);
      expect(namelessCodes(editor)).toEqual([code]);
    });
  });

  test("empty lines and blanks are ignored", async () => {
    await story({}, async ({ editor, model }) => {
      await editor.write("\n\r\n   \n\t\n");
      await expectUsable(editor, model);
      expect(namelessCodes(editor)).toEqual([]);
    });
  });

  test("before initialize they get errors and break nothing", async () => {
    await story({ initialize: false }, async ({ editor, model }) => {
      await editor.write("{\nnull\n[]\n");
      await editor.writeLine(listing("early"));
      expect(await editor.response("early")).toMatchObject({ error: { code: expect.any(Number) } });
      await editor.initialize();
      await expectUsable(editor, model);
      expect(namelessCodes(editor)).toEqual([-32700, -32600, -32600]);
    });
  });
});

describe("unusual messages", () => {
  test.each<[string, object, number]>([
    ["a method that is no text", { jsonrpc: "2.0", id: "odd", method: 5 }, -32600],
    ["another JSON-RPC", { ...listing("odd"), jsonrpc: "1.0" }, -32600],
    ["params that are a text", listing("odd", "text"), -32602],
    ["params that are a number", listing("odd", 5), -32602],
    ["params of wrong types", listing("odd", { cwd: [], cursor: {} }), -32602],
  ])("%s is answered with an error under its id", async (_name, message, code) => {
    await story({}, async ({ editor, model }) => {
      // The wire log does not count some of these as requests.
      editor.allow("answer");
      await editor.writeLine(message);
      expect(await editor.response("odd")).toMatchObject({ error: { code } });
      await expectUsable(editor, model);
    });
  });

  test.each([{}, [], true, 1.5])("the id %j gets no response that names another request", async (id) => {
    await story({}, async ({ editor, model }) => {
      editor.allow("line", "answer");
      await editor.writeLine(listing(id));
      await expectUsable(editor, model);
    });
  });

  test("two requests with the same id are both answered", async () => {
    await story({}, async ({ editor }) => {
      editor.allow("answer");
      await editor.write(`${JSON.stringify(listing("twin"))}\n${JSON.stringify(listing("twin"))}\n`);
      await editor.writeLine(listing("after"));
      const twins = () =>
        editor.wire.entries.filter(
          ({ direction, message }) =>
            direction === "fromAgent" && message?.kind === "response" && message.id === "twin",
        );
      await editor.response("after");
      await editor.waitForEntry(() => twins().length === 2, "the second answer");
      expect(twins()).toHaveLength(2);
    });
  });

  test.each(["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf"])(
    "the name %s has no special meaning as a method, an id or a parameter",
    async (name) => {
      await story({}, async ({ editor, model }) => {
        expect(await expectFailure(editor.request(name))).toMatchObject({ code: -32601 });
        await editor.notify(name);
        const params = JSON.stringify({ x: { polluted: true } }).replace('"x"', JSON.stringify(name));
        await editor.write(
          `{"jsonrpc":"2.0","id":${JSON.stringify(name)},"method":"session/list","params":${params}}\n`,
        );
        expect(await editor.response(name)).toEqual({ jsonrpc: "2.0", id: name, result: noSessions });
        await editor.notify("$/cancel_request", { requestId: name });
        const opened = await editor.newSession();
        expect(Object.keys(opened).sort()).toEqual(["configOptions", "modes", "sessionId"]);
        expect(await expectFailure(editor.setMode(opened.sessionId, name))).toMatchObject({ code: -32602 });
        await expectUsable(editor, model);
      });
    },
  );

  test("responses to requests that were never made are ignored", async () => {
    await story({}, async ({ editor, model }) => {
      for (const id of [0, 1, 99, "no", null]) await editor.writeLine({ jsonrpc: "2.0", id, result: {} });
      await editor.writeLine({ jsonrpc: "2.0", id: 7, error: { code: 1, message: "no" } });
      await expectUsable(editor, model);
    });
  });

  test.each([
    ["the params of a known method", (deep: string) => `"method":"session/list","params":${deep}`],
    ["_meta", (deep: string) => `"method":"session/list","params":{"_meta":{"a":${deep}}}`],
    ["the params of an unknown method", (deep: string) => `"method":"_none","params":{"a":${deep}}`],
    ["a prompt", (deep: string) => `"method":"session/prompt","params":{"sessionId":"s","prompt":${deep}}`],
  ])("100,000 levels in %s are answered", async (_name, rest) => {
    await story({}, async ({ editor, model }) => {
      const deep = `${'{"a":'.repeat(50_000)}${"[".repeat(50_000)}${"]".repeat(50_000)}${"}".repeat(50_000)}`;
      await editor.write(`{"jsonrpc":"2.0","id":"deep",${rest(deep)}}\n`);
      expect(toObject(await editor.response("deep"))).toMatchObject({ id: "deep" });
      await expectUsable(editor, model);
    });
  });
});

test("does not print unexpected responses", async () => {
  await storyOfOwnAgent({}, async ({ editor, model }) => {
    const stray = (id: number) => `${JSON.stringify({ jsonrpc: "2.0", id: `stray-${id}`, result: {} })}\n`;
    await editor.newSession();
    await editor.write(Array.from({ length: 2_000 }, (_, id) => stray(id)).join(""));
    await expectUsable(editor, model);
    expect(editor.stderr).toBe("");
  });
});

describe("unusual framing", () => {
  test.each([
    ["with a byte order mark", (line: string) => `\uFEFF${line}\n`],
    ["with CRLF", (line: string) => `${line}\r\n`],
    ["with blanks around it", (line: string) => `  ${line} \t\n`],
    ["with a NUL escape in it", (line: string) => `${line.replace("{}", '{"_meta":{"a":"\\u0000"}}')}\n`],
  ])("a message %s is understood", async (_name, frame) => {
    await story({}, async ({ editor }) => {
      // The wire log does not count such a line as a request.
      editor.allow("answer");
      await editor.write(frame(JSON.stringify(listing("framed"))));
      expect(await editor.response("framed")).toMatchObject({ result: noSessions });
      expect(namelessCodes(editor)).toEqual([]);
    });
  });

  test("LSP headers are errors, but the messages between them are read", async () => {
    await story({}, async ({ editor }) => {
      const body = JSON.stringify(listing("lsp"));
      await editor.write(`Content-Length: ${body.length + 1}\r\n\r\n${body}\n`);
      expect(await editor.response("lsp")).toMatchObject({ result: noSessions });
      expect(namelessCodes(editor)).toEqual([-32700]);
    });
  });

  test("a message in single bytes is read, even if characters are split", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      const prompt = [{ type: "text", text: "größer 🦊" }];
      const line = JSON.stringify({
        jsonrpc: "2.0",
        id: "p",
        method: "session/prompt",
        params: { sessionId, prompt },
      });
      for (const byte of Buffer.from(`${line}\n`)) await editor.write(Buffer.of(byte));
      expect(await editor.response("p")).toMatchObject({ result: { stopReason: "end_turn" } });
      expect(model.requests[0]?.userText).toBe("größer 🦊");
    });
  });

  test("1,000 messages in one write are all answered", async () => {
    await story({}, async ({ editor }) => {
      const ids = Array.from({ length: 1_000 }, (_, at) => `r${at}`);
      await editor.write(ids.map((id) => `${JSON.stringify(listing(id))}\n`).join(""));
      for (const id of ids) expect(await editor.response(id)).toMatchObject({ result: noSessions });
    });
  });

  test("a line of 100 MB gets a response", { timeout: 60_000 }, async () => {
    await story({}, async ({ editor, model }) => {
      const large = Buffer.concat([
        Buffer.from('{"jsonrpc":"2.0","id":"large","method":"session/list","params":{"_meta":{"a":"'),
        Buffer.alloc(100_000_000, "x"),
        Buffer.from('"}}}\n'),
      ]);
      await editor.write(large);
      expect(await editor.response("large")).toMatchObject({ result: noSessions });
      await expectUsable(editor, model);
    });
  });

  test("the last line counts without a line end", async () => {
    await story({}, async ({ editor }) => {
      // The wire log does not count this as a line yet.
      editor.allow("answer");
      await editor.write(JSON.stringify(listing("last")));
      const answer = editor.response("last");
      await editor.close();
      expect(await answer).toMatchObject({ result: noSessions });
    });
  });
});

describe("a client that does not read", () => {
  test(
    "costs no memory while 20,000 deltas stream, and gets all of them later",
    { timeout: 60_000 },
    async () => {
      const [count, piece] = [20_000, 'A line of code: print("größer 🦊");\n\t\u0001'.repeat(2)];
      await story({}, async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        model.reply("Hello.").reply(reply.tinyDeltas(count, piece));
        await editor.prompt(sessionId, "Hi");
        const before = editor.updates(sessionId).length;
        editor.pauseReading();
        const turn = editor.prompt(sessionId, "Stream");
        await model.request(2);
        await delay(1_000);
        if (process.platform === "linux") expect((await memoryOf(editor.pid)).now).toBeLessThan(200);
        editor.resumeReading();
        await turn;
        expect(agentText(editor.updates(sessionId).slice(before))).toBe(piece.repeat(count));
        if (process.platform === "linux") expect((await memoryOf(editor.pid)).peak).toBeLessThan(220);
      });
    },
  );

  test("stops the reading from the provider, until it reads again", { timeout: 90_000 }, async () => {
    // 60 MB of random text, so that no repetition ends the answer.
    const pieces = Array.from({ length: 600 }, () => randomBytes(50_000).toString("hex"));
    const gates = Array.from({ length: 60 }, () => reply.gate());
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(gates.flatMap((gate, at) => [gate, ...reply.say(...pieces.slice(at * 10, at * 10 + 10))]));
      const turn = editor.prompt(sessionId, "Stream");
      await gates[0]?.reached();
      editor.pauseReading();
      for (const gate of gates) gate.release();
      const countReached = () => gates.filter(({ wasReached }) => wasReached).length;
      for (let before = -1; before !== countReached(); await delay(1_500)) before = countReached();
      // Buffers of the system and of the agent hold less than half of the answer.
      expect(countReached()).toBeLessThan(30);
      if (process.platform === "linux") expect((await memoryOf(editor.pid)).now).toBeLessThan(200);
      editor.resumeReading();
      await gates[40]?.reached(60_000);
      await editor.cancel(sessionId);
      expect((await turn).stopReason).toBe("cancelled");
      const text = agentText(editor.updates(sessionId));
      expect(text.length).toBeGreaterThan(30_000_000);
      expect(pieces.join("").startsWith(text)).toBe(true);
    });
  });

  test("gets deltas that came one by one whole and in order", async () => {
    const pieces = Array.from({ length: 120 }, (_, at) => `${at} größer 🦊 `.repeat(400));
    const gates = pieces.map(() => reply.gate());
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(...pieces.flatMap((piece, at) => [...reply.say(piece), gates[at] ?? reply.stall()]));
      const turn = editor.prompt(sessionId, "Stream");
      await gates[0]?.reached();
      editor.pauseReading();
      for (const gate of gates) {
        await gate.reached();
        // Long enough that each is written separately.
        await delay(3);
        gate.release();
      }
      editor.resumeReading();
      await turn;
      expect(agentText(editor.updates(sessionId))).toBe(pieces.join(""));
    });
  });

  test("gets responses when it reads again; earlier requests are answered", async () => {
    await story({}, async ({ editor }) => {
      editor.pauseReading();
      const ids = Array.from({ length: 500 }, (_, at) => `r${at}`);
      await editor.write(ids.map((id) => `${JSON.stringify(listing(id))}\n`).join(""));
      editor.resumeReading();
      for (const id of ids) expect(await editor.response(id)).toMatchObject({ result: noSessions });
    });
  });

  test.each([
    ["before anything was said", 0],
    ["in the middle of a conversation", 1],
  ])("and closes its end %s: the agent exits silently", async (_name, answersRead) => {
    await using home = await temporaryFolder();
    const child = spawn(process.execPath, [launcher, "acp"], {
      cwd: home.path,
      env: environment(home.path),
      stdio: "pipe",
    });
    const exited = once(child, "exit");
    const stderr = readText(child.stderr);
    child.stdin.on("error", () => child.stdin.destroy());
    const line = (message: object) => child.stdin.write(`${JSON.stringify(message)}\n`);
    const initialize = { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: 1 } };
    if (answersRead > 0) {
      line(initialize);
      await once(child.stdout, "data");
    }
    child.stdout.destroy();
    line(initialize);
    for (let id = 1; id < 20; id++) line(listing(id));
    expect(await within(exited, "the agent to end")).toEqual([0, null]);
    expect(await stderr).toBe("");
  });
});
