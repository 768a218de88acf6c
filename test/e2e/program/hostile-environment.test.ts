import { join } from "node:path";
import { expect, test } from "vitest";
import { userFolders } from "../../../src/config/paths.ts";
import { Editor } from "../../support/editor/editor.ts";
import { story } from "../../support/editor/story.ts";
import { expectFailure } from "../../support/failure.ts";
import { fairlead } from "../../support/program/cli.ts";
import * as reply from "../../support/model/reply.ts";
import { lacksUserDatabase } from "../../support/platform/platform.ts";
import { temporaryFolder } from "../../support/temp.ts";

const unknownUser = join(import.meta.dirname, "../../support/program/preload/unknown-user.cjs");

test("works with multi-line variables, no TERM and an unknown locale", async () => {
  const env = {
    MOTD: 'Welcome!\n{"jsonrpc":"2.0","id":0}\nhttps://example.com\n',
    "BASH_FUNC_greet%%": "() {  echo greeted;\n echo twice\n}",
    TERM: "",
    LANG: "xx_YY.unknown",
    LC_ALL: "xx_YY.unknown",
  };
  await story({ env, config: { permission: { bash: "allow" } } }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    // Functions from the environment could replace the commands that rules allow.
    const command = 'printf %s "$MOTD" | wc -l | tr -d " "; type greet || echo no function';
    model.reply(reply.call("bash", { command, description: "Greets" })).reply("Done.");
    expect((await editor.prompt(sessionId, "Greet")).stopReason).toBe("end_turn");
    expect(model.requests[1]?.toolResults[0]).toMatch(/3\n[^]*no function/);
  });
});

test("a home folder that cannot be written is named, and the program continues", async () => {
  await using folder = await temporaryFolder({ file: "" });
  const names = ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];
  const home = join(folder.path, "file", "home");
  const env = { HOME: home, ...Object.fromEntries(names.map((name) => [name, ""])) };
  const editor = new Editor({ home: folder.path, cwd: folder.path, env });
  await editor.initialize();
  const failure = await expectFailure(editor.newSession());
  expect(failure.message).toContain(userFolders({ env, home, platform: process.platform }).data);
  expect((await expectFailure(editor.newSession())).message).toBe(failure.message);
  await editor.close();
  editor.assertClean();
});

test("without HOME the XDG folders are used", () => startWithoutHome({}));

test.skipIf(lacksUserDatabase)(
  "without HOME and an entry in the user database the XDG folders are used",
  () => startWithoutHome({ NODE_OPTIONS: `--require=${unknownUser}` }),
);

async function startWithoutHome(more: Record<string, string>): Promise<void> {
  await using folder = await temporaryFolder();
  const place = (name: string) => join(folder.path, name);
  const env = {
    ...more,
    HOME: "",
    USERPROFILE: "",
    XDG_CONFIG_HOME: place("config"),
    XDG_DATA_HOME: place("data"),
    XDG_STATE_HOME: place("state"),
    XDG_CACHE_HOME: place("cache"),
  };
  const editor = new Editor({ home: folder.path, cwd: folder.path, env });
  await editor.initialize();
  const { sessionId } = await editor.newSession();
  expect((await editor.list()).sessions.map((session) => session.sessionId)).toEqual([sessionId]);
  await editor.close();
  editor.assertClean();
  expect(await fairlead(folder.path, ["config", "show"], { env })).toMatchObject({ exitCode: 0 });
}
