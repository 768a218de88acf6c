import { RequestError, type ContentBlock } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import type { ModelRequest } from "../../support/model/model-server.ts";
import { createPng } from "../../support/png.ts";
import * as reply from "../../support/model/reply.ts";
import { type StoryContext, story } from "../../support/editor/story.ts";
import { agentText, thoughtText, toolCalls } from "../../support/transcript.ts";

const data = "iVBORw0KGgo=";
const image: ContentBlock = { type: "image", mimeType: "image/png", data };
const question: ContentBlock[] = [{ type: "text", text: "What is it?" }, image];

const notice = (why: string): string =>
  `Seer was asked again without images: ${why}. No images go to it until Fairlead starts again. ` +
  'If it takes none, set "modalities": {"input": ["text"]} for provider.test.models.seer in fairlead.json.\n\n';

const refusal = reply.failure(400, "No image\ninput here.\n");
const why = "The provider refused the request (400): No image input here";

/** A session with models that are configured to accept images. */
async function seerStory(
  play: (context: StoryContext & { sessionId: string }) => Promise<void>,
): Promise<void> {
  await story({ files: { "dot.png": createPng(2, 2) } }, async (context) => {
    const modalities = { input: ["text", "image"], output: ["text"] };
    const models = Object.fromEntries(
      ["Seer", "a", "b", "c", "d", "e"].map((name) => [name.toLowerCase(), { name, modalities }]),
    );
    const options = { baseURL: context.model.url, apiKey: "test-key" };
    await context.home.write({
      ".config/fairlead/fairlead.json": JSON.stringify({
        model: "test/seer",
        provider: { test: { options, models } },
        retry: { delay_ms: 20, attempts: 2 },
      }),
    });
    const { sessionId } = await context.editor.newSession();
    await play({ ...context, sessionId });
  });
}

/** The indexes of requests with an image. */
const withImage = (requests: readonly ModelRequest[]): boolean[] =>
  requests.map(({ body }) => JSON.stringify(body).includes("image_url"));

const lastContent = ({ messages }: ModelRequest): unknown =>
  messages.findLast(({ role }) => role === "user")?.content;

test("omits a refused image from later requests to that model, with one notice", async () => {
  await seerStory(async ({ editor, model, repository, sessionId }) => {
    model.reply(refusal).reply("I cannot see it.").reply("Fine.").reply("No.").reply("A dot.");
    expect((await editor.prompt(sessionId, question)).stopReason).toBe("end_turn");
    expect(agentText(editor.updates(sessionId))).toBe("I cannot see it.");
    expect(thoughtText(editor.updates(sessionId))).toBe(notice(why));
    expect(model.requests.map(lastContent)).toEqual([
      [
        { type: "text", text: "What is it?" },
        { type: "image_url", image_url: { url: `data:image/png;base64,${data}` } },
      ],
      [
        { type: "text", text: "What is it?" },
        { type: "text", text: "[Attached image/png: this model cannot see it]" },
      ],
    ]);

    await editor.prompt(sessionId, "Go on then.");
    const second = await editor.newSession({ cwd: repository.path });
    await editor.prompt(second.sessionId, question);
    expect(withImage(model.requests)).toEqual([true, false, false, false]);
    expect(thoughtText(editor.updates(sessionId))).toBe(notice(why));
    expect(thoughtText(editor.updates(second.sessionId))).toMatch(/^Seer cannot see image\/png/);

    await editor.setConfigOption(second.sessionId, "model", "test/a");
    await editor.prompt(second.sessionId, question);
    expect(withImage(model.requests.slice(-1))).toEqual([true]);
  });
});

test("if the model may accept other images, a refusal counts in its session only", async () => {
  await seerStory(async ({ editor, model, repository, sessionId }) => {
    model.reply(reply.failure(400, "At most 1 image(s) may be provided in one request."));
    model.reply("I cannot see them.").reply("Fine.").reply("A dot.");
    await editor.prompt(sessionId, [...question, image]);
    expect(thoughtText(editor.updates(sessionId))).toContain("No images go to it in this session any more.");
    await editor.prompt(sessionId, "Go on then.");
    const second = await editor.newSession({ cwd: repository.path });
    await editor.prompt(second.sessionId, question);
    expect(withImage(model.requests)).toEqual([true, false, false, true]);
  });
});

test("omits a refused image of a tool, and continues with the turn", async () => {
  await seerStory(async ({ editor, model, sessionId }) => {
    model.reply(reply.call("read", { filePath: "dot.png" }), reply.finish("tool_calls"));
    model.reply(reply.failure(422, "messages.3: unknown variant image_url")).reply("Not for me.");
    expect((await editor.prompt(sessionId, "Look at dot.png")).stopReason).toBe("end_turn");
    expect(agentText(editor.updates(sessionId))).toBe("Not for me.");
    expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual(["completed"]);
    expect(withImage(model.requests)).toEqual([false, true, false]);
  });
});

test("a refusal is recognized by status, by message and inside a stream", async () => {
  await seerStory(async ({ editor, model, sessionId }) => {
    const refusals: Record<string, readonly reply.Step[]> = {
      a: [reply.failure(415, "Unsupported")],
      b: [reply.failure(404, "No endpoints found that support image input")],
      c: [reply.failure(500, "image input is not supported - hint: you may need to provide the mmproj")],
      d: [reply.errorEvent("images are not supported", { type: "invalid_request_error" })],
      // The error of the second request is temporary.
      e: [refusal, reply.failure(503, "Busy")],
    };
    for (const [name, answers] of Object.entries(refusals)) {
      await editor.setConfigOption(sessionId, "model", `test/${name}`);
      const before = model.requests.length;
      for (const answer of answers) model.reply(answer);
      model.reply("I cannot see it.");
      await editor.prompt(sessionId, question);
      expect(withImage(model.requests.slice(before))).toEqual([true, ...answers.map(() => false)]);
    }
    expect(agentText(editor.updates(sessionId))).toBe("I cannot see it.".repeat(5));
  });
});

test("shows the first refusal and still sends images if they were not the reason", async () => {
  await seerStory(async ({ editor, model, sessionId }) => {
    model.reply(refusal).reply(reply.failure(400, "Something else"));
    const failed: unknown = await editor.prompt(sessionId, question).catch((error: unknown) => error);
    expect(failed instanceof RequestError && failed.message).toBe(`${why}.`);
    model.reply("A dot.");
    await editor.prompt(sessionId, question);
    expect(withImage(model.requests)).toEqual([true, false, true]);
    expect(thoughtText(editor.updates(sessionId))).toBe("");
  });
});

test("images are not blamed for a key or a limit", async () => {
  await seerStory(async ({ editor, model, sessionId }) => {
    for (const status of [401, 402]) {
      model.reply(reply.failure(status, "No"));
      await expect(editor.prompt(sessionId, question)).rejects.toThrow(`(${status})`);
    }
    expect(withImage(model.requests)).toEqual([true, true]);
  });
});
