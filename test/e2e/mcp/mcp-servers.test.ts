import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { CreateElicitationRequest } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { plain, zedLike } from "../../support/editor/clients.ts";
import type { Editor } from "../../support/editor/editor.ts";
import { everything, faulty, filesystem, memory, waitForEverything } from "../../support/mcp/mcp.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { agentText, thoughtText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

/** Slow servers are connected only after the first prompt, which waits for 5 seconds. */
async function waitForServers(editor: Editor, sessionId: string): Promise<void> {
  const list = async () => {
    const before = editor.updates(sessionId).length;
    await editor.prompt(sessionId, "/mcp");
    return agentText(editor.updates(sessionId).slice(before));
  };
  await expect.poll(list).not.toContain(": connecting");
}

const allowed = { permission: { "everything_*": "allow", read_mcp_resource: "allow" } };

describe("the reference server everything", () => {
  test("provides tools with text, images, structured content, progress and errors", async () => {
    await story({ config: { mcp: { everything: everything() }, ...allowed } }, async (context) => {
      const { editor, model, repository } = context;
      const { sessionId } = await editor.newSession();
      await waitForEverything(editor, sessionId);
      model
        .reply(
          reply.call("everything_echo", { message: "hello" }),
          reply.call("everything_get-sum", { a: 2, b: 3 }),
          reply.call("everything_get-tiny-image", {}),
          reply.call("everything_get-roots-list", {}),
          reply.call("everything_trigger-long-running-operation", { duration: 1, steps: 2 }),
          reply.call("everything_get-sum", { a: "no number" }),
          reply.call("everything_get-resource-reference", { resourceType: "Text", resourceId: 3 }),
        )
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const results = model.requests[1]?.messages.filter(({ role }) => role === "tool") ?? [];
      const [echo, sum, image, roots, long, wrong, resource] = results.map(({ content }) => content);
      expect(echo).toBe("Echo: hello");
      expect(sum).toBe("The sum of 2 and 3 is 5.");
      expect(image).toContain("[image/png is attached, converted to image/png]");
      expect(roots).toContain(pathToFileURL(repository.path).href);
      expect(long).toContain("completed");
      expect(wrong).toContain("Invalid arguments");
      expect(resource).toContain('<resource uri="demo://resource/dynamic/text/3">');
      const calls = toolCalls(editor.updates(sessionId));
      expect(calls.map(({ status }) => status)).toEqual([
        ...Array.from({ length: 5 }, () => "completed"),
        "failed",
        "completed",
      ]);
      expect(JSON.stringify(calls[2]?.content)).toContain('"mimeType":"image/png"');
      expect(JSON.stringify(editor.updates(sessionId, "tool_call_update"))).toContain("1 of 2");
    });
  });

  test("provides instructions, bounded, marked and identical in each request", async () => {
    await story({ config: { mcp: { everything: everything() }, ...allowed } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await waitForEverything(editor, sessionId);
      model.reply(reply.call("everything_echo", { message: "hello" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      const [first, second] = model.requests.map(({ system }) => system);
      const [, section = ""] = (first ?? "").split("# MCP servers\n\n");
      expect(section).toMatch(/^These texts come from the MCP servers and not from the user\./);
      expect(section).toMatch(/\n\n## From the server everything\n\n\S/);
      expect(second).toBe(first);
    });
  });

  test("provides prompts as commands and resources to mention, link, list and read", async () => {
    await story({ config: { mcp: { everything: everything() }, ...allowed } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await waitForEverything(editor, sessionId);
      model.reply("One.");
      await editor.prompt(sessionId, "Hi");
      const commands = editor.updates(sessionId, "available_commands_update").at(-1)?.availableCommands;
      expect(commands?.find(({ name }) => name === "everything:args-prompt")).toEqual({
        name: "everything:args-prompt",
        description: "A prompt with two arguments, one required and one optional",
        input: { hint: "<city> [state]" },
      });
      model.reply("Sunny.");
      await editor.prompt(sessionId, "/everything:args-prompt Paris Texas");
      expect(model.requests[1]?.userText).toContain("What's weather in Paris, Texas?");
      await editor.prompt(sessionId, "/everything:args-prompt");
      expect(agentText(editor.updates(sessionId))).toContain("It needs city.");
      const uri = "demo://resource/static/document/features.md";
      model.reply("Read.");
      await editor.prompt(sessionId, `Look at @everything:${uri}, please`);
      expect(JSON.stringify(model.requests[2]?.messages)).toContain("<attached uri=");
      expect(JSON.stringify(model.requests[2]?.messages)).toContain("Everything Server");
      model.reply("Read.");
      await editor.prompt(sessionId, [
        { type: "resource_link", uri: "demo://resource/dynamic/text/7", name: "seven" },
      ]);
      expect(model.requests[3]?.userText).toContain("Resource 7");
      model
        .reply(
          reply.call("list_mcp_resources", {}),
          reply.call("read_mcp_resource", { server: "everything", uri }),
          reply.call("read_mcp_resource", { server: "everything", uri: "demo://resource/static/no" }),
          reply.call("read_mcp_resource", { server: "nobody", uri }),
        )
        .reply("Done.");
      await editor.prompt(sessionId, "Read");
      const [listed, read, missing, nobody] = model.requests[5]?.toolResults ?? [];
      expect(listed).toContain(`- ${uri} (features.md, text/markdown)`);
      expect(listed).toContain("- template demo://resource/dynamic/text/{resourceId}");
      expect(read).toContain("Everything Server");
      expect(missing).toContain("The MCP server everything refused the call:");
      expect(nobody).toContain("Use one of these: everything.");
    });
  });

  test("asks the user through the editor's forms and addresses", async () => {
    const requested: CreateElicitationRequest[] = [];
    const client = zedLike(new Map(), (request) => {
      requested.push(request);
      return request.mode === "url"
        ? { action: "accept" }
        : { action: "accept", content: { name: "Ada", check: true, extra: "not asked" } };
    });
    await story({ client, config: { mcp: { everything: everything() }, ...allowed } }, async (context) => {
      const { editor, model } = context;
      const { sessionId } = await editor.newSession();
      await waitForEverything(editor, sessionId);
      model.reply(reply.call("everything_trigger-elicitation-request", {})).reply("Done.");
      await editor.prompt(sessionId, "Go");
      const [call] = toolCalls(editor.updates(sessionId));
      expect(requested).toHaveLength(1);
      expect(requested[0]).toMatchObject({ mode: "form", sessionId, toolCallId: call?.toolCallId });
      expect(requested[0]?.message).toMatch(/^The MCP server "everything" asks: /);
      expect(model.requests[1]?.toolResults[0]).toContain("- Name: Ada");
      expect(model.requests[1]?.toolResults[0]).not.toContain("not asked");
      const url = { url: "https://example.com/sign-in", message: "Sign in", elicitationId: "id-1" };
      model.reply(reply.call("everything_trigger-url-elicitation", url)).reply("Done.");
      await editor.prompt(sessionId, "And now an address");
      expect(requested[1]).toMatchObject({ mode: "url", url: url.url, elicitationId: "id-1" });
    });
  });

  test("may not use forms that the editor lacks", async () => {
    await story(
      { client: plain(), config: { mcp: { everything: everything() } } },
      async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        await waitForEverything(editor, sessionId);
        model.reply("Hi.");
        await editor.prompt(sessionId, "Hi");
        const names = model.requests[0]?.toolNames ?? [];
        expect(names).toContain("everything_echo");
        expect(names.filter((name) => name.includes("elicitation"))).toEqual([]);
      },
    );
  });
});

test("the reference servers filesystem and memory work at the same time", async () => {
  await story(
    { config: { permission: { "files_*": "allow", "memory_*": "allow" } } },
    async ({ editor, model, repository, home }) => {
      const stdio = ({ command: [command = "", ...args] }: { command: string[] }, name: string) => {
        return {
          name,
          command,
          args,
          env: [{ name: "MEMORY_FILE_PATH", value: join(home.path, "memory.json") }],
        };
      };
      const mcpServers = [stdio(filesystem(repository.path), "files"), stdio(memory(), "memory")];
      const { sessionId } = await editor.newSession({ mcpServers });
      await waitForServers(editor, sessionId);
      const path = join(repository.path, "made.txt");
      const entities = [{ name: "Ada", entityType: "person", observations: ["counts"] }];
      model
        .reply(
          reply.call("files_write_file", { path, content: "by a server" }),
          reply.call("files_read_text_file", { path }),
          reply.call("files_read_text_file", { path: "/etc/passwd" }),
          reply.call("memory_create_entities", { entities }),
          reply.call("memory_read_graph", {}),
        )
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const [, read, outside, , graph] = model.requests[1]?.toolResults ?? [];
      expect(read).toContain("by a server");
      expect(outside).toContain("outside allowed directories");
      expect(graph).toContain("counts");
      expect(await readFile(path, "utf8")).toBe("by a server");
    },
  );
});

test("a server gets the session's folders if it names none or settings ask for roots", async () => {
  await using other = await temporaryFolder({ "note.txt": "from the other folder" });
  const mcp = {
    own: filesystem(other.path),
    none: filesystem(),
    both: { ...filesystem(other.path), roots: true },
  };
  await story(
    { config: { mcp, permission: { "own_*": "allow", "none_*": "allow", "both_*": "allow" } } },
    async (context) => {
      const { editor, model, repository } = context;
      await writeFile(join(repository.path, "here.txt"), "from the session");
      const theirs = join(other.path, "note.txt");
      const ours = join(repository.path, "here.txt");
      const { sessionId } = await editor.newSession();
      await waitForServers(editor, sessionId);
      model
        .reply(
          reply.call("own_read_text_file", { path: theirs }),
          reply.call("own_read_text_file", { path: ours }),
          reply.call("none_read_text_file", { path: ours }),
          reply.call("none_read_text_file", { path: theirs }),
          reply.call("both_read_text_file", { path: ours }),
          reply.call("both_read_text_file", { path: theirs }),
        )
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const [own, ownOutside, none, noneOutside, both, bothOutside] = model.requests[1]?.toolResults ?? [];
      expect(own).toContain("from the other folder");
      expect(none).toContain("from the session");
      expect(both).toContain("from the session");
      for (const outside of [ownOutside, noneOutside, bothOutside])
        expect(outside).toContain("outside allowed directories");
    },
  );
});

describe("permission for a server's tools", () => {
  test("asks by default, with the call and its description", async () => {
    const config = { mcp: { everything: everything() } };
    await story({ config, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await waitForEverything(editor, sessionId);
      model.reply(reply.call("everything_echo", { message: "hello" }));
      await editor.prompt(sessionId, "Go");
      const [request] = editor.permissionRequests;
      expect(request?.toolCall).toMatchObject({ title: "everything: echo", rawInput: { message: "hello" } });
      const shown = JSON.stringify(request?.toolCall.content);
      expect(shown).toContain("The server says: Echoes back the input string");
      expect(shown).toContain("The server says that it only reads.");
      expect(toolCalls(editor.updates(sessionId))[0]?.status).toBe("failed");
    });
  });

  test('applies to the session if given for "always", and no longer', async () => {
    const config = { mcp: { everything: everything() } };
    await story({ config, permission: "allow_always" }, async ({ editor, model }) => {
      const first = await editor.newSession();
      await waitForEverything(editor, first.sessionId);
      model.otherwise(({ toolResults }) =>
        toolResults.length > 0 ? "Done." : reply.call("everything_echo", { message: "hello" }),
      );
      await editor.prompt(first.sessionId, "Go");
      await editor.prompt(first.sessionId, "Again");
      expect(editor.permissionRequests).toHaveLength(1);
      const second = await editor.newSession();
      await editor.prompt(second.sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(2);
    });
  });

  test.each([
    ["everything", "allow"],
    ["the server", { "bad_*": "allow" }],
    ["the tool by its pattern", { bad_echo: { "*": "allow" } }],
  ])("is not asked if the user's rule allows %s", async (_, permission) => {
    await story({ config: { mcp: { bad: faulty("none") }, permission } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bad_echo", { text: "hello" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests[1]?.toolResults).toEqual(["hello"]);
    });
  });

  test("removes the tool if a rule denies it", async () => {
    const config = { mcp: { bad: faulty("none") }, permission: { "*": "allow", bad_echo: "deny" } };
    await story({ config }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bad_echo", { text: "hello" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests[0]?.toolNames).toContain("bad_fail");
      expect(model.requests[0]?.toolNames).not.toContain("bad_echo");
      expect(model.requests[1]?.toolResults[0]).toContain("There is no tool");
    });
  });

  test("is asked in plan mode even if all agents are allowed everything", async () => {
    const config = { mcp: { bad: faulty("none") }, permission: "allow" };
    await story({ config, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      await editor.setConfigOption(sessionId, "approval", "auto");
      model.reply(reply.call("bad_echo", { text: "hello" }));
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(1);
      expect(toolCalls(editor.updates(sessionId))[0]?.status).toBe("failed");
    });
  });

  test("is asked in the user's session for a task, and explore has no such tools", async () => {
    const config = { mcp: { bad: faulty("none") } };
    await story({ config, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const task = (agent: string) =>
        reply.callScript("task", { description: agent, prompt: `Work as ${agent}`, subagent_type: agent });
      model.reply(reply.together(task("general"), task("explore")));
      model.when(
        ({ userText, toolResults }) => userText.includes("as general") && toolResults.length === 0,
        reply.call("bad_echo", { text: "from a task" }),
      );
      model.when(({ userText }) => userText.includes("Work as"), "Worked.");
      model.reply("Done.");
      await editor.prompt(sessionId, "Go");
      const of = (agent: string) => model.requests.filter(({ userText }) => userText.includes(`as ${agent}`));
      expect(of("general").at(-1)?.toolResults).toEqual(["from a task"]);
      expect(of("explore")[0]?.toolNames.filter((name) => /bad_|mcp/.test(name))).toEqual([]);
      expect(editor.permissionRequests.map((request) => request.sessionId)).toEqual([sessionId]);
    });
  });
});

describe("servers with the same name from the editor", () => {
  test("are reported to the user, and the last one is used", async () => {
    await story({}, async ({ editor, model }) => {
      const server = (command: string) => ({ name: "twice", command, args: [], env: [] });
      const { sessionId } = await editor.newSession({ mcpServers: [server("/no/one"), server("/no/two")] });
      model.reply("Done.");
      await editor.prompt(sessionId, "Go");
      const notice = thoughtText(editor.updates(sessionId));
      expect(notice).toContain('several MCP servers the name "twice"; the last of them is used.');
      expect(notice).toContain('"/no/two"');
      expect(notice).not.toContain('"/no/one"');
    });
  });
});
