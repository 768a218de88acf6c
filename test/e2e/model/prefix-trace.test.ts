import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { faulty } from "../../support/mcp/mcp.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import { countTokensIn, sumBills } from "../../support/model/prompt-cache.ts";
import * as reply from "../../support/model/reply.ts";
import { createPng } from "../../support/png.ts";
import { fairlead } from "../../support/program/cli.ts";
import { withMovingClock } from "../../support/program/moving-clock-program.ts";
import { story, type StoryContext } from "../../support/editor/story.ts";

const minuteMs = 60_000;
const line = (at: number) => `export const value${at} = compute(${at * 7_919}, "a line of a file");`;
const source = Array.from({ length: 60 }, (_, at) => line(at)).join("\n");
const files = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`part${at}.ts`, source]));

const prefixSchema = z.object({
  tokens: z.number(),
  keptTokens: z.number(),
  keptPercent: z.number(),
  cause: z.string().optional(),
  lostTokens: z.number().optional(),
  cost: z.number().optional(),
});
const traceSchema = z.object({
  turns: z.array(z.object({ spans: z.array(z.object({ prefix: prefixSchema.optional() })) })),
});

/** Models with prices. The last one accepts images and receives its own thoughts. */
function pricedConfig({ model }: StoryContext, more: Record<string, unknown> = {}): string {
  const one = {
    limit: { context: 200_000, output: 8_000 },
    tool_call: true,
    cost: { input: 100, output: 100, cache_read: 10 },
  };
  return JSON.stringify({
    model: "test/one",
    provider: {
      test: {
        options: { baseURL: model.url, apiKey: "test-key" },
        models: {
          one: { name: "One", ...one },
          two: { name: "Two", ...one },
          "qwen-three": {
            name: "Three",
            ...one,
            reasoning: true,
            modalities: { input: ["text", "image"] },
          },
        },
      },
    },
    ...more,
  });
}

/** Plays a story with prices and with a clock that the story can set. */
async function pricedStory(
  play: (context: StoryContext & { wait: (minutes: number) => Promise<void> }) => Promise<void>,
  more?: Record<string, unknown>,
): Promise<void> {
  const options = { files, program: withMovingClock, initialize: false };
  await story(options, async (context) => {
    const { home, editor } = context;
    let minutes = 0;
    const wait = (passed: number) => {
      minutes += passed;
      return writeFile(join(home.path, "clock"), String(minutes * minuteMs));
    };
    await home.write({ ".config/fairlead/fairlead.json": pricedConfig(context, more), clock: "0" });
    await editor.initialize();
    await play({ ...context, wait });
  });
}

/** Runs `fairlead trace` and returns the prefixes of the session's requests. */
async function tracePrefixes(home: string, sessionId: string) {
  const { stdout } = await fairlead(home, ["trace", sessionId, "--json"]);
  const { turns } = traceSchema.parse(JSON.parse(stdout));
  return turns.flatMap(({ spans }) => spans.flatMap(({ prefix }) => prefix ?? []));
}

const readPart = (at: number) => reply.call("read", { filePath: `part${at}.ts` });

/** Minimum share of a request's bytes with which the next one begins. */
function leastReusable(requests: readonly ModelRequest[]): number {
  const texts = requests.map(({ body }) => `${JSON.stringify(body.tools)}${JSON.stringify(body.messages)}`);
  const shares = texts.slice(1).map((text, index) => {
    // The end of the list of messages is not part of the prompt.
    const before = texts[index]?.slice(0, -1) ?? "";
    let shared = 0;
    while (shared < before.length && text[shared] === before[shared]) shared++;
    return shared / before.length;
  });
  return Math.min(...shares);
}

describe("the reusable prefix", () => {
  test("is at least 95 % while 20 files are read, in the bytes and in the trace", async () => {
    await pricedStory(async ({ editor, model, home }) => {
      const { sessionId } = await editor.newSession();
      for (let at = 0; at < 20; at++) model.reply(readPart(at));
      model.reply("All read.").reply("Yes.");
      await editor.prompt(sessionId, "Read all parts");
      await editor.prompt(sessionId, "Is that all?");
      expect(leastReusable(model.requests)).toBeGreaterThan(0.95);
      const bill = sumBills(model.requests.slice(1).map((request) => request.bill));
      expect(bill.read / countTokensIn(bill)).toBeGreaterThan(0.9);
      const prefixes = await tracePrefixes(home.path, sessionId);
      expect(prefixes).toHaveLength(22);
      expect(prefixes.slice(1).map(({ cause }) => cause)).toEqual(Array(21).fill(undefined));
      for (const [index, { keptTokens }] of prefixes.slice(1).entries())
        expect(keptTokens).toBe(prefixes[index]?.tokens);
    });
  });

  test("is at least 90 % for plan, build and plan again", async () => {
    await pricedStory(async ({ editor, model, home }) => {
      const { sessionId } = await editor.newSession();
      for (const [at, mode] of ["build", "plan", "build", "plan"].entries()) {
        await editor.setMode(sessionId, mode);
        model.reply(readPart(at)).reply(`Now ${mode}.`);
        await editor.prompt(sessionId, `Go on in ${mode}`);
      }
      expect(leastReusable(model.requests)).toBeGreaterThan(0.9);
      const prefixes = await tracePrefixes(home.path, sessionId);
      expect(prefixes.slice(1).map(({ cause }) => cause)).toEqual(Array(7).fill(undefined));
    });
  });
});

