import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import type { RequestPermissionRequest } from "@agentclientprotocol/sdk";
import type { Editor } from "../support/editor/editor.ts";
import type { ModelServer } from "../support/model/model-server.ts";
import { isLong } from "../support/run-length.ts";
import { story } from "../support/editor/story.ts";
import { thoughtText } from "../support/transcript.ts";
import { type Item, itemsOf } from "./support/conversation.ts";
import { goOn, type KillScene, killScenes, playScenes } from "./support/kill-scenes.ts";

/** Number of kills in this file. */
const kills = isLong ? 32 : 8;
const killsPerSession = 8;
/** Milliseconds of streamed text that a kill may lose (system.md 2). */
const lossLimitMs = 200;
/** Maximum lines or milliseconds before a kill, whichever comes first. */
const mostLines = 60;
const mostMs = 700;
const interrupted = "The last turn was interrupted";

const options = {
  files: { "a.txt": "one\n".repeat(300), "b.txt": "two\n", "c.txt": "three\n" },
  config: { permission: { "*": "allow", bash: { "*": "allow", "echo ask-first": "ask" } } },
  permission: (request: RequestPermissionRequest) =>
    request.toolCall.title?.includes("sleep") ? "allow_once" : "never",
} as const;

const done: string[] = [];
afterAll(() => console.info(`${done.length} of ${kills} kills survived`));

const sessions = Math.ceil(kills / killsPerSession);
test.each(Array.from({ length: sessions }, (_, number) => number))(
  "session %i loses no finished work when it is killed repeatedly",
  { timeout: 240_000 },
  async (number) => {
    await story(options, async ({ editor, model, home }) => {
      playScenes(model);
      const { sessionId } = await editor.newSession();
      await ask(editor, sessionId);
      await editor.closeSession(sessionId);
      let stored = (await load(editor, sessionId)).items;
      const first = number * killsPerSession;
      for (let kill = first; kill < Math.min(kills, first + killsPerSession); kill++) {
        const scene = killScenes[kill % killScenes.length];
        if (!scene) throw new Error("no scene");
        stored = await killIn(scene, {
          editor,
          model,
          sessionId,
          kept: stored,
          note: `kill ${kill}, in ${scene.name}`,
        });
        done.push(scene.name);
      }
      expect(movedAside(join(home.path, ".local/share/fairlead/storage"))).toEqual([]);
    });
  },
);

interface Stage {
  editor: Editor;
  model: ModelServer;
  sessionId: string;
  /** Returns the session's visible content so far. */
  kept: Item[];
  note: string;
}

/**
 * Plays the scene, kills the program in it, loads the session, checks it and lets it continue. Returns the
 * visible content afterwards.
 */
async function killIn(
  scene: KillScene,
  { editor, model, sessionId, kept: stored, note }: Stage,
): Promise<Item[]> {
  const { ended, seen } = await playUntilKilled(scene, editor, sessionId);
  await restart(editor);
  const { items, notices } = await load(editor, sessionId);
  expect(items.slice(0, stored.length), `${note}: earlier turns`).toEqual(stored);
  const turn = items.slice(stored.length);
  expectNothingLost(turn, seen, note);
  expect(
    turn.filter(({ kind, status }) => kind === "call" && !isTerminal(status)),
    `${note}: open calls`,
  ).toEqual([]);
  const isCut = ended ? false : isCutOff(scene, turn);
  if (isCut !== undefined) expect([note, notices.includes(interrupted)]).toEqual([note, isCut]);
  const before = model.requests.length;
  await ask(editor, sessionId);
  expect(model.requests.length, note).toBe(before + 1);
  await editor.closeSession(sessionId);
  const { items: again } = await load(editor, sessionId);
  expect(again.slice(0, items.length), `${note}: after going on`).toEqual(items);
  return again;
}

interface Killed {
  /** Whether the turn was answered before the kill. */
  ended: boolean;
  /**
   * The content of the scene that the editor had received, and the part that it had received long enough
   * before the kill.
   */
  seen: { all: Item[]; old: Item[] };
}

async function playUntilKilled(scene: KillScene, editor: Editor, sessionId: string): Promise<Killed> {
  if (scene.prompt === undefined) await restart(editor);
  const { wire } = editor;
  const start = wire.updates.length;
  const started = wire.entries.length;
  let ended = false;
  const work = (
    scene.prompt === undefined ? editor.load(sessionId) : editor.prompt(sessionId, scene.prompt)
  ).then(
    () => (ended = true),
    () => false,
  );
  const stop = new AbortController();
  const lines = 1 + Math.floor(Math.random() * mostLines);
  const enough = wire.bell.until(() => wire.entries.length >= started + lines || undefined, "lines", mostMs);
  const time = delay(Math.random() * mostMs, undefined, { signal: stop.signal });
  await Promise.race([work, ...[enough, time].map((moment) => moment.catch(() => undefined))]);
  stop.abort();
  const killedAtMs = wire.nowMs;
  const isAnsweredBefore = ended;
  await editor.kill();
  const updates = wire.updates.slice(start).filter((update) => update.sessionId === sessionId);
  const old = updates.filter(({ order }) => (wire.entries[order]?.atMs ?? 0) < killedAtMs - lossLimitMs);
  const seen = scene.prompt === undefined ? [[], []] : [updates, old];
  const [all = [], before = []] = seen.map((list) => itemsOf(list.map(({ update }) => update)));
  return { ended: isAnsweredBefore || (await work), seen: { all, old: before } };
}

/**
 * Checks that the session has each finished call as it was shown, and each text at least up to a moment
 * before the kill.
 */
function expectNothingLost(turn: Item[], { all, old }: Killed["seen"], note: string): void {
  for (const item of all) {
    if (item.kind !== "call" || !isTerminal(item.status)) continue;
    expect(
      turn.find(({ kind, id }) => kind === item.kind && id === item.id),
      `${note}: a finished call`,
    ).toEqual(item);
  }
  for (const item of old) {
    if (item.kind !== "text") continue;
    const found = turn.find(({ kind, id }) => kind === item.kind && id === item.id)?.text ?? "";
    expect(found.slice(0, item.text.length), `${note}: streamed text`).toBe(item.text);
  }
}

const isTerminal = (status: string): boolean => status === "completed" || status === "failed";

/** True if the stored turn lacks its end; otherwise the turn may or may not have been ended. */
function isCutOff({ end }: KillScene, turn: Item[]): true | undefined {
  const last = turn.findLast(({ kind }) => kind !== "evidence");
  return last && end && !(last.role === "agent" && end.test(last.text)) ? true : undefined;
}

async function restart(editor: Editor): Promise<void> {
  await editor.restart();
  await editor.initialize();
}

/** Loads the session: returns the conversation, and the notices that follow the list of commands. */
async function load(editor: Editor, sessionId: string): Promise<{ items: Item[]; notices: string }> {
  const before = editor.updates(sessionId).length;
  await editor.load(sessionId);
  const updates = editor.updates(sessionId).slice(before);
  const end = updates.findIndex(({ sessionUpdate }) => sessionUpdate === "available_commands_update");
  return { items: itemsOf(updates.slice(0, end)), notices: thoughtText(updates.slice(end)) };
}

async function ask(editor: Editor, sessionId: string): Promise<void> {
  const answer = await editor.prompt(sessionId, goOn);
  expect(answer.stopReason).toBe("end_turn");
}

function movedAside(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.includes(".corrupt-"),
  );
}
