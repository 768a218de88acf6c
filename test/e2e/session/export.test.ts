import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

test("/export writes the conversation only into a new file of the workspace", async () => {
  await story({}, async ({ editor, model, repository }) => {
    const { sessionId } = await editor.newSession();
    const say = async (text: string) => {
      const before = agentText(editor.updates(sessionId)).length;
      await editor.prompt(sessionId, text);
      return agentText(editor.updates(sessionId)).slice(before);
    };
    model.reply("It is a sample.");
    await say("What is this?");
    const path = join(repository.path, "notes.md");
    expect(await say("/export notes.md")).toBe(`Written: ${path}`);
    const written = await readFile(path, "utf8");
    expect(written).toContain("## You\n\nWhat is this?\n\n## build (test/scripted)\n\nIt is a sample.\n");
    expect(written).not.toContain("/export");
    expect(await say("/export notes.md")).toContain("already exists");
    expect(await say("/export ../notes.md")).toContain("outside this session's folders");
    expect(await say("/export notes.json")).toContain("fairlead sessions export --format json");
    expect(await say("/export")).toMatch(/^Written: .*[\\/]session-\w{8}\.md$/);
  });
});
