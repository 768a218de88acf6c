import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { ModelRequest, ModelServer } from "../../support/model/model-server.ts";
import { countTokensIn } from "../../support/model/prompt-cache.ts";
import * as reply from "../../support/model/reply.ts";
import { isLong } from "../../support/run-length.ts";
import {
  isSummaryRequest,
  serveWindow,
  type SmallWindow,
  getRequestText,
} from "../../support/model/small-window.ts";
import { type StoryContext, story } from "../../support/editor/story.ts";
import { toolCalls } from "../../support/transcript.ts";

/** Returns source code with this number of lines. */
function source(file: number, lines: number): string {
  const line = (at: number) =>
    `  const value${at} = compute(${file}, "${(file * 7_919 + at * 104_729).toString(36)}"); // step ${at}`;
  return Array.from({ length: lines }, (_, at) => line(at)).join("\n");
}

const partName = (file: number): string => `src/part${file}.ts`;

const spec = `${Array.from(
  { length: 60 },
  (_, at) =>
    `Rule ${at + 1}: every part that is read must be named in the report, with the purpose of value${at}.`,
).join("\n")}\nThe last rule: sign the report with HELIOTROPE.`;

const request = "Read all parts of src in their order and report what they compute. The word is ROSEBUD.";

const changedText = "export const changed = 1;\n";
const planText = "# Plan: ask ASTER first\n";
const planPath = ".fairlead/plans/parts.md";

/** The beginning of a content's hash. */
const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 12);

/** Texts that each request after a compaction must contain. */
const canaries = [
  "The word is ROSEBUD",
  "sign the report with HELIOTROPE",
  "compare the totals with MARIGOLD",
  "Always count in dozens, says LARKSPUR",
  `src/changed.ts (${hashOf(changedText)})`,
  `${planPath} (${hashOf(planText)})`,
  `## Newest plan\n\n${planPath}`,
  "sh check.sh",
  "[exit code 3]",
  "assertion CELANDINE failed",
];

const todos = Array.from({ length: 8 }, (_, at) => ({
  content: at === 6 ? "compare the totals with MARIGOLD" : `look at group ${at + 1}`,
  status: at === 0 ? "in_progress" : "pending",
  priority: "medium",
}));

const skill =
  "---\nname: counting\ndescription: How to count.\n---\nAlways count in dozens, says LARKSPUR.\n";
const check = `for i in $(seq 1 300); do echo "checking item $i of the list"; done\necho "assertion CELANDINE failed"\nexit 3\n`;

interface WorkOptions {
  window: number;
  output: number | undefined;
  steps: number;
}

interface Work extends SmallWindow {
  /** The number of parts that had been read at each summary. */
  readonly readAt: number[];
  readonly requests: readonly ModelRequest[];
}

const homeFiles = { ".config/fairlead/skills/counting/SKILL.md": skill };

/** Answers of a turn that loads a skill, sets todos, changes files and runs a failing command. */
function replyWithState(model: ModelServer): void {
  model
    .reply(reply.call("skill", { name: "counting" }))
    .reply(reply.call("todowrite", { todos }))
    .reply(reply.call("write", { filePath: "src/changed.ts", content: changedText }))
    .reply(reply.call("write", { filePath: planPath, content: planText }))
    .reply(reply.call("bash", { command: "sh check.sh" }))
    .reply("Ready.");
}

/** A first turn with a long specification, a skill, todos, a change and a failed command; then a turn that only reads. */
async function work(
  { window, output, steps }: WorkOptions,
  after?: (storyContext: StoryContext, id: string) => Promise<void>,
) {
  const parts = Array.from({ length: steps }, (_, at) => [partName(at), source(at, 55)]);
  const files = { ...Object.fromEntries(parts), "check.sh": check };
  const readAt: number[] = [];
  let result: Work | undefined;
  await story({ files, homeFiles, limit: { context: window, output } }, async (storyContext) => {
    const { editor, model } = storyContext;
    let step = 0;
    const seen = serveWindow({
      model,
      window,
      summary: () => {
        readAt.push(step);
        return `## Goal\n\nReport on the parts.\n\n## Important details\n\n${"A fact was found out about a part. ".repeat(40)}`;
      },
      answer: () =>
        step >= steps
          ? "All parts are read."
          : [
              `Part ${step} is next. ${"It follows from the part before. ".repeat(5)}`,
              reply.call("read", { filePath: partName(step++) }),
            ],
    });
    const { sessionId } = await editor.newSession();
    replyWithState(model);
    await editor.prompt(sessionId, spec);
    const { stopReason } = await editor.prompt(sessionId, request);
    expect(stopReason).toBe("end_turn");
    expect(step).toBe(steps);
    await after?.(storyContext, sessionId);
    result = { ...seen, readAt, requests: model.requests };
  });
  if (result === undefined) throw new Error("the story did not end");
  return result;
}

