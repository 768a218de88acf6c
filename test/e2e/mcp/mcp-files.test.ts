import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { faulty } from "../../support/mcp/mcp.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";

const story = storiesOfOneAgent();
const echo = reply.call("shared_echo", { text: "hello" });
const permission = { "shared_*": "allow" };

const files = (path: string, key: string, memory: string) => {
  const [command, ...args] = faulty("none").command;
  const server = { command, args: [...args, `\${MEMORY_OF_TESTS:-${memory}}`], env: { LOG: "1" } };
  return { [path]: JSON.stringify({ [key]: { shared: server }, inputs: [] }) };
};

test.each([
  [".mcp.json", "mcpServers"],
  [".cursor/mcp.json", "mcpServers"],
  [".vscode/mcp.json", "servers"],
])("servers in %s start once the user trusts the project", async (path, key) => {
  await using folder = await temporaryFolder();
  const memory = join(folder.path, "memory");
  const given = { config: { permission }, files: files(path, key, memory) };
  await story({ ...given, permission: "allow_once" }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Hello.");
    await editor.prompt(sessionId, "Hi");
    expect(JSON.stringify(editor.permissionRequests[0])).toContain("mcp.shared");
    model.reply(echo).reply("Done.");
    await editor.prompt(sessionId, "Go");
    expect(model.requests.at(-1)?.toolResults).toEqual(["hello"]);
    expect(await readFile(memory, "utf8")).toContain("call echo");
  });
});

test("servers in .mcp.json do not start without trust", async () => {
  await using folder = await temporaryFolder();
  const memory = join(folder.path, "memory");
  const given = { config: { permission }, files: files(".mcp.json", "mcpServers", memory) };
  await story({ ...given, permission: "reject_once" }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Hello.");
    await editor.prompt(sessionId, "Hi");
    expect(model.requests[0]?.toolNames).not.toContain("shared_echo");
    await expect(readFile(memory, "utf8")).rejects.toThrow("ENOENT");
  });
});
