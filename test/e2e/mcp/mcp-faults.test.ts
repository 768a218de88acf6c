import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { faulty } from "../../support/mcp/mcp.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { type StoryContext, storiesOfOneAgent } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { agentText, thoughtText } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

type Server = ReturnType<typeof faulty> & { timeout?: number };

/** A session with one faulty server, whose tools may be called. */
async function withServer(
  server: Server,
  play: (context: StoryContext & { sessionId: string }) => Promise<void>,
) {
  const config = { mcp: { bad: server }, permission: { "bad_*": "allow" } };
  await story({ config }, async (context) => {
    const { sessionId } = await context.editor.newSession();
    await play({ ...context, sessionId });
  });
}

/** Plays one turn in which the model makes the call. Returns the result that the model receives. */
async function callOnce({ editor, model, sessionId }: StoryContext & { sessionId: string }, name: string) {
  const number = model.requests.length;
  model.reply(reply.call(name, { text: "hello" })).reply("Done.");
  const { stopReason } = await editor.prompt(sessionId, "Go");
  expect(stopReason).toBe("end_turn");
  return model.requests[number + 1]?.toolResults;
}

const shown = ({ editor, sessionId }: StoryContext & { sessionId: string }) =>
  thoughtText(editor.updates(sessionId));

describe("a server that never answers", () => {
  test("is named once, and delays neither the session nor, for long, the first prompt", async () => {
    await story({ config: { mcp: { bad: faulty("silent") } } }, async ({ editor, model }) => {
      const start = performance.now();
      const { sessionId } = await editor.newSession();
      expect(performance.now() - start).toBeLessThan(3_000);
      model.reply("One.").reply("Two.");
      const requested = performance.now();
      await editor.prompt(sessionId, "Hi");
      expect(performance.now() - requested).toBeLessThan(7_000);
      await editor.prompt(sessionId, "/mcp");
      expect(agentText(editor.updates(sessionId))).toContain("**bad**: connecting");
      const second = performance.now();
      await editor.prompt(sessionId, "Again");
      expect(performance.now() - second).toBeLessThan(2_000);
      const late = 'The MCP server "bad" is still starting. Its tools are added when it has.';
      expect(thoughtText(editor.updates(sessionId)).split(late)).toHaveLength(2);
    });
  });

  test("does not delay a turn after the user cancels", async () => {
    await story({ config: { mcp: { bad: faulty("silent") } } }, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      const turn = editor.prompt(sessionId, "Hi");
      const start = performance.now();
      await editor.cancel(sessionId);
      expect((await turn).stopReason).toBe("cancelled");
      expect(performance.now() - start).toBeLessThan(2_500);
    });
  });

  test("fails on timeout, which is reported once", async () => {
    await withServer({ ...faulty("silent"), timeout: 300 }, async (context) => {
      const { editor, model, sessionId } = context;
      model.reply("One.").reply("Two.");
      await editor.prompt(sessionId, "Hi");
      await editor.prompt(sessionId, "Again");
      const failed = 'The MCP server "bad" failed: it did not answer within 0.3 s.';
      expect(shown(context).split(failed)).toHaveLength(2);
    });
  });
});

describe("a server that cannot be started", () => {
  const missing = resolve("/not/there");
  test.each([
    [
      "is not there",
      { type: "local", command: ["no-such-program"] },
      'program not found: "no-such-program"; install it or use its full path',
    ],
    [
      "has no folder",
      { ...faulty("none"), cwd: missing },
      `its working directory ${missing} is not a folder`,
    ],
    [
      "repeats its input",
      faulty("terminal"),
      "its command runs in a terminal, which repeats its input and cuts long lines. Start it without one: with ssh, use -T instead of -t",
    ],
    ["dies", faulty("dies-at-start"), "it ended before it answered; it wrote: Cannot find the database."],
    [
      "is nowhere",
      { type: "remote", url: "nowhere" },
      '"nowhere" is not a URL; write a full one: https://host/path',
    ],
    ["refuses", { type: "remote", url: "http://127.0.0.1:9/mcp" }, "fetch failed: bad port"],
  ])("because it %s is reported once with the reason, and the turn continues", async (_, server, reason) => {
    await story({ config: { mcp: { bad: server } } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("One.").reply("Two.");
      await editor.prompt(sessionId, "Hi");
      await editor.prompt(sessionId, "Again");
      const notice = thoughtText(editor.updates(sessionId));
      expect(notice.split(`The MCP server "bad" failed: ${reason}.`)).toHaveLength(2);
      expect(agentText(editor.updates(sessionId))).toBe("One.Two.");
    });
  });
});

