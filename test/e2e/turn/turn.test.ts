import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { ContentBlock, SessionUpdate } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { toList, toObject } from "../../support/json.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, thoughtText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const kinds = (updates: readonly SessionUpdate[]) => updates.map(({ sessionUpdate }) => sessionUpdate);
const isText = (text: string) => (update: SessionUpdate) =>
  update.sessionUpdate === "agent_message_chunk" &&
  update.content.type === "text" &&
  update.content.text.includes(text);
const lastUserContent = (request: ModelRequest) =>
  request.messages.findLast(({ role }) => role === "user")?.content;

describe("a turn", () => {
  // Each story checks that lines and requests contain no half of a surrogate pair.
  test("replaces half of a surrogate pair, which strict parsers would reject", async () => {
    await story({ files: { "a.txt": "one\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const half = "\ud83d";
      model
        .reply(reply.say(`Reading${half}.`), reply.call("read", { filePath: `a${half}.txt` }))
        .reply(reply.say("Not there.", half));
      await editor.prompt(sessionId, `Read a${half}.txt`);
      expect(agentText(editor.updates(sessionId))).toBe("Reading\ufffd.Not there.");
      expect(model.requests.map(lastUserContent)).toEqual([
        expect.stringContaining("a\ufffd.txt"),
        expect.stringContaining("a\ufffd.txt"),
      ]);
      expect(model.requests[1]?.toolResults).toEqual([expect.stringContaining("a\ufffd.txt")]);
    });
  });

  test("shows thoughts, text and calls in the order in which the model wrote them", async () => {
    await story({ files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(
          reply.think("Hm, ", "a file."),
          reply.say("Reading."),
          reply.call("read", { filePath: "a.txt" }),
        )
        .reply(reply.say("It says one."));
      const answer = await editor.prompt(sessionId, "What does a.txt say?");
      expect(answer.stopReason).toBe("end_turn");
      const updates = editor.updates(sessionId);
      expect([thoughtText(updates), agentText(updates)]).toEqual(["Hm, a file.", "Reading.It says one."]);
      const ofTurn = kinds(updates).filter((kind) => /chunk|tool/.test(kind));
      expect(ofTurn.filter((kind, at) => kind !== ofTurn[at - 1])).toEqual([
        "agent_thought_chunk",
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
      ]);
      expect(toolCalls(updates)).toMatchObject([
        {
          title: "Read a.txt",
          kind: "read",
          status: "completed",
          rawInput: { filePath: "a.txt" },
          locations: [{ path: join(repository.path, "a.txt") }],
        },
      ]);
      expect(model.requests[1]?.toolResults).toEqual([expect.stringContaining("1: one\n")]);
    });
  });

  test("hides blank messages and thoughts, keeps blanks before words, live and loaded", async () => {
    await story({}, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.think("\n"), reply.say("\n", "\n"), reply.call("bash", { command: "true" }))
        .reply(reply.think("\n", " Hm."), reply.say("\n", "\n  Well", ".", "\n"));
      await editor.prompt(sessionId, "Go");
      const updates = () => editor.updates(sessionId);
      expect([thoughtText(updates()), agentText(updates())]).toEqual(["\n Hm.", "\n\n  Well.\n"]);
      expect(updates().filter((update) => /"text":"\s*"/.test(JSON.stringify(update)))).toEqual([]);
      await editor.load(sessionId, { cwd: repository.path });
      expect([thoughtText(updates()), agentText(updates())]).toEqual([
        "\n Hm.\n Hm.",
        "\n\n  Well.\n\n\n  Well.\n",
      ]);
    });
  });

  test("streams text while the model still writes", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const [first, second] = [reply.gate(), reply.gate()];
      model.reply(reply.say("Once "), first, reply.say("upon "), second, reply.say("a time."));
      const turn = editor.prompt(sessionId, "Tell a story");
      await editor.waitFor(sessionId, isText("Once"));
      expect(agentText(editor.updates(sessionId))).toBe("Once ");
      first.release();
      await editor.waitFor(sessionId, isText("upon"));
      second.release();
      await turn;
      expect(agentText(editor.updates(sessionId))).toBe("Once upon a time.");
    });
  });

  test("starts a call when its arguments are complete, while later text still streams", async () => {
    await story({ files: { "a.txt": "one\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      model
        .reply(reply.call("read", { filePath: "a.txt" }), gate, reply.say("I asked for it."))
        .reply("Done.");
      const turn = editor.prompt(sessionId, "Read");
      await editor.waitFor(
        sessionId,
        (update) => update.sessionUpdate === "tool_call_update" && update.status === "completed",
      );
      gate.release();
      expect((await turn).stopReason).toBe("end_turn");
    });
  });

  test("delivers 20,000 deltas whole and in order, in far fewer messages", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const pieces = Array.from({ length: 20_000 }, (_, at) => `${at},`);
      model.reply(reply.say(...pieces)).reply("Yes.");
      await editor.prompt(sessionId, "Count");
      expect(agentText(editor.updates(sessionId))).toBe(pieces.join(""));
      expect(editor.updates(sessionId, "agent_message_chunk").length).toBeLessThan(20_000);
      await editor.prompt(sessionId, "Have you?");
      expect(model.requests[1]?.messages.find(({ role }) => role === "assistant")?.content).toBe(
        pieces.join(""),
      );
    });
  });

  test("reads two files in parallel", async () => {
    await story({ files: { "a.txt": "one\n", "b.txt": "two\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(
          reply.together(
            reply.callScript("read", { filePath: "a.txt" }),
            reply.callScript("read", { filePath: "b.txt" }),
          ),
        )
        .reply("Both.");
      await editor.prompt(sessionId, "Read both");
      expect(toolCalls(editor.updates(sessionId)).map(({ title, status }) => [title, status])).toEqual([
        ["Read a.txt", "completed"],
        ["Read b.txt", "completed"],
      ]);
      expect(model.requests[1]?.toolResults).toEqual([
        expect.stringContaining("1: one"),
        expect.stringContaining("1: two"),
      ]);
    });
  });

  test("shows a todo list as the plan, without a card", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const todo = (content: string, status: string) => ({ content, status, priority: "high" });
      model
        .reply(reply.call("todowrite", { todos: [todo("Look", "in_progress"), todo("Act", "pending")] }))
        .reply(reply.call("todowrite", { todos: [todo("Look", "completed"), todo("Act", "cancelled")] }))
        .reply("Done.");
      await editor.prompt(sessionId, "Plan it");
      expect(editor.updates(sessionId, "plan").map(({ entries }) => entries)).toEqual([
        [todo("Look", "in_progress"), todo("Act", "pending")],
        [todo("Look", "completed"), todo("Act", "completed")],
      ]);
      expect(toolCalls(editor.updates(sessionId))).toEqual([]);
    });
  });

  test("shows an edit with the whole file before and after", async () => {
    await story({ files: { "a.txt": "one\ntwo\nthree\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const path = join(repository.path, "a.txt");
      model
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply(reply.call("edit", { filePath: "a.txt", oldString: "two", newString: "2" }))
        .reply("Changed.");
      await editor.prompt(sessionId, "Write digits");
      expect(await readFile(path, "utf8")).toBe("one\n2\nthree\n");
      expect(toolCalls(editor.updates(sessionId))[1]).toMatchObject({
        kind: "edit",
        status: "completed",
        content: [{ type: "diff", path, oldText: "one\ntwo\nthree\n", newText: "one\n2\nthree\n" }],
      });
    });
  });

  test("shows live command output and sends the result to the model", async () => {
    await story({ files: {} }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const command = "echo begun; until [ -e go ]; do sleep 0.05; done; echo over; exit 3";
      model.reply(reply.call("bash", { command })).reply("It failed.");
      const turn = editor.prompt(sessionId, "Run it");
      const live = await editor.waitFor(sessionId, (update) =>
        JSON.stringify(update).includes("```\\nbegun"),
      );
      expect(live).not.toHaveProperty("status");
      await repository.write({ go: "" });
      await turn;
      expect(toolCalls(editor.updates(sessionId))).toMatchObject([
        { title: command, kind: "execute", status: "failed", rawOutput: { exitCode: 3 } },
      ]);
      expect(model.requests[1]?.toolResults).toEqual(["begun\nover\n\n[exit code 3]"]);
    });
  });
});

