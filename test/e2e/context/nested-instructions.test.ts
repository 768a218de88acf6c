import { expect, test } from "vitest";
import type { StoryContext } from "../../support/editor/story.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";

const story = storiesOfOneAgent();

const rules = "Keep the blue paint dry.";
const files = {
  "AGENTS.md": "Be kind.\n",
  "shop/AGENTS.md": `${rules}\n`,
  "shop/a.txt": "a\n",
  "shop/b.txt": "b\n",
};

/** The results of reading these files in parallel. */
async function read(
  { editor, model }: StoryContext,
  sessionId: string,
  ...names: string[]
): Promise<string[]> {
  const first = model.requests.length;
  const calls = names.map((filePath) => reply.callScript("read", { filePath }));
  model.reply(reply.together(...calls)).reply("Read.");
  await editor.prompt(sessionId, `Read ${names.join(" and ")}`);
  return [...(model.requests[first + 1]?.toolResults ?? [])];
}

const withRules = (results: readonly string[]) => results.map((result) => result.includes(rules));

test("sends a folder's instructions once, with the first of several files read at once", async () => {
  await story({ files }, async (context) => {
    const { sessionId } = await context.editor.newSession();
    const results = await read(context, sessionId, "shop/a.txt", "shop/b.txt");
    expect(withRules(results).filter(Boolean)).toHaveLength(1);
    expect(withRules(await read(context, sessionId, "shop/b.txt"))).toEqual([false]);
  });
});

test("a folder's instructions are sent again when the turn that sent them is undone", async () => {
  await story({ files }, async (context) => {
    const { editor } = context;
    const { sessionId } = await editor.newSession();
    expect(withRules(await read(context, sessionId, "shop/a.txt"))).toEqual([true]);
    expect(withRules(await read(context, sessionId, "shop/a.txt"))).toEqual([false]);
    for (const _ of ["second", "first"]) await editor.prompt(sessionId, "/undo");
    expect(withRules(await read(context, sessionId, "shop/b.txt"))).toEqual([true]);
    expect(withRules(await read(context, sessionId, "shop/a.txt"))).toEqual([false]);
  });
});

test("instructions that are read as a file are not sent a second time", async () => {
  await story({ files }, async (context) => {
    const { sessionId } = await context.editor.newSession();
    const [own = ""] = await read(context, sessionId, "shop/AGENTS.md");
    expect(own.split(rules)).toHaveLength(2);
    expect(withRules(await read(context, sessionId, "shop/a.txt"))).toEqual([false]);
  });
});

test("sends instructions again after loading only if a summary replaced them", async () => {
  await story({ files }, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    expect(withRules(await read(context, sessionId, "shop/a.txt"))).toEqual([true]);
    await editor.restart();
    await editor.initialize();
    await editor.load(sessionId);
    expect(withRules(await read(context, sessionId, "shop/b.txt"))).toEqual([false]);
    model.reply("They read two files.");
    await editor.prompt(sessionId, "/compact");
    expect(withRules(await read(context, sessionId, "shop/a.txt"))).toEqual([true]);
  });
});
