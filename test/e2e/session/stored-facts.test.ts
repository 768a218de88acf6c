import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { waitForFile } from "../../support/file-watch.ts";
import * as reply from "../../support/model/reply.ts";
import { isSummaryRequest } from "../../support/model/small-window.ts";
import { story } from "../../support/editor/story.ts";

test("the store has each project's root, and the times of its first and last use", async () => {
  await story({}, async ({ editor, model, home, repository }) => {
    const folder = join(home.path, ".local/share/fairlead/storage/project");
    const read = async () => {
      const [name = ""] = await readdir(folder);
      return JSON.parse(await readFile(join(folder, name), "utf8"));
    };
    const { sessionId } = await editor.newSession();
    model.reply("One.").reply("Two.");
    await editor.prompt(sessionId, "First");
    const first = await read();
    expect(first).toMatchObject({
      root: repository.path,
      time: { created: expect.any(Number), seen: expect.any(Number) },
    });
    const later = await editor.newSession();
    await editor.prompt(later.sessionId, "Second");
    const second = await read();
    expect(second.time.created).toBe(first.time.created);
    expect(second.time.seen).toBeGreaterThanOrEqual(first.time.seen);
    expect(JSON.stringify(await messagesOf(home.path))).toContain(
      JSON.stringify({ cwd: repository.path, root: repository.path }),
    );
  });
});

test("the store has the start of a session's compaction, until that ends", async () => {
  await story({}, async ({ editor, model, home }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Hello.");
    await editor.prompt(sessionId, "Hi");
    const gate = reply.gate();
    model.when(isSummaryRequest, [reply.say("They "), gate, reply.say("said hi.")]);
    const turn = editor.prompt(sessionId, "/compact");
    await gate.reached();
    await waitForFile(await sessionFile(home.path), (text) => /"compacting":\d+/.test(text));
    gate.release();
    await turn;
    await editor.closeSession(sessionId);
    expect(await readFile(await sessionFile(home.path), "utf8")).not.toContain("compacting");
  });
});

async function sessionFile(home: string): Promise<string> {
  const root = join(home, ".local/share/fairlead/storage/session");
  const [project = ""] = await readdir(root);
  const [name = ""] = await readdir(join(root, project));
  return join(root, project, name);
}

async function messagesOf(home: string): Promise<unknown[]> {
  const root = join(home, ".local/share/fairlead/storage/message");
  const texts: string[] = [];
  for (const session of await readdir(root))
    for (const name of await readdir(join(root, session)))
      texts.push(await readFile(join(root, session, name), "utf8"));
  return texts.map((text): unknown => JSON.parse(text));
}
