import { expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { toolCalls } from "../../support/transcript.ts";
import { body, webServer } from "../../tool/web/web-server.ts";

const story = storiesOfOneAgent();

const page = body("<h1>Fairness</h1><p>Be <b>fair</b>.</p>", { "content-type": "text/html" });

test("fetches a page of this computer only after a question, whatever the rules allow", async () => {
  await using server = await webServer({ "/page": page });
  const config = { permission: { webfetch: "allow" } };
  await story({ config, permission: "allow_once" }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("webfetch", { url: `${server.url}/page` })).reply("Read.");
    await editor.prompt(sessionId, "Read the page");
    expect(model.requests.at(-1)?.toolResults).toEqual([
      `${server.url}/page (text/html, 39 bytes)\n\n# Fairness\n\nBe **fair**.`,
    ]);
    const [call] = toolCalls(editor.updates(sessionId));
    expect({ title: call?.title, kind: call?.kind, status: call?.status }).toEqual({
      title: `Fetch ${server.url}/page`,
      kind: "fetch",
      status: "completed",
    });
  });
});

test("a page of this computer is not fetched without consent", async () => {
  await using server = await webServer({ "/page": page });
  await story({ permission: "reject_once" }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("webfetch", { url: `${server.url}/page` }));
    await editor.prompt(sessionId, "Read the page");
    expect(server.requests).toEqual([]);
  });
});

test("a configured search is offered, and the model never receives its key", async () => {
  await using server = await webServer({
    "/search": (request, response) =>
      void response.end(
        JSON.stringify([{ title: `key ${String(request.headers["x-api-key"])}`, url: "https://u/" }]),
      ),
  });
  const web = { url: `${server.url}/search?q={query}`, headers: { "x-api-key": "search-key-123456" } };
  await story({ config: { search: { web } } }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("websearch", { query: "fairness" })).reply("Found.");
    await editor.prompt(sessionId, "Search");
    expect(model.requests.at(-1)?.toolNames).toContain("websearch");
    expect(model.requests.at(-1)?.toolNames).not.toContain("codesearch");
    expect(model.requests.at(-1)?.toolResults).toEqual(["1. key [key]\nhttps://u/"]);
    expect(server.requests).toEqual(["GET /search?q=fairness"]);
  });
});