/** Minimum number of steps between two summaries. */
function leastGap(readAt: readonly number[]): number {
  return Math.min(...readAt.slice(1).map((steps, at) => steps - (readAt[at] ?? 0)));
}

/** Returns the texts that a request after a compaction lacks, with the number of the request. */
function lost(requests: readonly ModelRequest[]): string[] {
  const first = requests.findIndex(isSummaryRequest);
  if (first === -1) return [];
  return requests
    .slice(first)
    .filter((one) => !isSummaryRequest(one))
    .flatMap((one) => {
      const text = getRequestText(one).replaceAll("\\n", "\n");
      return canaries.filter((canary) => !text.includes(canary)).map((canary) => `${one.number}: ${canary}`);
    });
}

interface Case extends WorkOptions {
  most: number;
}

const long: Case[] = [undefined, 8_192].flatMap((output) => [
  { window: 16_384, output, steps: 40, most: 14 },
  { window: 16_384, output, steps: 60, most: 20 },
  { window: 16_384, output, steps: 200, most: 67 },
  { window: 32_768, output, steps: 40, most: 3 },
  { window: 32_768, output, steps: 60, most: 5 },
  { window: 32_768, output, steps: 200, most: 12 },
  { window: 65_536, output, steps: 200, most: 6 },
]);
const short: Case[] = [
  { window: 16_384, output: 8_192, steps: 40, most: 14 },
  { window: 32_768, output: undefined, steps: 60, most: 5 },
];

describe("a long turn in a small window", () => {
  test.each(isLong ? long : short)(
    "of $steps steps, window $window, output $output: few compactions keep the state",
    async ({ most, ...options }) => {
      const { summaries, readAt, refused, requests } = await work(options);
      expect(refused, "requests that do not fit").toEqual([]);
      expect(summaries.length).toBeLessThanOrEqual(most);
      expect(leastGap(readAt)).toBeGreaterThanOrEqual(3);
      expect(lost(requests)).toEqual([]);
      for (const summary of summaries) {
        expect(getRequestText(summary)).toContain("The word is ROSEBUD");
        expect(getRequestText(summary)).toContain("sign the report with HELIOTROPE");
      }
    },
    240_000,
  );

  test("keeps the state of work when it is loaded after several compactions", async () => {
    const { summaries } = await work(
      { window: 16_384, output: undefined, steps: 60 },
      async (storyContext, id) => {
        const { editor, model } = storyContext;
        await editor.restart();
        await editor.initialize();
        await editor.load(id);
        await editor.prompt(id, "What is left to do?");
        expect(
          lost([...model.requests.filter(isSummaryRequest).slice(0, 1), ...model.requests.slice(-1)]),
        ).toEqual([]);
      },
    );
    expect(summaries.length).toBeGreaterThan(1);
  }, 60_000);
});

describe("ten compactions in a row", () => {
  test("lose nothing of the work's state and read the prompt from the cache", async () => {
    const files = { "check.sh": check, "a.txt": "one\n" };
    await story({ files, homeFiles, limit: { context: 32_768 } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      replyWithState(model);
      await editor.prompt(sessionId, spec);
      model.reply("Noted.");
      await editor.prompt(sessionId, request);
      for (let number = 1; number <= 10; number++) {
        model.reply(`Summary ${number}.`);
        await editor.prompt(sessionId, "/compact");
        model.reply(reply.call("read", { filePath: "a.txt" })).reply("Read.");
        await editor.prompt(sessionId, `Read a.txt for the time number ${number}`);
      }
      expect(model.requests.filter(isSummaryRequest)).toHaveLength(10);
      expect(lost(model.requests)).toEqual([]);
      for (const [at, summary] of model.requests.entries()) {
        const before = model.requests[at - 1];
        if (!isSummaryRequest(summary) || before === undefined) continue;
        expect(summary.messages.slice(0, before.messages.length)).toEqual(before.messages);
        expect([summary.body.tools, summary.body.tool_choice]).toEqual([before.body.tools, "none"]);
        // The previous answer and the request for the summary are new.
        expect(summary.bill.read / countTokensIn(before.bill)).toBeGreaterThan(0.95);
      }
    });
  }, 60_000);
});

