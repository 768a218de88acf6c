import { join } from "node:path";
import { expect, test } from "vitest";
import { defaultsNotice } from "../../../src/acp/explain-defaults.ts";
import { story } from "../../support/editor/story.ts";
import { startModelServer } from "../../support/model/model-server.ts";
import { fairlead } from "../../support/program/cli.ts";
import { startInTerminal } from "../../support/program/terminal.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";
import { thoughtText } from "../../support/transcript.ts";

/** First words of the message. */
const opening = "Edits and commands that /undo can take back run without a question";

test("explains once what runs without a question, in an installation's first turn", async () => {
  await using state = await temporaryFolder();
  await story({ env: { XDG_STATE_HOME: state.path } }, async ({ editor, model }) => {
    for (const expected of [`${defaultsNotice}\n\n`, ""]) {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      expect(thoughtText(editor.updates(sessionId))).toBe(expected);
    }
  });
});

test("run explains it only in a terminal, and not if the configuration has permissions", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  await using repository = await gitRepository();
  await using state = await temporaryFolder();
  const model = await startModelServer();
  const cwd = repository.path;
  const env = { XDG_STATE_HOME: join(state.path, "new") };
  const runInTerminal = async (...args: string[]) => {
    model.reply("Hello.");
    const terminal = startInTerminal(home.path, ["run", "Hi", ...args], { cwd, env });
    await terminal.ended;
    // The screen breaks lines.
    return terminal.screen().replaceAll(/\s+/g, " ");
  };
  try {
    await writeConfig(home.path, model.url, { permission: { edit: "ask" } });
    expect(await runInTerminal()).not.toContain(opening);
    await writeConfig(home.path, model.url);
    model.reply("Hello.");
    const piped = await fairlead(home.path, ["run", "Hi"], { cwd, env });
    expect(piped).toMatchObject({ exitCode: 0, stderr: expect.not.stringContaining(opening) });
    expect(await runInTerminal("--json")).not.toContain(opening);
    expect(await runInTerminal()).toContain(opening);
    expect(await runInTerminal()).not.toContain(opening);
    model.assertClean();
  } finally {
    await model.close();
  }
});
