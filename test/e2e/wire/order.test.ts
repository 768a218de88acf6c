import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newSessionId } from "../../../src/message/ids.ts";
import type { SessionInfo } from "../../../src/message/message.ts";
import { withElicitation } from "../../support/editor/clients.ts";
import type { Editor } from "../../support/editor/editor.ts";
import { expectFailure } from "../../support/failure.ts";
import { toList, toObject } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { isLong } from "../../support/run-length.ts";
import { collectUnrequestedMessages } from "../../support/editor/silence.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const sessionCount = isLong ? 5_000 : 700;

/** Stores sessions of an earlier process; ten of them were used at the same time. */
async function storeSessions(home: string, cwd: string): Promise<SessionInfo[]> {
  const projectId = "prj000000000000000000000000";
  const folder = join(home, ".local/share/fairlead/storage/session", projectId);
  await mkdir(folder, { recursive: true });
  const infos = Array.from({ length: sessionCount }, (_, at): SessionInfo => {
    const updated = 1_700_000_000_000 + Math.floor(at / 10) * 1_000;
    const time = { created: updated, updated };
    return { id: newSessionId(), projectId, cwd, agent: "build", cost: 0, time, version: "0.1.0" };
  });
  for (let at = 0; at < infos.length; at += 500)
    await Promise.all(
      infos
        .slice(at, at + 500)
        .map((info) => writeFile(join(folder, `${info.id}.json`), JSON.stringify(info))),
    );
  return infos;
}

async function pageAfter(editor: Editor, cursor: unknown) {
  const page = toObject(await editor.request("session/list", typeof cursor === "string" ? { cursor } : {}));
  const ids = toList(page.sessions).map((session) => String(toObject(session).sessionId));
  return { ids, nextCursor: page.nextCursor };
}

describe("session/list", () => {
  test(
    `shows each of ${sessionCount} sessions once, newest first, while sessions change`,
    { timeout: 60_000 },
    async () => {
      await story({ initialize: false }, async ({ editor, home, repository }) => {
        const infos = await storeSessions(home.path, repository.path);
        await editor.initialize();
        const began = performance.now();
        const first = await pageAfter(editor, undefined);
        expect(performance.now() - began).toBeLessThan(10_000);
        const untouched = new Set<string>(infos.map(({ id }) => id));
        const [oldest, deleted] = [infos[0], infos[1]];
        const ids = [...first.ids];
        let { nextCursor } = first;
        for (let page = 1; nextCursor !== undefined; page++) {
          if (page === 5) {
            await editor.newSession();
            if (deleted) await editor.delete(deleted.id);
            if (oldest) await editor.request("session/set_title", { sessionId: oldest.id, title: "Other" });
            if (deleted) untouched.delete(deleted.id);
          }
          const next = await pageAfter(editor, nextCursor);
          ids.push(...next.ids);
          nextCursor = next.nextCursor;
        }
        expect(new Set(ids).size).toBe(ids.length);
        expect(new Set(ids)).toEqual(untouched);
        const times = new Map<string, number>(infos.map(({ id, time }) => [id, time.updated]));
        const inOrder = ids.map((id) => times.get(id) ?? 0);
        expect(inOrder).toEqual([...inOrder].sort((one, other) => other - one));
      });
    },
  );
});

describe("updates of a session", () => {
  test("are sent after the response that creates the session, also in parallel", async () => {
    await story({}, async ({ editor }) => {
      const created = await Promise.all(Array.from({ length: 20 }, () => editor.newSession()));
      for (const { sessionId } of created) {
        const answer = editor.wire.entries.find(({ line }) =>
          line.includes(`"result":{"sessionId":"${sessionId}"`),
        );
        const update = await editor.waitForEntry(
          ({ message, line }) => message?.kind === "notification" && line.includes(sessionId),
          "the session's first update",
        );
        expect(update.order).toBeGreaterThan(answer?.order ?? Infinity);
      }
    });
  });

  test("are not repeated for the same mode or title", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      await editor.waitForKind(sessionId, "config_option_update");
      const before = editor.updates(sessionId).length;
      await editor.setMode(sessionId, "plan");
      await editor.setConfigOption(sessionId, "mode", "plan");
      await editor.setConfigOption(sessionId, "approval", "ask");
      expect(await collectUnrequestedMessages(editor)).toEqual([]);
      expect(editor.updates(sessionId)).toHaveLength(before);
    });
  });

  test("of a call end with the call, even if one of its processes still writes", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const command = "(for i in 1 2 3 4 5 6; do echo late $i; sleep 0.05; done) & echo now";
      model.reply(reply.call("bash", { command, timeout: 5_000 })).reply("Done.");
      await editor.prompt(sessionId, "Run it");
      expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ status: "completed" }]);
      expect(await collectUnrequestedMessages(editor)).toEqual([]);
    });
  });
});

