import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, expect, test, vi } from "vitest";
import { Editor } from "../support/editor/editor.ts";
import { type StoryContext, story } from "../support/editor/story.ts";
import * as reply from "../support/model/reply.ts";
import { isSummaryRequest } from "../support/model/small-window.ts";
import { socketFolder } from "../support/program/environment.ts";
import { isLong } from "../support/run-length.ts";
import { thoughtText } from "../support/transcript.ts";
import { itemsOf } from "./support/conversation.ts";

/** A phase of a turn in which the connection of the first client breaks. */
interface Phase {
  readonly name: string;
  readonly prompt: string;
  /** Number of model calls of the whole round. */
  readonly calls: number;
  /** Prepares the model's answers, and an earlier turn if the phase needs one. */
  prepare(round: Round): Promise<void>;
  /** Resolves when the turn is in the phase. */
  reached(round: Round): Promise<unknown>;
  /** Lets the turn continue. */
  release(round: Round): unknown;
}

interface Round extends StoryContext {
  readonly sessionId: string;
  readonly gate: reply.Gate;
}

const release = ({ gate }: Round) => gate.release();
const bash = (command: string) => reply.call("bash", { command, description: "Runs" });

const phases: readonly Phase[] = [
  {
    name: "before the first text",
    prompt: "Count",
    calls: 1,
    prepare: async ({ model, gate }) => void model.reply(gate, "One ", "two."),
    reached: ({ gate }) => gate.reached(),
    release,
  },
  {
    name: "in text",
    prompt: "Count",
    calls: 1,
    prepare: async ({ model, gate }) => void model.reply("One ", "two ", gate, "three ", "four."),
    reached: ({ editor, sessionId }) => editor.waitForKind(sessionId, "agent_message_chunk"),
    release,
  },
  {
    name: "in a tool",
    prompt: "Run",
    calls: 2,
    prepare: async ({ model }) =>
      void model.reply("First. ", bash("until [ -e go ]; do sleep 0.05; done; echo ran")).reply("Done."),
    reached: ({ editor, sessionId }) => editor.waitForKind(sessionId, "tool_call"),
    release: ({ repository }) => writeFile(join(repository.path, "go"), ""),
  },
  {
    name: "in a tool while a job runs",
    prompt: "Serve",
    calls: 4,
    prepare: async ({ model }) =>
      void model
        .reply(reply.call("bash", { command: "echo serving; sleep 1000", background: true }))
        .reply(bash("until [ -e stop ]; do sleep 0.05; done; echo ran"))
        .reply(reply.call("job", { action: "stop" }))
        .reply("Done."),
    reached: ({ editor, sessionId }) =>
      editor.waitFor(sessionId, (update) => "title" in update && update.title?.includes("-e stop") === true),
    release: ({ repository }) => writeFile(join(repository.path, "stop"), ""),
  },
  {
    name: "at a question",
    prompt: "Ask",
    calls: 2,
    prepare: async ({ model }) => void model.reply(bash("echo asked")).reply("Done."),
    reached: ({ editor }) => editor.permissionRequest(editor.permissionRequests.length + 1),
    release: () => {},
  },
  {
    name: "in a compaction",
    prompt: "/compact",
    calls: 2,
    prepare: async ({ editor, model, sessionId, gate }) => {
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      model.when(isSummaryRequest, ["They ", gate, "said hi."]);
    },
    reached: ({ gate }) => gate.reached(),
    release,
  },
  {
    name: "at the end",
    prompt: "Count",
    calls: 1,
    prepare: async ({ model }) => void model.reply("One ", "two."),
    reached: ({ editor, sessionId }) => editor.waitForKind(sessionId, "agent_message_chunk"),
    release: () => {},
  },
];

const rounds = phases.length * (isLong ? 10 : 1);
/** Longest pause between the moments of a round. */
const pauseMs = 150;
const pause = () => delay(Math.random() * pauseMs);

const done: string[] = [];
afterAll(() => {
  const running = done.filter((round) => round.endsWith("running")).length;
  console.info(`${done.length} of ${rounds} turns whole; ${running} were running when they were joined`);
});

