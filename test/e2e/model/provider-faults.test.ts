import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { RequestError, type SessionUpdate } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import type { Editor } from "../../support/editor/editor.ts";
import { toObject } from "../../support/json.ts";
import { startModelServer, type ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent, type StoryContext } from "../../support/editor/story.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

/** The key in the configuration of every story. */
const key = "test-key";

const quick = { delay_ms: 20, attempts: 3 };
/** Silence counts as a failure soon, but not so soon that a busy machine seems silent. */
const impatient = { ...quick, stall_ms: 1_000 };

type FaultStage = StoryContext & { sessionId: string };

/** Plays a fault in a session, and checks that the session continues and that the key was shown nowhere. */
async function faultStory(
  play: (context: FaultStage) => Promise<void>,
  retry: object = quick,
): Promise<void> {
  await story({ config: { retry }, files: { "a.txt": "one\n" } }, async (context) => {
    const { editor, model, home } = context;
    const { sessionId } = await editor.newSession();
    await play({ ...context, sessionId });
    model.reply("Here again.");
    expect((await editor.prompt(sessionId, "Still there?")).stopReason).toBe("end_turn");
    expect(agentText(editor.updates(sessionId))).toMatch(/Here again\.$/);
    const shown = [editor.stderr, ...editor.wire.entries.map(({ line }) => line)].join("\n");
    expect(shown).not.toContain(key);
    expect(await filesWith(home.path, key)).toEqual([".config/fairlead/fairlead.json"]);
  });
}

async function filesWith(folder: string, text: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const texts = await Promise.all(files.map((file) => readFile(file, "utf8")));
  return files.filter((_, at) => texts[at]?.includes(text)).map((file) => file.slice(folder.length + 1));
}

/** The error of a failed turn, as the editor receives it. */
async function failureOf(editor: Editor, sessionId: string) {
  const thrown: unknown = await editor.prompt(sessionId, "Hi").catch((error: unknown) => error);
  if (!(thrown instanceof RequestError)) throw new Error(`The turn did not fail: ${JSON.stringify(thrown)}`);
  const { code, message, data } = thrown;
  return { code, message, data };
}

const says = (text: string) => (update: SessionUpdate) => JSON.stringify(update).includes(text);

const answersIn = (request: ModelRequest | undefined) =>
  request?.messages.filter(({ role }) => role === "assistant").map(({ content }) => content);

/** A fault that a retry fixes: the user and the model see the answer once. */
async function recoveredStory(
  fault: (context: FaultStage) => Promise<unknown>,
  { retry = quick, answer = "Hello world" }: { retry?: object; answer?: string } = {},
): Promise<void> {
  await faultStory(async (context) => {
    const { editor, model, sessionId } = context;
    const [, end] = await Promise.all([fault(context), editor.prompt(sessionId, "Hi")]);
    expect(end.stopReason).toBe("end_turn");
    expect(agentText(editor.updates(sessionId))).toBe(answer);
    model.reply("Sure.");
    await editor.prompt(sessionId, "Sure?");
    expect(answersIn(model.requests.at(-1))).toEqual([answer]);
  }, retry);
}