describe("fairlead trace", () => {
  test("names what broke the prefix, how many tokens are read again, and the price", async () => {
    await pricedStory(async ({ editor, model, home, wait }) => {
      model.otherwise("Yes.");
      const { sessionId } = await editor.newSession();
      model.reply(readPart(0)).reply("Read.");
      await editor.prompt(sessionId, "Read part 0");
      await editor.setConfigOption(sessionId, "model", "test/two");
      await editor.prompt(sessionId, "Who are you?");
      await editor.setConfigOption(sessionId, "model", "test/one");
      await editor.prompt(sessionId, "And now?");
      await wait(30);
      await editor.prompt(sessionId, "Still there?");
      await editor.prompt(sessionId, "/compact");
      await editor.prompt(sessionId, "Go on");
      const prefixes = await tracePrefixes(home.path, sessionId);
      expect(prefixes.map(({ cause }) => cause)).toEqual([
        undefined,
        undefined,
        "model",
        "model",
        "expired",
        undefined,
        "compaction",
      ]);
      const [, , changed, back, expired, summary] = prefixes;
      expect(changed).toMatchObject({ keptTokens: 0, lostTokens: prefixes[1]?.tokens });
      expect(back?.keptPercent, "the first model's requests still count").toBeGreaterThan(90);
      expect(expired?.keptPercent).toBeGreaterThan(90);
      expect(summary?.keptPercent, "the summary is asked for in the conversation").toBeGreaterThan(90);
      const perToken = (100 - 10) / 1_000_000;
      for (const { cause, lostTokens = 0, cost } of prefixes)
        if (cause !== undefined) expect(cost).toBeCloseTo(lostTokens * perToken, 6);
      const { stdout } = await fairlead(home.path, ["trace", sessionId]);
      expect(stdout).toMatch(
        /0 % of the prompt as before .*; the model changed: [\d,]+ tokens read again, \$0\.\d+ more/,
      );
      expect(stdout).toMatch(/9\d % of the prompt as before .*; the provider's cache expired: [\d,]+ tokens/);
      expect(stdout).toMatch(/; a summary replaced messages: [\d,]+ tokens/);
    });
  });

  test("names the expired cache when the system prompt is rebuilt after a pause", async () => {
    await pricedStory(async ({ editor, model, home, repository, wait }) => {
      model.otherwise("Yes.");
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "Hi");
      await repository.write({ "AGENTS.md": "Be kind.\n" });
      await editor.prompt(sessionId, "Again");
      await wait(30);
      await editor.prompt(sessionId, "And again");
      const prefixes = await tracePrefixes(home.path, sessionId);
      expect(prefixes.map(({ cause }) => cause)).toEqual([undefined, undefined, "expired"]);
      expect(prefixes[2]).toMatchObject({ keptTokens: 0, lostTokens: prefixes[1]?.tokens });
    });
  });

  test("names changed tools, which rebuild the system prompt", async () => {
    await pricedStory(
      async ({ editor, model, home, repository }) => {
        await repository.write({ server: "" });
        model
          .reply(reply.call("own_echo", { text: "hello" }))
          .reply("Yes.")
          .reply("Yes.");
        const { sessionId } = await editor.newSession();
        await editor.prompt(sessionId, "Call it");
        await repository.write({ "AGENTS.md": "Be kind.\n" });
        await editor.prompt(sessionId, "Again");
        expect(model.requests.at(-1)?.system).toContain("Be kind.");
        const prefixes = await tracePrefixes(home.path, sessionId);
        expect(prefixes.map(({ cause }) => cause)).toEqual([undefined, undefined, "tools"]);
      },
      { mcp: { own: faulty("changing", "server") }, permission: { "own_*": "allow" } },
    );
  });

  test("names refused images and refused reasoning, which later requests omit", async () => {
    await pricedStory(
      async ({ editor, model, home }) => {
        const { sessionId } = await editor.newSession();
        const data = createPng(4, 4).toString("base64");
        model.reply(readPart(0)).reply("A dot.");
        await editor.prompt(sessionId, [
          { type: "text", text: "Look" },
          { type: "image", data, mimeType: "image/png" },
        ]);
        model.reply([...reply.think("Hm."), readPart(1)]);
        model.reply(reply.failure(400, "image input is not supported")).reply("No dot.");
        await editor.prompt(sessionId, "Look again");
        model.reply(reply.failure(400, "Unknown field: reasoning_content")).reply("Fine.").reply("Yes.");
        await editor.prompt(sessionId, "Go on");
        await editor.prompt(sessionId, "Still there?");
        const served = model.requests.filter((_, at) => at !== 3 && at !== 5);
        const prefixes = await tracePrefixes(home.path, sessionId);
        const none = [undefined, undefined, undefined];
        expect(prefixes.map(({ cause }) => cause)).toEqual([...none, "media", "thoughts", undefined]);
        const reused = served.slice(1).map((request, at) => leastReusable([served[at] ?? request, request]));
        expect(reused.map((share) => share === 1)).toEqual([true, true, false, false, true]);
        const [first, , , media, thoughts, last] = prefixes;
        expect(media?.keptTokens, "the image is in the first message").toBeLessThan(first?.tokens ?? 0);
        expect(media?.lostTokens).toBeGreaterThan(0);
        expect(thoughts?.keptPercent).toBeGreaterThan(50);
        expect(thoughts?.lostTokens).toBeGreaterThan(0);
        expect(last).toMatchObject({ keptTokens: thoughts?.tokens });
        const { stdout } = await fairlead(home.path, ["trace", sessionId]);
        expect(stdout).toMatch(/; refused media were omitted: [\d,]+ tokens read again, \$0\.\d+ more/);
        expect(stdout).toMatch(/; refused reasoning was omitted: [\d,]+ tokens read again, \$0\.\d+ more/);
      },
      { model: "test/qwen-three" },
    );
  });

  test("continues its comparison after a restart of the program", async () => {
    await pricedStory(async ({ editor, model, home }) => {
      model.otherwise("Yes.");
      const { sessionId } = await editor.newSession();
      model.reply(readPart(0)).reply("Read.");
      await editor.prompt(sessionId, "Read part 0");
      await editor.restart();
      await editor.initialize();
      await editor.load(sessionId);
      await editor.prompt(sessionId, "Still there?");
      const [, before, after] = await tracePrefixes(home.path, sessionId);
      expect(after).toMatchObject({ keptTokens: before?.tokens });
      expect(after?.cause).toBeUndefined();
    });
  });
});

