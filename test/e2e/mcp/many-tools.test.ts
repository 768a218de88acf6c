import { describe, expect, test } from "vitest";
import { countRequestTokens } from "../../eval/budgets.ts";
import { startHttpMcp } from "../../support/mcp/mcp-http.ts";
import { faulty, manyTools } from "../../support/mcp/mcp.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { expectSamePrefixes } from "../../support/model/same-prefixes.ts";
import { storiesOfOneAgent, type StoryOptions } from "../../support/editor/story.ts";
import { agentText, thoughtText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

/** A window in which 58 tools take more than a tenth. */
const limit = { context: 64_000, output: 8_000 };
const many = (more: object = {}): StoryOptions => ({ config: { mcp: manyTools(), ...more }, limit });
/** A server whose three tools are loaded on demand because of the configuration. */
const few = (more: object = {}, fault = "none"): StoryOptions => ({
  config: { mcp: { bad: faulty(fault) }, mcp_tools: "search", ...more },
});

const search = (query: string) => reply.call("tool_search", { query });
const callTool = (name: string, input: object) => reply.call("call_tool", { name, arguments: input });
const issue = { owner: "acme", repo: "shop", title: "It breaks" };

const serverTools = ({ toolNames }: ModelRequest) =>
  toolNames.filter((name) => /^(?:bad|browser|files|github|postgres|slack)_/.test(name));
const searchTools = ({ toolNames }: ModelRequest) =>
  toolNames.filter((name) => name === "tool_search" || name === "call_tool");
/** The results of all calls, in order. */
const resultsOf = (requests: readonly ModelRequest[]) => requests.flatMap(({ toolResults }) => toolResults);
const isOnDemand = (request: ModelRequest) =>
  searchTools(request).length === 2 && serverTools(request).length === 0;

describe("58 tools of five servers", () => {
  test("add at most 1,000 tokens to the first request", async () => {
    const counts: number[] = [];
    for (const options of [{ limit }, many()])
      await story(options, async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        model.reply("Hello.");
        await editor.prompt(sessionId, "Hi");
        counts.push(countRequestTokens(await model.request(1)));
      });
    const [without = 0, all = 0] = counts;
    expect(all - without).toBeGreaterThan(0);
    expect(all - without).toBeLessThanOrEqual(1_000);
  });

  test.each([
    "claude-sonnet-4-5",
    "gpt-5.1",
    "gpt-5.1-codex",
    "gemini-3-pro",
    "qwen3-coder-480b",
    "scripted",
  ])("leave the first request of %s at most 6,000 tokens", async (name) => {
    const models = { [name]: { limit, tool_call: true } };
    await story({ ...many({ model: `test/${name}` }), models }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      const request = await model.request(1);
      expect(isOnDemand(request)).toBe(true);
      expect(countRequestTokens(request)).toBeLessThanOrEqual(6_000);
    });
  });

  test("are listed by server in the system prompt", async () => {
    await story(many(), async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      const { system } = await model.request(1);
      expect(system).toContain("# Tools on demand\n\n");
      expect(system).toMatch(/\n- slack: slack_\{add_reaction, .*, reply_to_thread\}(?:\n|$)/);
      const lists = [...system.matchAll(/^- \w+: (\w+_)\{(.*)\}$/gm)];
      const names = lists.flatMap(([, prefix, ends = ""]) => ends.split(", ").map((end) => prefix + end));
      expect(new Set(names).size).toBe(58);
      expect(names).toContain("browser_browser_click");
    });
  });

  test("are found and called while each request begins with the previous one", async () => {
    const options = many({ permission: { "*": "allow" } });
    await story(options, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(search("create an issue"))
        .reply(callTool("github_create_issue", issue))
        .reply(search("select:slack_post_message"))
        .reply(callTool("slack_post_message", { channel_id: "C1", text: "Done" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Open an issue and post it");
      model.reply(callTool("slack_post_message", { channel_id: "C2", text: "Again" })).reply("Done.");
      await editor.prompt(sessionId, "Post it again");
      expectSamePrefixes(model.requests);
      expect(model.requests.every(isOnDemand)).toBe(true);
      const [found = "", created, selected, posted] = resultsOf(model.requests);
      expect(found).toMatch(/^<tool name="github_create_issue" server="github">\nCreate an issue/);
      expect(found).toContain('"assignees":{"type":"array"');
      expect(found.match(/<tool /g)).toHaveLength(5);
      expect(found).toContain("Further matches: ");
      expect(created).toBe(`create_issue ${JSON.stringify(issue)}`);
      expect(selected?.match(/<tool /g)).toHaveLength(1);
      expect(posted).toContain('post_message {"channel_id":"C1"');
      const sent = JSON.stringify(model.requests.at(-1)?.messages);
      expect(sent).toContain('"name":"call_tool"');
      expect(sent).not.toContain('"name":"github_create_issue"');
      expect(toolCalls(editor.updates(sessionId)).map(({ title, kind }) => [title, kind])).toEqual([
        ["Find tools: create an issue", "search"],
        ["github: create_issue", "other"],
        ["Find tools: select:slack_post_message", "search"],
        ["slack: post_message", "other"],
        ["slack: post_message", "other"],
      ]);
    });
  });

  test("stay on demand with fewer servers and after a load, until a compaction", async () => {
    await story(many({ permission: { "*": "allow" } }), async ({ editor, model, home }) => {
      const { sessionId } = await editor.newSession();
      model.reply(search("create an issue")).reply("Found.");
      await editor.prompt(sessionId, "Find it");
      const { slack } = manyTools();
      const path = ".config/fairlead/fairlead.json";
      const { readFile } = await import("node:fs/promises");
      const config: unknown = JSON.parse(await readFile(`${home.path}/${path}`, "utf8"));
      await home.write({ [path]: JSON.stringify({ ...Object(config), mcp: { slack } }) });
      model.reply("Fewer.");
      await editor.prompt(sessionId, "And now");
      await editor.closeSession(sessionId);
      await editor.load(sessionId);
      model.reply("Still.");
      await editor.prompt(sessionId, "And after loading");
      expect(model.requests.map(isOnDemand)).toEqual([true, true, true, true]);
      model.reply("The summary.");
      await editor.prompt(sessionId, "/compact");
      model.reply("All.");
      await editor.prompt(sessionId, "And after the compaction");
      const last = model.requests.at(-1);
      expect(last && serverTools(last)).toHaveLength(6);
      expect(last && searchTools(last)).toEqual([]);
    });
  });

  test("are the same in plan and build mode, and need permission in plan mode", async () => {
    const options = many({ permission: { "*": "allow" } });
    await story({ ...options, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      model.reply(callTool("postgres_list_tables", {})).reply("Planned.");
      await editor.prompt(sessionId, "Plan");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
        "postgres: list_tables",
      ]);
      await editor.setMode(sessionId, "build");
      model.reply(callTool("postgres_list_tables", {})).reply("Built.");
      await editor.prompt(sessionId, "Build");
      expect(editor.permissionRequests).toHaveLength(1);
      expectSamePrefixes(model.requests);
    });
  });

  test("are shown as loaded on demand by /context and /mcp", async () => {
    await story(many(), async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      await editor.prompt(sessionId, "/context");
      await editor.prompt(sessionId, "/mcp");
      await editor.prompt(sessionId, "/mcp slack");
      const text = agentText(editor.updates(sessionId));
      expect(text).toMatch(/\| Tools of the MCP server github \(22, loaded on demand\) +\| +\d+ \|/);
      expect(text).toContain("- **browser**: connected; 15 tools (loaded on demand)");
      expect(text).toContain("**slack**: connected; 6 tools (loaded on demand)\n`");
    });
  });

  test("are sent completely below a tenth of the window or if configured", async () => {
    const cases = [{ config: { mcp: manyTools() }, limit: { context: 200_000, output: 8_000 } }];
    for (const options of [...cases, many({ mcp_tools: "all" })])
      await story(options, async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        model.reply("Hello.");
        await editor.prompt(sessionId, "Hi");
        const request = await model.request(1);
        expect(serverTools(request)).toHaveLength(58);
        expect(searchTools(request)).toEqual([]);
        expect(request.system).not.toContain("Tools on demand");
        await editor.prompt(sessionId, "/mcp");
        expect(agentText(editor.updates(sessionId))).not.toContain("on demand");
      });
  });
});