describe("errors that a retry cannot fix", () => {
  test("a refused key is reported at once as missing authentication, without the key", async () => {
    await faultStory(async ({ editor, model, sessionId }) => {
      model.reply(reply.failure(401, `Incorrect API key provided: ${key}`));
      const failure = await failureOf(editor, sessionId);
      expect(failure.code).toBe(-32000);
      expect(failure.message).toMatch(
        /^Authentication required: .*\(401\).*Incorrect API key provided: \[key\]/,
      );
      expect(model.requests).toHaveLength(1);
    });
  });

  test("a refused request is reported with the provider's message", async () => {
    await faultStory(async ({ editor, model, sessionId }) => {
      model.reply(reply.failure(400, "Unknown field: foo"));
      const message = "The provider refused the request (400): Unknown field: foo";
      expect(await failureOf(editor, sessionId)).toEqual({
        code: -32603,
        message,
        data: { details: message, kind: "bad_request", retryable: false },
      });
      expect(model.requests).toHaveLength(1);
    });
  });

  test("machine-readable fields come with the message", async () => {
    await faultStory(async ({ editor, model, sessionId }) => {
      const facts = async (...answers: reply.Step[]) => {
        for (const answer of answers) model.reply(answer);
        const { data } = await failureOf(editor, sessionId);
        const { details: _, ...rest } = toObject(data);
        return rest;
      };
      const later = reply.failure(429, "Later", { "retry-after-ms": "7200000" });
      const broke = reply.failure(429, "insufficient_quota");
      const down = reply.failure(503, "Down");
      expect(await facts(reply.failure(401, "No"))).toEqual({ kind: "auth", retryable: false });
      expect(await facts(later)).toEqual({ kind: "rate_limit", retryable: true, retryAfterMs: 7_200_000 });
      expect(await facts(broke)).toEqual({ kind: "rate_limit", retryable: false });
      expect(await facts(down, down, down)).toEqual({ kind: "overloaded", retryable: true });
      expect(await facts(reply.failure(404, "No such model"))).toEqual({
        kind: "not_found",
        retryable: false,
      });
    });
  });

  test("a limit that lasts for hours fails at once and says when it ends", async () => {
    await faultStory(async ({ editor, model, sessionId }) => {
      model.reply(reply.failure(429, "Come back later", { "retry-after": "7200" }));
      const { message } = await failureOf(editor, sessionId);
      expect(message).toMatch(/Come back later.*wait 2 hours \(after \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\)/);
      expect(model.requests).toHaveLength(1);
    });
  });

  test("a web page instead of an answer is named in the error", async () => {
    await faultStory(async ({ editor, model, sessionId }) => {
      model.reply(reply.status(200, "<html><title>Welcome</title></html>", { "content-type": "text/html" }));
      expect((await failureOf(editor, sessionId)).message).toMatch(/web page \("Welcome"\)/);
    });
  });

  test("a redirect to another host is not followed, so no other host gets the key", async () => {
    const other = await startModelServer();
    try {
      await faultStory(async ({ editor, model, sessionId }) => {
        model.reply(reply.status(307, "", { location: `${other.url}/chat/completions` }));
        expect((await failureOf(editor, sessionId)).message).toContain("redirect");
        expect(other.requests).toEqual([]);
      });
    } finally {
      await other.close();
    }
  });

  test("a broken server fails after the last attempt, and every attempt is shown", async () => {
    await faultStory(async ({ editor, model, sessionId }) => {
      model.reply(reply.failure(500, "Out of order"), []);
      model.reply(reply.failure(529, "Busy")).reply(reply.failure(500, "Out of order again"));
      expect((await failureOf(editor, sessionId)).message).toMatch(
        /\(500\): Out of order again \(tried 3 times\)/,
      );
      const waits = toolCalls(editor.updates(sessionId));
      expect(waits.map(({ title, status }) => [title, status])).toEqual([
        ["Wait for the provider (attempt 1 of 3)", "completed"],
        ["Wait for the provider (attempt 2 of 3)", "completed"],
      ]);
      expect(JSON.stringify(waits)).toMatch(/Out of order[^]*Busy/);
    });
  });
});