describe("the ends of a turn", () => {
  const ends: [string, reply.Step[], string][] = [
    ["stop", [...reply.say("Half an"), reply.finish("stop")], "end_turn"],
    ["length", [...reply.say("Half an"), reply.finish("length")], "max_tokens"],
    ["content_filter", [...reply.say("Half an"), reply.finish("content_filter")], "refusal"],
    ["refusal", [...reply.say("I will not."), reply.finish("refusal")], "refusal"],
  ];
  test.each(ends)("%s becomes the stop reason, and the next prompt works", async (_, steps, stopReason) => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(steps).reply("Again.");
      expect((await editor.prompt(sessionId, "Go on")).stopReason).toBe(stopReason);
      expect((await editor.prompt(sessionId, "Once more")).stopReason).toBe("end_turn");
      expect(agentText(editor.updates(sessionId))).toMatch(/Again\.$/);
    });
  });

  test("forbids calls and requests a summary at the step limit", async () => {
    const config = { agent: { build: { steps: 2 } } };
    await story({ config, files: { "a.txt": "one\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("read", { filePath: "a.txt" })).reply("So far I read it.");
      expect((await editor.prompt(sessionId, "Work")).stopReason).toBe("max_turn_requests");
      expect(model.requests.map(({ body }) => body.tool_choice)).toEqual(["auto", "none"]);
      expect(model.requests.map(({ userText }) => userText.includes("used all of its steps"))).toEqual([
        false,
        true,
      ]);
      expect(agentText(editor.updates(sessionId))).toBe("So far I read it.");
    });
  });

  test("at the step limit ends the turn if the model still calls tools", async () => {
    const config = { agent: { build: { steps: 2 } } };
    await story({ config, files: { "a.txt": "one\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const read = reply.call("read", { filePath: "a.txt" });
      model.reply(read).reply("One more. ", read);
      expect((await editor.prompt(sessionId, "Work")).stopReason).toBe("max_turn_requests");
      expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual([
        "completed",
        "failed",
      ]);
      model.reply("Going on.");
      expect((await editor.prompt(sessionId, "Go on")).stopReason).toBe("end_turn");
    });
  });

  test.each([
    ["nothing", []],
    ["an empty text", [{ type: "text", text: "" } as const]],
    ["white space", [{ type: "text", text: " \n" } as const]],
  ])("a prompt of %s is refused with an explanation, and the next one works", async (_, prompt) => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await expect(editor.prompt(sessionId, prompt)).rejects.toMatchObject({
        code: -32602,
        message: expect.stringMatching(/empty/i),
      });
      model.reply("Hello.");
      expect((await editor.prompt(sessionId, "Hi")).stopReason).toBe("end_turn");
      expect(model.requests).toHaveLength(1);
    });
  });
});

