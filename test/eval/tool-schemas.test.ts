import { expect, test } from "vitest";
import { toList, toObject } from "../support/json.ts";
import { story } from "../support/editor/story.ts";

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
