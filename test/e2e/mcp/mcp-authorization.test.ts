import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { CreateElicitationRequest, SessionUpdate } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { plain, withElicitation, type ClientKind } from "../../support/editor/clients.ts";
import {
  type OAuthFaults,
  type OAuthServer,
  startOAuthServer,
  visit,
} from "../../support/mcp/mcp-oauth-server.ts";
import * as reply from "../../support/model/reply.ts";
import { authorizeInTerminal } from "../../support/program/running-command.ts";
import { type StoryContext, story } from "../../support/editor/story.ts";
import { agentText } from "../../support/transcript.ts";

const tool = "notes_count_notes";

/** An editor that opens addresses. `go` acts as the user on the page. */
function withUrls(go: (request: CreateElicitationRequest) => "accept" | "decline" | "cancel"): ClientKind {
  return {
    ...withElicitation(async (request) => ({ action: go(request) })),
    capabilities: { elicitation: { url: {} }, session: { notices: {} } },
  };
}

function visitAddress(request: CreateElicitationRequest): void {
  if (!("url" in request)) throw new Error("no address was given");
  void visit(String(request.url));
}

async function play(
  client: ClientKind,
  act: (context: StoryContext & { server: OAuthServer }) => Promise<void>,
  faults: OAuthFaults = {},
): Promise<void> {
  await using server = await startOAuthServer(faults);
  const mcp = { notes: { type: "remote", url: server.url, timeout: 5_000 } };
  const env = { FAIRLEAD_LOG: "debug" };
  await story({ client, env, config: { mcp }, permission: "allow_once" }, (context) =>
    act({ ...context, server }),
  );
}

/**
 * Runs a turn in which the model calls a tool that counts notes. Returns the tool result that the model
 * received.
 */
async function count({ editor, model }: StoryContext, sessionId: string) {
  model.reply(reply.call(tool, {})).reply("Counted.");
  await editor.prompt(sessionId, "How many notes are there?");
  return model.requests.at(-1)?.toolResults.at(-1);
}

const isNotice = (words: string) => (update: SessionUpdate) => JSON.stringify(update).includes(words);
const lines = ({ editor }: StoryContext) => editor.wire.entries.map(({ line }) => line).join("\n");

describe("an editor that opens addresses", () => {
  test("opens the authorization page for the user, then offers the server's tools", async () => {
    const requested: CreateElicitationRequest[] = [];
    const client = withUrls((request) => {
      requested.push(request);
      visitAddress(request);
      return "accept";
    });
    await play(client, async (context) => {
      const { editor, model, server } = context;
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hello");
      await editor.waitFor(sessionId, isNotice('The MCP server \\"notes\\" is authorized; it is connected.'));
      expect(requested).toEqual([
        {
          mode: "url",
          sessionId,
          message: 'The MCP server "notes" asks: give Fairlead access in your browser.',
          url: expect.stringMatching(new RegExp(`^${server.origin}/authorize\\?response_type=code&`)),
          elicitationId: expect.stringMatching(/^authorization-/),
        },
      ]);
      const isComplete = (line: string) => line.includes('"elicitation/complete"');
      await editor.waitForEntry(({ line }) => isComplete(line), "the end of the elicitation");
      expect(await count(context, sessionId)).toBe("There are 42 notes.");
      server.expireTokens();
      expect(await count(context, sessionId)).toBe("There are 42 notes.");
      expect([requested.length, server.count("/token")]).toEqual([1, 2]);
      const log = await readFile(join(context.home.path, ".local/state/fairlead/fairlead.log"), "utf8").catch(
        () => "",
      );
      const read = JSON.stringify(model.requests.map(({ messages }) => messages));
      expect(`${lines(context)}${log}${read}`).not.toMatch(/access-[0-9a-f]|refresh-[0-9a-f]/);
    });
  });

  test("asks once; a user who declined can authorize later by command", async () => {
    const requested: string[] = [];
    let action: "accept" | "decline" | "cancel" = "decline";
    const client = withUrls((request) => {
      requested.push(request.mode);
      if (action === "accept") visitAddress(request);
      return action;
    });
    await play(client, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.").reply("Hello again.");
      await editor.prompt(sessionId, "Hello");
      await editor.waitFor(sessionId, isNotice("When you want to: /mcp auth notes"));
      await editor.prompt(sessionId, "Hello again");
      expect(requested).toHaveLength(1);
      action = "cancel";
      await editor.prompt(sessionId, "/mcp auth notes");
      expect(agentText(editor.updates(sessionId))).toContain("was not authorized. When you want to");
      action = "accept";
      await editor.prompt(sessionId, "/mcp auth notes");
      expect(agentText(editor.updates(sessionId))).toContain('"notes" is authorized; it is connected.');
      await editor.prompt(sessionId, "/mcp");
      expect(agentText(editor.updates(sessionId))).toContain("- **notes**: connected; 1 tool");
    });
  });

  test("withdraws the question when its turn is cancelled or nobody answers", async () => {
    const { promise: requested, resolve } = Promise.withResolvers<void>();
    const client: ClientKind = {
      ...withUrls(() => "accept"),
      elicit: () => {
        resolve();
        return new Promise(() => {});
      },
    };
    await play(client, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hello");
      await requested;
      const turn = editor.prompt(sessionId, "/mcp auth notes");
      const isSecond = ({ line }: { line: string }) => /"id":1,"method":"elicitation.create"/.test(line);
      await editor.waitForEntry(isSecond, "the second question");
      await editor.cancel(sessionId);
      expect((await turn).stopReason).toBe("cancelled");
      editor.allow("answer");
    });
  });
});