describe("requests to the model", () => {
  test("keep their order, and begin with the same bytes each time", async () => {
    const files = { "a.txt": "one\n", "AGENTS.md": "Speak in rhymes.\n" };
    await story({ files }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.think("Hm."), reply.call("read", { filePath: "a.txt" }))
        .reply("One.")
        .reply("Two.");
      await editor.prompt(sessionId, "First");
      await editor.prompt(sessionId, "Second");
      const bodies = model.requests.map(({ body }) => body);
      const messages = bodies.map((body) => toList(body.messages).map((message) => JSON.stringify(message)));
      expect(messages[1]?.slice(0, messages[0]?.length)).toEqual(messages[0]);
      expect(messages[2]?.slice(0, messages[1]?.length)).toEqual(messages[1]);
      const tools = bodies.map((body) => JSON.stringify(body.tools));
      expect(new Set(tools).size).toBe(1);
      const names = model.requests[0]?.toolNames ?? [];
      expect(names).toEqual(names.toSorted());
      const system = model.requests[0]?.system ?? "";
      const order = ["You are Fairlead", `Working directory: ${repository.path}`, "Speak in rhymes."];
      const places = order.map((text) => system.indexOf(text));
      expect(places).toEqual(places.toSorted((left, right) => left - right));
      expect(places).not.toContain(-1);
    });
  });
});

