import { existsSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { story } from "../../support/editor/story.ts";
import { listen } from "../../support/listen.ts";
import * as reply from "../../support/model/reply.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { thoughtText } from "../../support/transcript.ts";
import { findBubblewrapProblem } from "./sandbox-problem.ts";

const problem = await findBubblewrapProblem();

/** An MCP server whose tool tries operations that a sandbox may refuse, and returns their outcome. */
const server = `
const fs = require("fs");
const trial = (name, run) => { try { return name + ": " + run(); } catch (error) { return name + ": " + error.code; } };
const connect = () => new Promise((done) => {
  const [host, port] = process.argv[2].split(":");
  const proxy = process.env.HTTP_PROXY && new URL(process.env.HTTP_PROXY);
  if (!proxy) return done("direct");
  const basic = Buffer.from(proxy.username + ":" + proxy.password).toString("base64");
  require("http").request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: host + ":" + port,
    headers: { "proxy-authorization": "Basic " + basic } }).on("connect", (response) => done(response.statusCode)).end();
});
const tries = async () => [
  trial("workspace", () => fs.writeFileSync("made.txt", "x") ?? "written"),
  trial("hook", () => fs.writeFileSync(".git/hooks/pre-commit", "x") ?? "written"),
  trial("outside", () => fs.writeFileSync(process.argv[3], "x") ?? "written"),
  trial("secret", () => fs.readFileSync(".env", "utf8")),
  "network: " + (await connect()),
].join("\\n");
const handle = { initialize: () => ({ protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "t", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "try", inputSchema: { type: "object" } }] }),
  "tools/call": async () => ({ content: [{ type: "text", text: await tries() }] }) };
require("readline").createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: await (handle[method]?.() ?? {}) }));
});
`;
const outside = `/var/tmp/fairlead-server-${process.pid}.txt`;
const files = { "server.js": server, ".env": "SECRET", ".git/hooks/sample": "" };

describe.runIf(problem === undefined)("a server with a sandbox in its entry", () => {
  test("writes only the workspace and has the network of its entry", async () => {
    await using port = await listen(() => {});
    const host = `localhost:${port.port}`;
    const command = [process.execPath, "server.js", host, outside];
    const mcp = {
      confined: { type: "local", command, sandbox: true },
      connected: { type: "local", command, sandbox: { network: { hosts: [host] } } },
    };
    const permission = { "confined_*": "allow", "connected_*": "allow" };
    await story({ files, config: { mcp, permission } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("confined_try", {}), reply.call("connected_try", {})).reply("Done.");
      await editor.prompt(sessionId, "Go");
      const results = model.requests.at(-1)?.messages.filter(({ role }) => role === "tool") ?? [];
      const common = "workspace: written\nhook: EROFS\noutside: EROFS\nsecret: EACCES\nnetwork:";
      expect(results.map(({ content }) => content)).toEqual([`${common} 403`, `${common} 200`]);
      expect(existsSync(outside)).toBe(false);
    });
  });

  test("for a language starts in the sandbox", async () => {
    const script = `echo started > started.txt; echo x > ${outside}; cat`;
    const lsp = { own: { command: ["/bin/sh", "-c", script], extensions: ["txt"], sandbox: true } };
    await story({ config: { lsp } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("write", { filePath: "a.txt", content: "a\n" })).reply("Done.");
      await editor.prompt(sessionId, "Write");
      expect(await readFile(join(repository.path, "started.txt"), "utf8")).toBe("started\n");
      expect(existsSync(outside)).toBe(false);
      await rm(outside, { force: true });
    });
  });
});

test.runIf(problem === undefined)("a hook with a sandbox in its entry runs in it", async () => {
  const command = `cat > input.json; echo x > ${outside} || { echo "no write: $?" >&2; exit 2; }`;
  const hooks = { PreToolUse: [{ matcher: "Bash", hooks: [{ type: "command", command, sandbox: true }] }] };
  await story({ config: { hooks } }, async ({ editor, model, repository }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "echo ran" })).reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(model.requests.at(-1)?.toolResults.at(-1)).toContain("no write: ");
    expect(await readFile(join(repository.path, "input.json"), "utf8")).toContain("PreToolUse");
    expect(existsSync(outside)).toBe(false);
  });
});

const command = [process.execPath, "server.js", "localhost:1", outside];
const mcp = { confined: { type: "local", command, sandbox: true } };

test.runIf(process.platform === "linux")("a server does not start without a sandbox", async () => {
  await using folder = await temporaryFolder();
  await mkdir(join(folder.path, "none"));
  const env = { PATH: join(folder.path, "none") };
  await story({ files, config: { mcp }, env }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(thoughtText(editor.updates(sessionId))).toContain(
      'The MCP server "confined" failed: its entry sets "sandbox". Commands cannot run in a sandbox: bubblewrap (bwrap) is not installed.',
    );
  });
});

test("a server does not start if the configuration disables the sandbox", async () => {
  await story({ files, config: { mcp, sandbox: "off" } }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(thoughtText(editor.updates(sessionId))).toContain(
      'failed: its entry sets "sandbox". The configuration sets "sandbox" to "off". Remove one of the two.',
    );
  });
});
