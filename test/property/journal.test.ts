import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import type { MessageId, PartId } from "../../src/message/ids.ts";
import type { Message } from "../../src/message/message.ts";
import { SessionStore, type SessionWriter } from "../../src/storage/session-store.ts";
import { all, assistantInfo, openWriter, sessionInfo } from "../crash/support/stored-session.ts";
import { tries } from "../support/run-length.ts";

type Step =
  | { do: "message"; message: number; cost: number }
  | { do: "part"; message: number; part: number; text: string }
  | { do: "append"; message: number; part: number; text: string }
  | { do: "seal"; message: number }
  | { do: "remove"; message: number }
  | { do: "title"; text: string; noted: boolean }
  | { do: "flush" }
  | { do: "reopen" }
  | { do: "kill" };

const message = fc.nat(2);
const part = fc.nat(1);
const text = fc.string({ unit: "binary", maxLength: 8 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("message" as const), message, cost: fc.nat(9) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("part" as const), message, part, text }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant("append" as const), message, part, text }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("seal" as const), message }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("remove" as const), message }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("title" as const), text, noted: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("flush" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("reopen" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("kill" as const) }) },
);

const messageId = (n: number): MessageId => `msg_${n}`;
const partId = (message: number, n: number): PartId => `prt_${message}${n}`;
const session = sessionInfo();
const infoOf = (n: number, cost: number) => assistantInfo(session.id, { id: messageId(n), cost });

/** Returns the transcript after the step; steps that are impossible there change nothing. */
function after(state: ReadonlyMap<number, Message>, step: Step): ReadonlyMap<number, Message> {
  const next = new Map(state);
  if (step.do === "remove") next.delete(step.message);
  if (step.do === "message") {
    const parts = state.get(step.message)?.parts ?? [];
    next.set(step.message, { info: infoOf(step.message, step.cost), parts });
  }
  const message = "message" in step ? state.get(step.message) : undefined;
  if ((step.do === "part" || step.do === "append") && message) {
    const id = partId(step.message, step.part);
    const old = message.parts.find((part) => part.id === id);
    if (step.do === "append" && old?.type !== "text") return next;
    const text = step.do === "append" && old?.type === "text" ? old.text + step.text : step.text;
    const part = { id, type: "text" as const, text };
    const parts = old
      ? message.parts.map((other) => (other === old ? part : other))
      : [...message.parts, part];
    next.set(step.message, { ...message, parts });
  }
  return next;
}

const toList = (state: ReadonlyMap<number, Message>) =>
  [...state].sort(([a], [b]) => a - b).map(([, message]) => message);

/** Applies the step to the writer if it is possible in that state. */
async function give(writer: SessionWriter, state: ReadonlyMap<number, Message>, step: Step): Promise<void> {
  if (step.do === "flush") return writer.flush();
  if (step.do === "reopen" || step.do === "kill") return;
  if (step.do === "title" && step.noted) return writer.noteInfo({ ...session, title: step.text });
  if (step.do === "title") return writer.saveInfo({ ...session, title: step.text });
  if (step.do === "message") return writer.putMessage(infoOf(step.message, step.cost));
  const message = state.get(step.message);
  if (!message) return;
  const id = messageId(step.message);
  if (step.do === "seal") return writer.seal(id);
  if (step.do === "remove") return writer.removeMessages([id]);
  const part = partId(step.message, step.part);
  if (step.do === "part") return writer.putPart(id, { id: part, type: "text", text: step.text });
  if (message.parts.some((other) => other.id === part)) writer.append(id, part, step.text);
}

const storeAt = (root: string) => SessionStore.open({ root, log: silentLog });

async function inStore(run: (store: SessionStore, root: string) => Promise<void>): Promise<void> {
  const parent = mkdtempSync(join(tmpdir(), "fairlead-journal-"));
  try {
    const root = join(parent, "0");
    const store = await storeAt(root);
    await store.create(session);
    await run(store, root);
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
}

/** The store and its writer, with process kills in between. */
class Lives {
  store: SessionStore;
  writer: SessionWriter;
  #root: string;
  readonly #dead: SessionWriter[] = [];

  constructor(store: SessionStore, writer: SessionWriter, root: string) {
    this.store = store;
    this.writer = writer;
    this.#root = root;
  }

  async reopen(): Promise<void> {
    await this.writer.close();
    this.writer = await openWriter(this.store, session.id);
  }

  /** After a kill, only the data on disk at that moment remains. */
  async kill(): Promise<void> {
    await this.writer.secure();
    const next = `${this.#root}+`;
    cpSync(this.#root, next, { recursive: true });
    this.#dead.push(this.writer);
    this.#root = next;
    this.store = await storeAt(next);
    this.writer = await openWriter(this.store, session.id);
  }

  async end(): Promise<void> {
    for (const writer of [...this.#dead, this.writer]) await writer.close();
  }
}

test("returns what was written, after any changes, seals, flushes and restarts", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), (steps) =>
      inStore(async (store, root) => {
        const lives = new Lives(store, await openWriter(store, session.id), root);
        let state: ReadonlyMap<number, Message> = new Map();
        let { title } = session;
        for (const step of steps) {
          await give(lives.writer, state, step);
          state = after(state, step);
          if (step.do === "title") title = step.text;
          if (step.do === "reopen") await lives.reopen();
          if (step.do === "kill") await lives.kill();
          if (!["flush", "reopen", "kill"].includes(step.do)) continue;
          expect(await all(lives.store.messages(session.id))).toEqual(toList(state));
          expect((await lives.store.load(session.id))?.title).toBe(title);
        }
        await lives.end();
        expect(await all(lives.store.messages(session.id))).toEqual(toList(state));
        expect((await lives.store.load(session.id))?.title).toBe(title);
      }),
    ),
    { numRuns: tries(150) },
  );
});

test("a journal truncated at any byte loads to an earlier state of the session", async () => {
  const unsealed = fc.array(
    step.filter(({ do: kind }) => !["seal", "reopen", "remove", "title", "kill"].includes(kind)),
    { minLength: 1, maxLength: 25 },
  );
  await fc.assert(
    fc.asyncProperty(unsealed, fc.double({ min: 0, max: 1, noNaN: true }), (steps, share) =>
      inStore(async (store, root) => {
        const writer = await openWriter(store, session.id);
        let state: ReadonlyMap<number, Message> = new Map();
        const states = [toList(state)];
        for (const step of steps) {
          await give(writer, state, step);
          state = after(state, step);
          states.push(toList(state));
        }
        await writer.close();
        const path = join(root, "journal", `${session.id}.ndjson`);
        const bytes = existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
        writeFileSync(path, bytes.subarray(0, Math.floor(bytes.length * share)));
        const loaded = await all(store.messages(session.id));
        expect(states).toContainEqual(loaded);
        await (await openWriter(store, session.id)).close();
        expect(await all(store.messages(session.id))).toEqual(loaded);
      }),
    ),
    { numRuns: tries(150) },
  );
});
