import { expect, test } from "vitest";
import { everything, waitForEverything } from "../../support/mcp/mcp.ts";
import { startModernHttp } from "../../support/mcp/modern-http.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";

const story = storiesOfOneAgent();
const changedText = "These resources of MCP servers have changed since you read them.";

test("the next turn names once which read or attached resources changed", async () => {
  const config = {
    mcp: { everything: everything() },
    permission: { "everything_*": "allow", read_mcp_resource: "allow" },
  };
  await story({ config }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    await waitForEverything(editor, sessionId);
    const [read, attached] = ["features", "structure"].map(
      (name) => `demo://resource/static/document/${name}.md`,
    );
    model
      .reply(reply.call("read_mcp_resource", { server: "everything", uri: read }))
      .reply(reply.call("everything_toggle-subscriber-updates", {}))
      .reply(reply.call("everything_echo", { message: "after the change" }))
      .reply("Done.");
    await editor.prompt(sessionId, `Look at @everything:${attached}`);
    expect(JSON.stringify(model.requests)).not.toContain(changedText);
    model.reply("Two.").reply("Three.");
    await editor.prompt(sessionId, "Second");
    const second = model.requests.at(-1)?.userText ?? "";
    expect(second).toContain(changedText);
    expect(second).toContain(`- ${read} of everything`);
    expect(second).toContain(`- ${attached} of everything`);
    await editor.prompt(sessionId, "Third");
    expect(model.requests.at(-1)?.userText).not.toContain(changedText);
  });
});

test("a server of 2026-07-28 reports changes of resources that were read", async () => {
  await using server = await startModernHttp();
  const config = { mcp: { new: { type: "remote", url: server.url } }, permission: "allow" };
  await story({ config }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("read_mcp_resource", { server: "new", uri: "note://1" })).reply("Done.");
    await editor.prompt(sessionId, "Go");
    model.otherwise("Hm.");
    const isTold = () => model.requests.at(-1)?.userText.includes("- note://1 of new") === true;
    for (let tries = 0; tries < 50 && !isTold(); tries++) {
      server.change("note://1");
      await editor.prompt(sessionId, "Now?");
    }
    expect(isTold()).toBe(true);
  });
});
