import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { CreateElicitationRequest } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { startHttpMcp } from "../../support/mcp/mcp-http.ts";
import { faulty, modern } from "../../support/mcp/mcp.ts";
import { startModernHttp } from "../../support/mcp/modern-http.ts";
import * as reply from "../../support/model/reply.ts";
import { withElicitation } from "../../support/editor/clients.ts";
import { type StoryContext, storiesOfOneAgent } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { agentText, thoughtText } from "../../support/transcript.ts";

const story = storiesOfOneAgent();
const permission = { "new_*": "allow", read_mcp_resource: "allow" };

/** Plays one turn in which the model makes the calls. Returns the results that the model receives. */
async function call({ editor, model }: StoryContext, sessionId: string, ...calls: reply.Step[]) {
  const number = model.requests.length;
  model.reply(...calls).reply("Done.");
  await editor.prompt(sessionId, "Go");
  return model.requests[number + 1]?.toolResults;
}

const echo = reply.call("new_echo", { text: "hello" });
const methodsIn = async (path: string) => (await readFile(path, "utf8")).trim().split("\n");

describe("a program with the protocol of 2026-07-28", () => {
  test("supplies its tools, instructions, progress and resources", async () => {
    await using folder = await temporaryFolder();
    const server = modern(join(folder.path, "asked"));
    await story({ config: { mcp: { new: server }, permission } }, async (context) => {
      const { editor, model } = context;
      const { sessionId } = await editor.newSession();
      const results = await call(
        context,
        sessionId,
        echo,
        reply.call("new_work", {}),
        reply.call("read_mcp_resource", { server: "new", uri: "note://1" }),
      );
      expect(results).toEqual(["hello", "Worked.", expect.stringContaining("Buy milk.")]);
      expect(model.requests[0]?.system).toContain("Greet before you echo.");
      expect(JSON.stringify(editor.updates(sessionId, "tool_call_update"))).toContain("1 of 2: half");
    });
  });

  test("has the user answer its questions", async () => {
    await using folder = await temporaryFolder();
    const questions: CreateElicitationRequest[] = [];
    const client = withElicitation((request) => {
      questions.push(request);
      return { action: "accept", content: { name: "Ada" } };
    });
    const server = modern(join(folder.path, "asked"));
    await story({ config: { mcp: { new: server }, permission }, client }, async (context) => {
      const { sessionId } = await context.editor.newSession();
      expect(await call(context, sessionId, reply.call("new_greet", {}))).toEqual(["Hello, Ada!"]);
      expect(questions.map(({ message }) => message)).toEqual([expect.stringContaining("Who are you?")]);
    });
  });

  test("is asked for its protocol generation once, also after a restart", async () => {
    await using folder = await temporaryFolder();
    const memory = join(folder.path, "asked");
    await using data = await temporaryFolder();
    const env = { XDG_DATA_HOME: data.path };
    for (const opening of [["initialize", "server/discover"], ["server/discover"]]) {
      await writeFile(memory, "");
      await story({ config: { mcp: { new: modern(memory) }, permission }, env }, async (context) => {
        const { sessionId } = await context.editor.newSession();
        expect(await call(context, sessionId, echo)).toEqual(["hello"]);
        const asked = await methodsIn(memory);
        expect(asked.slice(0, asked.indexOf("tools/list"))).toEqual(opening);
      });
    }
  });

  test.each([
    ["no-result-type", "its answer does not follow the protocol"],
    ["unknown-result-type", "Unsupported result type 'hologram'"],
    ["endless-input", "still required input after 20 rounds"],
    ["giant-answer", "it answered with more than 16 MiB in one message"],
    ["dies-in-call", "lost its connection during the call"],
  ])("fails only one call: %s", async (fault, reason) => {
    await using folder = await temporaryFolder();
    const server = modern(join(folder.path, "asked"), "1.0.0", fault);
    await story({ config: { mcp: { new: server }, permission } }, async (context) => {
      const { editor } = context;
      const { sessionId } = await editor.newSession();
      expect(await call(context, sessionId, echo)).toEqual([expect.stringContaining(reason)]);
      expect(agentText(editor.updates(sessionId))).toBe("Done.");
    });
  });

  test.each([
    ["silent", "it did not answer within 2 s"],
    ["dies", "it ended before it answered"],
  ])("that fails on the first request is reported: %s", async (fault, reason) => {
    await using folder = await temporaryFolder();
    const server = { ...modern(join(folder.path, "asked"), "1.0.0", fault), timeout: 2_000 };
    await story({ config: { mcp: { new: server } } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      expect(thoughtText(editor.updates(sessionId))).toContain(`The MCP server "new" failed: ${reason}`);
    });
  });
});

