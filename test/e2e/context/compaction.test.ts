import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { zedLike } from "../../support/editor/clients.ts";
import type { ModelRequest, ModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { isLong } from "../../support/run-length.ts";
import { countTokens, isSummaryRequest as isSummary } from "../../support/model/small-window.ts";
import { withMovingClock } from "../../support/program/moving-clock-program.ts";
import { type StoryContext, storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const textOf = (request: ModelRequest | undefined) => JSON.stringify(request?.messages);

const full = (tokens: number) => reply.usage({ promptTokens: tokens, completionTokens: 10 });

/** Answers summaries with the text and counts them. */
function summaries(model: ModelServer, text: string): ModelRequest[] {
  const requested: ModelRequest[] = [];
  model.when(isSummary, (request) => {
    requested.push(request);
    return [reply.say(text), full(500)];
  });
  return requested;
}

/** Creates a session whose compaction waits at the gate in the middle of its summary. */
async function midCompaction({ editor, model }: StoryContext) {
  const { sessionId } = await editor.newSession();
  model.reply(reply.say("Hello."));
  await editor.prompt(sessionId, "Hi");
  const gate = reply.gate();
  model.when(isSummary, [reply.say("They "), gate, reply.say("said hi.")]);
  const turn = editor.prompt(sessionId, "/compact");
  await gate.reached();
  return { sessionId, gate, turn };
}

describe("an automatic compaction", () => {
  test("starts when a step fills the window; work continues from the summary", async () => {
    await story(
      { files: { "a.txt": "fact: 42\n" }, config: { compaction: { reserved: 0 } } },
      async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        const requested = summaries(model, "## Goal\n\nFind the fact. It is 42.");
        model
          .reply(reply.call("read", { filePath: "a.txt" }), full(99_500))
          .reply(reply.say("The fact is 42."), full(900));
        const { stopReason } = await editor.prompt(sessionId, "What is the fact in a.txt? Word: rosebud");
        expect(stopReason).toBe("end_turn");
        expect(requested).toHaveLength(1);
        const after = textOf(model.requests.at(-1));
        expect(after).toContain("What did we do so far?");
        expect(after).toContain("It is 42.");
        expect(after, "the user's message remains").toContain("Word: rosebud");
        const updates = editor.updates(sessionId);
        expect(agentText(updates)).toBe("The fact is 42.");
        expect(toolCalls(updates).map(({ title, status }) => [title, status])).toContainEqual([
          expect.stringMatching(/^Summarized the conversation: 100k → \d\.\dk tokens$/),
          "completed",
        ]);
      },
    );
  });

  test("starts before the first step if an earlier turn has filled the window, once", async () => {
    await story({ config: { compaction: { reserved: 0 } } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const requested = summaries(model, "They said hi.");
      model.reply(reply.say("Hello."), full(99_500));
      await editor.prompt(sessionId, "Hi");
      expect(requested).toEqual([]);
      model.reply(reply.say("Blue."), full(600)).reply(reply.say("Green."), full(700));
      expect((await editor.prompt(sessionId, "Which color? Word: rosebud")).stopReason).toBe("end_turn");
      expect(model.requests.map(isSummary)).toEqual([false, true, false]);
      const after = textOf(model.requests.at(-1));
      expect(after).toContain("They said hi.");
      expect(after).toContain("Word: rosebud");
      await editor.prompt(sessionId, "And now?");
      expect(agentText(editor.updates(sessionId))).toBe("Hello.Blue.Green.");
      expect(requested).toHaveLength(1);
    });
  });

  test("starts after a provider's context-length error, and the prompt is sent again", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.say("Hello."), full(100));
      await editor.prompt(sessionId, "Hi");
      const requested = summaries(model, "They said hi.");
      model
        .reply(
          reply.status(400, {
            error: {
              message: "This model's maximum context length is 100000 tokens.",
              code: "context_length_exceeded",
            },
          }),
        )
        .reply(reply.say("Blue."));
      const { stopReason } = await editor.prompt(sessionId, "Which color? Word: rosebud");
      expect([stopReason, requested.length]).toEqual(["end_turn", 1]);
      expect(textOf(model.requests.at(-1))).toContain("Word: rosebud");
      expect(agentText(editor.updates(sessionId))).toBe("Hello.Blue.");
    });
  });

  test("is not tried forever: without progress the turn fails and says what to do", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const requested = summaries(model, "Still long.");
      model.otherwise(
        reply.status(400, { error: { message: "prompt is too long", code: "context_length_exceeded" } }),
      );
      const failed = editor.prompt(sessionId, "Word");
      await expect(failed).rejects.toMatchObject({
        code: -32603,
        message: expect.stringContaining("does not fit"),
      });
      expect(requested.length).toBeLessThanOrEqual(3);
      model.otherwise(reply.say("Fine."));
      expect((await editor.prompt(sessionId, "Again")).stopReason).toBe("end_turn");
    });
  });

  test("that is disabled shows the provider's error to the user", async () => {
    await story({ config: { compaction: { auto: false } } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(
        reply.status(400, {
          error: { message: "maximum context length is 5 tokens", code: "context_length_exceeded" },
        }),
      );
      await expect(editor.prompt(sessionId, "Word")).rejects.toMatchObject({
        code: -32603,
        message: expect.stringContaining("maximum context length"),
      });
      expect(model.requests.filter(isSummary)).toEqual([]);
    });
  });

  test("whose conversation is rejected or answered with nothing is requested as text", async () => {
    await story({}, async ({ editor, model }) => {
      for (const [at, rejected] of [reply.failure(400, "Bad message 7"), reply.say("  ")].entries()) {
        const { sessionId } = await editor.newSession();
        model.reply("Hello.");
        await editor.prompt(sessionId, "Hi");
        model.reply(rejected).reply("They said hi.");
        await editor.prompt(sessionId, "/compact");
        model.reply("Yes.");
        await editor.prompt(sessionId, "Still there?");
        const [, first, second, after] = model.requests.slice(4 * at);
        expect(
          [first, second].map((request) => [request?.messages.length, request?.toolNames.length]),
        ).toEqual([
          [4, expect.any(Number)],
          [2, 0],
        ]);
        expect(textOf(after)).toContain("They said hi.");
      }
    });
  });

  test("that fails reports why, and the session continues", async () => {
    await story({ config: { retry: { delay_ms: 10, attempts: 2 } } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.when(isSummary, reply.failure(401, "The key was revoked"));
      model.reply(reply.call("list", {}), full(99_900));
      await expect(editor.prompt(sessionId, "Look around")).rejects.toMatchObject({
        message: expect.stringContaining("The key was revoked"),
      });
      expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual([
        "completed",
        "failed",
      ]);
    });
  });
});

