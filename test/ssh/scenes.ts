import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { basename, join } from "node:path";
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Editor } from "../support/editor/editor.ts";
import { expectFailure } from "../support/failure.ts";
import { faulty } from "../support/mcp/mcp.ts";
import * as reply from "../support/model/reply.ts";
import { findLeftoversWith } from "../support/program/processes.ts";
import { agentText, toolCalls } from "../support/transcript.ts";
import { Bell } from "../support/waiting.ts";
import type { ConnectionOptions, Stage } from "./stage.ts";

export type Scene = (stage: Stage) => Promise<void>;

const bash = (command: string) => reply.call("bash", { command, description: "Runs" });
/** A command that runs until a file exists. */
const waiting = bash("echo begun; until [ -e go ]; do sleep 0.05; done; echo ended");
const keepsRunning = { sessions: { keep_running_minutes: 2 } };
/** With a forced terminal, because stdin is not a terminal. */
const inTerminal = ["-tt"];
/** Start-up files that Bash and Zsh read in each shell that ssh starts. */
const startFiles = (text: string) => ({ ".bashrc": text, ".zshenv": text });
const notice = "Welcome to this machine.";

async function connected(stage: Stage, connection?: ConnectionOptions): Promise<Editor> {
  const editor = stage.connect(connection);
  await editor.initialize();
  return editor;
}

/** Starts a turn, and returns the session's id when its command runs. */
async function startTurn({ model }: Stage, editor: Editor): Promise<string> {
  const { sessionId } = await editor.newSession();
  model.reply("Beginning. ", waiting);
  void editor.prompt(sessionId, "Go").catch(() => undefined);
  await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("begun"));
  return sessionId;
}

/** Ends the command of a turn that was joined, and expects the whole turn once. */
async function endJoinedTurn({ model, repository }: Stage, editor: Editor, sessionId: string): Promise<void> {
  model.reply("All done.");
  await writeFile(join(repository.path, "go"), "");
  const { _meta: meta } = await editor.waitFor(sessionId, (update) => update._meta?.["turn"] !== undefined);
  assert.partialDeepStrictEqual(meta, { turn: { state: "ended", stopReason: "end_turn" } });
  assert.equal(agentText(editor.updates(sessionId)), "Beginning. All done.");
  assert.deepEqual(
    toolCalls(editor.updates(sessionId)).map(({ status }) => status),
    ["completed"],
  );
  assert.equal(model.requests.length, 2);
}

type Break = (stage: Stage, editor: Editor) => Promise<unknown>;

const killClient: Break = (_, editor) => editor.kill();
const killServer: Break = async (stage, editor) => {
  const connection = await stage.findConnection();
  editor.expectCut();
  process.kill(connection, "SIGKILL");
  await editor.exited;
};

const endsTurn =
  (breakConnection: Break): Scene =>
  async (stage) => {
    const first = await connected(stage);
    const sessionId = await startTurn(stage, first);
    await breakConnection(stage, first);
    assert.deepEqual(await findLeftoversWith("HOME", stage.home.path), []);
    const second = await connected(stage);
    await second.load(sessionId);
    const [call] = toolCalls(second.updates(sessionId));
    assert.equal(call?.status, "failed");
    assert.match(JSON.stringify(call), /begun/);
    stage.model.reply("Here again.");
    assert.equal((await second.prompt(sessionId, "Go on")).stopReason, "end_turn");
  };

const keepsTurn =
  (breakConnection: Break): Scene =>
  async (stage) => {
    await stage.configure(keepsRunning);
    const first = await connected(stage);
    const sessionId = await startTurn(stage, first);
    await breakConnection(stage, first);
    const second = await connected(stage);
    assert.deepEqual((await second.load(sessionId))._meta, { turn: { state: "running" } });
    await endJoinedTurn(stage, second, sessionId);
  };

/** Configures an MCP server on the remote machine. `start` runs there first. */
async function configureRemoteServer(
  stage: Stage,
  options: readonly string[],
  start = "true",
): Promise<void> {
  const words = faulty("none").command.map((word) => `'${word}'`);
  const command = stage.commandLine({ options, command: `${start}; exec ${words.join(" ")}` });
  await stage.configure({ mcp: { box: { type: "local", command } }, permission: "allow" });
}

async function callRemoteServer(stage: Stage, start?: string): Promise<void> {
  await configureRemoteServer(stage, ["-T"], start);
  const editor = await connected(stage);
  const { sessionId } = await editor.newSession();
  stage.model.reply(reply.call("box_echo", { text: "over there" })).reply("Done.");
  await editor.prompt(sessionId, "Go");
  assert.match(stage.model.requests[1]?.toolResults[0] ?? "", /over there/);
}

