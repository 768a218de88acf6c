import { describe, expect, test } from "vitest";
import { everything, faulty, waitForEverything } from "../../support/mcp/mcp.ts";
import { lacksWatchdog } from "../../support/platform/platform.ts";
import { findDescendants, findLeftoversWith } from "../../support/program/processes.ts";
import * as reply from "../../support/model/reply.ts";
import type { Editor } from "../../support/editor/editor.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, thoughtText } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const permission = { "bad_*": "allow", "own_*": "allow" };

/** A server as the editor configures it. */
function given(name: string, { command: [command = "", ...args] }: { command: string[] }) {
  return { name, command, args, env: [{ name: "GIVEN", value: "on purpose" }] };
}

/** Returns how many server processes of an agent run. */
async function serversOf({ pid }: Editor): Promise<number> {
  const running = await findDescendants(pid);
  return running.filter(({ command }) => command.includes("-mcp-") || command.includes("server-")).length;
}

/** Processes of the correct server; the other one is retried again and again. */
async function ownServers({ pid }: Editor): Promise<number[]> {
  const running = await findDescendants(pid);
  return running.filter(({ command }) => command.endsWith(" none")).map(({ pid }) => pid);
}

describe("servers and sessions", () => {
  test("20 sessions of one configuration share one server, which ends with the last", async () => {
    await story({ config: { mcp: { bad: faulty("none") }, permission } }, async ({ editor, model }) => {
      model.otherwise(({ toolResults }) =>
        toolResults.length > 0 ? "Done." : reply.call("bad_echo", { text: "hello" }),
      );
      const ids: string[] = [];
      for (let number = 0; number < 20; number++) {
        const { sessionId } = await editor.newSession();
        ids.push(sessionId);
        if (number % 5 === 0) await editor.prompt(sessionId, "Go");
        expect(await serversOf(editor)).toBe(1);
      }
      const results = model.requests.flatMap(({ toolResults }) => toolResults);
      expect(results).toEqual(["hello", "hello", "hello", "hello"]);
      const last = ids.pop() ?? "";
      for (const id of ids) await editor.closeSession(id);
      expect(await serversOf(editor)).toBe(1);
      await editor.prompt(last, "Go");
      await editor.closeSession(last);
      await gone(() => serversOf(editor));
    });
  });

  test("a session of another folder, or with other settings, has its own", async () => {
    await story({ config: { mcp: { bad: faulty("none") } } }, async ({ editor, model, home }) => {
      model.otherwise("Hi.");
      const one = await editor.newSession();
      const two = await editor.newSession({ cwd: home.path });
      const three = await editor.newSession({ mcpServers: [given("bad", faulty("noise"))] });
      for (const { sessionId } of [one, two, three]) await editor.prompt(sessionId, "Hi");
      expect(await serversOf(editor)).toBe(3);
    });
  });

  test("a load replaces the earlier list of servers", async () => {
    await story({ config: { permission } }, async ({ editor, model }) => {
      model.otherwise("Hi.");
      const { sessionId } = await editor.newSession({ mcpServers: [given("bad", faulty("none"))] });
      await editor.prompt(sessionId, "Hi");
      expect(model.requests[0]?.toolNames).toContain("bad_echo");
      await editor.load(sessionId, { mcpServers: [given("own", faulty("none"))] });
      await editor.prompt(sessionId, "Hi");
      expect(model.requests[1]?.toolNames).toContain("own_echo");
      expect(model.requests[1]?.toolNames).not.toContain("bad_echo");
      expect(await serversOf(editor)).toBe(1);
    });
  });

  test("configuration changes apply from the next prompt on", async () => {
    await story({ config: { mcp: { bad: faulty("none") } } }, async ({ editor, model, home }) => {
      model.otherwise("Hi.");
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "Hi");
      const mcp = { bad: { enabled: false }, own: faulty("none") };
      await home.write({ ".fairlead/fairlead.json": JSON.stringify({ mcp }) });
      await editor.prompt(sessionId, "Hi");
      expect(model.requests[1]?.toolNames).toContain("own_echo");
      expect(model.requests[1]?.toolNames).not.toContain("bad_echo");
      await editor.prompt(sessionId, "/mcp");
      const text = agentText(editor.updates(sessionId));
      expect(text).toContain("**own**: connected; 3 tools");
      expect(text).toContain("**bad**: disabled in the configuration");
      expect(await serversOf(editor)).toBe(1);
    });
  });

  test("starts a project's server only after consent, and in that same turn", async () => {
    const files = { "fairlead.json": JSON.stringify({ mcp: { own: faulty("none") } }) };
    await story({ files, permission: "reject_once" }, async ({ editor, model }) => {
      model.otherwise("Hi.");
      const first = await editor.newSession();
      await editor.prompt(first.sessionId, "Hi");
      expect(await serversOf(editor)).toBe(0);
      expect(model.requests[0]?.toolNames).not.toContain("own_echo");
      editor.permission = "allow_once";
      const second = await editor.newSession();
      await editor.prompt(second.sessionId, "Hi");
      expect(model.requests[1]?.toolNames).toContain("own_echo");
    });
  });
});

