import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { silentLog } from "../../src/base/log.ts";
import { newSessionId } from "../../src/message/ids.ts";
import type { Message } from "../../src/message/message.ts";
import type { FileChange } from "../../src/message/part.ts";
import { SessionDiff } from "../../src/conversation/session-diff.ts";
import { JsonStore } from "../../src/storage/json/json-store.ts";
import { assistantInfo, toolPart } from "../crash/support/stored-session.ts";
import { toolPlace } from "../tool/tool-place.ts";

const id = newSessionId();

async function diffPlace() {
  const place = await toolPlace();
  const files = new JsonStore({ root: join(place.outside, "store"), log: silentLog });
  const { snapshots } = place.context.workspace;
  return {
    load: () => SessionDiff.load({ id, files, snapshots }),
    keep: (text: string | Uint8Array) => snapshots.save(Buffer.from(text)),
    stored: () => files.read(["session_diff", id], z.unknown()),
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

/** A message whose call made this change, which counts as one added and one removed line. */
function changed(path: string, before: FileChange["before"], after: FileChange["after"]): Message {
  const change: FileChange = { path, operation: "update", before, after, additions: 1, deletions: 1 };
  const time = { start: 1, end: 2 };
  const state = { status: "completed" as const, input: {}, output: "", changes: [change], time };
  return { info: assistantInfo(id), parts: [{ ...toolPart(""), state }] };
}

async function* newestFirst(messages: readonly Message[]): AsyncGenerator<Message> {
  yield* messages.toReversed();
}

describe("the diff of a session", () => {
  test("compares each file's first content with its last, and omits unchanged ones", async () => {
    await using place = await diffPlace();
    const [one, two, three] = [
      await place.keep("1\n"),
      await place.keep("1\n2\n"),
      await place.keep("1\n2\n3\n"),
    ];
    const diff = await place.load();
    const messages = [changed("/a", one, two), changed("/b", one, two)];
    diff.note(messages);
    await diff.save();
    messages.push(changed("/a", two, three), changed("/b", two, one));
    diff.note(messages);
    expect(await diff.save()).toEqual({ additions: 2, deletions: 0, files: 1 });
    expect(await place.stored()).toEqual({
      files: [{ path: "/a", additions: 2, deletions: 0, before: one, after: three }],
      additions: 2,
      deletions: 0,
      through: messages.at(-1)?.info.id,
    });
    expect(await diff.save()).toBeUndefined();
  });

  test("includes changes that a killed process left uncounted, only of its last turn", async () => {
    await using place = await diffPlace();
    const [one, two] = [await place.keep("1\n"), await place.keep("2\n2\n")];
    const diff = await place.load();
    const known = changed("/a", null, one);
    diff.note([known]);
    await diff.save();
    const fresh = [changed("/old", null, one), changed("/b", null, one), changed("/b", one, two)];
    const again = await place.load();
    await again.noteStored(newestFirst([known, ...fresh]), (message) => message === fresh[1]);
    expect(await again.save()).toEqual({ additions: 3, deletions: 1, files: 2 });
  });

  test("uses the calls' own counts if content was not stored or is not text", async () => {
    await using place = await diffPlace();
    const binary = await place.keep(new Uint8Array([0, 1, 2, 0]));
    const diff = await place.load();
    diff.note([
      changed("/large", undefined, undefined),
      changed("/large", undefined, undefined),
      changed("/b", binary, undefined),
    ]);
    expect(await diff.save()).toEqual({ additions: 3, deletions: 3, files: 2 });
  });

  test("is rebuilt from the visible messages", async () => {
    await using place = await diffPlace();
    const [one, two] = [await place.keep("1\n"), await place.keep("2\n")];
    const messages = [changed("/a", null, one), changed("/a", one, two), changed("/b", null, two)];
    const diff = await place.load();
    diff.note(messages);
    await diff.save();
    expect(await diff.rebuild(newestFirst(messages.slice(0, 1)))).toEqual({
      additions: 1,
      deletions: 1,
      files: 1,
    });
    expect(await diff.rebuild(newestFirst([]))).toEqual({ additions: 0, deletions: 0, files: 0 });
  });
});