describe("/compact", () => {
  test("of an empty session calls no model", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      expect((await editor.prompt(sessionId, "/compact")).stopReason).toBe("end_turn");
      expect(agentText(editor.updates(sessionId))).toBe("There is nothing to summarize yet.");
      expect(model.requests).toEqual([]);
    });
  });

  test("that was cancelled or failed adds no question for the model", async () => {
    await story({}, async (storyContext) => {
      const { sessionId, turn } = await midCompaction(storyContext);
      const { editor, model } = storyContext;
      await editor.cancel(sessionId);
      expect((await turn).stopReason).toBe("cancelled");
      model.reply("I am here.");
      await editor.prompt(sessionId, "Are you there?");
      expect(
        model.requests
          .at(-1)
          ?.messages.slice(1)
          .map(({ content }) => content),
      ).toEqual(["Hi", "Hello.", "Are you there?"]);
    });
  });

  test("uses the user's instruction, and loading shows no summary as an answer", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.say("The password of the door is swordfish."));
      await editor.prompt(sessionId, "Tell me the password of the door");
      const requested = summaries(model, "The password is swordfish.");
      const { stopReason } = await editor.prompt(sessionId, "/compact keep the password");
      expect(stopReason).toBe("end_turn");
      expect(requested[0]?.userText).toContain("keep the password");
      expect(textOf(requested[0])).toContain("The password of the door is swordfish.");
      model.reply(reply.say("Swordfish."));
      await editor.prompt(sessionId, "And now?");
      expect(textOf(model.requests.at(-1))).toContain("The password is swordfish.");

      await editor.closeSession(sessionId);
      const before = editor.updates(sessionId).length;
      await editor.load(sessionId);
      const replayed = editor.updates(sessionId).slice(before);
      expect(agentText(replayed)).toBe("The password of the door is swordfish.Swordfish.");
      expect(
        JSON.stringify(replayed.filter(({ sessionUpdate }) => sessionUpdate === "user_message_chunk")),
      ).toContain("/compact keep the password");
      expect(toolCalls(replayed).map(({ title, status }) => [title, status])).toEqual([
        [expect.stringMatching(/^Summarized the conversation: \d\.\dk → \d\.\dk tokens$/), "completed"],
      ]);
      const kinds = replayed.map(({ sessionUpdate }) => sessionUpdate);
      expect(kinds, "it is shown as it ended, at once").not.toContain("tool_call_update");
      model.reply(reply.say("Still swordfish."));
      await editor.prompt(sessionId, "After loading?");
      expect(textOf(model.requests.at(-1)), "the compaction holds after loading").toContain(
        "What did we do so far?",
      );
    });
  });

  test("keeps instructions, tools and summary in context, also after loading and undo", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const used = () => editor.updates(sessionId, "usage_update").map((update) => update.used);
      model.reply(reply.say("Hello."), full(9_000));
      await editor.prompt(sessionId, "Hi");
      model.when(isSummary, [reply.say("They said hi."), full(9_500)]);
      await editor.prompt(sessionId, "/compact");
      const left = used().at(-1);
      const sent = model.requests[0];
      const head = countTokens(`${sent?.system}${JSON.stringify(sent?.body.tools)}`);
      expect(left, "system prompt and tools are counted").toBeGreaterThan(head * 0.7);
      expect(left).toBeLessThan(head * 1.3);
      await editor.closeSession(sessionId);
      await editor.load(sessionId);
      expect(used().at(-1)).toBe(left);
      model.reply(reply.say("And on."), full(700));
      await editor.prompt(sessionId, "Go on");
      expect(used().at(-1)).toBe(710);
      await editor.prompt(sessionId, "/undo");
      expect(used().at(-1)).toBe(left);
    });
  });

  test("is a compaction update for a client that supports those", async () => {
    const client = zedLike();
    const capabilities = {
      ...client.capabilities,
      session: { ...client.capabilities.session, compaction: {} },
    };
    await story({ client: { ...client, capabilities } }, async (storyContext) => {
      const { editor } = storyContext;
      const { sessionId, gate, turn } = await midCompaction(storyContext);
      const chunk = await editor.waitForKind(sessionId, "compaction_summary_chunk");
      gate.release();
      await turn;
      const shown = editor.updates(sessionId, "compaction_update");
      const summary = [{ type: "text", text: "They said hi." }];
      expect(shown).toMatchObject([{ status: "in_progress" }, { status: "completed", summary }]);
      const chunks = editor.updates(sessionId, "compaction_summary_chunk");
      expect(chunk).toMatchObject({ compactionId: shown[0]?.compactionId });
      expect(chunks.map(({ content }) => (content.type === "text" ? content.text : "")).join("")).toBe(
        "They said hi.",
      );
    });
  });

  test("truncates a long summary for the user, logs that, and sends all to the model", async () => {
    const client = zedLike();
    const capabilities = {
      ...client.capabilities,
      session: { ...client.capabilities.session, compaction: {} },
    };
    await story({ client: { ...client, capabilities } }, async ({ editor, model, home }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.say("Hello."));
      await editor.prompt(sessionId, "Hi");
      const text = `${Array.from({ length: 7_000 }, (_, at) => `fact ${at} `)
        .join("")
        .slice(0, 60_990)}the end`;
      model.when(isSummary, reply.say(text));
      await editor.prompt(sessionId, "/compact");
      expect(editor.updates(sessionId, "compaction_update").at(-1)).toMatchObject({
        status: "completed",
        summary: [
          {
            text: `${text.slice(0, 60_000)}\n… (${text.length - 60_000} characters more, which the model has)`,
          },
        ],
      });
      model.reply(reply.say("Yes."));
      await editor.prompt(sessionId, "Still there?");
      expect(textOf(model.requests.at(-1))).toContain(text);
      expect(await readFile(join(home.path, ".local/state/fairlead/fairlead.log"), "utf8")).toContain(
        "long summary truncated for the client",
      );
    });
  });

  test("can be cancelled; the conversation stays as it was", async () => {
    await story({}, async (storyContext) => {
      const { editor, model } = storyContext;
      const { sessionId, gate, turn } = await midCompaction(storyContext);
      await editor.cancel(sessionId);
      expect((await turn).stopReason).toBe("cancelled");
      gate.release();
      model.reply(reply.say("Yes."));
      await editor.prompt(sessionId, "Still there?");
      const request = textOf(model.requests.at(-1));
      expect(request).toContain("Hello.");
      expect(request).not.toContain("They ");
    });
  });
});