describe("setting up a session", () => {
  test("runs one at a time in order; closing, loading and deleting twice is not an error", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      await Promise.all([
        editor.load(sessionId),
        editor.closeSession(sessionId),
        editor.closeSession(sessionId),
        editor.resume(sessionId),
        editor.load(sessionId),
        editor.load(sessionId),
      ]);
      expect(await collectUnrequestedMessages(editor)).toEqual([]);
      const [deleted, again, closed] = await Promise.all([
        editor.delete(sessionId),
        editor.delete(sessionId),
        editor.closeSession(sessionId),
      ]);
      expect([deleted, again, closed]).toEqual([{}, {}, {}]);
      expect(await expectFailure(editor.load(sessionId))).toMatchObject({ code: -32002 });
    });
  });

  test.each([
    ["in its course", false],
    ["with its first request", true],
  ])("a call that the client cancels, %s, is answered as cancelled and then silent", async (_, isFirst) => {
    await story({}, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      if (isFirst) {
        await editor.restart();
        await editor.initialize();
      }
      const params = { sessionId, cwd: repository.path, mcpServers: [] };
      const load = { jsonrpc: "2.0", id: "load", method: "session/load", params };
      const cancel = { jsonrpc: "2.0", method: "$/cancel_request", params: { requestId: "load" } };
      await editor.write(`${JSON.stringify(load)}\n${JSON.stringify(cancel)}\n`);
      const answer = await editor.response("load");
      expect(toObject(answer.error).code).toBe(-32800);
      expect(await collectUnrequestedMessages(editor)).toEqual([]);
      await editor.load(sessionId);
    });
  });
});

describe("a prompt that is cancelled as a request", () => {
  test("ends as cancelled, also while waiting for earlier prompts", async () => {
    await story({}, async ({ editor, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "build");
      const list = { jsonrpc: "2.0", id: "list", method: "session/list", params: { cwd: repository.path } };
      const params = { sessionId, prompt: [{ type: "text", text: "Hi" }] };
      const prompt = { jsonrpc: "2.0", id: "prompt", method: "session/prompt", params };
      const cancel = { jsonrpc: "2.0", method: "$/cancel_request", params: { requestId: "prompt" } };
      await editor.write([list, prompt, cancel].map((message) => `${JSON.stringify(message)}\n`).join(""));
      const answer = await editor.response("prompt");
      expect(toObject(answer.result).stopReason).toBe("cancelled");
    });
  });
});

describe("a question", () => {
  const asking = [
    reply.call("webfetch", { url: "http://127.0.0.1:1/" }),
    reply.call("question", {
      questions: [
        { header: "Way", question: "Which way?", options: [{ label: "Left" }, { label: "Right" }] },
      ],
    }),
  ];
  const options = {
    client: withElicitation(),
    permission: "allow_once",
    config: { permission: { webfetch: "ask" } },
  } as const;

  test("is sent after its tool call, whatever other requests are open", async () => {
    await story(options, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      for (let round = 0; round < 4; round++) {
        model.reply(...asking).reply("Done.");
        const turn = editor.prompt(sessionId, "Ask");
        const over = turn.then(() => "over");
        const choices: Promise<unknown>[] = [];
        while ((await Promise.race([over, editor.list()])) !== "over")
          for (const mode of ["plan", "build"]) choices.push(editor.setMode(sessionId, mode));
        await Promise.all([turn, ...choices]);
      }
      expect(editor.elicitations).toHaveLength(4);
      expect(unannounced(editor)).toEqual([]);
    });
  });
});

/** Forms that were sent before the call they belong to. */
function unannounced(editor: Editor): unknown[] {
  const known = new Set<unknown>();
  return editor.wire.entries.filter(({ direction, message }) => {
    if (direction === "toAgent" || message === undefined || message.kind === "response") return false;
    const update = toObject(message.params.update);
    if (update.sessionUpdate === "tool_call") known.add(update.toolCallId);
    return message.method === "elicitation/create" && !known.has(message.params.toolCallId);
  });
}