const atHello = ["initialize", "notifications/initialized"];
const atLists = [...atHello, "tools/list"];

describe.each([
  ["at tools/list", atHello],
  ["at the first call", atLists],
])("a server that asks for a token %s", (when, open) => {
  const openBefore = when === "at the first call";

  test("is authorized through an editor that opens addresses", async () => {
    const requested: string[] = [];
    const client = withUrls((request) => {
      requested.push(request.mode);
      visitAddress(request);
      return "accept";
    });
    await play(
      client,
      async (context) => {
        const { editor, model } = context;
        const { sessionId } = await editor.newSession();
        if (openBefore) expect(JSON.stringify(await count(context, sessionId))).toContain("/mcp auth notes");
        else {
          model.reply("Hello.");
          await editor.prompt(sessionId, "Hello");
        }
        await editor.waitFor(
          sessionId,
          isNotice('The MCP server \\"notes\\" is authorized; it is connected.'),
        );
        expect(await count(context, sessionId)).toBe("There are 42 notes.");
        expect(requested).toEqual(["url"]);
      },
      { open },
    );
  });

  test("is reported with its command if the editor cannot open addresses", async () => {
    await play(
      plain(),
      async (context) => {
        const { editor, model } = context;
        const { sessionId } = await editor.newSession();
        if (openBefore) expect(JSON.stringify(await count(context, sessionId))).toContain("/mcp auth notes");
        else {
          model.reply("Hello.");
          await editor.prompt(sessionId, "Hello");
        }
        const notice = editor
          .updates(sessionId, "agent_thought_chunk")
          .filter(isNotice("needs authorization. Enter"));
        expect(JSON.stringify(notice)).toContain("/mcp auth notes");
        await editor.prompt(sessionId, "/mcp");
        expect(agentText(editor.updates(sessionId))).toContain("needs authorization: `/mcp auth notes`");
      },
      { open },
    );
  });

  test("is authorized by /mcp auth before the first prompt, and in a terminal", async () => {
    await play(
      plain(),
      async (context) => {
        const { editor, server } = context;
        const { sessionId } = await editor.newSession();
        await editor.prompt(sessionId, "/mcp auth notes");
        const address = /http\S+\/authorize\?\S+/.exec(agentText(editor.updates(sessionId)))?.[0] ?? "";
        const before = server.count("/mcp");
        expect(await visit(address)).toBe(200);
        await server.bell.until(() => server.count("/mcp") > before || undefined, "the connection");
        expect(await count(context, sessionId)).toBe("There are 42 notes.");
        const authorized = server.count("/token");
        await authorizeInTerminal(context.home.path, "notes");
        expect(server.count("/token")).toBe(authorized + 1);
      },
      { open },
    );
  });
});

describe("an editor that opens no addresses", () => {
  test("is reported once, and /mcp auth shows the address", async () => {
    await play(plain(), async (context) => {
      const { editor, model, server } = context;
      const { sessionId } = await editor.newSession();
      model.reply("Hello.").reply("Hello again.");
      await editor.prompt(sessionId, "Hello");
      await editor.prompt(sessionId, "Hello again");
      const notice = editor
        .updates(sessionId, "agent_thought_chunk")
        .filter(isNotice("needs authorization. Enter"));
      expect(notice).toHaveLength(1);
      expect(JSON.stringify(notice)).toContain("fairlead mcp auth notes");
      await editor.prompt(sessionId, "/mcp auth notes");
      const address = /http\S+\/authorize\?\S+/.exec(agentText(editor.updates(sessionId)))?.[0] ?? "";
      const before = server.count("/mcp");
      expect(await visit(address)).toBe(200);
      await server.bell.until(() => server.count("/mcp") > before || undefined, "the connection");
      expect(await count(context, sessionId)).toBe("There are 42 notes.");
      const later = editor
        .updates(sessionId, "agent_thought_chunk")
        .filter(isNotice("is authorized; it is connected"));
      expect(later).toHaveLength(1);
    });
  });

  test("uses a terminal's authorization, reports when it expires, and reconnects", async () => {
    await play(plain(), async (context) => {
      const { editor, model, server, home } = context;
      await authorizeInTerminal(home.path, "notes");
      const { sessionId } = await editor.newSession();
      expect(await count(context, sessionId)).toBe("There are 42 notes.");
      server.faults.refresh = "refused";
      server.expireTokens();
      expect(JSON.stringify(await count(context, sessionId))).toContain("requires authorization by the user");
      await editor.prompt(sessionId, "/mcp");
      expect(agentText(editor.updates(sessionId))).toContain("needs authorization: `/mcp auth notes`");
      server.faults.refresh = undefined;
      await authorizeInTerminal(home.path, "notes");
      await editor.prompt(sessionId, "/mcp reconnect notes");
      expect(agentText(editor.updates(sessionId))).toContain("- **notes**: connected; 1 tool");
      expect(model.requests.length).toBeGreaterThan(0);
    });
  });

  test("shows why an authorization failed, and that a server does not exist", async () => {
    await play(
      plain(),
      async ({ editor }) => {
        const { sessionId } = await editor.newSession();
        await editor.prompt(sessionId, "/mcp auth notes");
        await editor.prompt(sessionId, "/mcp auth nots");
        const replyText = agentText(editor.updates(sessionId));
        expect(replyText).toContain('"notes" was not authorized: 127.0.0.1');
        expect(replyText).toContain('MCP server "nots" not found. Servers: notes.');
      },
      { registration: "refused" },
    );
  });
});
