import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { listen } from "../../support/listen.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { thoughtText } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

/** Pages by path; a request for another path never gets a response. */
async function site(pages: Record<string, (response: ServerResponse) => void>) {
  const requests: string[] = [];
  const server = await listen(({ url = "" }, response) => {
    requests.push(url);
    pages[url]?.(response);
  });
  return { ...server, requests };
}

const text = (body: string) => (response: ServerResponse) =>
  response.setHeader("content-type", "text/plain").end(body);

describe("instructions at configured addresses", () => {
  test("are fetched once per session, truncated, and failures are reported once", async () => {
    await using server = await site({
      "/style.md": text("Write short sentences."),
      "/page.html": (response) =>
        response.setHeader("content-type", "text/html").end("<h1>Rules</h1><p>Be <b>kind</b>.</p>"),
      "/long.md": text("x".repeat(40_000)),
      "/gone.md": (response) => response.writeHead(404).end("no"),
      "/away.md": (response) => response.writeHead(302, { location: "http://127.0.0.2/other.md" }).end(),
    });
    const paths = ["/style.md", "/page.html", "/long.md", "/gone.md", "/away.md", "/slow.md"];
    const config = { instructions: paths.map((path) => server.url + path) };
    const limit = { context: 1_000_000 };
    await story({ config, limit }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      expect(server.requests).toEqual([]);
      for (const word of ["One", "Two"]) {
        model.reply(word);
        await editor.prompt(sessionId, word);
      }
      expect(server.requests.toSorted()).toEqual(paths.toSorted());
      for (const { body } of model.requests) {
        const system = JSON.stringify(body.messages);
        expect(system).toContain("Write short sentences.");
        expect(system).toContain("# Rules");
        expect(system).toMatch(/x{32768}\\n\[Cut after 32768 of 40000 bytes/);
      }
      const notice = thoughtText(editor.updates(sessionId));
      for (const problem of [
        /\/long\.md was truncated to 32768 of its 40000 bytes/,
        /\/gone\.md was ignored: it answered with status 404/,
        /\/away\.md was ignored: Not followed: /,
        /\/slow\.md was ignored: .*within 5 seconds/,
      ])
        expect(notice.match(new RegExp(problem, "g"))).toHaveLength(1);
    });
  });

  test("of a project are fetched only after consent, and never if a rule denies it", async () => {
    await using server = await site({ "/style.md": text("Write short sentences.") });
    const files = { "opencode.json": JSON.stringify({ instructions: [`${server.url}/style.md`] }) };
    await story({ files, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("One.");
      await editor.prompt(sessionId, "One");
      expect(server.requests).toEqual([]);
      editor.permission = "allow_once";
      const { sessionId: other } = await editor.newSession();
      model.reply("Two.");
      await editor.prompt(other, "Two");
      expect(JSON.stringify(model.requests[1]?.body.messages)).toContain("Write short sentences.");
    });
    const config = { permission: { webfetch: "deny" }, instructions: [`${server.url}/style.md`] };
    await story({ config }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("One.");
      await editor.prompt(sessionId, "One");
      expect(server.requests).toHaveLength(1);
      expect(thoughtText(editor.updates(sessionId))).toContain("/style.md was ignored: the rule webfetch");
    });
  });
});
