import { chmod, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { plain } from "../../support/editor/clients.ts";
import { Editor } from "../../support/editor/editor.ts";
import { readMemory } from "../../support/program/processes.ts";
import { lacksPs } from "../../support/platform/platform.ts";
import { story as storyOfOwnAgent, storiesOfOneAgent } from "../../support/editor/story.ts";
import * as reply from "../../support/model/reply.ts";
import { expectFailure } from "../../support/failure.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { agentText } from "../../support/transcript.ts";

const client = { ...plain(), info: { name: "acpx", version: "1.0.0" } };
/** Environment Modules export bash functions, whose values have several lines. */
const env = { "BASH_FUNC_module%%": "() {  eval $(modulecmd bash $*)\n}", MULTI: "one\ntwo" };

const story = storiesOfOneAgent();

describe("a client like OpenClaw", () => {
  test("sets its own time limit right after session/new and gets an answer", async () => {
    await story({ client, env }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const params = { sessionId, configId: "timeout", value: "120" };
      const answer = await editor.request("session/set_config_option", params);
      expect(JSON.stringify(answer)).toContain('"id":"model"');
      expect(JSON.stringify(answer)).not.toContain('"id":"timeout"');
      model.reply("Hello.");
      expect(await editor.prompt(sessionId, "Hi")).toMatchObject({ stopReason: "end_turn" });
      for (const wrong of [
        { ...params, configId: "color" },
        { ...params, value: "soon" },
      ])
        expect(await expectFailure(editor.request("session/set_config_option", wrong))).toMatchObject({
          code: -32602,
        });
    });
  });
});

describe("an editor with a project on another machine", () => {
  /** A server behind ssh with a terminal: banners come first, and lines end with CRLF. */
  const script = `
    process.stderr.write("Pseudo-terminal will not be allocated because stdin is not a terminal.\\r\\n");
    process.stdout.write("Welcome to host\\r\\n{not json}\\r\\n");
    const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\r\\n");
    const answers = {
      initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "far", version: "1" } },
      "tools/list": { tools: [{ name: "where", inputSchema: { type: "object" } }] },
      "tools/call": { content: [{ type: "text", text: process.argv.slice(1).join(" ") }] },
    };
    require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
      const { id, method } = JSON.parse(line);
      if (id === undefined) return;
      const result = answers[method];
      send(result === undefined ? { id, error: { code: -32601, message: "unknown" } } : { id, result });
    });`;
  const ssh = ["-o", "ControlMaster=no", "-t", "host", "cd && exec env npx far-server"];

  test("passes MCP servers as ssh commands that ask for a terminal and print banners", async () => {
    await story({ client, env, config: { permission: "allow" } }, async ({ editor, model }) => {
      const server = { name: "far", command: process.execPath, args: ["-e", script, "--", ...ssh], env: [] };
      const { sessionId } = await editor.newSession({ mcpServers: [server] });
      model.reply(reply.call("far_where", {})).reply("There.");
      await editor.prompt(sessionId, "Where?");
      expect(model.requests.at(-1)?.toolResults).toEqual([ssh.join(" ")]);
    });
  });

  test("has variables with newlines and exported functions in its environment", async () => {
    await story({ client, env, config: { permission: "allow" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const command = 'printf "%s|" "$MULTI"; type module 2>/dev/null || echo no function';
      model.reply(reply.call("bash", { command })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests.at(-1)?.toolResults).toEqual(["one\ntwo|no function"]);
    });
  });
});

describe("JetBrains", () => {
  /** Resident memory of an agent with a new session, in kilobytes; docs/development/performance.md has the figures. */
  const memoryLimit = 130 * 1024;

  test.skipIf(lacksPs)("starts an agent for each open project at once, each with little memory", async () => {
    await storyOfOwnAgent({ client }, async ({ editor, home, repository }) => {
      const cwd = repository.path;
      const others = Array.from({ length: 3 }, () => new Editor({ home: home.path, cwd, client }));
      const all = [editor, ...others];
      await Promise.all(
        all.map(async (one) => {
          if (one !== editor) await one.initialize();
          await one.newSession();
        }),
      );
      const sizes = await Promise.all(all.map(({ pid = 0 }) => readMemory(pid)));
      expect(Math.max(...sizes)).toBeLessThan(memoryLimit);
      expect((await editor.list()).sessions).toHaveLength(all.length);
      await Promise.all(others.map((one) => one.close()));
    });
  });
});

describe("an editor with files of another machine under the same paths", () => {
  /** A fake ssh that runs the command locally, and parses its options like ssh. */
  const ssh = `#!/bin/sh
while [ "\${1#-}" != "$1" ]; do
  case "$1" in -o) shift ;; -t*) echo "Pseudo-terminal allocated" ;; esac
  shift
done
shift
exec sh -c "$*"
`;

  test("starts the agent there with the command of docs/remote.md", async () => {
    const root = join(import.meta.dirname, "../../..");
    const page = await readFile(join(root, "docs/remote.md"), "utf8");
    const command = /^ssh .* fairlead acp$/m.exec(page)?.[0] ?? "";
    const fairlead = `#!/bin/sh\nexec "${process.execPath}" "${join(root, "bin/fairlead.js")}" "$@"\n`;
    const start = `
      process.env.PATH = __dirname + require("node:path").delimiter + process.env.PATH;
      const { spawn } = require("node:child_process");
      spawn("sh", ["-c", ${JSON.stringify(`exec ${command}`)}], { stdio: "inherit" }).on("exit", process.exit);`;
    await using folder = await temporaryFolder({ ssh, fairlead, "start.cjs": start });
    for (const name of ["ssh", "fairlead"]) await chmod(join(folder.path, name), 0o755);
    await storyOfOwnAgent(
      { client, program: [join(folder.path, "start.cjs")] },
      async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        model.reply("Hello.");
        expect(await editor.prompt(sessionId, "Hi")).toMatchObject({ stopReason: "end_turn" });
      },
    );
  });
});

describe("an editor that shows the approval setting", () => {
  const ask = { permission: { edit: "ask", bash: "ask" } };

  test("shows the setting that applies: always for a command is none for edits", async () => {
    await story({ client, config: ask, permission: "allow_always" }, async ({ editor, model }) => {
      const { sessionId, configOptions } = await editor.newSession();
      const touch = reply.call("bash", { command: "touch a.txt" });
      const write = reply.call("write", { filePath: "b.txt", content: "b\n" });
      model.reply(touch).reply(touch).reply(write).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
        "touch a.txt",
        "Write b.txt (new)",
      ]);
      const approvalOf = (options: typeof configOptions) =>
        options?.find(({ id }) => id === "approval")?.currentValue;
      expect(approvalOf(configOptions)).toBe("ask");
      expect(
        editor.updates(sessionId, "config_option_update").map((one) => approvalOf(one.configOptions)),
      ).toEqual([]);
      await editor.prompt(sessionId, "/permissions");
      expect(agentText(editor.updates(sessionId))).toMatch(
        /1\. edit `a\.txt`[^\n]*\n2\. bash `touch \*`[^\n]*\n3\. edit `b\.txt`/,
      );
      const answer = await editor.setConfigOption(sessionId, "approval", "accept-edits");
      expect(approvalOf(answer.configOptions)).toBe("accept-edits");
    });
  });
});
