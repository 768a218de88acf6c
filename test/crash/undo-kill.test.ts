import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Editor } from "../support/editor/editor.ts";
import * as reply from "../support/model/reply.ts";
import { story } from "../support/editor/story.ts";
import { itemsOf } from "./support/conversation.ts";

/** Turns that are undone and redone with a kill in each; UNDO_KILLS=100 for the long run. */
const rounds = Number(process.env["UNDO_KILLS"] ?? 3);
/** Maximum milliseconds between the command and the kill. */
const mostMs = 120;

test("files and messages agree after an undo or redo is killed", { timeout: 240_000 }, async () => {
  await story({}, async ({ editor, model, repository }) => {
    const { sessionId } = await editor.newSession();
    for (let round = 0; round < rounds; round++) {
      const names = [0, 1, 2].map((part) => `new-${round}-${part}.txt`);
      const isThere = () => names.map((name) => existsSync(join(repository.path, name)));
      model.reply(
        reply.together(
          ...names.map((filePath) => reply.callScript("write", { filePath, content: "new\n".repeat(99) })),
        ),
      );
      model.reply("Written.");
      await editor.prompt(sessionId, `Write round ${round}.`);
      expect(isThere()).toEqual([true, true, true]);

      await killIn("/undo", editor, sessionId);
      const isShown = await shows(editor, sessionId, `Write round ${round}.`);
      expect([round, "undo", isThere()]).toEqual([round, "undo", [isShown, isShown, isShown]]);
      if (isShown) continue;

      await killIn("/redo", editor, sessionId);
      const isBack = await shows(editor, sessionId, `Write round ${round}.`);
      expect([round, "redo", isThere()]).toEqual([round, "redo", [isBack, isBack, isBack]]);
    }
  });
});

async function killIn(command: string, editor: Editor, sessionId: string): Promise<void> {
  const work = editor.prompt(sessionId, command).catch(() => undefined);
  await Promise.race([work, delay(Math.random() * mostMs)]);
  await editor.kill();
  await work;
  await editor.restart();
  await editor.initialize();
}

async function shows(editor: Editor, sessionId: string, text: string): Promise<boolean> {
  const before = editor.updates(sessionId).length;
  await editor.load(sessionId);
  return itemsOf(editor.updates(sessionId).slice(before)).some(
    (item) => item.role === "user" && item.text === text,
  );
}
