import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { zedLike } from "../../support/editor/clients.ts";
import { storiesOfOneAgent, type StoryContext } from "../../support/editor/story.ts";
import { toText } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { endlessCommand, printPid } from "../../support/platform/platform.ts";
import { isRunning } from "../../support/program/processes.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const start = (command: string, more: Record<string, unknown> = {}) =>
  reply.call("bash", { command, background: true, ...more });
const job = (action: string, more: Record<string, unknown> = {}) => reply.call("job", { action, ...more });

/** A server that prints a line for each line of its input. */
const echo = `${printPid("$$")}; while read -r line; do echo "got $line"; done; echo bye`;

const endless = `${printPid("$$")}; exec ${endlessCommand}`;
const allowed = { config: { permission: "allow" } };

const resultsOf = ({ model }: StoryContext): string[] =>
  model.requests.flatMap(({ toolResults }) => toolResults.map((result) => toText(result) ?? ""));

const pidIn = (text: string | undefined) => Number(/pid (\d+)/.exec(text ?? "")?.[1]);

async function waitForEnd(pid: number): Promise<void> {
  await vi.waitFor(async () => expect(await isRunning(pid)).toBe(false), { timeout: 10_000 });
}

/** Waits until the newest card of the first command has a status. */
const hasStatus = (status: string) => (update: object) => "status" in update && update.status === status;

test("a background command is started, written to, read and stopped", async () => {
  await story(allowed, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    model
      .reply(start(echo))
      .reply(job("write", { text: "one" }))
      .reply(job("read", { id: 1 }))
      .reply(job("stop"))
      .reply("Done.");
    await editor.prompt(sessionId, "Go");
    const [begun = "", written, read, stopped] = resultsOf(context);
    expect(begun).toMatch(/^pid \d+\n\n\[It runs in the background as job 1\. /);
    expect(written).toMatch(/^got one\n\n\[Job 1 has run for [\d.]+ s\.\]$/);
    expect(read).toMatch(/^\(nothing new\)\n\n\[Job 1 has run for /);
    expect(stopped).toMatch(/\[Job 1 was stopped by the model after /);
    await waitForEnd(pidIn(begun));
    const [card] = toolCalls(editor.updates(sessionId));
    expect(card).toMatchObject({ title: echo, kind: "execute", status: "completed" });
    expect(JSON.stringify(card?.content)).toContain("[was stopped by the model]");
  });
});

test("waits for a line that matches, for the end, and until its time is up", async () => {
  await story({}, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    model
      .reply(start(`echo begin; read -r line; echo "ready on 3000"; read -r line; exit 3`))
      .reply(job("wait", { pattern: "ready$", timeout: 1 }))
      .reply(job("wait", { pattern: "begin", timeout: 1 }))
      .reply(job("write", { text: "go" }))
      .reply(job("wait", { pattern: "(" }))
      .reply(job("wait", { id: 7 }))
      .reply(job("write", { text: "end" }))
      .reply(job("wait", { pattern: "never" }))
      .reply("Done.");
    await editor.prompt(sessionId, "Go");
    const results = resultsOf(context);
    expect(results[1]).toMatch(
      /^\(nothing new\)\n\n\[Waited 1 ms; no new line matches the pattern\.\]\n\[Job 1 has/,
    );
    expect(results[2]).toContain("[A line that you have read before matches: begin]");
    expect(results[3]).toMatch(/^ready on 3000\n/);
    expect(results[4]).toContain("The pattern is not a valid regular expression");
    expect(results[5]).toMatch(/^Job 7 not found\. The jobs are:\n- 1: echo begin/);
    expect(results[7]).toContain("ended with exit code 3");
    expect(toolCalls(editor.updates(sessionId))[0]).toMatchObject({ status: "failed" });
  });
});

test("a wait ends when a line matches", async () => {
  await story(allowed, async (context) => {
    const { editor, model, repository } = context;
    const { sessionId } = await editor.newSession();
    model.reply(start(`until [ -e go ]; do sleep 0.05; done; echo ready; ${endlessCommand}`));
    model
      .reply(job("wait", { pattern: "^ready$" }))
      .reply(job("stop"))
      .reply("Done.");
    const turn = editor.prompt(sessionId, "Go");
    await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("Wait for job 1"));
    await repository.write({ go: "" });
    await turn;
    expect(resultsOf(context)[1]).toMatch(/^ready\n\n\[Matching line: ready\]\n\[Job 1 has run for /);
  });
});

test.each([
  ["a client without terminals", undefined],
  ["a client with terminals", zedLike()],
])("the card of a job continues after its turn for %s", async (_, client) => {
  await story({ ...(client && { client }) }, async (context) => {
    const { editor, model, repository } = context;
    const { sessionId } = await editor.newSession();
    const wait = (name: string) => `until [ -e ${name} ]; do sleep 0.05; done`;
    model.reply(start(`echo begin; ${wait("one")}; echo middle; ${wait("two")}; exit 2`)).reply("Started.");
    await editor.prompt(sessionId, "Go");
    expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ status: "in_progress" }]);
    await repository.write({ one: "" });
    await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("middle"));
    await repository.write({ two: "" });
    await editor.waitFor(sessionId, hasStatus("failed"));
    const updates = JSON.stringify(editor.updates(sessionId));
    if (client !== undefined) expect(updates).toContain('"terminal_exit"');
    expect(updates).not.toContain('"exit_code":0');
  });
});