describe("a server's environment", () => {
  test("contains configured variables, and no key", async () => {
    const config = { permission: { "own_*": "allow" } };
    const env = { OPENAI_API_KEY: "sk-not-for-servers-1234", HARMLESS: "passed on" };
    await story({ config, env }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession({ mcpServers: [given("own", everything())] });
      await waitForEverything(editor, sessionId, "own");
      model.reply(reply.call("own_get-env", {})).reply("Done.");
      await editor.prompt(sessionId, "Go");
      const [read = ""] = model.requests[1]?.toolResults ?? [];
      expect(read).toContain('"GIVEN": "on purpose"');
      expect(read).toContain('"HARMLESS": "passed on"');
      expect(read).not.toContain("sk-not-for");
      expect(read).not.toContain("test-key");
    });
  });
});

describe("at the program's exit", () => {
  test.skipIf(lacksWatchdog).each(["SIGKILL", "SIGTERM", "SIGINT"] as const)(
    "by %s no process of a server remains, whatever it ignores",
    async (signal) => {
      await story({ config: { mcp: { bad: faulty("stays") }, permission } }, async (context) => {
        const { editor, model, home } = context;
        const { sessionId } = await editor.newSession();
        model.reply("Hi.");
        await editor.prompt(sessionId, "Hi");
        expect((await findDescendants(editor.pid)).length).toBeGreaterThanOrEqual(2);
        await editor.kill(signal);
        expect(await findLeftoversWith("HOME", home.path)).toEqual([]);
      });
    },
  );

  test("no server process remains when the editor disconnects", async () => {
    await story({ config: { mcp: { bad: faulty("stays") } } }, async ({ editor, model, home }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hi.");
      await editor.prompt(sessionId, "Hi");
      await editor.close();
      expect(await findLeftoversWith("HOME", home.path)).toEqual([]);
    });
  });
});

describe("/mcp", () => {
  test("shows servers and their tools, and reconnects them", async () => {
    const mcp = { bad: faulty("dies-at-start"), own: faulty("none") };
    await story({ config: { mcp } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hi.");
      await editor.prompt(sessionId, "Hi");
      const replyText = async (text: string) => {
        const before = agentText(editor.updates(sessionId)).length;
        await editor.prompt(sessionId, text);
        return agentText(editor.updates(sessionId)).slice(before);
      };
      let all = "";
      const isConnecting = async () => (all = await replyText("/mcp")).includes(": connecting");
      await expect.poll(isConnecting, { timeout: 20_000 }).toBe(false);
      expect(all).toContain(
        "**bad**: failed: it ended before it answered; it wrote: Cannot find the database.",
      );
      expect(all).toContain("**own**: connected; 3 tools");
      expect(await replyText("/mcp own")).toContain("- `echo`: The tool echo.");
      expect(await replyText("/mcp nobody")).toBe('MCP server "nobody" not found. Servers: bad, own.');
      const before = await ownServers(editor);
      expect(await replyText("/mcp reconnect own")).toBe("- **own**: connected; 3 tools");
      const after = await ownServers(editor);
      expect([before.length, after.length]).toEqual([1, 1]);
      expect(after).not.toEqual(before);
      const failed = 'The MCP server "bad" failed';
      expect(thoughtText(editor.updates(sessionId)).split(failed)).toHaveLength(2);
    });
  });

  test("ends with a cancel if it waits for a server that does not respond", async () => {
    await story({ config: { mcp: { bad: faulty("silent") } } }, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      const waiting = editor.prompt(sessionId, "/mcp reconnect bad");
      await expect.poll(() => serversOf(editor)).toBe(1);
      const begin = performance.now();
      await editor.cancel(sessionId);
      expect((await waiting).stopReason).toBe("cancelled");
      expect(performance.now() - begin).toBeLessThan(4_000);
    });
  });

  test("reports that there are no servers", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "/mcp");
      expect(agentText(editor.updates(sessionId))).toContain("No MCP servers.");
    });
  });
});

/** The end of a process has no event here. */
async function gone(count: () => Promise<number>): Promise<void> {
  for (const end = performance.now() + 5_000; performance.now() < end;) {
    if ((await count()) === 0) return;
  }
  throw new Error("the servers are still there");
}
