import { describe, expect, test, vi } from "vitest";
import { draftStoriesOfOneAgent } from "../../support/editor/draft-editor.ts";
import { story, type StoryContext } from "../../support/editor/story.ts";
import { type JsonObject, toList, toObject } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { getRequestText, isSummaryRequest } from "../../support/model/small-window.ts";
import { endlessCommand, lacksWatchdog, printPid } from "../../support/platform/platform.ts";
import { isRunning } from "../../support/program/processes.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const draftStory = draftStoriesOfOneAgent();

/** Leaves the parent, and on Linux, where such processes are found, the process group too. */
const leave = process.platform === "linux" ? "setsid " : "";
const daemon = `${leave}${endlessCommand} >/dev/null 2>&1 & ${printPid("$!")}; exec ${endlessCommand}`;
/** Reports have the first 200 characters of a command: with the path of Node on Windows it is longer. */
const daemonTitle = daemon.slice(0, 200);
const endless = `${printPid("$$")}; exec ${endlessCommand}`;
const allowed = { config: { permission: "allow" } };

async function startJob({ editor, model }: StoryContext): Promise<{ sessionId: string; pid: number }> {
  const { sessionId } = await editor.newSession();
  model.reply(reply.call("bash", { command: daemon, background: true })).reply("Started.");
  await editor.prompt(sessionId, "Go");
  const pid = Number(/pid (\d+)/.exec(JSON.stringify(model.requests.at(-1)?.toolResults))?.[1]);
  expect(await isRunning(pid)).toBe(true);
  return { sessionId, pid };
}

async function waitForEnd(pid: number): Promise<void> {
  await vi.waitFor(async () => expect(await isRunning(pid)).toBe(false), { timeout: 10_000 });
}

async function killProgram({ editor }: StoryContext, pid: number): Promise<void> {
  await editor.kill();
  if (!lacksWatchdog) await waitForEnd(pid);
}

test("a job ends when the program is killed; a load informs user and model", async () => {
  await story(allowed, async (context) => {
    const { editor, model } = context;
    const { sessionId, pid } = await startJob(context);
    await killProgram(context, pid);
    await editor.restart();
    await editor.initialize();
    await editor.load(sessionId);
    expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ status: "completed" }]);
    expect(JSON.stringify(editor.updates(sessionId))).toContain("[ended with the program]");
    model.reply("I see.");
    await editor.prompt(sessionId, "And now?");
    expect(JSON.stringify(editor.updates(sessionId))).toContain(
      "Work in the background has ended with the program",
    );
    expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain(daemon.slice(0, 20));
    expect(JSON.stringify(model.requests.at(-1)?.messages.at(-1))).toContain("ended with the program.");
  });
});

test("a job ends with its session, and its card is closed when it is loaded", async () => {
  await story(allowed, async (context) => {
    const { editor, model } = context;
    const { sessionId, pid } = await startJob(context);
    await editor.closeSession(sessionId);
    expect(await isRunning(pid)).toBe(false);
    await editor.load(sessionId);
    expect(JSON.stringify(editor.updates(sessionId))).toContain("[was stopped with the session]");
    model.reply("I see.");
    await editor.prompt(sessionId, "And now?");
    expect(JSON.stringify(model.requests.at(-1)?.messages.at(-1))).toContain("was stopped with the session");
  });
});

