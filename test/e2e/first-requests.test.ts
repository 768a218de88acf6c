import { cp, readdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { expectFailure } from "../support/failure.ts";
import * as reply from "../support/reply.ts";
import { story } from "../support/story.ts";
import { temporaryFolder } from "../support/temp.ts";
import { agentText, toolCalls } from "../support/transcript.ts";

const checkout = join(import.meta.dirname, "../..");

test("a first session whose request has the id of initialize is answered", async () => {
  await story({ initialize: false }, async ({ editor, repository }) => {
    const request = (method: string, params: object) =>
      editor.writeLine({ jsonrpc: "2.0", id: "one", method, params });
    await request("initialize", { protocolVersion: 1, clientCapabilities: {} });
    expect(await editor.response("one")).toMatchObject({ result: { protocolVersion: 1 } });
    await request("session/new", { cwd: repository.path, mcpServers: [] });
    await editor.waitForEntry(
      ({ direction, line }) => direction === "fromAgent" && line.includes('"sessionId"'),
      "the new session",
    );
    await request("session/list", {});
    await editor.waitForEntry(
      ({ direction, line }) => direction === "fromAgent" && line.includes('"sessions"'),
      "the list of sessions",
    );
  });
});

test("sessions are listed, loaded, resumed and gone on with before the protocol library is there", async () => {
  await using program = await programWithout("elicitation completion not sent");
  await story({ program: [program.launcher, "acp"] }, async ({ editor, model, repository }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Hello.");
    await editor.prompt(sessionId, "Hi");
    await editor.restart();
    await editor.initialize();
    const sessions = [{ sessionId, cwd: repository.path, title: "A scripted title" }];
    expect(await editor.list()).toMatchObject({ sessions });
    expect(await editor.list({ cwd: repository.path })).toMatchObject({ sessions });
    expect(await editor.load(sessionId)).toMatchObject({ modes: { currentModeId: "build" } });
    expect(agentText(editor.updates(sessionId))).toBe("Hello.");
    expect(await editor.resume(sessionId)).toMatchObject({ modes: { currentModeId: "build" } });
    model.reply("Hello again.");
    expect(await editor.prompt(sessionId, "Hi")).toMatchObject({ stopReason: "end_turn" });
    const missing = "ses_00000000000070008000000000000000";
    expect(await expectFailure(editor.load(missing))).toMatchObject({ code: -32002 });
    expect(await expectFailure(editor.list({ cwd: "here" }))).toMatchObject({ code: -32602 });
  });
});

test("an unloadable protocol library is reported, not treated as a refusal, and a cancel works", async () => {
  await using program = await programWithout("elicitation completion not sent");
  const options = { program: [program.launcher, "acp"], config: { permission: { bash: "ask" } } };
  await story(options, async ({ editor, model, home }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "echo hello" }));
    model.reply("I could not ask you.");
    expect(await editor.prompt(sessionId, "Go")).toMatchObject({ stopReason: "end_turn" });
    const notice = expect.stringMatching(
      /^Not run\. The user could not be asked, so there is no decision: A module of the program could not be loaded: Cannot find module .*\. It may have been updated or removed while it ran: start the agent again\. If that does not help, reinstall Fairlead\. Continue without it\. Do not look for a way around it/,
    );
    expect(model.requests[1]?.toolResults).toEqual([notice]);
    expect(toolCalls(editor.updates(sessionId))).toEqual([
      expect.objectContaining({
        status: "failed",
        content: [{ type: "content", content: { type: "text", text: notice } }],
      }),
    ]);
    expect(await readFile(join(home.path, ".local/state/fairlead/fairlead.log"), "utf8")).toMatch(
      /A module of the program could not be loaded[^\n]*a permission question got no valid answer/,
    );

    // The third time closes a loop; going on after its refusal ends the turn.
    for (let time = 0; time < 4; time++) model.reply(reply.call("bash", { command: "echo hello" }));
    expect(await expectFailure(editor.prompt(sessionId, "Again"))).toMatchObject({
      message: expect.stringContaining("The model repeats itself"),
    });
    const before = model.requests.length;

    model.reply(reply.stall());
    const running = editor.prompt(sessionId, "Again");
    await model.request(before + 1);
    expect(await expectFailure(editor.setMode(sessionId, "build"))).toMatchObject({
      code: -32603,
      message: expect.stringContaining("could not be loaded"),
    });
    await editor.cancel(sessionId);
    expect(await running).toMatchObject({ stopReason: "cancelled" });
    await program.repair();
    await editor.setMode(sessionId, "build");
    model.reply(reply.call("bash", { command: "echo hello" }));
    model.reply("Done.");
    editor.user.policy = "allow_once";
    await editor.prompt(sessionId, "Now");
    expect(toolCalls(editor.updates(sessionId)).at(-1)).toMatchObject({ status: "completed" });
  });
});

test("an agent updated while running reports a missing module with advice", async () => {
  await using program = await copyOfProgram();
  const config = { permission: { webfetch: "allow" } };
  await story({ program: [program.launcher, "acp"], config }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Hello.");
    await editor.prompt(sessionId, "Hello");
    await editor.setMode(sessionId, "build");
    for (const name of await readdir(program.dist)) await rm(join(program.dist, name), { recursive: true });
    model.reply(reply.call("webfetch", { url: "http://127.0.0.1:9/" }));
    model.reply("It could not be fetched.");
    await editor.prompt(sessionId, "Fetch it");
    const notice = expect.stringMatching(/could not be loaded.*start the agent again/s);
    expect(model.requests.at(-1)?.toolResults).toEqual([notice]);
  });
});

test("where what calls models cannot be loaded the turn says so, and the next one tries again", async () => {
  await using program = await programWithout("AI_APICallError");
  await story({ program: [program.launcher, "acp"] }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    expect(await expectFailure(editor.prompt(sessionId, "Hello"))).toMatchObject({
      message: expect.stringMatching(
        /A module of the program could not be loaded: Cannot find module .*start the agent again/,
      ),
    });
    expect(model.requests).toEqual([]);
    await program.repair();
    model.reply("Hello.");
    expect(await editor.prompt(sessionId, "Hello")).toMatchObject({ stopReason: "end_turn" });
  });
});

async function copyOfProgram() {
  const folder = await temporaryFolder();
  for (const name of ["bin", "dist", "package.json"])
    await cp(join(checkout, name), join(folder.path, name), { recursive: true });
  await symlink(join(checkout, "node_modules"), join(folder.path, "node_modules"));
  return {
    dist: join(folder.path, "dist"),
    launcher: join(folder.path, "bin/fairlead.js"),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

/** The program as it is while its files are replaced: the part in which this stands is not there. */
async function programWithout(words: string) {
  const program = await copyOfProgram();
  const { dist } = program;
  const parts = (await readdir(dist)).filter((name) => name.endsWith(".cjs"));
  const texts = await Promise.all(parts.map((name) => readFile(join(dist, name), "utf8")));
  const [part = ""] = parts.filter((_, index) => texts[index]?.includes(words));
  const [path, aside] = [join(dist, part), join(dist, `${part}.aside`)];
  await rename(path, aside);
  return { ...program, repair: () => rename(aside, path) };
}