describe("output of a server", () => {
  test.each(["noise", "wrong-ids", "flood", "restless", "endless-list", "terminal-without-echo"])(
    "is ignored between its messages: %s",
    async (fault) => {
      await withServer(faulty(fault), async (context) => {
        expect(await callOnce(context, "bad_echo")).toEqual(["hello"]);
      });
    },
  );

  test("that is too long in one message fails the call that waits for it", async () => {
    await withServer(faulty("giant-answer"), async (context) => {
      const notice = "it answered with more than 16 MiB in one message, which was dropped";
      expect(await callOnce(context, "bad_echo")).toEqual([expect.stringContaining(notice)]);
      expect(await callOnce(context, "bad_fail")).toEqual([
        expect.stringMatching(/^It did not work\.\n\nThe error is from the MCP server\. Fix/),
      ]);
    });
  });

  test("is truncated for the model, and stored in a file", async () => {
    await withServer(faulty("long-answer"), async (context) => {
      const [read = ""] = (await callOnce(context, "bad_echo")) ?? [];
      expect(read.length).toBeLessThan(60_000);
      const [, path = ""] = /The whole is in (\S+)\./.exec(read) ?? [];
      expect(await readFile(path, "utf8")).toBe("a line of text\n".repeat(20_000));
    });
  });

  test("that is neither an image nor other content is described instead", async () => {
    await withServer(faulty("odd-answer"), async (context) => {
      expect(await callOnce(context, "bad_echo")).toEqual([
        "[image/png: 10 bytes of image/png, left out: it is damaged, or of a kind that cannot be shown.]\n\n" +
          "[content of a kind that is not known here]\n\n[content of a kind that is not known here]\n\nhello",
      ]);
    });
  });

  test("that is a large image is scaled down like others", async () => {
    await withServer(faulty("large-picture"), async (context) => {
      await callOnce(context, "bad_echo");
      const result = context.model.requests.at(-1)?.messages.find(({ role }) => role === "tool");
      expect(result?.content).toBe("[image/png is attached, scaled down from 3000 × 10 to 2000 × 7 pixels]");
    });
  });

  test("that is not a valid response is an error of the call", async () => {
    await withServer(faulty("no-answer"), async (context) => {
      expect(await callOnce(context, "bad_echo")).toEqual([
        expect.stringMatching(
          /^The MCP server bad refused the call: its answer does not follow the protocol\n\nThe error is/,
        ),
      ]);
    });
  });
});

