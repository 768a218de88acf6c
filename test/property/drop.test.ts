import { appendFileSync, existsSync, lstatSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import type { FileChange } from "../../src/message/part.ts";
import { SessionDiff } from "../../src/conversation/session-diff.ts";
import { Transcript } from "../../src/conversation/transcript.ts";
import { Review } from "../../src/undo/review.ts";
import { SessionStore } from "../../src/storage/session-store.ts";
import {
  assistantInfo,
  openWriter,
  sessionInfo,
  textPart,
  toolPart,
} from "../crash/support/stored-session.ts";
import { commandPlace } from "../support/command-place.ts";
import { Dice } from "../support/dice.ts";
import { tries } from "../support/run-length.ts";

type Place = Awaited<ReturnType<typeof commandPlace>>;

/** The review of a session in which one turn made the changes. */
async function reviewOf(place: Place, changes: FileChange[]) {
  const { workspace } = place.context;
  const store = await SessionStore.open({ root: join(place.outside, "store"), log: silentLog });
  const info = sessionInfo();
  await store.create(info);
  const writer = await openWriter(store, info.id);
  const transcript = new Transcript({ writer, emit: () => {}, messages: [] });
  const id = transcript.newMessageId();
  transcript.addMessage({
    id,
    sessionId: info.id,
    role: "user",
    time: { created: 1 },
    agent: "build",
  });
  transcript.putPart(id, textPart("Change files"));
  const answer = assistantInfo(info.id, { id: transcript.newMessageId(), parentId: id });
  const call = toolPart("");
  const time = { start: 1, end: 2 };
  transcript.addMessage(answer);
  transcript.putPart(answer.id, {
    ...call,
    state: { status: "completed", input: {}, output: "", time, changes },
  });
  await transcript.complete(answer);
  const diff = SessionDiff.begin({ id: info.id, files: store.files, snapshots: workspace.snapshots });
  const deps = {
    workspace,
    transcript,
    writer,
    diff,
    messagesFromNewest: () => store.messagesFromNewest(info.id),
    revert: () => undefined,
    save: async () => {},
    onShown: async () => {},
  };
  return {
    review: new Review(deps, async () => {}),
    /** Shows the list, like the command. */
    list: async (review: Review) => {
      const { part, text } = await review.list("");
      if (part === undefined) return [];
      const shown = assistantInfo(info.id, { id: transcript.newMessageId(), parentId: id });
      transcript.addMessage(shown);
      transcript.putPart(shown.id, part);
      transcript.putPart(shown.id, { ...textPart(text), ignored: true });
      await transcript.complete(shown);
      return part.files.flatMap(({ change, items }) => items.map((item) => ({ ...item, path: change.path })));
    },
    [Symbol.asyncDispose]: () => writer.close(),
  };
}

const project = {
  "a.txt": "one\ntwo\nthree\n",
  "b.txt": "alpha\nbeta\n",
  "src/c.txt": "deep\n",
  "run.sh": "true\n",
  "bytes.bin": new Uint8Array([0, 1, 2, 255]),
};
const names = ["a.txt", "b.txt", "src/c.txt", "run.sh", "bytes.bin", "new.txt"] as const;

function commandLine(dice: Dice): string {
  const [f, g] = [dice.oneOf(names), dice.oneOf(names)];
  const word = `word${dice.below(1000)}`;
  return dice.oneOf([
    `echo ${word} > ${f}`,
    `printf ${word} >> ${f}`,
    `sed -i.bak '1s/^/${word}/' ${f} && rm ${f}.bak`,
    `rm -f ${f}`,
    `mv ${f} moved-${dice.below(3)}.txt`,
    `cp ${f} ${g}`,
    `chmod +x ${f}`,
    `rm -f ${f}; ln -s run.sh ${f}`,
    `rm -rf src; echo ${word} > src`,
    `rm -f ${f}; mkdir -p ${f} && echo ${word} > ${f}/inside`,
    `printf '\\000${word}' > ${f}`,
  ]);
}

test("dropping all leaves the same tree as an undo, and redo restores it", { timeout: 600_000 }, async () => {
  for (let round = 0; round < tries(60); round++) {
    const dice = new Dice(round);
    await using place = await commandPlace(project);
    const lines: string[] = [];
    const changes: FileChange[] = [];
    const edit = () => {
      const path = place.path(dice.oneOf(names));
      if (existsSync(path) && lstatSync(path).isFile()) appendFileSync(path, `mine ${lines.length}\n`);
    };
    for (let step = 0; step < 1 + dice.below(4); step++) {
      if (dice.below(4) === 0) edit();
      const line = commandLine(dice);
      lines.push(line);
      changes.push(...((await place.run(line)).changes ?? []));
    }
    if (dice.below(2) === 0) edit();
    const context = `seed ${round}:\n${lines.join("\n")}`;
    const after = place.tree();
    await using session = await reviewOf(place, changes);
    const answer = await session.review.drop("all");
    const dropped = place.tree();
    await session.review.redo();
    expect(place.tree(), `redo of ${context}\n${answer}`).toEqual(after);
    await place.undo(changes);
    expect(dropped, `${context}\n${answer}`).toEqual(place.tree());
  }
});

test(
  "dropping each number keeps the user's lines and restores everything else",
  { timeout: 600_000 },
  async () => {
    for (let round = 0; round < tries(60); round++) {
      const dice = new Dice(round);
      const count = 5 + dice.below(60);
      await using place = await commandPlace({
        "a.txt": Array.from({ length: count }, (_, index) => `line ${index}\n`).join(""),
      });
      const before = place.tree();
      const changes: FileChange[] = [];
      const isEdited = dice.below(3) > 0;
      const mine: string[] = [];
      const path = place.path("a.txt");
      const edit = () => {
        const lines = readFileSync(path, "utf8").split("\n");
        const own = `mine ${round} ${mine.length}`;
        mine.push(own);
        // An edit replaces a line of the agent, or adds a line.
        lines.splice(dice.below(lines.length), dice.below(2), own);
        // A replaced line of the user's own is no longer there.
        for (const one of mine.filter((line) => !lines.includes(line))) mine.splice(mine.indexOf(one), 1);
        writeFileSync(path, lines.join("\n"));
      };
      for (let step = 0; step < 1 + dice.below(4); step++) {
        if (isEdited && step > 0 && dice.below(2) === 0) edit();
        const at = 1 + dice.below(count);
        const word = `agent${dice.below(1000)}`;
        // In this test the agent does not change lines of the user.
        const line = dice.oneOf([
          `sed -i.bak '${at}{/mine/!s/.*/${word}/;}' a.txt && rm a.txt.bak`,
          `sed -i.bak '${at}s/$/\\\n${word}/' a.txt && rm a.txt.bak`,
          `sed -i.bak '${at}{/mine/!d;}' a.txt && rm a.txt.bak`,
        ]);
        changes.push(...((await place.run(line)).changes ?? []));
      }
      if (isEdited) edit();
      await using session = await reviewOf(place, changes);
      const items = await session.list(session.review);
      const order = items.map((_, index) => index + 1).sort(() => dice.below(3) - 1);
      const answers: string[] = [];
      for (const number of order) {
        if (isEdited && dice.below(4) === 0) edit();
        answers.push(await session.review.drop(String(number)));
      }
      const context = `seed ${round}\n${JSON.stringify(items)}\n${answers.join("\n")}`;
      const text = readFileSync(path, "utf8").split("\n");
      for (const one of mine) expect(text, context).toContain(one);
      if (isEdited) continue;
      expect(place.tree(), context).toEqual(before);
      expect(await session.list(session.review), context).toEqual([]);
    }
  },
);