test("the user of an idle session, then the model, are notified that a job ended", async () => {
  await story({}, async (context) => {
    const { editor, model, repository } = context;
    const { sessionId } = await editor.newSession();
    model.reply(start("until [ -e go ]; do sleep 0.05; done; echo all built; exit 4")).reply("Started.");
    await editor.prompt(sessionId, "Go");
    const { length } = model.requests;
    await repository.write({ go: "" });
    await editor.waitFor(sessionId, hasStatus("failed"));
    expect(model.requests).toHaveLength(length);
    model.reply("I see.").reply("Nothing new.");
    await editor.prompt(sessionId, "And now?");
    expect(JSON.stringify(editor.updates(sessionId))).toContain(
      "ended with exit code 4. The model learns of it",
    );
    const told = JSON.stringify(model.requests.at(-1)?.messages.at(-1));
    expect(told).toContain("ended with exit code 4. The rest of its output:");
    expect(told).toContain("all built");
    await editor.prompt(sessionId, "Again");
    expect(JSON.stringify(model.requests.at(-1)?.messages).match(/ended with exit code 4/g)).toHaveLength(1);
  });
});

test("the model learns within the turn that a job ended, with its next step", async () => {
  await story({}, async (context) => {
    const { editor, model, repository } = context;
    const { sessionId } = await editor.newSession();
    model.reply(start("until [ -e go ]; do sleep 0.05; done; exit 5"));
    const isEnded = reply.gate();
    model.reply(isEnded, reply.call("bash", { command: "echo other" })).reply("Seen.");
    const turn = editor.prompt(sessionId, "Go");
    await editor.waitFor(sessionId, hasStatus("in_progress"));
    await model.request(2);
    await repository.write({ go: "" });
    await editor.waitFor(sessionId, hasStatus("failed"));
    isEnded.release();
    await turn;
    expect(JSON.stringify(model.requests.at(-1)?.messages.at(-1))).toContain("ended with exit code 5");
  });
});

