import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { waitForFile } from "../../support/file-watch.ts";
import { toObject } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { startInTerminal } from "../../support/program/terminal.ts";
import { startModelServer } from "../../support/model/model-server.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";

const story = storiesOfOneAgent();

const script = 'require("node:fs").appendFileSync("notified", process.argv.slice(1).join("|") + "\\n")';
const values = ["{event}", "{title}", "{message}"];
const record = [process.execPath, "-e", script, ...values];

test("notifies a program of questions and finished turns, and hooks of questions", async () => {
  const command = 'cat >> "$CLAUDE_PROJECT_DIR/hooked"';
  const hooks = {
    Notification: [{ matcher: "permission_prompt", hooks: [{ type: "command", command }] }],
  };
  const config = { notify: record, hooks, permission: { bash: "ask" } };
  const asked = Promise.withResolvers<string>();
  const permission = async () => {
    const folder = await asked.promise;
    await waitForFile(join(folder, "notified"), (text) => text.includes("question|"));
    await waitForFile(join(folder, "hooked"), (text) => text.endsWith("}"));
    return "allow_once" as const;
  };
  await story({ config, permission }, async ({ editor, model, repository }) => {
    asked.resolve(repository.path);
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "git tag v1" })).reply("Done.");
    await editor.prompt(sessionId, "Tag it\u0007");
    const notified = join(repository.path, "notified");
    await waitForFile(notified, (text) => text.includes("turn-end|"));
    expect(await readFile(notified, "utf8")).toMatch(
      /^question\|[^|]+\|Asks for permission: git tag v1\nturn-end\|[^|]+\|Finished\n$/,
    );
    expect(toObject(JSON.parse(await readFile(join(repository.path, "hooked"), "utf8")))).toMatchObject({
      hook_event_name: "Notification",
      notification_type: "permission_prompt",
      message: "Asks for permission: git tag v1",
    });
  });
});

test("run notifies through the terminal at the end of a turn", async () => {
  await using repository = await gitRepository();
  await using home = await temporaryFolder();
  const model = await startModelServer();
  // A slow program, as on a busy machine.
  const command = [process.execPath, "-e", `setTimeout(() => ${script}, 300)`, ...values];
  await writeConfig(home.path, model.url, { notify: { terminal: "osc9", command } });
  model.reply("Done.");
  // The agent of run has the same terminal.
  const env = { TERMINAL_COLUMNS: "0" };
  const terminal = startInTerminal(home.path, ["run", "Go"], { cwd: repository.path, env });
  await terminal.shows("\u001b]9;A scripted title: Finished\u0007");
  expect(await terminal.ended).toBe(0);
  expect(await readFile(join(repository.path, "notified"), "utf8")).toContain("turn-end|");
  await model.close();
});