describe("a compaction that is shown as a call", () => {
  test("continues while its session is loaded, and is announced to the loading client", async () => {
    await story({}, async (storyContext) => {
      const { editor } = storyContext;
      const { sessionId, gate, turn } = await midCompaction(storyContext);
      const before = editor.updates(sessionId).length;
      await editor.load(sessionId);
      const shown = () => toolCalls(editor.updates(sessionId).slice(before)).map(({ status }) => status);
      expect(shown()).toEqual(["in_progress"]);
      gate.release();
      expect((await turn).stopReason).toBe("end_turn");
      expect(shown()).toEqual(["completed"]);
    });
  });

  test("ends with its turn if nobody can write the summary", async () => {
    await story({ config: { model: "nowhere/none" } }, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      for (const text of ["Hi", "/compact"])
        await expect(editor.prompt(sessionId, text)).rejects.toThrow("nowhere");
      expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual(["failed"]);
    });
  });
});

describe("old tool outputs", () => {
  const lines = (name: string) =>
    Array.from({ length: 1_500 }, (_, at) => `line ${at} of the file ${name}`).join("\n");
  const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
  const files = Object.fromEntries(names.map((name) => [`${name}.txt`, `${lines(name)}\n`]));
  const skill = `---\nname: rules\ndescription: Rules.\n---\n${lines("skill")}\n`;
  const cleared = "[Old tool result content cleared]";
  const results = ({ messages }: ModelRequest) =>
    messages.flatMap(({ role, content }) => (role === "tool" ? [String(content)] : []));

  test("are omitted when the cache has expired, except the newest and skills", async () => {
    const homeFiles = { ".config/fairlead/skills/rules/SKILL.md": skill, clock: "0" };
    const options = { files, homeFiles, program: withMovingClock, limit: { context: 400_000 } };
    await story(options, async ({ editor, model, home }) => {
      const { sessionId } = await editor.newSession();
      const reads = names.map((name) => reply.callScript("read", { filePath: `${name}.txt` }));
      model.reply(reply.together(reply.callScript("skill", { name: "rules" }), ...reads)).reply("Read.");
      await editor.prompt(sessionId, "Read all");
      const whole = toolCalls(editor.updates(sessionId));
      for (const [word, minutes] of [
        ["two", 0],
        ["three", 9],
        ["four", 20],
      ] as const) {
        await writeFile(join(home.path, "clock"), String(minutes * 60_000));
        model.reply(`Said ${word}.`);
        await editor.prompt(sessionId, word);
      }
      expect(model.requests.slice(1, 4).flatMap(results)).not.toContain(cleared);
      const [rules, ...outputs] = model.requests.slice(4).flatMap(results);
      expect(rules).toContain("line 1499 of the file skill");
      const stored = outputs.findIndex((output) => output !== cleared);
      expect(stored).toBeGreaterThan(1);
      expect(stored).toBeLessThan(8);
      expect(outputs.slice(0, stored).every((output) => output === cleared)).toBe(true);
      expect(outputs.slice(stored).every((output) => output.includes("1: line 0 of the file"))).toBe(true);
      expect(toolCalls(editor.updates(sessionId))).toEqual(whole);
      await editor.restart();
      await editor.initialize();
      await editor.load(sessionId);
      expect(toolCalls(editor.updates(sessionId)).map(({ content }) => content)).toEqual(
        whole.map(({ content }) => content),
      );
    });
  });

  test("are sent if pruning is disabled", async () => {
    const options = { files, config: { compaction: { prune: false } }, limit: { context: 400_000 } };
    await story(options, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const reads = names.map((name) => reply.callScript("read", { filePath: `${name}.txt` }));
      model.reply(reply.together(...reads)).reply("Read.");
      await editor.prompt(sessionId, "Read all");
      for (const word of ["two", "three", "four"]) {
        model.reply(`Said ${word}.`);
        await editor.prompt(sessionId, word);
      }
      expect(model.requests.flatMap(results)).not.toContain(cleared);
    });
  });
});

