import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { toolCalls } from "../../support/transcript.ts";
import { lacksSignals } from "../../support/platform/platform.ts";

const story = storiesOfOneAgent();

const configured = "sk-configured-0123456789";
const fromVariable = "sk-variable-0123456789";
const stored = "sk-stored-0123456789";
const keys = [configured, fromVariable, stored];

const provider = (apiKey: string) => ({ options: { baseURL: "http://127.0.0.1:9/v1", apiKey }, models: {} });

const options = {
  homeFiles: {
    ".local/share/fairlead/credentials.json": JSON.stringify({ third: { apiKey: stored } }),
    ".fairlead/fairlead.json": JSON.stringify({
      // The variable's name does not suggest a secret.
      provider: { other: provider("{env:OTHER_THING}"), another: provider(configured) },
    }),
  },
  config: { permission: "allow" },
  env: {
    OTHER_THING: fromVariable,
    COPY_OF_IT: `prefix:${configured}`,
    HARMLESS: "stays",
    FAIRLEAD_LOG: "debug",
  },
} as const;

/** Everything that the program wrote below a folder, as one text. */
async function everythingIn(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return (
    await Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name), "latin1")))
  ).join("\n");
}

test("keys reach no command, model, editor, storage or log", async () => {
  await story(options, async ({ editor, model, repository, home }) => {
    await repository.write({ "leak.txt": keys.join("\n") });
    const { sessionId } = await editor.newSession();
    model
      .reply(reply.call("bash", { command: "env | sort" }))
      .reply(
        reply.call("bash", {
          command: "cat leak.txt; printf 'sk-config'; sleep 0.2; printf 'ured-0123456789'",
        }),
      )
      .reply(reply.call("bash", { command: `cat /proc/$PPID/environ | tr '\\0' '\\n'` }))
      .reply(reply.call("read", { filePath: "leak.txt" }))
      .reply(reply.call("grep", { pattern: "sk-" }))
      .reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual(
      Array(5).fill("completed"),
    );
    const notice = JSON.stringify(model.requests.map(({ body }) => body.messages));
    const environment = model.requests[1]?.toolResults.join("\n") ?? "";
    expect(environment).toContain("HARMLESS=stays");
    expect(environment).not.toMatch(/COPY_OF_IT|OTHER_THING/);
    expect(notice).toContain("[key]");
    const shown = JSON.stringify(editor.updates(sessionId));
    await editor.closeSession(sessionId);
    const remaining = await everythingIn(join(home.path, ".local/share/fairlead/storage"));
    const logged = await everythingIn(join(home.path, ".local/state")).catch(() => "");
    for (const key of keys) {
      expect(notice).not.toContain(key);
      expect(shown).not.toContain(key);
      expect(remaining).not.toContain(key);
      expect(logged).not.toContain(key);
    }
  });
});

test.skipIf(lacksSignals)(
  "no command makes the program open a debugger port that could leak keys",
  async () => {
    await story({ config: { permission: "allow" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: `kill -USR1 ${editor.pid}` })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      model.reply("Here.");
      await editor.prompt(sessionId, "Still there?");
      expect(editor.stderr).not.toContain("Debugger");
    });
  },
);

test("a provider error that quotes a key is shown without it", async () => {
  await story(options, async ({ editor, model, home }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.failure(400, "Incorrect API key provided: test-key"));
    const error: unknown = await editor.prompt(sessionId, "Go").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ message: expect.stringContaining("[key]") });
    expect(String(error) + JSON.stringify(error) + editor.stderr).not.toContain("test-key");
    await editor.closeSession(sessionId);
    expect(await everythingIn(join(home.path, ".local"))).not.toContain("test-key");
  });
});

test("control characters of a title and a question are made visible", async () => {
  const config = { permission: { bash: "ask" }, experimental: { continue_loop_on_deny: true } };
  await story({ config, permission: "reject_once" }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "echo hi\u001b[2K\u202e # \u200btouch x" })).reply("No.");
    await editor.prompt(sessionId, "Go");
    const title = "echo hi\\u{1b}[2K\\u{202e} # \\u{200b}touch x";
    expect(editor.permissionRequests[0]?.toolCall.title).toBe(title);
    expect(toolCalls(editor.updates(sessionId))[0]?.title).toBe(title);
  });
});

test("commands get credentials that the user names, not those that a project names", async () => {
  const config = { permission: "allow", environment: { keep: ["NPM_TOKEN", "GITHUB_*"] } };
  const env = {
    NPM_TOKEN: "npm-0123456789abcdef",
    GITHUB_TOKEN: "ghs-0123456789abcdef",
    PYPI_TOKEN: "pypi-0123456789abcdef",
  };
  const files = { "fairlead.json": JSON.stringify({ environment: { keep: ["*"] } }) };
  await story({ config, env, files }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "env | grep _TOKEN= | sort" })).reply("Done.");
    await editor.prompt(sessionId, "Go");
    // The token is a provider's key too: the command gets it, the model does not.
    expect(model.requests[1]?.toolResults).toEqual(["GITHUB_TOKEN=[key]\nNPM_TOKEN=npm-0123456789abcdef"]);
  });
});
