import { join } from "node:path";
import { expect, test } from "vitest";
import { storiesOfOneAgent } from "../support/editor/story.ts";
import * as reply from "../support/model/reply.ts";
import { agentText, thoughtText } from "../support/transcript.ts";
import { countRequestTokens, getBudget } from "./budgets.ts";

const story = storiesOfOneAgent();

const skill = (name: string, description: string) =>
  `---\nname: ${name}\ndescription: ${description}\n---\nDo it.\n`;
const skills = Object.fromEntries(
  Array.from({ length: 250 }, (_, at) => [
    `.agents/skills/step-${at}/SKILL.md`,
    skill(`step-${at}`, at === 249 ? "Ships packages." : "Explains one of many steps. ".repeat(10)),
  ]),
);
const files = {
  ...skills,
  "AGENTS.md": "- Keep prices in cents, as integers.\n".repeat(2_000),
  "a.txt": "one\n",
};

/** Tokens that skills and instructions may add in this window. */
const addedTokens = 5_000;

const windows = [
  { family: "small", model: "qwen3:8b", context: 32_768 },
  { family: "open", model: "glm-4.7", context: 32_768 },
] as const;

test.each(windows)(
  "skills and instructions fit into a window of 32k for the family $family",
  async ({ family, model: name, context }) => {
    const models = { [name]: { limit: { context }, tool_call: true } };
    await story(
      { files, models, config: { model: `test/${name}` } },
      async ({ editor, model, repository }) => {
        const { sessionId } = await editor.newSession();
        model.reply("Hello.");
        await editor.prompt(sessionId, "Hi");
        const [request] = model.requests;
        if (request === undefined) throw new Error("no request");
        expect(countRequestTokens(request)).toBeLessThan(getBudget(family, "first") + addedTokens);
        expect(request.system).toMatch(/\[Cut after \d+ bytes, to save context\. Read \S+AGENTS\.md for/);
        const updates = editor.updates(sessionId);
        expect(agentText(updates) + thoughtText(updates)).toContain(
          `receives only the start of ${join(repository.path, "AGENTS.md")}`,
        );
      },
    );
  },
);

test("a skill that is not listed is found by a word and loaded", async () => {
  const models = { "glm-4.7": { limit: { context: 32_768 }, tool_call: true } };
  await story({ files, models, config: { model: "test/glm-4.7" } }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model
      .reply(reply.call("skill", { name: "package shipping" }))
      .reply(reply.call("skill", { name: "step-249" }))
      .reply("Shipped.");
    await editor.prompt(sessionId, "Ship it");
    const [first, second, third] = model.requests;
    expect(first?.system).toMatch(/\(\d+ more skills are not listed\./);
    expect(second?.toolResults).toEqual([
      'There is no skill "package shipping". Skills that match: step-249. Call skill with one of these names, or go on without one.',
    ]);
    expect(third?.toolResults).toEqual([expect.stringContaining('<skill name="step-249">')]);
  });
});

test("instructions of a folder are truncated to the limit of one result", async () => {
  const models = { "qwen3:8b": { limit: { context: 16_384 }, tool_call: true } };
  const nested = { "shop/AGENTS.md": "- Rule.\n".repeat(3_000), "shop/a.txt": "one\n" };
  await story({ files: nested, models, config: { model: "test/qwen3:8b" } }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("read", { filePath: "shop/a.txt" })).reply("It says one.");
    await editor.prompt(sessionId, "Read it");
    const [result = ""] = model.requests[1]?.toolResults ?? [];
    expect(result).toContain("1: one");
    expect(result.length).toBeLessThan(7_000);
    expect(result).toMatch(/\[Cut after \d+ bytes, to save context\. Read \S+AGENTS\.md for the rest\.\]$/);
  });
});