test("a job that the user keeps continues after its session, and ends with the program", async () => {
  await story(allowed, async (context) => {
    const { editor, model, repository, home } = context;
    const { sessionId } = await editor.newSession();
    const kept = `${printPid("$$")}; until [ -e go ]; do sleep 0.05; done; echo all built; exit 4`;
    const start = (command: string) => reply.call("bash", { command, background: true });
    model.reply(start(kept)).reply(start(endless)).reply("Both run.");
    await editor.prompt(sessionId, "Go");
    const [pid = 0, otherPid = 0] = [
      ...JSON.stringify(model.requests.at(-1)?.messages).matchAll(/pid (\d+)/g),
    ].map(([, id]) => Number(id));
    for (const [typed, answer] of [
      ["/jobs keep 1", "Job 1 goes on when this session is closed. It ends with Fairlead at the latest."],
      ["/jobs keep 7", "Job 7 not found."],
      ["/jobs", "runs for"],
    ] as const) {
      const { length } = editor.updates(sessionId);
      await editor.prompt(sessionId, typed);
      expect(agentText(editor.updates(sessionId).slice(length))).toContain(answer);
    }
    expect(agentText(editor.updates(sessionId))).toMatch(/\*\*1\*\* .*; goes on after the session/);

    await editor.closeSession(sessionId);
    await waitForEnd(otherPid);
    expect(await isRunning(pid)).toBe(true);
    const { length } = editor.updates(sessionId);
    const folders = { cwd: repository.path, additionalDirectories: [home.path] };
    await editor.request("session/load", { sessionId, ...folders, mcpServers: [] });
    const loaded = editor.updates(sessionId).slice(length);
    expect(toolCalls(loaded)).toMatchObject([{ status: "in_progress" }, { status: "completed" }]);
    expect(JSON.stringify(loaded)).toContain("because its job 1 goes on");

    await editor.closeSession(sessionId);
    const resumed = editor.updates(sessionId).length;
    await editor.resume(sessionId);
    const isOpen = (update: object) => "status" in update && update.status === "in_progress";
    await vi.waitFor(() =>
      expect(editor.updates(sessionId).slice(resumed).filter(isOpen)).toMatchObject([
        { sessionUpdate: "tool_call", _meta: { background: { job: 1 } } },
      ]),
    );

    await editor.closeSession(sessionId);
    expect(await editor.request("session/status", { sessionId })).toEqual({ status: "open" });
    await repository.write({ go: "" });
    await vi.waitFor(
      async () => expect(await editor.request("session/status", { sessionId })).toEqual({ status: "saved" }),
      { timeout: 10_000 },
    );
    expect(await isRunning(pid)).toBe(false);
    const ended = editor.updates(sessionId).length;
    await editor.load(sessionId);
    expect(toolCalls(editor.updates(sessionId).slice(ended))).toMatchObject([
      { status: "failed" },
      { status: "completed" },
    ]);
    model.reply("I see.");
    await editor.prompt(sessionId, "And now?");
    expect(getRequestText(model.requests.at(-1))).toContain("ended with exit code 4");

    model.reply(start(endless)).reply("It runs.");
    await editor.prompt(sessionId, "Once more");
    const last = Number(/pid (\d+)/.exec(JSON.stringify(model.requests.at(-1)?.toolResults))?.[1]);
    await editor.prompt(sessionId, "/jobs keep 3");
    await editor.closeSession(sessionId);
    expect(await isRunning(last)).toBe(true);
    await killProgram(context, last);
  });
});

test("the call of a running job stays open when its session is loaded again", async () => {
  await story(allowed, async (context) => {
    const { editor } = context;
    const { sessionId, pid } = await startJob(context);
    const { length } = editor.updates(sessionId);
    await editor.load(sessionId);
    expect(toolCalls(editor.updates(sessionId).slice(length))).toMatchObject([{ status: "in_progress" }]);
    await editor.prompt(sessionId, "/jobs stop all");
    await waitForEnd(pid);
    expect(toolCalls(editor.updates(sessionId).slice(length))).toMatchObject([{ status: "completed" }]);
  });
});

test("a job ends with the program, even if the user keeps it", async () => {
  await story(allowed, async (context) => {
    const { editor } = context;
    const jobs = [await startJob(context), await startJob(context), await startJob(context)];
    // One job kept in an open session, one kept in a closed session, and one that is not kept.
    for (const { sessionId } of jobs.slice(0, 2)) await editor.prompt(sessionId, "/jobs keep 1");
    for (const { sessionId } of jobs.slice(1, 2)) await editor.closeSession(sessionId);
    for (const { pid } of jobs) expect(await isRunning(pid)).toBe(true);
    await editor.close();
    for (const { pid } of jobs) await waitForEnd(pid);
  });
});