test("a job continues after its turn is cancelled; the user lists and stops it", async () => {
  await story(allowed, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    model.reply(start(endless)).reply(reply.say("Waiting"), reply.gate());
    const turn = editor.prompt(sessionId, "Go");
    await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("Waiting"));
    await editor.cancel(sessionId);
    expect(await turn).toMatchObject({ stopReason: "cancelled" });
    const pid = pidIn(JSON.stringify(model.requests.at(-1)?.toolResults));
    expect(await isRunning(pid)).toBe(true);
    await editor.prompt(sessionId, "/jobs");
    const jobs = agentText(editor.updates(sessionId));
    expect(jobs).toContain(`- **1** \`${endless.slice(0, 30)}`);
    expect(jobs).toMatch(/`: runs for \d+ s; last line: `pid \d+`/);
    await editor.prompt(sessionId, "/jobs stop 1");
    await waitForEnd(pid);
    expect(agentText(editor.updates(sessionId))).toContain("was stopped by the user after");
    await editor.prompt(sessionId, "/jobs stop 8");
    expect(agentText(editor.updates(sessionId))).toContain("Job 8 not found.");
  });
});

test("a command without a time limit becomes a job, one with a limit is ended", async () => {
  await story({ config: { ...allowed.config, jobs: { foreground_seconds: 1 } } }, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    model
      .reply(reply.call("bash", { command: endless }))
      .reply(reply.call("bash", { command: endless, timeout: 300 }))
      .reply(job("write", { text: "x" }))
      .reply(job("stop"))
      .reply("Done.");
    await editor.prompt(sessionId, "Go");
    const results = resultsOf(context);
    expect(results[0]).toMatch(
      /^pid \d+\n\n\[It still runs after [\d.]+ s and continues in the background as job 1\./,
    );
    expect(results[1]).toMatch(/\[Ended after [\d.]+ s because its time of 300 ms was up;/);
    expect(results[2]).toContain("Job 1 takes no input.");
    await waitForEnd(pidIn(results[0]));
  });
});

test("the configuration limits the number of jobs", async () => {
  await story({ config: { ...allowed.config, jobs: { commands: 1 } } }, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    model.reply(start(endlessCommand)).reply(start(endlessCommand)).reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(resultsOf(context)[1]).toBe(
      "Not run. 1 background commands already run, as jobs 1, and no more are allowed. Stop one, or wait for its end.",
    );
  });
});

test("a background command and its input need permission like commands", async () => {
  const config = {
    permission: { bash: { "*": "allow", "touch *": "ask", sh: "allow" }, external_directory: "allow" },
  };
  await story({ config, permission: "allow_once" }, async (context) => {
    const { editor, model, repository } = context;
    const { sessionId } = await editor.newSession();
    model
      .reply(start(`touch begun; ${endlessCommand}`))
      .reply(start("sh"))
      .reply(job("write", { id: 2, text: "cd ." }))
      .reply(job("write", { id: 2, text: "touch typed; echo typed" }))
      .reply(job("wait", { id: 2, pattern: "typed", timeout: 5_000 }))
      .reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
      `touch begun; ${endlessCommand}`,
      "sh",
      "Write to job 2: touch typed; echo typed",
    ]);
    expect(await readFile(join(repository.path, "typed"), "utf8")).toBe("");
  });
});

test("input for an interpreter needs permission each time if commands do", async () => {
  const config = { permission: { bash: { "*": "ask", [`${process.execPath} *`]: "allow" } } };
  await story({ config, permission: "reject_once" }, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    editor.permission = async () => "allow_once" as const;
    model
      .reply(start("cat"))
      .reply(job("write", { text: "one" }))
      .reply(job("write", { text: "two" }))
      .reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
      "cat",
      "Write to job 1: one",
      "Write to job 1: two",
    ]);
  });
});

test("long output is bounded, and a file has all of it", async () => {
  await story(allowed, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    model
      .reply(start(`read -r line; seq 1 60000; ${endlessCommand}`))
      .reply(job("write", { text: "go" }))
      .reply(job("read"))
      .reply(job("stop"))
      .reply("Done.");
    await editor.prompt(sessionId, "Go");
    const texts = resultsOf(context).slice(1, 3).join("\n");
    const path = /The whole output is in (\S+\.txt)/.exec(texts)?.[1];
    expect(path).toBeDefined();
    expect((await readFile(path ?? "", "utf8")).startsWith("1\n2\n3\n")).toBe(true);
  });
});