export const scenes: Readonly<Record<string, Scene>> = {
  "a conversation with a question, a cancel, long messages and a later load": async (stage) => {
    const { model } = stage;
    await stage.configure({ permission: { bash: "ask" } });
    const first = await connected(stage);
    first.permission = "allow_once";
    const { sessionId } = await first.newSession();
    model.reply("Running. ", bash("seq 20000")).reply("Ran.");
    const long = "word ".repeat(20_000);
    assert.equal((await first.prompt(sessionId, `Run it. ${long}`)).stopReason, "end_turn");
    assert.match(model.requests[1]?.toolResults[0] ?? "", /20000/);
    assert.equal(first.permissionRequests.length, 1);
    model.reply(bash("echo begun; sleep 1000"));
    const turn = first.prompt(sessionId, "Wait");
    await first.waitFor(sessionId, (update) => JSON.stringify(update).includes("begun\\n"));
    await first.cancel(sessionId);
    assert.equal((await turn).stopReason, "cancelled");
    await first.close();
    const second = await connected(stage);
    await second.load(sessionId);
    assert.equal(agentText(second.updates(sessionId)), "Running. Ran.");
  },

  "values of several lines, TERM=dumb and LANG=C": async (stage) => {
    const env = { NOTICE: "one\ntwo\n{}\n", TERM: "dumb", LANG: "C", LC_ALL: "C" };
    const sent = Object.keys(env).flatMap((name) => ["-o", `SendEnv=${name}`]);
    const editor = await connected(stage, { options: ["-T", ...sent], env });
    const { sessionId } = await editor.newSession();
    stage.model.reply(bash('printf %s "$NOTICE" | wc -l; echo "$TERM $LANG Grüße"')).reply("Grüße.");
    await editor.prompt(sessionId, "Grüße");
    assert.match(stage.model.requests[1]?.toolResults[0] ?? "", /3\ndumb C Grüße/);
    assert.equal(agentText(editor.updates(sessionId)), "Grüße.");
  },

  "no HOME": async (stage) => {
    const editor = await connected(stage, { command: "unset HOME; exec fairlead acp" });
    const { sessionId } = await editor.newSession();
    stage.model.reply("Hello.");
    assert.equal((await editor.prompt(sessionId, "Hi")).stopReason, "end_turn");
    await editor.close();
  },

  "a PATH without Node, and one that the command sets": async (stage) => {
    const found = await stage.run("command -v fairlead; command -v node");
    const [program = "", node = ""] = found.stdout.split("\n");
    const poor = "PATH=/nowhere";
    const failed = await stage.run(`${poor} ${program} acp`);
    assert.equal(failed.exitCode, 127);
    assert.match(failed.stderr, /env: .*node.*: No such file/);
    const editor = await connected(stage, { command: `export ${poor}; exec ${node} ${program} acp` });
    const { sessionId } = await editor.newSession();
    stage.model.reply("Hello.");
    assert.equal((await editor.prompt(sessionId, "Hi")).stopReason, "end_turn");
  },

  "a start-up file that prints is found by the documented command, and silenced by the documented line":
    async (stage) => {
      await stage.home.write(startFiles(`echo ${notice}\n`));
      if (!["bash", "zsh"].includes(basename(userInfo().shell ?? ""))) return;
      assert.equal((await stage.run("true")).stdout, notice);
      await stage.home.write(startFiles(`case $- in *i*) ;; *) return ;; esac\necho ${notice}\n`));
      assert.equal((await stage.run("true")).stdout, "");
      await (await connected(stage)).newSession();
    },

  "a forced terminal returns the editor's own words": async (stage) => {
    const editor = stage.connect({ options: inTerminal });
    // Output of the terminal, and of the program there, is not a protocol message.
    editor.allow("schema", "line", "answer");
    const failure = await expectFailure(editor.initialize());
    assert.equal(failure.message, '"Method not found": initialize');
    await editor.waitForEntry(({ line }) => line.includes("ssh -T"), "the advice");
    await editor.kill();
  },

  "a killed client ends the turn": endsTurn(killClient),
  "a killed client lets the turn go on where that is configured": keepsTurn(killClient),
  "a killed server process ends the turn": endsTurn(killServer),
  "a killed server process lets the turn go on where that is configured": keepsTurn(killServer),

  "a connection that broke without notice is ended from a second one": async (stage) => {
    await stage.configure(keepsRunning);
    const first = await connected(stage);
    const sessionId = await startTurn(stage, first);
    process.kill(first.pid ?? 0, "SIGSTOP");
    const second = await connected(stage);
    const refusal = await expectFailure(second.load(sessionId));
    const agents = await stage.findAgents();
    const [agent] = agents.filter((pid) => refusal.message.includes(`${pid}`));
    assert.ok(agent !== undefined, `${refusal.message} names none of ${agents.join(", ")}`);
    await stage.run(`kill -HUP ${agent}`);
    assert.deepEqual((await second.load(sessionId))._meta, { turn: { state: "running" } });
    await endJoinedTurn(stage, second, sessionId);
    await first.kill();
  },

  "attach in a terminal shows the turn, and answers its question": async (stage) => {
    await stage.configure({ ...keepsRunning, permission: { bash: "ask" } });
    const first = await connected(stage);
    const { sessionId } = await first.newSession();
    stage.model.reply("Asking. ", bash("echo made there")).reply("Made.");
    void first.prompt(sessionId, "Go").catch(() => undefined);
    await first.permissionRequest(1);
    await first.kill();
    const [program = "", ...args] = stage.commandLine({
      options: inTerminal,
      command: `cd '${stage.repository.path}' && fairlead attach ${sessionId}`,
    });
    const terminal = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
    const exited = once(terminal, "exit");
    const bell = new Bell();
    let screen = "";
    terminal.stdout.setEncoding("utf8").on("data", (text: string) => {
      screen += text;
      bell.ring();
    });
    await bell.until(() => screen.includes("Reject") || undefined, "the question");
    terminal.stdin.write("1\r");
    assert.deepEqual(await exited, [0, null]);
    assert.match(screen, /Asking\.[^]*made there[^]*Made\./);
  },

  "an MCP server of the other machine": (stage) => callRemoteServer(stage),
  "an MCP server of another machine whose start-up file prints": (stage) =>
    callRemoteServer(stage, `echo ${notice}`),
  "an MCP server in a forced terminal is refused with advice": async (stage) => {
    await configureRemoteServer(stage, inTerminal);
    const editor = await connected(stage);
    const { sessionId } = await editor.newSession();
    stage.model.reply("Hi.");
    await editor.prompt(sessionId, "Hi");
    await editor.prompt(sessionId, "/mcp box");
    assert.match(agentText(editor.updates(sessionId)), /with ssh, use -T instead of -t/);
  },
};
