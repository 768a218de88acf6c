import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Editor } from "../../support/editor/editor.ts";
import { expectFailure } from "../../support/failure.ts";
import * as reply from "../../support/model/reply.ts";
import { story, withSecond } from "../../support/editor/story.ts";
import { replayTexts, agentText, thoughtText } from "../../support/transcript.ts";

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const dayMs = 24 * 3_600_000;

test("two processes share a store at the same time, and each sees the other's work", async () => {
  await story({}, async (context) => {
    const { editor, model } = context;
    await withSecond(context, async (second) => {
      model.otherwise(({ userText }) => `Answer to ${userText}`);
      const talk = async (who: Editor, name: string) => {
        const { sessionId } = await who.newSession();
        for (let n = 0; n < 5; n++) await who.prompt(sessionId, `${name} ${n}`);
        return sessionId;
      };
      const ids = await Promise.all([talk(editor, "one"), talk(second, "two"), talk(second, "three")]);
      for (const who of [editor, second]) {
        const { sessions } = await who.list();
        expect(sessions.map(({ sessionId }) => sessionId).sort()).toEqual([...ids].sort());
      }
      await editor.closeSession(ids[0]);
      expect(await replayTexts(second, ids[0])).toEqual(
        [0, 1, 2, 3, 4].flatMap((n) => [`one ${n}`, `Answer to one ${n}`]),
      );
    });
  });
});

test("a session open in one process is refused to another, which gets its pid", async () => {
  await story({}, async (context) => {
    const { editor, model } = context;
    await withSecond(context, async (second) => {
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      model.reply("One ", gate, "two.");
      const turn = editor.prompt(sessionId, "Count");
      await gate.reached();
      const refusal = `The session ${sessionId} is open in another process (pid ${editor.pid}). Close it there first.`;
      const expected = { code: -32603, message: refusal, data: { details: refusal } };
      expect(await expectFailure(second.load(sessionId))).toEqual(expected);
      expect(await expectFailure(second.resume(sessionId))).toEqual(expected);
      expect((await expectFailure(second.delete(sessionId))).message).toBe(
        `Session ${sessionId} cannot be removed while process ${editor.pid} has it open. Close it there and try again.`,
      );
      gate.release();
      expect((await turn).stopReason).toBe("end_turn");
      expect(agentText(editor.updates(sessionId))).toBe("One two.");
      await editor.closeSession(sessionId);
      expect(await replayTexts(second, sessionId)).toEqual(["Count", "One two."]);
      model.reply("Three.");
      await second.prompt(sessionId, "Go on");
      expect((await expectFailure(editor.load(sessionId))).message).toContain(`(pid ${second.pid})`);
    });
  });
});

test("the session of a killed process is free at once for a running one", async () => {
  await story({}, async (context) => {
    const { editor, model } = context;
    await withSecond(context, async (second) => {
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      model.reply("The start of an answer", gate);
      void editor.prompt(sessionId, "Say something").catch(() => undefined);
      await editor.waitForKind(sessionId, "agent_message_chunk");
      await editor.kill();
      const began = performance.now();
      const [replyText, answered = ""] = await replayTexts(second, sessionId);
      expect(replyText).toBe("Say something");
      // Text of the last moment may be lost.
      expect("The start of an answer").toContain(answered);
      expect(performance.now() - began).toBeLessThan(2_000);
      expect(thoughtText(second.updates(sessionId))).toContain("The last turn was interrupted");
      model.reply("Whole.");
      expect((await second.prompt(sessionId, "Again")).stopReason).toBe("end_turn");
    });
  });
});

test("messages keep their order when the clock changes between two processes", async () => {
  const program = [
    "--import",
    new URL("../../crash/programs/clock.ts", import.meta.url).href,
    file("../../../bin/fairlead.js"),
    "acp",
  ];
  await story({ program }, async ({ editor, model, home }) => {
    // A request on another day also has a reminder of the date.
    model.otherwise(({ userText }) => `Answer to ${userText.replace(/<system-reminder>.*/s, "")}`);
    const { sessionId } = await editor.newSession();
    const replyText: string[] = [];
    for (const days of [0, -30, 400, 0, -1]) {
      await writeFile(join(home.path, "clock"), String(days * dayMs));
      await editor.restart();
      await editor.initialize();
      expect(await replayTexts(editor, sessionId)).toEqual(replyText);
      for (const n of [1, 2]) {
        const text = `day ${days}, message ${n}`;
        await editor.prompt(sessionId, text);
        replyText.push(text, `Answer to ${text}`);
      }
      const requested = model.requests.at(-1)?.messages.map(({ role }) => role);
      expect(requested?.slice(1)).toEqual(
        replyText.map((_, at) => (at % 2 === 0 ? "user" : "assistant")).slice(0, -1),
      );
    }
  });
});