describe("errors that a retry fixes", () => {
  test("the user sees a retry before it starts", async () => {
    await recoveredStory(
      async ({ editor, model, sessionId }) => {
        model.reply(reply.failure(500, "Out of order")).reply("Hello world");
        await editor.waitFor(sessionId, says("Out of order"));
        expect(model.requests).toHaveLength(1);
      },
      { retry: { ...quick, delay_ms: 2_500 } },
    );
  });

  const waits: [string, () => Record<string, string>, number][] = [
    ["seconds", () => ({ "retry-after": "1" }), 900],
    ["a date", () => ({ "retry-after": new Date(Date.now() + 2_000).toUTCString() }), 500],
    ["milliseconds", () => ({ "retry-after-ms": "300" }), 250],
  ];
  test.each(waits)("a limit with an end in %s delays the request until then", async (_, headers, leastMs) => {
    await recoveredStory(async ({ model }) => {
      let limitedAt = 0;
      model.replyWith(() => {
        limitedAt = performance.now();
        return reply.failure(429, "Slow down", headers());
      });
      model.replyWith(() => {
        expect(performance.now() - limitedAt).toBeGreaterThan(leastMs);
        return "Hello world";
      });
    });
  });

  test.each([
    ["529, overloaded", [reply.failure(529, "Overloaded")]],
    ["a proxy's page", [reply.htmlPage(502)]],
    ["a reset before the answer", [reply.reset()]],
    ["an error event inside a good answer", [reply.errorEvent("The engine is overloaded"), reply.end()]],
    [
      "an error event after half of the text",
      [...reply.say("Hello wor"), reply.errorEvent("overloaded"), reply.end()],
    ],
    ["an answer that ends without an end", [...reply.say("Hello wor"), reply.end()]],
    ["an answer without anything", [reply.headers(), reply.end()]],
  ])("%s", async (_, steps) => {
    await recoveredStory(async ({ model }) => model.reply(steps).reply(reply.say("Hello ", "world")));
  });

  test("a reset in the middle of a text does not duplicate streamed text", async () => {
    await recoveredStory(async ({ editor, model, sessionId }) => {
      const gate = reply.gate();
      model.reply(reply.say("Hello wor"), gate, reply.reset()).reply(reply.say("Hel", "lo world"));
      await editor.waitFor(sessionId, says("Hello wor"));
      gate.release();
    });
  });

  test("a fault between a broken answer and its retry does not duplicate text", async () => {
    await recoveredStory(async ({ editor, model, sessionId }) => {
      const gate = reply.gate();
      model.reply(reply.say("Hello wor"), gate, reply.reset());
      model.reply(reply.failure(500, "Out of order")).reply("Hello world");
      await editor.waitFor(sessionId, says("Hello wor"));
      gate.release();
    });
  });

  test("a reset after the text but before its end does not duplicate it", async () => {
    await recoveredStory(async ({ editor, model, sessionId }) => {
      const gate = reply.gate();
      model.reply(reply.say("Hello world"), gate, reply.reset()).reply("Hello world");
      await editor.waitFor(sessionId, says("Hello world"));
      gate.release();
    });
  });

  test("a different second answer follows the first; the model sees the complete one", async () => {
    await faultStory(async ({ editor, model, sessionId }) => {
      const gate = reply.gate();
      model.reply(reply.say("Hello wor"), gate, reply.reset()).reply("Good day").reply("Sure.");
      const turn = editor.prompt(sessionId, "Hi");
      await editor.waitFor(sessionId, says("Hello wor"));
      gate.release();
      await turn;
      const chunks = editor.updates(sessionId, "agent_message_chunk");
      expect(new Set(chunks.map(({ messageId }) => messageId)).size).toBe(2);
      await editor.prompt(sessionId, "Sure?");
      expect(answersIn(model.requests.at(-1))).toEqual(["Good day"]);
    });
  });

  test("a call that was cut off never runs and is shown as failed", async () => {
    await faultStory(async ({ editor, model, sessionId, repository }) => {
      const gate = reply.gate();
      const half = reply.call("bash", '{"command":"touch made"', { pieces: 1 });
      model.reply(half, gate, reply.reset()).reply("I leave it.");
      const turn = editor.prompt(sessionId, "Make it");
      await editor.waitForKind(sessionId, "tool_call");
      gate.release();
      expect((await turn).stopReason).toBe("end_turn");
      expect(toolCalls(editor.updates(sessionId))).toMatchObject([
        { name: "bash", status: "failed" },
        { title: "Wait for the provider (attempt 1 of 3)", status: "completed" },
      ]);
      expect(await repository.git("status", "--porcelain")).toBe("");
    });
  });

  test("a call that was cut off may be repeated under its id", async () => {
    await faultStory(async ({ editor, model, sessionId }) => {
      const gate = reply.gate();
      model.reply(
        reply.say("Reading."),
        reply.call("read", '{"file', { id: "same", pieces: 1 }),
        gate,
        reply.reset(),
      );
      model
        .reply(reply.say("Reading."), reply.call("read", { filePath: "a.txt" }, { id: "same" }))
        .reply("One.");
      const turn = editor.prompt(sessionId, "Read it");
      await editor.waitForKind(sessionId, "tool_call");
      gate.release();
      expect((await turn).stopReason).toBe("end_turn");
      const calls = toolCalls(editor.updates(sessionId)).filter(({ name }) => name === "read");
      expect(calls.map(({ status }) => status)).toEqual(["failed", "completed"]);
      expect(model.requests.at(-1)?.toolResults.at(-1)).toContain("1: one");
      expect(agentText(editor.updates(sessionId))).toBe("Reading.One.");
    });
  });

  test("a complete call before a reset runs once, and its result reaches the model", async () => {
    await faultStory(async ({ editor, model, sessionId }) => {
      const gate = reply.gate();
      model.reply(reply.call("bash", { command: "echo once >> ran" }), gate, reply.reset());
      model.reply(reply.call("bash", { command: "cat ran" })).reply("Once.");
      const turn = editor.prompt(sessionId, "Run it");
      await editor.waitFor(sessionId, says('"status":"completed"'));
      gate.release();
      expect((await turn).stopReason).toBe("end_turn");
      expect(model.requests.at(-1)?.toolResults).toEqual(["once"]);
    });
  });

  test.each([
    ["before its first word", [reply.headers(), reply.stall()]],
    ["before its headers", [reply.stall()]],
    ["in the middle", [...reply.say("Hello wor"), reply.stall()]],
    ["with comments only", [reply.headers(), reply.commentsOnly(50)]],
    ["with comments in the middle", [...reply.say("Hello wor"), reply.commentsOnly(50)]],
  ])("a silent provider %s", async (_, steps) => {
    await recoveredStory(async ({ model }) => model.reply(steps).reply("Hello world"), { retry: impatient });
  });
});

