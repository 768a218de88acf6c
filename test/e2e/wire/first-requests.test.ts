import { cp, readdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { expectFailure } from "../../support/failure.ts";
import * as reply from "../../support/model/reply.ts";
import { story } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { agentText } from "../../support/transcript.ts";

const checkout = join(import.meta.dirname, "../../..");

test("a first session whose request has the id of initialize gets a response", async () => {
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

test("sessions are listed, loaded, resumed and continued after a restart", async () => {
  await story({}, async ({ editor, model, repository }) => {
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

test("an agent updated while running reports a missing module with advice", async () => {
  await using program = await copyOfProgram();
  const config = { permission: { webfetch: "allow" } };
  await story({ program: [program.launcher, "acp"], config }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("glob", { pattern: "*" })).reply("Hello.");
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

test("reports model code that cannot be loaded, and retries in the next turn", async () => {
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

/** A copy of the program during an update: the file that contains this text is missing. */
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