describe("a long session", () => {
  const turns = isLong ? 300 : 45;
  test(`of ${turns} turns is compacted several times, keeps facts and bounds requests`, async () => {
    const config = { compaction: { reserved: 80_000 } };
    await story({ files: { "notes.txt": "x ".repeat(2_000) }, config }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const requested: ModelRequest[] = [];
      model.when(isSummary, (request) => {
        requested.push(request);
        const known = textOf(request).match(/FACT-\d+/g) ?? [];
        return [reply.say(`Facts: ${[...new Set(known)].join(", ")}`), full(400)];
      });
      let longest = 0;
      model.otherwise((request) => {
        const size = JSON.stringify(request.body).length;
        longest = Math.max(longest, size);
        const tokens = reply.usage({ promptTokens: Math.round(size / 4), completionTokens: 20 });
        return request.toolResults.length > 0
          ? [reply.say(`Noted. ${"One more thing was seen in the notes. ".repeat(60)}`), tokens]
          : [reply.call("read", { filePath: "notes.txt" }), tokens];
      });
      for (let turn = 1; turn <= turns; turn++) {
        const { stopReason } = await editor.prompt(
          sessionId,
          turn % 15 === 1 ? `Keep FACT-${turn}` : `Turn ${turn}`,
        );
        expect(stopReason).toBe("end_turn");
      }
      expect(requested.length).toBeGreaterThan(2);
      expect(textOf(model.requests.at(-1))).toContain("FACT-1");
      expect(longest, "characters of the longest request").toBeLessThan(200_000);
    });
  }, 120_000);
});