describe("answers in an unusual form", () => {
  test("lines that are not events are ignored", async () => {
    await recoveredStory(async ({ model }) =>
      model.reply(
        reply.line("garbage"),
        reply.say("Hello "),
        reply.comment(),
        reply.line("id: 7\n"),
        reply.say("world"),
      ),
    );
  });

  test("an answer of only invalid data is reported as invalid", async () => {
    await faultStory(async ({ editor, model, sessionId }) => {
      for (let attempt = 0; attempt < quick.attempts; attempt++)
        model.reply(reply.line("data: {oops\n"), reply.end());
      expect((await failureOf(editor, sessionId)).message).toMatch(
        /not a JSON object: \{oops \(tried 3 times\)/,
      );
    });
  });

  test("a call truncated by the token limit is not run, and the model learns why", async () => {
    await faultStory(async ({ editor, model, sessionId, repository }) => {
      const half = reply.call("bash", '{"command":"touch made"', { pieces: 1 });
      model.reply(half, reply.finish("length")).reply("Then not.");
      expect((await editor.prompt(sessionId, "Make it")).stopReason).toBe("end_turn");
      expect(model.requests[1]?.toolResults).toEqual([expect.stringContaining("limit of output tokens")]);
      expect(await repository.git("status", "--porcelain")).toBe("");
    });
  });

  test("a character whose bytes arrive separately is intact", async () => {
    await recoveredStory(
      async ({ model }) => {
        const gate = reply.gate();
        model.reply(reply.say("Hello "), reply.splitCharacter("wörld 👋", gate));
        await gate.reached();
        gate.release();
      },
      { answer: "Hello wörld 👋" },
    );
  });

  test("10,000 tiny deltas arrive completely", async () => {
    await recoveredStory(async ({ model }) => model.reply(reply.tinyDeltas(10_000)), {
      answer: "x".repeat(10_000),
    });
  });

  test("a line of 20 MB is read", async () => {
    await faultStory(async ({ editor, model, sessionId }) => {
      model.reply(reply.comment("x".repeat(20_000_000)), reply.say("Hello"));
      expect((await editor.prompt(sessionId, "Hi")).stopReason).toBe("end_turn");
      expect(agentText(editor.updates(sessionId))).toBe("Hello");
    });
  });

  test("a single delta of 20 MB arrives completely, in many messages", async () => {
    await faultStory(async ({ editor, model, sessionId }) => {
      const text = `${"👋".repeat(2_500_000)}${"x".repeat(10_000_000)}`;
      model.reply(reply.say(text));
      expect((await editor.prompt(sessionId, "Hi")).stopReason).toBe("end_turn");
      expect(agentText(editor.updates(sessionId)) === text).toBe(true);
    });
  });
});
