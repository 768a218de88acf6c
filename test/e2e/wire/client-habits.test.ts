import { describe, expect, test } from "vitest";
import { plain } from "../../support/editor/clients.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import * as reply from "../../support/model/reply.ts";
import { expectFailure } from "../../support/failure.ts";

const client = { ...plain(), info: { name: "acpx", version: "1.0.0" } };
/** Environment Modules export functions of bash, whose values have several lines. */
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
        { ...params, configId: "colour" },
        { ...params, value: "soon" },
      ])
        expect(await expectFailure(editor.request("session/set_config_option", wrong))).toMatchObject({
          code: -32602,
        });
    });
  });
});

describe("an editor with a project on another machine", () => {
  /** A server in a terminal of ssh: banners come first, and lines end as in a terminal. */
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

  test("gives MCP servers as ssh commands that ask for a terminal and print banners", async () => {
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