test("a compaction names running jobs, and a kill after it loses none", async () => {
  await story(allowed, async (context) => {
    const { editor, model } = context;
    model.when(isSummaryRequest, "We started a server.");
    const { sessionId, pid } = await startJob(context);
    await editor.prompt(sessionId, "/compact");
    model.reply("Go on.");
    await editor.prompt(sessionId, "Next");
    expect(getRequestText(model.requests.at(-1))).toContain(
      `## Jobs that run in the background\\n\\n- job 1: ${daemonTitle}`,
    );
    await killProgram(context, pid);
    await editor.restart();
    await editor.initialize();
    await editor.load(sessionId);
    model
      .reply(reply.call("bash", { command: `exec ${endlessCommand}`, background: true }))
      .reply("I see.")
      .reply("Nothing new.");
    await editor.prompt(sessionId, "And now?");
    expect(JSON.stringify(editor.updates(sessionId))).toContain(
      "Work in the background has ended with the program",
    );
    const told = getRequestText(model.requests.at(-1));
    expect(told).toContain(`Job 1 (${daemonTitle}) ended with the program.`);
    expect(told).toContain("It runs in the background as job 2.");
    await editor.prompt(sessionId, "Again");
    expect(getRequestText(model.requests.at(-1)).match(/\) ended with the program\./g)).toHaveLength(1);
  });
});

test("a fork does not own the jobs of its session, and its model is informed", async () => {
  await story(allowed, async (context) => {
    const { editor, model, repository } = context;
    const { sessionId, pid } = await startJob(context);
    const forked = await editor.request("session/fork", { sessionId, cwd: repository.path, mcpServers: [] });
    const fork = String(toObject(forked).sessionId);
    await editor.prompt(fork, "/jobs");
    expect(agentText(editor.updates(fork))).toContain("Nothing runs in the background.");
    model.reply("I see.");
    await editor.prompt(fork, "And now?");
    expect(getRequestText(model.requests.at(-1))).toContain(
      "belongs to the session that this one was forked from, and cannot be used here.",
    );
    await editor.closeSession(fork);
    expect(await isRunning(pid)).toBe(true);
    await editor.prompt(sessionId, "/jobs stop 1");
    await waitForEnd(pid);
  });
});

describe("a load while a job runs", () => {
  const command =
    "echo begun; until [ -e go ]; do sleep 0.05; done; printf 'all%sbuilt\\n' _; until [ -e end ]; do sleep 0.05; done; exit 4";
  const start = reply.call("bash", { command, background: true });

  test("sends the job's output and end without a request", async () => {
    await story({}, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(start).reply("Started.");
      await editor.prompt(sessionId, "Go");
      await editor.load(sessionId);
      await repository.write({ go: "" });
      const shows = (text: string) => (update: object) => JSON.stringify(update).includes(text);
      await editor.waitFor(sessionId, shows("all_built"));
      await repository.write({ end: "" });
      await editor.waitFor(sessionId, shows('"status":"failed"'));
    });
  });

  test("sends the same in version 2", async () => {
    await draftStory({}, async ({ editor, model, repository }) => {
      const folders = { cwd: repository.path, mcpServers: [] };
      const { sessionId } = await editor.request("session/new", folders);
      const id = String(sessionId);
      model.reply(start).reply("Started.");
      await editor.turn(id, "Go");
      await editor.request("session/resume", { sessionId, ...folders, replayFrom: { type: "start" } });
      const { length } = editor.updates(id);
      await repository.write({ go: "" });
      const output = Buffer.from("all_built").toString("base64");
      await editor.waitFor(id, (update) => JSON.stringify(update).includes(output), length);
      await repository.write({ end: "" });
      const hasEnded = ({ sessionUpdate, status }: JsonObject) =>
        sessionUpdate === "tool_call_update" && status === "failed";
      await editor.waitFor(id, hasEnded, length);
      const hasNone = ({ sessionUpdate, background }: JsonObject) =>
        sessionUpdate === "state_update" && toList(background).length === 0;
      await editor.waitFor(id, hasNone, length);
      await editor.waitFor(id, ({ sessionUpdate }) => sessionUpdate === "notice", length);
    });
  });
});
