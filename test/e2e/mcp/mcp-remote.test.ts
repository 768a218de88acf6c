import { describe, expect, test } from "vitest";
import { startHttpMcp } from "../../support/mcp/mcp-http.ts";
import * as reply from "../../support/model/reply.ts";
import { type StoryContext, storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, thoughtText } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const permission = { "far_*": "allow" };
const echo = reply.call("far_echo", { text: "hello" });

async function call({ editor, model }: StoryContext, sessionId: string, step = echo) {
  const number = model.requests.length;
  model.reply(step).reply("Done.");
  await editor.prompt(sessionId, "Go");
  return model.requests[number + 1]?.toolResults;
}

/** A session with this server, whose tools may be called. */
async function withRemote(
  server: { url: string },
  play: (context: StoryContext & { sessionId: string }) => Promise<void>,
) {
  const far = { type: "remote", url: server.url };
  await story({ config: { mcp: { far }, permission } }, async (context) => {
    const { sessionId } = await context.editor.newSession();
    await play({ ...context, sessionId });
  });
}

describe("a remote server", () => {
  test.each([
    ["streams", { speaks: "http" }],
    ["answers in JSON", { speaks: "http", json: true }],
    ["speaks the older way", { speaks: "sse" }],
  ] as const)(
    "that %s is called with the configured headers, and its session is ended",
    async (_, options) => {
      await using server = await startHttpMcp(options);
      const headers = { "x-team": "blue" };
      const config = { mcp: { far: { type: "remote", url: server.url, headers } }, permission };
      await story({ config }, async (context) => {
        const { sessionId } = await context.editor.newSession();
        expect(await call(context, sessionId)).toEqual(["hello"]);
        expect(server.requests.every((request) => request.headers["x-team"] === "blue")).toBe(true);
        expect(server.sessions.size).toBe(1);
        await context.editor.closeSession(sessionId);
      });
      if (options.speaks === "http") expect(server.requests.at(-1)?.what).toBe("DELETE /mcp");
    },
  );

  test.each(["http", "sse"] as const)("of the editor is used (%s)", async (type) => {
    await using server = await startHttpMcp({ speaks: type });
    await story({ config: { permission } }, async (context) => {
      const far = { type, name: "far", url: server.url, headers: [{ name: "x-team", value: "red" }] };
      const { sessionId } = await context.editor.newSession({ mcpServers: [far] });
      expect(await call(context, sessionId)).toEqual(["hello"]);
      expect(server.requests[0]?.headers["x-team"]).toBe("red");
    });
  });

  test("that forgot the session is reconnected and the call repeated", async () => {
    await using server = await startHttpMcp({ speaks: "http" });
    await withRemote(server, async ({ sessionId, ...context }) => {
      expect(await call(context, sessionId)).toEqual(["hello"]);
      server.forget();
      expect(await call(context, sessionId)).toEqual(["hello"]);
    });
  });

  test("whose response is too long fails only that call", async () => {
    await using server = await startHttpMcp({ speaks: "http" });
    await withRemote(server, async ({ sessionId, ...context }) => {
      expect(await call(context, sessionId, reply.call("far_giant", {}))).toEqual([
        expect.stringMatching(
          /^The MCP server far refused the call: it sent more than 16 MiB in one message\n/,
        ),
      ]);
      expect(await call(context, sessionId)).toEqual(["hello"]);
    });
  });

  test("that adds a tool has it offered in the next turn", async () => {
    await using server = await startHttpMcp({ speaks: "http" });
    await withRemote(server, async ({ sessionId, ...context }) => {
      expect(await call(context, sessionId)).toEqual(["hello"]);
      server.addTool("later");
      const { editor, model } = context;
      model.otherwise("Hm.");
      const isThere = () => model.requests.at(-1)?.toolNames.includes("far_later") === true;
      for (let tries = 0; tries < 50 && !isThere(); tries++) await editor.prompt(sessionId, "Now?");
      expect(isThere()).toBe(true);
    });
  });

  test("that sends events endlessly affects only itself", async () => {
    await using server = await startHttpMcp({ speaks: "http", floods: true });
    await withRemote(server, async (context) => {
      const start = performance.now();
      for (let number = 0; number < 3; number++)
        expect(await call(context, context.sessionId)).toEqual(["hello"]);
      expect(performance.now() - start).toBeLessThan(8_000);
    });
  });

  test("that quotes its key is reported without the key", async () => {
    const key = "sk-remote-0123456789";
    await using server = await startHttpMcp({ speaks: "http", status: 500, says: `Not with ${key}.` });
    const far = { type: "remote", url: server.url, headers: { Authorization: `Bearer ${key}` } };
    await story({ config: { mcp: { far } } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("One.");
      await editor.prompt(sessionId, "Hi");
      await editor.prompt(sessionId, "/mcp");
      const shown = JSON.stringify(editor.updates(sessionId));
      expect(shown).toContain("Not with [key].");
      expect(shown).not.toContain(key);
    });
  });

  test.each([
    [401, "needs authorization: `/mcp auth far`", "needs authorization. Enter /mcp auth far here"],
    [403, "failed: ", "failed: it answered with HTTP 403: No."],
    [500, "failed: ", "failed: it answered with HTTP 500: No."],
  ])("that answers %i is reported once", async (status, state, notice) => {
    await using server = await startHttpMcp({ speaks: "http", status });
    await story(
      { config: { mcp: { far: { type: "remote", url: server.url } } } },
      async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        model.reply("One.").reply("Two.");
        await editor.prompt(sessionId, "Hi");
        await editor.prompt(sessionId, "Hi");
        expect(thoughtText(editor.updates(sessionId)).split(notice)).toHaveLength(2);
        await editor.prompt(sessionId, "/mcp");
        expect(agentText(editor.updates(sessionId))).toContain(`**far**: ${state}`);
      },
    );
  });
});
