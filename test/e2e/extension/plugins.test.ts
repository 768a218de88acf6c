import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { faulty } from "../../support/mcp/mcp.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { waitForFile } from "../../support/file-watch.ts";
import { agentText, thoughtText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

interface Heard {
  type: string;
  properties: Record<string, unknown>;
}

const goOn = { experimental: { continue_loop_on_deny: true } };

describe("plugins", () => {
  test("receive and change the data of their hooks, in order", async () => {
    const first = `
import type { Plugin } from "@opencode-ai/plugin";
import { tool } from "@opencode-ai/plugin";
import { appendFileSync } from "node:fs";
export const First: Plugin = async ({ directory, worktree, project, client }) => {
  console.log("this must not reach the protocol");
  await client.app.log({ body: { service: "first", level: "info", message: "hello" } });
  const heard = directory + "/heard";
  return {
    event: async ({ event }) => appendFileSync(heard, event.type + "\\n"),
    "chat.message": async (input, output) => {
      output.parts[0].text += " (in short)";
      output.parts.push({ type: "text", text: "From " + input.agent + "." });
      output.message.system = "Be brief.";
    },
    "chat.params": async (input, output) => {
      output.temperature = 0.25;
      output.options.seed = input.model.modelID.length;
    },
    "tool.execute.before": async (input, output) => {
      if (input.tool === "bash") output.args.command += " one";
    },
    "tool.execute.after": async (input, output) => {
      output.output += "\\nafter " + input.tool + " " + input.args.command;
      output.title = "Seen";
    },
    tool: { shout: tool({ description: "Shouts.", args: { word: tool.schema.string() }, execute: async ({ word }) => word.toUpperCase() }) },
  };
};
`;
    const second = `
module.exports = async () => ({
  "tool.execute.before": (input, output) => { if (input.tool === "bash") output.args.command += " two"; },
});
`;
    const homeFiles = {
      ".config/opencode/plugin/first.ts": first,
      ".config/fairlead/plugins/second.js": second,
    };
    const config = { permission: { shout: "allow" } };
    await story({ homeFiles, config }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo" })).reply(reply.call("shout", { word: "yes" }));
      model.reply("Done.");
      await editor.prompt(sessionId, "Go");
      const [requested] = model.requests;
      expect(requested?.userText).toContain("Go (in short)");
      expect(requested?.userText).toContain("From build.");
      expect(JSON.stringify(requested?.body.messages)).toContain("Be brief.");
      expect(requested?.body).toMatchObject({ seed: 8 });
      expect(model.requests[1]?.toolResults.at(-1)).toMatch(/^one two\n[^]*after bash echo one two$/);
      expect(model.requests[2]?.toolResults.at(-1)).toBe("YES\nafter shout undefined");
      expect(toolCalls(editor.updates(sessionId)).map(({ title, rawInput }) => [title, rawInput])).toEqual([
        ["Seen", { command: "echo one two" }],
        ["Seen", { word: "yes" }],
      ]);
      const file = join(repository.path, "heard");
      await waitForFile(file, (text) => text.endsWith("session.idle\n"));
      const received = (await readFile(file, "utf8")).trim().split("\n");
      expect(new Set(received)).toEqual(
        new Set([
          "session.created",
          "session.status",
          "message.updated",
          "message.part.updated",
          "session.updated",
          "session.idle",
        ]),
      );
      expect(received.at(-1)).toBe("session.idle");
      expect(thoughtText(editor.updates(sessionId))).toBe("");
    });
  });

  test("receive the events of a session from its first turn to its removal", async () => {
    const listens = `
import { appendFileSync } from "node:fs";
export const Listens = async ({ directory }) => ({
  event: async ({ event }) => appendFileSync(directory + "/events", JSON.stringify(event) + "\\n"),
});
`;
    const homeFiles = { ".config/fairlead/plugin/listens.js": listens };
    const config = { permission: { edit: "ask" } };
    await story({ homeFiles, config, permission: "allow_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.failure(500, "Busy"));
      model.reply(reply.call("write", { filePath: "new.txt", content: "one\n" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      await editor.delete(sessionId);
      const file = join(repository.path, "events");
      await waitForFile(file, (text) => text.includes("session.deleted"));
      const events = (await readFile(file, "utf8"))
        .trim()
        .split("\n")
        .map((line): Heard => JSON.parse(line));
      const of = (type: string) =>
        events.filter((event) => event.type === type).map((event) => event.properties);
      expect(events[0]).toMatchObject({
        type: "session.created",
        properties: { sessionID: sessionId, info: { id: sessionId, directory: repository.path } },
      });
      const statuses = of("session.status").map(({ status }) => status);
      expect(statuses[0]).toEqual({ type: "busy" });
      expect(statuses).toContainEqual(
        expect.objectContaining({ type: "retry", attempt: 1, next: expect.any(Number) }),
      );
      expect(statuses.at(-1)).toEqual({ type: "idle" });
      expect(of("session.updated").at(-1)).toMatchObject({ info: { id: sessionId } });
      const diff = [{ file: join(repository.path, "new.txt"), status: "added", additions: 1, deletions: 0 }];
      expect(of("session.diff")).toEqual([{ sessionID: sessionId, diff }]);
      const [requested] = of("permission.asked");
      expect(requested).toMatchObject({
        sessionID: sessionId,
        permission: "edit",
        patterns: ["new.txt"],
        always: ["new.txt"],
        tool: { callID: expect.any(String) },
        metadata: { tool: "write" },
      });
      expect(of("permission.replied")).toEqual([
        {
          sessionID: sessionId,
          requestID: requested?.["id"],
          callID: requested?.["callID"],
          reply: "once",
        },
      ]);
      expect(of("session.deleted")).toMatchObject([{ info: { id: sessionId } }]);
    });
  });

  test("are notified when an MCP server changes its tools", async () => {
    const listens = `
import { appendFileSync } from "node:fs";
export const Listens = async ({ directory }) => ({
  event: async ({ event }) => {
    if (event.type === "mcp.tools.changed") appendFileSync(directory + "/events", event.properties.server);
  },
});
`;
    const homeFiles = { ".config/fairlead/plugin/listens.js": listens };
    await using place = await temporaryFolder();
    const config = { mcp: { grows: faulty("changing", join(place.path, "memory")) }, permission: "allow" };
    await story({ homeFiles, config }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("grows_echo", { text: "hello" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      await waitForFile(join(repository.path, "events"), (text) => text === "grows");
    });
  });

  test("change the whole system prompt", async () => {
    const changes = `
export const Changes = async () => ({
  "experimental.chat.system.transform": (input, output) => {
    output.system[0] = "You are " + input.model.modelID + ".";
    output.system.push("Say please.", " ");
  },
});
`;
    await story(
      { homeFiles: { ".config/fairlead/plugin/changes.js": changes } },
      async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        model.reply("Done.");
        await editor.prompt(sessionId, "Go");
        const system = JSON.stringify(model.requests[0]?.body.messages);
        expect(system).toContain("You are scripted.");
        expect(system).toContain("Say please.");
        expect(system).not.toContain("You are Fairlead");
      },
    );
  });

  test("are not reloaded when other files change, and one process serves all sessions", async () => {
    const counts = `
let calls = 0;
export const Counts = async () => ({ "tool.execute.after": (_, output) => { output.output += " " + ++calls; } });
`;
    const homeFiles = { ".config/fairlead/plugin/counts.js": counts, ".config/fairlead/plugin/none.js": "" };
    await story({ homeFiles }, async ({ editor, model, home }) => {
      const sessions = [await editor.newSession(), await editor.newSession()];
      for (const { sessionId } of [...sessions, ...sessions]) {
        await home.write({ ".config/fairlead/agents/a.md": `Be ${model.requests.length}.` });
        model.reply(reply.call("bash", { command: "echo call" })).reply("Done.");
        await editor.prompt(sessionId, "Go");
      }
      const results = model.requests.flatMap(({ toolResults }) => toolResults);
      expect(results).toEqual(["call 1", "call 2", "call 3", "call 4"]);
      for (const { sessionId } of sessions) {
        const notice = thoughtText(editor.updates(sessionId));
        expect(notice.match(/none\.js was switched off/g)).toHaveLength(1);
      }
    });
  });

  test("end with the program when it is killed, with the processes they started", async () => {
    const starts = `
import { spawn } from "node:child_process";
export const Starts = async () => { spawn("sleep", ["600"]); return { event: () => {} }; };
`;
    await story({ homeFiles: { ".config/fairlead/plugin/starts.js": starts } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Done.");
      await editor.prompt(sessionId, "Go");
      await editor.kill();
    });
  });

  test("refuse calls with an Error, as guards of OpenCode do", async () => {
    const guard = `
export const Guard = async () => ({
  "tool.execute.before": async (input, output) => {
    if (input.tool === "read" && output.args.filePath.includes(".env")) throw new Error("Do not read .env files");
  },
});
`;
    const files = { ".env.example": "A=1\n", "a.txt": "one\n" };
    await story(
      { homeFiles: { ".config/fairlead/plugin/guard.js": guard }, files },
      async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        model
          .reply(reply.call("read", { filePath: ".env.example" }))
          .reply(reply.call("read", { filePath: "a.txt" }));
        model.reply(reply.call("read", { filePath: ".env.example" })).reply("Done.");
        await editor.prompt(sessionId, "Go");
        const results = model.requests.slice(1).map(({ toolResults }) => toolResults.at(-1));
        expect(results).toEqual([
          expect.stringMatching(
            /^Not run\. The plugin .*guard\.js refused this call: Do not read \.env files$/,
          ),
          expect.stringContaining("one"),
          expect.stringContaining("refused this call"),
        ]);
      },
    );
  });

  test("decide before the user: stricter always, laxer only where auto-approve would", async () => {
    const decides = `
export const Decides = () => ({
  "permission.ask": ({ pattern, metadata }, output) => {
    const text = pattern.join(" ");
    if (text.includes("never")) output.status = "deny";
    else if (text.includes("ask-me")) output.status = "ask";
    else output.status = "allow";
  },
});
`;
    const config = {
      ...goOn,
      permission: { bash: { "*": "allow", "echo asked *": "ask", "echo denied *": "deny" } },
    };
    const homeFiles = { ".config/fairlead/plugin/decides.js": decides };
    await story({ homeFiles, config, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const commands = [
        "echo never",
        "echo ask-me",
        "echo asked 1",
        "echo denied 1",
        "echo x > .git/hooks/pre-push",
      ];
      for (const command of commands) model.reply(reply.call("bash", { command }));
      model.reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual([
        "failed",
        "failed",
        "completed",
        "failed",
        "failed",
      ]);
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
        "echo ask-me",
        "echo x > .git/hooks/pre-push",
      ]);
      expect(model.requests[1]?.toolResults.at(-1)).toMatch(
        /^Not run\. The plugin .*decides\.js forbids bash/,
      );
      await editor.setMode(sessionId, "plan");
      model.reply(reply.call("bash", { command: "node made.js" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(3);
      await editor.prompt(sessionId, "/permissions log");
      expect(agentText(editor.updates(sessionId))).toContain("a plugin");
    });
  });

  test("that throw, hang, exit or return invalid values are disabled; turns continue", async () => {
    const bad = (body: string) => `export const Bad = async () => ({ ${body} });\n`;
    const homeFiles = {
      ".config/fairlead/plugin/a-throws.js": bad('"chat.params": () => { throw new Error("boom"); }'),
      ".config/fairlead/plugin/b-hangs.js": bad('"chat.message": () => new Promise(() => {})'),
      // Never returns, like a loop, but idles.
      ".config/fairlead/plugin/c-loops.js": bad(
        "event: () => { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }",
      ),
      ".config/fairlead/plugin/d-nonsense.js": bad(
        '"tool.execute.after": (_, output) => { output.output = { not: "text" }; }',
      ),
      ".config/fairlead/plugin/e-exits.js": bad('"permission.ask": () => process.exit(7)'),
      ".config/fairlead/plugin/f-bug.js": bad('"tool.execute.before": (i, o) => { o.args.none.there = 1; }'),
      ".config/fairlead/plugin/g-load.js": 'throw new Error("not today");\n',
      ".config/fairlead/plugin/h-null.js": "export const Null = async () => null;\n",
      ".config/fairlead/plugin/i-auth.js":
        "export const Auth = async () => ({ auth: { provider: 'x' }, config: () => {} });\n",
      ".config/fairlead/plugin/j-good.js": bad(
        '"tool.execute.after": (_, output) => { output.output += " (good)"; }',
      ),
    };
    const config = { plugin: ["opencode-not-there@1.0.0", "./nowhere.js"] };
    await story({ homeFiles, config }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo 1" })).reply(reply.call("bash", { command: "echo 2" }));
      model.reply("Done.");
      expect((await editor.prompt(sessionId, "Go")).stopReason).toBe("end_turn");
      model.reply(reply.call("bash", { command: "echo 3" })).reply("Done.");
      expect((await editor.prompt(sessionId, "Again")).stopReason).toBe("end_turn");
      expect(model.requests.at(-1)?.toolResults.at(-1)).toBe("3 (good)");
      const notice = thoughtText(editor.updates(sessionId));
      for (const problem of [
        /a-throws\.js was switched off: chat\.params threw: boom/,
        /b-hangs\.js was switched off: chat\.message took more than 5 seconds/,
        /c-loops\.js was switched off: .*did not respond and was ended/,
        /d-nonsense\.js was switched off: tool\.execute\.after set an invalid value in output\.output/,
        /e-exits\.js was switched off: .*code 7/,
        /f-bug\.js was switched off: tool\.execute\.before threw: /,
        /g-load\.js was switched off: loading it threw: not today/,
        /h-null\.js was switched off: loading it threw: it returned null instead of its hooks/,
        /i-auth\.js has unsupported hooks: config, auth\./,
        /package opencode-not-there is not installed/,
        /file not found: .*nowhere\.js/,
      ])
        expect(notice).toMatch(problem);
      expect(notice).not.toMatch(/j-good\.js was switched off/);
    });
  });

  test("may group their hooks; unknown hooks are reported", async () => {
    const plugin = `
export const Grouped = async () => ({
  permission: { ask: (question, output) => { if (question.pattern.includes("touch made")) output.status = "deny"; } },
  chat: { params: (input, output) => { output.temperature = 0.25; }, nothing: () => {} },
  "tool.execute.after": { bash: "no function" },
});
`;
    const homeFiles = { ".config/fairlead/plugins/grouped.js": plugin };
    await story({ homeFiles }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "touch made" })).reply("It is forbidden.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests[1]?.toolResults).toEqual([
        expect.stringMatching(/^Not run\. The plugin .*grouped\.js forbids /),
      ]);
      expect(model.requests[0]?.body).toMatchObject({ temperature: 0.25 });
      expect(await repository.git("status", "--porcelain")).toBe("");
      expect(thoughtText(editor.updates(sessionId))).toMatch(
        /grouped\.js has unsupported hooks: chat\.nothing, tool\.execute\.after\./,
      );
    });
  });

  test("that write into the channel are disabled, and the program continues", async () => {
    const plugin = `
const forge = (from, to, value) => { for (let id = from; id <= to; id++) process.send({ id, value }); };
// The first that is asked for is to load the first of them.
if (import.meta.url.includes("loads")) forge(1, 1, "7");
export default async () => ({ "tool.execute.before": async () => forge(2, 50, "{no JSON") });
`;
    const homeFiles = {
      ".config/fairlead/plugin/a-loads.js": plugin,
      ".config/fairlead/plugin/b-calls.js": plugin,
    };
    await story({ homeFiles }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo 1" })).reply(reply.call("bash", { command: "echo 2" }));
      model.reply("Done.");
      expect((await editor.prompt(sessionId, "Go")).stopReason).toBe("end_turn");
      const results = model.requests.slice(1).flatMap(({ toolResults }) => toolResults);
      expect(results).toEqual([expect.stringContaining("b-calls.js, which checks each call"), "2"]);
      const notice = thoughtText(editor.updates(sessionId));
      expect(notice).toMatch(/a-loads\.js was switched off: loading it returned an invalid response/);
      expect(notice).toMatch(/b-calls\.js was switched off: .* threw: the response is not valid JSON/);
    });
  });

  test("that send too much are read in part", async () => {
    const refuses = `export default async () => ({
  "tool.execute.before": (i) => { if (i.tool === "read") throw new Error("R".repeat(3_000_000)); },
  "tool.execute.after": (i, o) => { o.title = "T\\n".repeat(300_000); o.metadata = { x: "m".repeat(300_000) }; },
});
`;
    const tools = `import { tool } from "fairlead/plugin";
const small = { description: "Small.", args: {}, execute: async () => "x" };
export const long = tool({ ...small, description: "D".repeat(300_000) });
export const wide = tool({ ...small, args: { a: tool.schema.string().describe("A".repeat(300_000)) } });
export const a$ = tool(small);
export const a_ = tool(small);
`;
    const homeFiles = {
      ".config/fairlead/plugin/refuses.js": refuses,
      ".config/fairlead/tool/of.js": tools,
    };
    await story({ homeFiles, files: { "a.txt": "a" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("read", { filePath: "a.txt" })).reply(reply.call("bash", { command: "echo 2" }));
      model.reply("Done.");
      await editor.prompt(sessionId, "Go");
      const [first, ...later] = model.requests;
      expect(first?.toolNames.filter((name) => name.startsWith("of_"))).toEqual(["of_a_"]);
      const [refused = "", ran] = later.flatMap(({ toolResults }) => toolResults);
      expect(refused).toMatch(/refuses\.js refused this call: R{2000}… \(2998000 characters more\)$/);
      expect(ran).toBe("2");
      const updates = editor.updates(sessionId);
      expect(JSON.stringify(updates).length).toBeLessThan(30_000);
      expect(toolCalls(updates).at(-1)?.title).toMatch(/^(T ){39}T…$/);
      const notice = thoughtText(updates);
      expect(notice).toMatch(
        /The tool of_long of .*of\.js is ignored: its description has 300000 characters/,
      );
      expect(notice).toMatch(/The tool of_wide of .*of\.js is ignored: the schema of its arguments has/);
      expect(notice).toMatch(/The tool of_a_ of .*of\.js is ignored: the name is already used/);
    });
  });

  test("of a project run only after consent, with its packages, and again after a change", async () => {
    const plugin = (word: string) =>
      `export default async () => ({ "tool.execute.after": (_, o) => { o.output += " ${word}"; } });\n`;
    const files = {
      ".opencode/opencode.json": JSON.stringify({ plugin: ["named", ["./own.mjs", { word: "own" }]] }),
      ".opencode/own.mjs": plugin("own"),
      ".opencode/node_modules/named/package.json": JSON.stringify({
        name: "named",
        type: "module",
        exports: { ".": { import: "./main.js" } },
      }),
      ".opencode/node_modules/named/main.js": plugin("named"),
      ".opencode/plugin/folder.ts": plugin("folder"),
    };
    await story({ files, permission: "reject_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const echo = () => model.reply(reply.call("bash", { command: "echo 1" })).reply("Done.");
      echo();
      await editor.prompt(sessionId, "Go");
      expect(model.requests.at(-1)?.toolResults.at(-1)).not.toContain("named");
      editor.permission = "allow_once";
      const { sessionId: other } = await editor.newSession();
      echo();
      await editor.prompt(other, "Go");
      expect(model.requests.at(-1)?.toolResults.at(-1)).toMatch(/ named own folder$/);
      await repository.write({ ".opencode/own.mjs": plugin("changed") });
      echo();
      await editor.prompt(other, "Go");
      expect(model.requests.at(-1)?.toolResults.at(-1)).toMatch(/ named changed folder$/);
      expect(editor.permissionRequests).toHaveLength(3);
    });
  });
});