describe("tools of a server", () => {
  test("are checked one by one: invalid ones are omitted with a note", async () => {
    await withServer(faulty("bad-schemas"), async (context) => {
      expect(await callOnce(context, "bad_good")).toEqual(["hello"]);
      const { model, editor, sessionId } = context;
      expect(model.requests[0]?.toolNames.filter((name) => name.startsWith("bad"))).toEqual(["bad_good"]);
      expect(shown(context)).toContain(
        'MCP server "bad": tools left out: no-object (its schema does not describe',
      );
      await editor.prompt(sessionId, "/mcp bad");
      expect(agentText(editor.updates(sessionId))).toContain("and 5 more");
    });
  });

  test("tens of thousands of levels deep affect that tool only", async () => {
    await withServer(faulty("abyss"), async (context) => {
      expect(await callOnce(context, "bad_echo")).toEqual(["hello"]);
      const { toolNames } = context.model.requests[0] ?? { toolNames: [] };
      expect(toolNames.filter((name) => name.startsWith("bad"))).toEqual(["bad_echo"]);
      expect(shown(context)).toContain("tools left out: abyss (its schema is nested more than 40 levels)");
    });
  });

  test("in thousands are limited, and the user sees a notice", async () => {
    await withServer(faulty("thousands"), async (context) => {
      expect(await callOnce(context, "bad_tool-499")).toEqual(["hello"]);
      const { toolNames = [], system = "" } = context.model.requests[0] ?? {};
      expect(toolNames.filter((name) => name.startsWith("bad"))).toEqual([]);
      expect(system).toContain("- bad: bad_tool-{0, 1, 10, ");
      expect(shown(context)).toContain("it offers more than 500 tools; the first 500 are known");
    });
  });

  test("with conflicting names get different names", async () => {
    await withServer(faulty("clashes"), async (context) => {
      const { editor, model, sessionId } = context;
      model.reply("Hi.");
      await editor.prompt(sessionId, "Hi");
      const names = model.requests[0]?.toolNames.filter((name) => name.startsWith("bad")) ?? [];
      expect(names).toHaveLength(4);
      expect(new Set(names).size).toBe(4);
      for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    });
  });

  test("are listed again when the server reports a change", async () => {
    await using place = await temporaryFolder({ memory: "" });
    const config = { mcp: { bad: faulty("changing", join(place.path, "memory")) } };
    await story({ config, permission: "allow_always" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const kind = (request: ModelRequest) => JSON.stringify(request.body.tools).includes("Kind.");
      const call = async () => {
        model.reply(reply.call("bad_echo", { text: "hello" }));
        await editor.prompt(sessionId, "Call it");
      };
      model.otherwise("Done.");
      // The call changes the list.
      await call();
      while (model.requests.every(kind)) await editor.prompt(sessionId, "Wait");
      expect(editor.permissionRequests).toHaveLength(1);
      await call();
      expect(editor.permissionRequests).toHaveLength(2);
    });
  });
});

describe("a call", () => {
  test("shows its progress, times out without a response, and notifies the server", async () => {
    await using place = await temporaryFolder({ memory: "" });
    const file = join(place.path, "memory");
    await withServer({ ...faulty("none", file), timeout: 1_000 }, async (context) => {
      const notice =
        "The MCP server bad did not answer within 1 s, so the call was stopped. It is unknown whether it had an effect. Try something smaller, or continue without it.";
      expect(await callOnce(context, "bad_slow")).toEqual([notice]);
      const { editor, sessionId } = context;
      expect(JSON.stringify(editor.updates(sessionId, "tool_call_update"))).toContain("1 of 2: half");
      await until(async () => (await readFile(file, "utf8")).includes("cancelled"));
    });
  });

  test("that is cancelled ends at once, and the server is notified", async () => {
    await using place = await temporaryFolder({ memory: "" });
    const file = join(place.path, "memory");
    await withServer(faulty("none", file), async ({ editor, model, sessionId }) => {
      model.reply(reply.call("bad_slow", {}));
      const turn = editor.prompt(sessionId, "Go");
      await until(async () => (await readFile(file, "utf8")).includes("call slow"));
      const start = performance.now();
      await editor.cancel(sessionId);
      expect((await turn).stopReason).toBe("cancelled");
      expect(performance.now() - start).toBeLessThan(2_000);
      await until(async () => (await readFile(file, "utf8")).includes("cancelled"));
    });
  });

  test("runs again on a new server if the first one crashes", async () => {
    await using place = await temporaryFolder({ memory: "" });
    const file = join(place.path, "memory");
    await withServer(faulty("dies-in-call", file), async (context) => {
      expect(await callOnce(context, "bad_echo")).toEqual(["hello"]);
      const words = (await readFile(file, "utf8")).split("\n").map((line) => line.split(" ")[0]);
      expect(words).toEqual(["start", "call", "start", "call", ""]);
    });
  });

  test("fails if the server crashes twice, and the next call restarts the server", async () => {
    await withServer(faulty("always-dies-in-call"), async (context) => {
      const lost =
        "The MCP server bad lost its connection during the call and again during the retry: its program ended.";
      expect(await callOnce(context, "bad_echo")).toEqual([expect.stringContaining(lost)]);
      expect(await callOnce(context, "bad_fail")).toEqual([
        expect.stringMatching(/^It did not work\.\n\nThe error is from the MCP server\. Fix/),
      ]);
    });
  });
});

/** Files have no change event here. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 5_000; performance.now() < end; await delay(25)) {
    if (await isSo()) return;
  }
  throw new Error("what was waited for did not happen");
}