describe("a request that reads the conversation again", () => {
  const notices = ({ editor }: StoryContext, sessionId: string) =>
    editor
      .updates(sessionId)
      .flatMap((update) => JSON.stringify(update).match(/The last request was .*?\./g) ?? []);

  test("is announced with tokens and price when the cache has expired, once per session", async () => {
    await pricedStory(async (context) => {
      const { editor, model, wait } = context;
      model.otherwise("Yes.");
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "Hi");
      await wait(5);
      await editor.prompt(sessionId, "Again");
      expect(notices(context, sessionId)).toEqual([]);
      await wait(12);
      await editor.prompt(sessionId, "Again");
      expect(notices(context, sessionId)).toEqual([
        expect.stringMatching(/^The last request was 12 minutes ago/),
      ]);
      expect(JSON.stringify(editor.updates(sessionId))).toMatch(
        /reads about \d,\d{3} tokens again, for about \$0\.[5-9]\d/,
      );
      await wait(600);
      await editor.restart();
      await editor.initialize();
      await editor.load(sessionId);
      await editor.prompt(sessionId, "And again");
      expect(notices(context, sessionId)).toEqual([]);
    });
  });

  test("is announced before a compaction", async () => {
    await pricedStory(async (context) => {
      const { editor, model, wait } = context;
      model.otherwise("Yes.");
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "Hi");
      await wait(60);
      await editor.prompt(sessionId, "/compact");
      expect(notices(context, sessionId)).toEqual([
        expect.stringMatching(/^The last request was 60 minutes ago/),
      ]);
    });
  });

  test.each([false, 5])("is not announced with notice_above %s", async (limit) => {
    await pricedStory(
      async (context) => {
        const { editor, model, wait } = context;
        model.otherwise("Yes.");
        const { sessionId } = await editor.newSession();
        await editor.prompt(sessionId, "Hi");
        await wait(60);
        await editor.prompt(sessionId, "Again");
        expect(notices(context, sessionId)).toEqual([]);
      },
      { prompt_cache: { notice_above: limit } },
    );
  });
});