const options = {
  config: {
    sessions: { keep_running_minutes: 2 },
    permission: { "*": "allow", bash: { "*": "allow", "echo asked": "ask" } },
  },
  permission: "never",
} as const;

/**
 * The rounds of one story: each phase once. The second client stays; each round starts a new first client.
 */
const series = Array.from({ length: rounds / phases.length }, (_, number) => number);

test.each(series)(
  "series %i: a client can join a running turn in each phase and misses nothing",
  { timeout: 240_000 },
  async (number) => {
    await story(options, async (context) => {
      const { editor, home, repository } = context;
      const second = new Editor({ home: home.path, cwd: repository.path, permission: "allow_once" });
      await second.initialize();
      for (const [index, phase] of phases.entries()) {
        if (index > 0) {
          await editor.restart();
          await editor.initialize();
        }
        const wasRunning = await playRound(context, second, phase, number % 2 === 0);
        done.push(`${number} ${phase.name}: ${wasRunning ? "running" : "ended"}`);
      }
      await second.close();
      second.assertClean();
    });
  },
);

/** Returns whether the turn was running when it was joined. */
async function playRound(
  context: StoryContext,
  second: Editor,
  phase: Phase,
  isJoinedFirst: boolean,
): Promise<boolean> {
  const { editor, model } = context;
  const before = model.requests.length;
  const { sessionId } = await editor.newSession();
  const round = { ...context, sessionId, gate: reply.gate() };
  await phase.prepare(round);
  void editor.prompt(sessionId, phase.prompt).catch(() => undefined);
  await phase.reached(round);
  if (phase.name !== "at the end") await pause();
  const exited = editor.hangUp();
  const load = second.load(sessionId);
  // In every other series the turn continues while the client joins it.
  const released = (isJoinedFirst ? load : pause()).then(() => phase.release(round));
  const wasRunning = (await load)._meta?.["turn"] !== undefined;
  if (wasRunning) await second.waitFor(sessionId, (update) => update._meta?.["turn"] !== undefined);
  await released;
  await expectWholeTurn(sessionId, second, phase);
  expect(model.requests.length - before, `${phase.name}: model calls`).toBe(phase.calls);
  expect(await exited).toEqual({ code: 0, signal: null });
  return wasRunning;
}

/** The joined client has received everything that is stored, and the turn ran once. */
async function expectWholeTurn(sessionId: string, second: Editor, phase: Phase): Promise<void> {
  const seen = itemsOf(second.updates(sessionId));
  const before = second.updates(sessionId).length;
  await second.closeSession(sessionId);
  await second.load(sessionId);
  const stored = itemsOf(second.updates(sessionId).slice(before));
  expect(seen, phase.name).toEqual(stored);
  expect(stored.filter(({ role, text }) => role === "user" && text === phase.prompt)).toHaveLength(1);
  expect(stored.filter(({ kind, status }) => kind === "call" && status !== "completed")).toEqual([]);
}

test("a process killed while its turn has no client leaves no other process running", async () => {
  await story(options, async ({ editor, model, home, repository }) => {
    const { sessionId } = await editor.newSession();
    model.reply(bash("until [ -e go ]; do sleep 0.05; done"));
    void editor.prompt(sessionId, "Run").catch(() => undefined);
    await editor.waitForKind(sessionId, "tool_call");
    void editor.hangUp();
    const socket = join(socketFolder(home.path), `${editor.pid}.sock`);
    await vi.waitUntil(() => existsSync(socket), { timeout: 10_000 });
    await editor.kill();
    const second = new Editor({ home: home.path, cwd: repository.path });
    await second.initialize();
    await second.load(sessionId);
    expect(thoughtText(second.updates(sessionId))).toContain("The last turn was interrupted");
    model.reply("Again.");
    expect((await second.prompt(sessionId, "Go on")).stopReason).toBe("end_turn");
    await second.close();
    second.assertClean();
  });
});