describe("several outputs that do not fit together", () => {
  const big = ["one", "two", "three"];
  const files = Object.fromEntries(big.map((name, at) => [`${name}.ts`, source(at, 900)]));

  test("are truncated so that the next request fits, and the model can continue", async () => {
    await story({ files, limit: { context: 32_768 } }, async ({ editor, model }) => {
      let rounds = 0;
      const seen = serveWindow({
        model,
        window: 32_768,
        summary: () => "They were read.",
        answer: ({ messages }) => {
          const shown = messages.filter(({ content }) => /\d+: {3}const value0 = /.test(String(content)));
          if (shown.length === big.length) return "All three are seen.";
          rounds++;
          return reply.together(...big.map((name) => reply.callScript("read", { filePath: `${name}.ts` })));
        },
      });
      const { sessionId } = await editor.newSession();
      expect((await editor.prompt(sessionId, "Compare the three files")).stopReason).toBe("end_turn");
      expect(rounds).toBeLessThanOrEqual(3);
      expect(seen.refused).toEqual([]);
      expect(seen.summaries).toEqual([]);
    });
  });

  test("omit the last ones with a note, and are complete in a file", async () => {
    const names = Array.from({ length: 12 }, (_, at) => `big${at}.ts`);
    const many = Object.fromEntries(names.map((name, at) => [name, source(at, 900)]));
    await story({ files: many, limit: { context: 16_384 } }, async ({ editor, model }) => {
      const seen = serveWindow({
        model,
        window: 16_384,
        summary: () => "They were read.",
        answer: ({ toolResults }) =>
          toolResults.length > 0
            ? "Some are seen."
            : reply.together(...names.map((name) => reply.callScript("bash", { command: `cat ${name}` }))),
      });
      const { sessionId } = await editor.newSession();
      expect((await editor.prompt(sessionId, "Show all files")).stopReason).toBe("end_turn");
      expect(seen.refused).toEqual([]);
      const results = model.requests.at(-1)?.toolResults ?? [];
      expect(results).toHaveLength(names.length);
      for (const result of results) expect(result).toMatch(/The whole output is in \S+/);
      expect(results.at(-1)).toContain("does not fit into the context");
    });
  });
});

describe("files that are named in a message", () => {
  test("add no more text than fits into the window", async () => {
    const files = { "a.ts": source(1, 900), "b.ts": source(2, 900) };
    await story({ files, limit: { context: 16_384 } }, async ({ editor, model }) => {
      const seen = serveWindow({ model, window: 16_384, summary: () => "", answer: () => "Seen." });
      const { sessionId } = await editor.newSession();
      const { stopReason } = await editor.prompt(sessionId, "Compare @a.ts with @b.ts");
      expect([stopReason, seen.refused.length]).toEqual(["end_turn", 0]);
      expect(model.requests[0]?.userText).toMatch(/Go on with offset \d+/);
    });
  });
});

describe("a window that is smaller than configured", () => {
  test("truncates the newest outputs first, and the request is sent without a summary", async () => {
    await story(
      {
        files: { "a.ts": source(1, 900), "b.ts": source(2, 900) },
        limit: { context: 131_072, output: 4_096 },
      },
      async ({ editor, model }) => {
        const seen = serveWindow({
          model,
          window: 20_000,
          summary: () => "They were read.",
          answer: ({ toolResults }) =>
            toolResults.length > 0
              ? "Seen."
              : reply.together(
                  reply.callScript("read", { filePath: "a.ts" }),
                  reply.callScript("read", { filePath: "b.ts" }),
                ),
        });
        const { sessionId } = await editor.newSession();
        expect((await editor.prompt(sessionId, "Compare both files")).stopReason).toBe("end_turn");
        expect(seen.refused.length).toBeGreaterThan(0);
        expect(seen.summaries).toEqual([]);
        const last = model.requests.at(-1)?.toolResults ?? [];
        expect(last.every((result) => result.includes("const value0 = "))).toBe(true);
        expect(last.every((result) => /The whole is in \S+/.test(result))).toBe(true);
        const cards = toolCalls(editor.updates(sessionId)).map(({ content }) => JSON.stringify(content));
        expect(cards.every((card) => card.includes("value800"))).toBe(true);
      },
    );
  });

  test("too small for instructions and tools: fails at once with figures", async () => {
    await story(
      { files: { "a.ts": source(1, 55) }, limit: { context: 8_192 } },
      async ({ editor, model }) => {
        let offset = 0;
        const seen = serveWindow({
          model,
          window: 8_192,
          summary: () => "Little.",
          answer: () => reply.call("read", { filePath: "a.ts", offset: ++offset }),
        });
        const { sessionId } = await editor.newSession();
        await expect(editor.prompt(sessionId, "Read it")).rejects.toMatchObject({
          message: expect.stringMatching(
            /instructions and tools take \d\.\dk of 5\.5k usable tokens.*larger context/,
          ),
        });
        expect(JSON.stringify(editor.updates(sessionId))).toMatch(/is too small/);
        expect(seen.summaries.length).toBeLessThanOrEqual(1);
      },
    );
  });
});

describe("the request for an answer", () => {
  test("requests no more tokens than the window has left after the prompt", async () => {
    await story({ limit: { context: 16_384, output: 16_384 } }, async ({ editor, model }) => {
      const seen = serveWindow({ model, window: 16_384, summary: () => "", answer: () => "Hello." });
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "Hi");
      expect(seen.refused).toEqual([]);
      expect(model.requests[0]?.body.max_tokens).toBeGreaterThan(4_096);
    });
  });
});