describe("attachments", () => {
  const text = (words: string): ContentBlock => ({ type: "text", text: words });
  const link = (uri: string, name: string): ContentBlock => ({ type: "resource_link", uri, name });

  /** Sends one prompt and returns the last user message that the model received. */
  async function sent(
    files: Record<string, string>,
    prompt: (cwd: string) => ContentBlock[],
  ): Promise<string> {
    let content: unknown;
    await story({ files }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Seen.");
      expect((await editor.prompt(sessionId, prompt(repository.path))).stopReason).toBe("end_turn");
      const [request] = model.requests;
      content = request && lastUserContent(request);
    });
    return typeof content === "string"
      ? content
      : toList(content)
          .map((part) => toObject(part).text)
          .join("\n");
  }

  const lines = Array.from({ length: 9 }, (_, at) => `line ${at + 1}\n`).join("");

  test("a linked file reaches the model completely", async () => {
    const content = await sent({ "a.txt": lines }, (cwd) => [
      text("Look at"),
      link(pathToFileURL(join(cwd, "a.txt")).href, "a.txt"),
    ]);
    expect(content).toContain("Look at");
    expect(content).toContain("1: line 1\n");
    expect(content).toContain("9: line 9\n");
  });

  test("a link with lines attaches only these", async () => {
    const content = await sent({ "a.txt": lines }, (cwd) => [
      link(`${pathToFileURL(join(cwd, "a.txt")).href}#L3:5`, "a.txt"),
    ]);
    expect(content.match(/\d: line \d/g)).toEqual(["3: line 3", "4: line 4", "5: line 5"]);
  });

  test("a link in Zed's own format is recognized", async () => {
    const content = await sent({ "a b.txt": lines }, (cwd) => [
      link(`zed:///agent/file?path=${encodeURIComponent(join(cwd, "a b.txt"))}`, "a b.txt"),
    ]);
    expect(content).toContain("1: line 1\n");
  });

  test("a linked folder is listed", async () => {
    const content = await sent({ "src/a.ts": "", "src/b.ts": "" }, (cwd) => [
      link(pathToFileURL(join(cwd, "src")).href, "src"),
    ]);
    expect(content).toContain("a.ts");
    expect(content).toContain("b.ts");
  });

  test("reports a missing file clearly and continues the turn", async () => {
    const content = await sent({}, (cwd) => [link(pathToFileURL(join(cwd, "none.txt")).href, "none.txt")]);
    expect(content).toMatch(/attached file:.*none\.txt.*could not be read/);
  });

  test("a link to something that is not a file is sent by name", async () => {
    const content = await sent({}, () => [link("https://example.com/page", "A page")]);
    expect(content).toContain("https://example.com/page (A page)");
  });

  test("sends embedded text to the model unchanged, whatever is on disk", async () => {
    const content = await sent({ "a.txt": "of the disk\n" }, (cwd) => [
      text("Look"),
      {
        type: "resource",
        resource: { uri: pathToFileURL(join(cwd, "a.txt")).href, mimeType: "text/x-c", text: "unsaved\n" },
      },
    ]);
    expect(content).toContain("unsaved\n");
    expect(content).not.toContain("of the disk");
  });

  const image: ContentBlock = { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" };

  test("an image reaches a model that accepts images", async () => {
    const models = {
      scripted: {
        name: "Scripted",
        limit: { context: 100_000, output: 8_000 },
        tool_call: true,
        modalities: { input: ["text", "image"], output: ["text"] },
      },
    };
    await story({}, async ({ editor, model, home }) => {
      await home.write({
        ".config/fairlead/fairlead.json": JSON.stringify({
          model: "test/scripted",
          provider: { test: { options: { baseURL: model.url, apiKey: "test-key" }, models } },
        }),
      });
      const { sessionId } = await editor.newSession();
      model.reply("A dot.").reply("The same.");
      await editor.prompt(sessionId, [text("What is it?"), image]);
      // Some clients send an absolute URI of this kind.
      const asAddress = { ...image, data: "data:image/png;base64,iVBORw0KGgo=" };
      await editor.prompt(sessionId, [text("What is it?"), asAddress]);
      for (const request of model.requests)
        expect(lastUserContent(request)).toEqual([
          { type: "text", text: "What is it?" },
          { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
        ]);
      expect(model.requests).toHaveLength(2);
    });
  });

  test("a model without image input is informed about an image", async () => {
    const content = await sent({}, () => [text("What is it?"), image]);
    expect(content).toMatch(/What is it\?[^]*image/);
    expect(content).not.toContain("iVBORw0KGgo");
  });
});

describe("commands", () => {
  test("are offered with hints for their arguments", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      const { availableCommands } = await editor.waitForKind(sessionId, "available_commands_update");
      const names = availableCommands.map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(["init", "review", "rename", "cost"]));
      expect(availableCommands.find(({ name }) => name === "rename")?.input).toEqual({ hint: "title" });
    });
  });

  test("/init sends its prompt and the typed arguments to the model", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Written.");
      await editor.prompt(sessionId, "/init mind the $& tests");
      const content = model.requests[0]?.userText ?? "";
      expect(content).toContain("AGENTS.md");
      expect(content).toContain("mind the $& tests");
      expect(content).not.toContain("/init");
    });
  });

  test("/rename sets a title that stays, without a model call", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      expect((await editor.prompt(sessionId, "/rename My work")).stopReason).toBe("end_turn");
      expect(model.requests).toEqual([]);
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      expect(model.titleRequests).toEqual([]);
      expect(editor.updates(sessionId, "session_info_update").map(({ title }) => title)).toEqual(["My work"]);
      expect((await editor.list()).sessions).toMatchObject([{ sessionId, title: "My work" }]);
      expect(model.requests[0]?.messages.map(({ role }) => role)).toEqual(["system", "user"]);
    });
  });

  test("/cost is answered without a model call", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "/cost");
      model.reply("Hello.", reply.usage({ promptTokens: 1500, completionTokens: 34 }));
      await editor.prompt(sessionId, "Hi");
      await editor.prompt(sessionId, "/cost");
      const replyText = agentText(editor.updates(sessionId));
      expect(replyText).toMatch(/Nothing has been used yet\.[^]*Hello\.[^]*1,534 of 100,000 tokens/);
      expect(model.requests).toHaveLength(1);
    });
  });
});
