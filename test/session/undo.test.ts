import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { silentLog } from "../../src/base/log.ts";
import type { Message, Revert, SessionInfo } from "../../src/message/message.ts";
import type { FileChange } from "../../src/message/part.ts";
import { SessionDiff } from "../../src/conversation/session-diff.ts";
import { Transcript } from "../../src/conversation/transcript.ts";
import { Undo } from "../../src/undo/undo.ts";
import { loadVisible, omitReverted } from "../../src/conversation/visible-messages.ts";
import { SessionStore } from "../../src/storage/session-store.ts";
import {
  all,
  assistantInfo,
  openWriter,
  sessionInfo,
  textPart,
  toolPart,
} from "../crash/support/stored-session.ts";
import { toolPlace, type ToolPlace } from "../tool/tool-place.ts";

/** A stored session whose turns each wrote the file `a`, and its undo service. */
async function session(place: ToolPlace, turns: readonly string[]) {
  const { workspace } = place.context;
  const store = await SessionStore.open({ root: join(place.outside, "store"), log: silentLog });
  let info: SessionInfo = sessionInfo();
  await store.create(info);
  const writer = await openWriter(store, info.id);
  const files = { id: info.id, files: store.files, snapshots: workspace.snapshots };
  const transcript = new Transcript({ writer, emit: quiet, messages: [] });
  let before: string | null = null;
  for (const text of turns) {
    const after = await workspace.snapshots.save(Buffer.from(text));
    const change: FileChange = {
      path: place.path("a"),
      operation: before === null ? "add" : "update",
      before,
      after,
      additions: 1,
      deletions: before === null ? 0 : 1,
    };
    await addTurn(transcript, text, change);
    await place.write({ a: text });
    before = after ?? null;
  }
  const messagesFromNewest = () => store.messagesFromNewest(info.id);
  const save = async (fields: Partial<SessionInfo>) => {
    info = { ...info, ...fields };
    writer.saveInfo(info);
  };
  const open = async () => {
    const messages = await loadVisible(omitReverted(messagesFromNewest(), info.revert));
    const transcript = new Transcript({ writer, emit: quiet, messages });
    const diff = await SessionDiff.load(files);
    const revert = () => info.revert;
    const undo = new Undo({
      workspace,
      transcript,
      writer,
      diff,
      messagesFromNewest,
      revert,
      save,
      onShown: async () => {},
    });
    return { undo, transcript };
  };
  return {
    ...(await open()),
    /** The state after a kill that left this file. */
    reopened: async (revert: Revert) => {
      await save({ revert });
      await writer.flush();
      return open();
    },
    info: () => store.load(info.id),
    stored: () => all(store.messages(info.id)),
    diff: () => store.files.read(["session_diff", info.id], z.unknown()),
    [Symbol.asyncDispose]: () => writer.close(),
  };
}

const quiet = () => {};

async function addTurn(transcript: Transcript, text: string, change: FileChange): Promise<void> {
  const { sessionId } = transcript;
  const id = transcript.newMessageId();
  transcript.addMessage({ id, sessionId, role: "user", time: { created: 1 }, agent: "build" });
  transcript.putPart(id, textPart(text));
  await transcript.seal(id);
  const answer = assistantInfo(sessionId, { id: transcript.newMessageId(), parentId: id });
  const call = toolPart("");
  transcript.addMessage(answer);
  transcript.putPart(answer.id, {
    ...call,
    state: { ...call.state, changes: [change] },
  } as typeof call);
  await transcript.complete(answer);
}

const texts = (messages: readonly Message[]) =>
  messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "text" ? part.text : [])));

describe("an undo", () => {
  test("hides messages and keeps them on disk until the next prompt makes it final", async () => {
    await using place = await toolPlace();
    await using opened = await session(place, ["one", "two", "three"]);
    const { undo, transcript, stored, info, diff } = opened;
    await undo.undo("2");
    expect([texts(transcript.messages), texts(await stored())]).toEqual([["one"], ["one", "two", "three"]]);
    expect((await info())?.summary).toEqual({ additions: 1, deletions: 0, files: 1 });
    expect(await diff()).toMatchObject({ files: [{ path: place.path("a"), before: null }] });
    await undo.settle();
    expect(texts(await stored())).toEqual(["one"]);
    expect((await info())?.revert).toBeUndefined();
    expect(await undo.redo()).toContain("There is nothing to redo.");
    expect(await place.text("a")).toBe("one");
  });

  test("that was interrupted before or after its files is completed, once", async () => {
    await using place = await toolPlace();
    await using opened = await session(place, ["one", "two"]);
    const { undo, reopened, info } = opened;
    await undo.undo("");
    const revert = await revertOf(info);
    for (const disk of ["two", "one"]) {
      await place.write({ a: disk });
      const again = await reopened({ ...revert, state: "undoing" });
      expect(await again.undo.recover()).toContain("Completed an interrupted undo.");
      expect([await place.text("a"), texts(again.transcript.messages)]).toEqual(["one", ["one"]]);
      expect(await revertOf(info)).toEqual(revert);
      expect(await again.undo.recover()).toBeUndefined();
    }
  });

  test("that was interrupted does not overwrite what a user wrote before its completion", async () => {
    await using place = await toolPlace();
    await using opened = await session(place, ["one", "two"]);
    const { undo, reopened, info } = opened;
    await undo.undo("");
    await place.write({ a: "mine" });
    const again = await reopened({ ...(await revertOf(info)), state: "undoing" });
    expect(await again.undo.recover()).toContain("- a: not changed, because it has changed since");
    expect(await place.text("a")).toBe("mine");
  });

  test("with an interrupted redo is redone, only the newest of several steps", async () => {
    await using place = await toolPlace();
    await using opened = await session(place, ["one", "two", "three"]);
    const { undo, reopened, info } = opened;
    await undo.undo("");
    const first = await revertOf(info);
    await undo.undo("");
    const both = await revertOf(info);
    for (const disk of ["one", "two"]) {
      await place.write({ a: disk });
      const again = await reopened({ ...both, state: "redoing" });
      expect(await again.undo.recover()).toContain("Completed an interrupted redo.");
      expect([await place.text("a"), texts(again.transcript.messages)]).toEqual(["two", ["one", "two"]]);
      expect(await revertOf(info)).toEqual(first);
    }
  });

  test("that was becoming final is final", async () => {
    await using place = await toolPlace();
    await using opened = await session(place, ["one", "two"]);
    const { undo, reopened, info, stored } = opened;
    await undo.undo("");
    const again = await reopened({ ...(await revertOf(info)), state: "discarding" });
    expect(await again.undo.recover()).toBeUndefined();
    expect(texts(await stored())).toEqual(["one"]);
    expect((await info())?.revert).toBeUndefined();
  });
});

async function revertOf(info: () => Promise<SessionInfo | undefined>): Promise<Revert> {
  const revert = (await info())?.revert;
  if (revert === undefined) throw new Error("nothing is undone");
  return revert;
}
