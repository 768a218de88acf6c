import { estimateTokenCount } from "tokenx";
import { expect, test } from "vitest";
import { toList, toObject } from "../../support/json.ts";
import { story } from "../../support/editor/story.ts";

/** The most tokens of a first request, with its tools, per family. */
const limits: readonly [family: string, model: string, tokens: number, tools?: readonly string[]][] = [
  ["claude", "claude-sonnet-4-5", 6_000],
  ["gpt", "gpt-5.1", 6_000],
  ["codex", "gpt-5.1-codex", 6_000],
  ["gemini", "gemini-2.5-pro", 6_000],
  ["open", "glm-4.7", 6_000],
  ["small", "qwen3:8b", 3_300, ["bash", "edit", "glob", "grep", "read", "write"]],
];

test.each(limits)(
  "the first request of the family %s (%s) has at most %d tokens",
  async (_, name, most, tools) => {
    await story({ initialize: false }, async ({ editor, model, home }) => {
      const options = { baseURL: model.url, apiKey: "test-key" };
      const provider = { gateway: { options, models: { [name]: { limit: { context: 200_000 } } } } };
      const config = { model: `gateway/${name}`, provider };
      await home.write({ ".config/fairlead/fairlead.json": JSON.stringify(config) });
      await editor.initialize();
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      const { messages, body, toolNames } = await model.request(1);
      expect(estimateTokenCount(JSON.stringify([messages, body.tools]))).toBeLessThanOrEqual(most);
      if (tools !== undefined) expect(toolNames.toSorted()).toEqual(tools);
    });
  },
);

test("tool schemas begin with the path, name the agents and describe todo fields", async () => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Hello.");
    await editor.prompt(sessionId, "Hi");
    const { body } = await model.request(1);
    const tools = toList(body.tools).map((tool) => toObject(toObject(tool).function));
    const fields = (name: string) =>
      toObject(toObject(tools.find((tool) => tool.name === name)?.parameters).properties);
    for (const name of ["edit", "multiedit", "write", "read"])
      expect(Object.keys(fields(name))[0], name).toBe("filePath");
    expect(fields("task")).not.toHaveProperty("session_id");
    expect(fields("task").subagent_type).toMatchObject({ enum: ["general", "explore"] });
    const entry = toObject(toObject(toObject(fields("todowrite").todos).items).properties);
    for (const field of ["content", "status", "priority"])
      expect(toObject(entry[field]).description, field).toMatch(/\w/);
    expect(tools.map(({ name }) => name)).not.toContain("todoread");
  });
});