describe("a program with the older protocol", () => {
  test("is not asked for its protocol generation", async () => {
    await using folder = await temporaryFolder();
    const memory = join(folder.path, "memory");
    await writeFile(memory, "");
    const server = faulty("logs-methods", memory);
    await story({ config: { mcp: { new: server }, permission } }, async (context) => {
      const { sessionId } = await context.editor.newSession();
      expect(await call(context, sessionId, echo)).toEqual(["hello"]);
      expect(await readFile(memory, "utf8")).not.toContain("server/discover");
    });
  });
});

describe("a remote server with the protocol of 2026-07-28", () => {
  const remote = (server: { url: string }) => ({ new: { type: "remote", url: server.url } });

  test("is called without a handshake, with the headers that its tools name", async () => {
    await using server = await startModernHttp();
    await story({ config: { mcp: remote(server), permission } }, async (context) => {
      const { sessionId } = await context.editor.newSession();
      const route = reply.call("new_route", { region: "north" });
      expect(await call(context, sessionId, echo, route)).toEqual(["hello", "Routed to north."]);
      expect(server.requests.map(({ method }) => method)).not.toContain("initialize");
      const routed = server.requests.filter(({ headers }) => headers["mcp-param-region"] !== undefined);
      expect(
        routed.map(({ method, headers }) => [method, headers["mcp-name"], headers["mcp-param-region"]]),
      ).toEqual([["tools/call", "route", "north"]]);
    });
  });

  test("adds a tool, which is offered in the next turn", async () => {
    await using server = await startModernHttp();
    await story({ config: { mcp: remote(server), permission } }, async (context) => {
      const { editor, model } = context;
      const { sessionId } = await editor.newSession();
      expect(await call(context, sessionId, echo)).toEqual(["hello"]);
      server.addTool("later");
      model.otherwise("Hm.");
      const isThere = () => model.requests.at(-1)?.toolNames.includes("new_later") === true;
      for (let tries = 0; tries < 50 && !isThere(); tries++) await editor.prompt(sessionId, "Now?");
      expect(isThere()).toBe(true);
    });
  });

  test("that returns to the older protocol is used with it", async () => {
    await using server = await startModernHttp({ legacy: "stateless" });
    await story({ config: { mcp: remote(server), permission } }, async (context) => {
      const { sessionId } = await context.editor.newSession();
      expect(await call(context, sessionId, echo)).toEqual(["hello"]);
      server.downgrade();
      await context.editor.prompt(sessionId, "/mcp reconnect new");
      expect(await call(context, sessionId, echo)).toEqual(["hello"]);
    });
  });
});

test("an older remote server is asked for its generation once, also after a restart", async () => {
  await using server = await startHttpMcp({ speaks: "http" });
  await using data = await temporaryFolder();
  const config = { mcp: { new: { type: "remote", url: server.url } }, permission };
  const questions = () =>
    server.requests.filter(({ headers }) => headers["mcp-protocol-version"] === "2026-07-28").length;
  for (let round = 0; round < 2; round++)
    await story({ config, env: { XDG_DATA_HOME: data.path } }, async (context) => {
      const { sessionId } = await context.editor.newSession();
      expect(await call(context, sessionId, echo)).toEqual(["hello"]);
      expect(questions()).toBe(1);
    });
});
