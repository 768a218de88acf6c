import { expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";

const story = storiesOfOneAgent();

test("reports the usage after each model call, and the turn's total with its answer", async () => {
  await story({ files: { "a.txt": "one\n" } }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    const first = { promptTokens: 500, completionTokens: 10, cachedTokens: 100, reasoningTokens: 4 };
    model
      .reply(reply.call("read", { filePath: "a.txt" }), reply.usage(first))
      .reply("Done.", reply.usage({ promptTokens: 700, completionTokens: 20 }));
    const answer = await editor.prompt(sessionId, "Read");
    expect(editor.updates(sessionId, "usage_update")).toMatchObject([
      { used: 510, size: 100_000 },
      { used: 720, size: 100_000 },
    ]);
    expect(answer._meta?.usage).toEqual({
      inputTokens: 1100,
      outputTokens: 30,
      thoughtTokens: 4,
      cachedReadTokens: 100,
      cachedWriteTokens: 0,
      totalTokens: 1230,
    });
  });
});

test("names the session after the attachments of a prompt without text", async () => {
  await story({ files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
    const { sessionId } = await editor.newSession();
    const uri = `file://${repository.path}/a.txt`;
    model.title(reply.failure(400, "No titles today")).reply("Seen.");
    await editor.prompt(sessionId, [
      { type: "resource_link", uri, name: "a.txt" },
      { type: "resource", resource: { uri: "file:///src/b.rs", text: "fn b() {}" } },
    ]);
    const titles = editor.updates(sessionId, "session_info_update").map(({ title }) => title);
    expect(titles).toEqual(["a.txt, b.rs"]);
  });
});

test("names the session after its first words, and later as a model suggests", async () => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    const gate = reply.gate();
    model
      .title([gate, reply.say('<think>Hm.</think>\n"Counting sheep"\n')])
      .reply("One.")
      .reply("Two.");
    await editor.prompt(sessionId, "Please count the sheep that stand upon the hill over there");
    const titles = () => editor.updates(sessionId, "session_info_update").map(({ title }) => title);
    expect(titles()).toEqual(["Please count the sheep that stand upon the hill o…"]);
    gate.release();
    await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("Counting sheep"));
    await editor.prompt(sessionId, "And the goats");
    expect(titles()).toEqual(["Please count the sheep that stand upon the hill o…", "Counting sheep"]);
    expect(model.titleRequests).toHaveLength(1);
  });
});

test("a title is one plain line, made from the beginning of a long message", async () => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.title("\n**Title: Sheep\u001b[1m on the hill**\nand more").reply("One.");
    await editor.prompt(sessionId, `Count\u0007 the sheep ${"b".repeat(100_000)}`);
    await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("on the hill"));
    expect(editor.updates(sessionId, "session_info_update").map(({ title }) => title)).toEqual([
      `Count the sheep ${"b".repeat(33)}…`,
      "Sheep on the hill",
    ]);
    expect(model.titleRequests[0]?.userText.length).toBeLessThan(4_100);
  });
});

test("without a model's title uses the first words and does not report the failure", async () => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.title(reply.failure(400, "No titles today")).reply("Hello.");
    expect((await editor.prompt(sessionId, "Hi\n  there")).stopReason).toBe("end_turn");
    await (
      await model.titleRequest(1)
    ).ended;
    expect((await editor.list()).sessions).toMatchObject([{ sessionId, title: "Hi there" }]);
    expect(JSON.stringify(editor.updates(sessionId))).not.toContain("No titles today");
  });
});

test("the cost of a session includes every model call, also the one for its title", async () => {
  await story({}, async ({ editor, model, home }) => {
    const cost = { input: 1_000, output: 2_000 };
    const models = { scripted: { limit: { context: 100_000, output: 8_000 }, tool_call: true, cost } };
    const provider = { test: { options: { baseURL: model.url, apiKey: "test-key" }, models } };
    await home.write({
      ".config/fairlead/fairlead.json": JSON.stringify({ model: "test/scripted", provider }),
    });
    const { sessionId } = await editor.newSession();
    const titled = reply.gate();
    model.title(["A title", reply.usage({ promptTokens: 10, completionTokens: 1 })]);
    model.reply(titled, "Hello.", reply.usage({ promptTokens: 1_000, completionTokens: 100 }));
    const turn = editor.prompt(sessionId, "Hi");
    await editor.waitFor(sessionId, (update) => JSON.stringify(update).includes("A title"));
    titled.release();
    await turn;
    expect(editor.updates(sessionId, "usage_update")).toMatchObject([
      { used: 1_100, cost: { amount: 1.212, currency: "USD" } },
    ]);
  });
});

test("usage is still known when the session is loaded again", async () => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Hello.", reply.usage({ promptTokens: 800, completionTokens: 8 }));
    await editor.prompt(sessionId, "Hi");
    await editor.restart();
    await editor.initialize();
    await editor.load(sessionId);
    expect(editor.updates(sessionId, "usage_update")).toMatchObject([{ used: 808, size: 100_000 }]);
    expect(editor.updates(sessionId, "session_info_update")).toMatchObject([{ title: "A scripted title" }]);
  });
});