test("more tools than providers accept are limited if a rule denies the search", async () => {
  const config = { mcp: { bad: faulty("thousands") }, permission: { tool_search: "deny" } };
  await story({ config }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Hello.");
    await editor.prompt(sessionId, "Hi");
    const request = await model.request(1);
    expect(serverTools(request)).toHaveLength(100);
    expect(searchTools(request)).toEqual([]);
  });
});

test("more tools than providers accept are limited if the configuration sends all", async () => {
  const config = { mcp: { bad: faulty("thousands") }, mcp_tools: "all" };
  await story({ config }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Hello.");
    await editor.prompt(sessionId, "Hi");
    expect(serverTools(await model.request(1))).toHaveLength(100);
    const notice = thoughtText(editor.updates(sessionId));
    expect(notice).toContain("The MCP servers offer 500 tools together");
  });
});

describe("a call of a tool on demand", () => {
  test("asks permission as a call of that tool, and always applies to it alone", async () => {
    await story({ ...few(), permission: "allow_always" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(callTool("bad_echo", { text: "one" }))
        .reply(callTool("bad_echo", { text: "two" }))
        .reply(callTool("bad_fail", {}))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall)).toMatchObject([
        { title: "bad: echo", rawInput: { text: "one" } },
        { title: "bad: fail" },
      ]);
      expect(JSON.stringify(editor.permissionRequests[0]?.toolCall.content)).toContain("The server says:");
      expect(resultsOf(model.requests).slice(0, 2)).toEqual(["one", "two"]);
    });
  });

  test("by the tool's own name runs too", async () => {
    await story({ ...few(), permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("bad_echo", { text: "one" }))
        .reply(reply.call("mcp__bad__echo", { text: "two" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const [one, two] = resultsOf(model.requests);
      expect(one).toBe("one");
      expect(two).toMatch(/^two\n\nRead as bad_echo \(you sent mcp__bad__echo\)/);
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
        "bad: echo",
        "bad: echo",
      ]);
      expectSamePrefixes(model.requests);
    });
  });

  test("accepts arguments as text, next to the name, or in a parallel call", async () => {
    const options = few({ permission: { "bad_*": "allow" } });
    await story(options, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const uses = ["five", "six"].map((text) => ({
        recipient_name: "functions.call_tool",
        parameters: { name: "bad_echo", arguments: { text } },
      }));
      model
        .reply(reply.call("call_tool", { name: "bad_echo", arguments: '{"text":"one"}' }))
        .reply(reply.call("call_tool", { tool_name: "bad_echo", text: "two" }))
        .reply(reply.call("functions.call_tool", { name: "bad_echo", args: { text: "three" } }))
        .reply(reply.call("call_tool", { name: "read", arguments: { filePath: "README.md" } }))
        .reply(reply.call("multi_tool_use.parallel", { tool_uses: uses }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const [one, two, three, read, five, six] = resultsOf(model.requests);
      expect([one, two, three]).toEqual(["one", "two", "three"]);
      expect(read).toContain("# Sample");
      expect([five?.split("\n")[0], six?.split("\n")[0]]).toEqual(["five", "six"]);
      expectSamePrefixes(model.requests);
    });
  });

  test("is found by the name that its server gives it", async () => {
    await story(many({ permission: { "*": "allow" } }), async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(search("select:create_issue")).reply(callTool("create_issue", issue)).reply("Done.");
      await editor.prompt(sessionId, "Go");
      const [found, called] = resultsOf(model.requests);
      expect(found).toMatch(/^<tool name="github_create_issue"/);
      expect(called).toContain(`create_issue ${JSON.stringify(issue)}`);
    });
  });

  test("without required arguments is refused unasked, naming the tool's parameters", async () => {
    await story({ ...many(), permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(callTool("github_create_issue", { owner: "acme", name: "shop" }))
        .reply(reply.call("github_create_issue", {}))
        .reply(reply.call("call_tool", { arguments: {} }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toEqual([]);
      const [through, direct, nameless] = resultsOf(model.requests);
      expect(through).toContain("- repo is missing (you sent name)\n- title is missing");
      expect(through).toContain("Parameters: owner (required), repo (required), title (required), body");
      expect(through).toContain('call tool_search with "select:github_create_issue"');
      expect(direct).toContain("- owner is missing");
      expect(nameless).toContain("- name is missing");
    });
  });

  test("of an unknown name names the nearest ones, and so does a search for it", async () => {
    await story(many(), async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(callTool("github_make_issue", issue))
        .reply(search("select:slack_send_message,slack_post_message"))
        .reply(search("zebra crossing"))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const [called, selected, none] = resultsOf(model.requests);
      expect(called).toContain('There is no tool "github_make_issue"');
      expect(called).toContain("github_create_issue");
      expect(selected).toContain('<tool name="slack_post_message"');
      expect(selected).toContain('There is no tool "slack_send_message". Nearest names: slack_post_message');
      expect(none).toContain('No tool matches "zebra crossing"');
    });
  });

  test("that a rule denies is neither listed nor found nor run", async () => {
    const options = few({ permission: { "*": "allow", bad_echo: "deny" } });
    await story(options, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(search("select:bad_echo"))
        .reply(callTool("bad_echo", { text: "hello" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests[0]?.system).toContain("- bad: bad_{fail, slow");
      const [found, called] = resultsOf(model.requests);
      expect(found).toContain('There is no tool "bad_echo"');
      expect(called).toContain('There is no tool "bad_echo"');
    });
  });

  test("is possible for an agent that may use nothing else", async () => {
    const agent = { clerk: { mode: "primary", permission: { "*": "deny", bad_echo: "allow" } } };
    await story(few({ agent, default_agent: "clerk" }), async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(search("echo"))
        .reply(callTool("bad_echo", { text: "hello" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests[0]?.toolNames).toEqual(["call_tool", "tool_search"]);
      expect(resultsOf(model.requests)).toEqual([expect.stringContaining("bad_echo"), "hello"]);
    });
  });

  test("is impossible if the agent disables the tool", async () => {
    const agent = { clerk: { mode: "primary", tools: { bad_echo: false } } };
    await story(few({ agent, default_agent: "clerk" }), async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(callTool("bad_echo", { text: "hello" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests[0]?.system).toContain("- bad: bad_{fail, slow");
      expect(resultsOf(model.requests)).toEqual([expect.stringContaining('There is no tool "bad_echo"')]);
    });
  });

  test("is a call of that tool for plugins", async () => {
    const plugin = `
export default async () => ({
  "tool.execute.before": async (input, output) => { if (input.tool === "bad_echo") output.args.text += " and"; },
  "tool.execute.after": async (input, output) => { output.output += " " + input.tool + " " + input.args.text; },
});
`;
    const homeFiles = { ".config/fairlead/plugin/own.js": plugin };
    const options = few({ permission: { "bad_*": "allow" } });
    await story({ ...options, homeFiles }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(callTool("bad_echo", { text: "one" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(resultsOf(model.requests)).toEqual(["one and bad_echo one and"]);
    });
  });

  test("finds tools that a server adds between turns", async () => {
    await using server = await startHttpMcp({ speaks: "http" });
    const mcp = { own: { type: "remote", url: server.url } };
    const options = few({ mcp, permission: { "own_*": "allow" } });
    await story(options, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(search("added")).reply("Nothing.");
      await editor.prompt(sessionId, "Go");
      server.addTool("added");
      await expect
        .poll(async () => {
          await editor.prompt(sessionId, "/mcp own");
          return agentText(editor.updates(sessionId));
        })
        .toContain("- `added`");
      model.reply(search("added")).reply("Found.");
      await editor.prompt(sessionId, "Again");
      const [before, after] = resultsOf(model.requests);
      expect(before).toContain("No tool matches");
      expect(after).toContain('<tool name="own_added"');
      const texts = model.requests.map(({ messages }) => JSON.stringify(messages));
      // The system prompt is unchanged; a reminder names the new tool.
      expect(model.requests.some(({ system }) => system.includes("added"))).toBe(false);
      const names = texts.map((text) => /own_(?:added|\{[^}]*\badded\b)/.test(text));
      expect(names).toEqual([false, false, true, true]);
    });
  });

  test("is repeated once if its server ends, and fails if the server ends again", async () => {
    const options = few({ permission: { "bad_*": "allow" } }, "always-dies-in-call");
    await story(options, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(search("echo"))
        .reply(callTool("bad_echo", { text: "hello" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(resultsOf(model.requests)[1]).toContain("The MCP server bad lost its connection");
    });
  });

  test("is a loop of that tool if it repeats", async () => {
    const options = few({ permission: { "bad_*": "allow" } });
    await story({ ...options, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const call = callTool("bad_echo", { text: "hello" });
      model.reply(call).reply(call).reply(call);
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual(["bad: echo"]);
    });
  });
});

describe("tools on demand are offered", () => {
  test("to general tasks with their rules, and not to explore", async () => {
    const options = few();
    await story({ ...options, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const task = (agent: string) =>
        reply.callScript("task", { description: agent, prompt: `Work as ${agent}`, subagent_type: agent });
      model.reply(reply.together(task("general"), task("explore")));
      model.when(
        ({ userText, toolResults }) => userText.includes("as general") && toolResults.length === 0,
        callTool("bad_echo", { text: "from a task" }),
      );
      model.when(({ userText }) => userText.includes("Work as"), "Worked.");
      model.reply("Done.");
      await editor.prompt(sessionId, "Go");
      const of = (agent: string) => model.requests.filter(({ userText }) => userText.includes(`as ${agent}`));
      expect(of("general").at(-1)?.toolResults).toEqual(["from a task"]);
      expect(of("general").every(isOnDemand)).toBe(true);
      const [explore] = of("explore");
      expect(explore && searchTools(explore)).toEqual([]);
      expect(explore?.system).not.toContain("Tools on demand");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
        "@general: bad: echo",
      ]);
    });
  });

  test("to small models in addition to their few tools", async () => {
    const models = { "qwen3:8b": { limit: { context: 32_000, output: 4_000 }, tool_call: true } };
    const options = { ...many({ model: "test/qwen3:8b" }), models };
    await story(options, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      const request = await model.request(1);
      expect(isOnDemand(request)).toBe(true);
      expect(countRequestTokens(request)).toBeLessThanOrEqual(4_000);
    });
  });

  test("to models that write their calls as text, in either form", async () => {
    const scripted = { limit: { context: 100_000, output: 8_000 }, tool_call: true, tool_calls: "text" };
    const options = few({ permission: { "bad_*": "allow" }, model: "test/texts" });
    await story({ ...options, models: { texts: scripted } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const written = (name: string, input: object) =>
        `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`;
      model
        .reply(written("tool_search", { query: "echo" }))
        .reply(written("call_tool", { name: "bad_echo", arguments: { text: "one" } }))
        .reply(written("bad_echo", { text: "two" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests[0]?.system).toContain('"name":"call_tool"');
      expect(model.requests[0]?.system).not.toContain('"name":"bad_echo"');
      const texts = JSON.stringify(model.requests[3]?.messages);
      expect(texts).toMatch(/tool_response name=\\+"call_tool\\+">\\+none\\/);
      expect(texts).toMatch(/tool_response name=\\+"bad_echo\\+">\\+ntwo\\/);
    });
  });
});
