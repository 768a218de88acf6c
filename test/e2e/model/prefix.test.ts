import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { faulty } from "../../support/mcp/mcp.ts";
import * as reply from "../../support/model/reply.ts";
import { expectSamePrefixes } from "../../support/model/same-prefixes.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";

const story = storiesOfOneAgent();

const files = { "a.txt": "one\n" };
const read = reply.call("read", { filePath: "a.txt" });

describe("each request begins with the bytes of the previous one", () => {
  test("in plan, build, plan and build mode", async () => {
    await story({ files, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      model.reply(read).reply("The plan.");
      await editor.prompt(sessionId, "Plan it");
      await editor.setMode(sessionId, "build");
      model
        .reply(read)
        .reply(reply.call("plan_enter", {}))
        .reply(reply.call("plan_exit", {}))
        .reply("Built.");
      await editor.prompt(sessionId, "Build it");
      model.reply("Fine.");
      await editor.prompt(sessionId, "Thanks");
      expect(
        model.requests.map(({ userText }) => /Plan mode is on|from plan to build/.exec(userText)?.[0]),
      ).toEqual([
        "Plan mode is on",
        "Plan mode is on",
        "from plan to build",
        "from plan to build",
        "Plan mode is on",
        "from plan to build",
        undefined,
      ]);
      expectSamePrefixes(model.requests);
    });
  });

  test("for the last step of a turn, and into the next turn", async () => {
    const config = { agent: { build: { steps: 2 } } };
    await story({ config, files }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(read).reply("So far.");
      expect((await editor.prompt(sessionId, "Work")).stopReason).toBe("max_turn_requests");
      model.reply("Going on.");
      await editor.prompt(sessionId, "Go on");
      expect(model.requests.map(({ body }) => body.tool_choice)).toEqual(["auto", "none", "auto"]);
      expectSamePrefixes(model.requests);
    });
  });

  test("with the plan agent's own rules for tasks, which its calls follow", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      const task = { description: "Change it", prompt: "Change it.", subagent_type: "general" };
      model.reply(reply.call("task", task)).reply("Not possible.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests[1]?.toolResults).toEqual([
        expect.stringMatching(/^Not run\. A rule forbids task/),
      ]);
    });
  });

  test("with rules of the configuration for the plan agent alone, which its calls follow", async () => {
    const permission = { bash: "deny", webfetch: "deny", skill: { "code-review": "deny" } };
    const config = { agent: { plan: { permission } } };
    await story({ config, files }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      model
        .reply(reply.call("bash", { command: "cd src" }), reply.call("skill", { name: "code-review" }))
        .reply("The plan.");
      await editor.prompt(sessionId, "Plan it");
      await editor.setMode(sessionId, "build");
      model.reply(reply.call("bash", { command: "echo built > b.txt" })).reply("Built.");
      await editor.prompt(sessionId, "Build it");
      expectSamePrefixes(model.requests);
      expect(model.requests[1]?.toolResults).toEqual([
        expect.stringMatching(/^Not run\. A rule forbids bash for "\*"/),
        expect.stringMatching(/^Not run\. A rule forbids skill for "code-review"/),
      ]);
      expect(await readdir(repository.path)).toContain("b.txt");
    });
  });

  test("without the tools that plan and build are both denied", async () => {
    const config = { permission: { webfetch: "deny" }, agent: { plan: { permission: { bash: "deny" } } } };
    await story({ config }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      model.reply("The plan.");
      await editor.prompt(sessionId, "Plan it");
      expect(model.requests[0]?.toolNames).toContain("bash");
      expect(model.requests[0]?.toolNames).not.toContain("webfetch");
    });
  });
});

describe("tools of an MCP server", () => {
  const given = (fault: string, memory: string) => {
    const [command = "", ...args] = faulty(fault, memory).command;
    return { mcpServers: [{ name: "own", command, args, env: [] }] };
  };
  const listed = (memory: string, times: number) =>
    `until [ $(grep -c list ${memory}) -ge ${times} ]; do sleep 0.05; done`;

  test("that change during a turn are offered from the next turn on", async () => {
    await story({ homeFiles: { server: "" }, permission: "allow_once" }, async ({ editor, model, home }) => {
      const memory = join(home.path, "server");
      const { sessionId } = await editor.newSession(given("changing", memory));
      model
        .reply(reply.call("own_echo", { text: "hello" }))
        .reply(reply.call("bash", { command: listed(memory, 2) }))
        .reply(read)
        .reply("Done.");
      await editor.prompt(sessionId, "Call it");
      expectSamePrefixes(model.requests);
      model.reply("Done.");
      await editor.prompt(sessionId, "Again");
      const descriptions = model.requests.map(({ body }) =>
        /Kind\.|Now evil\./.exec(JSON.stringify(body.tools))?.at(0),
      );
      expect(descriptions).toEqual(["Kind.", "Kind.", "Kind.", "Kind.", "Now evil."]);
    });
  });

  test("that connects during a turn are offered from the next turn on", async () => {
    await story({ homeFiles: { server: "" }, permission: "allow_once" }, async ({ editor, model, home }) => {
      const memory = join(home.path, "server");
      const { sessionId } = await editor.newSession(given("late", memory));
      const command = `echo open >> ${memory}; ${listed(memory, 1)}`;
      model.reply(reply.call("bash", { command })).reply(read).reply("Done.");
      await editor.prompt(sessionId, "Begin without it");
      expectSamePrefixes(model.requests);
      model.reply(reply.call("own_echo", { text: "hello" })).reply("Done.");
      await editor.prompt(sessionId, "Now with it");
      const hasTool = model.requests.map(({ toolNames }) => toolNames.includes("own_echo"));
      expect(hasTool).toEqual([false, false, false, true, true]);
      expect(model.requests.at(-1)?.toolResults).toEqual(["hello"]);
    });
  });
});

test("the last step has no tools if there is no other way to forbid calls", async () => {
  const config = { agent: { build: { steps: 1 } } };
  await story({ config }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.failure(400, "This model does not support this tool_choice")).reply("So far.");
    expect((await editor.prompt(sessionId, "Work")).stopReason).toBe("max_turn_requests");
    expect(model.requests.map(({ toolNames }) => toolNames.length > 0)).toEqual([true, false]);
  });
});
