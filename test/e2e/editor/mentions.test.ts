import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readImageHeader } from "../../../src/tool/image/image-header.ts";
import { plain, withFs, zedLike } from "../../support/editor/clients.ts";
import { createPng } from "../../support/png.ts";
import * as reply from "../../support/model/reply.ts";
import { type StoryContext, storiesOfOneAgent } from "../../support/editor/story.ts";

const story = storiesOfOneAgent();

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const files = {
  "src/a.ts": "one\ntwo\nthree\n",
  "src/b.ts": "b\n",
  "dot.png": png,
  ".env": "KEY=1\n",
  "secret.txt": "hidden\n",
};

/** The model's view of a prompt. */
async function sent({ editor, model }: StoryContext, prompt: string): Promise<string> {
  const { sessionId } = await editor.newSession();
  model.reply("Seen.");
  await editor.prompt(sessionId, prompt);
  return JSON.stringify(model.requests.at(-1)?.messages.findLast(({ role }) => role === "user"));
}

/** Paths of the attached files in a message as JSON. */
const attached = (text: string): string[] =>
  [...text.matchAll(/<attached path=\\"(.*?)\\">/g)].map(([, path = ""]) => JSON.parse(`"${path}"`));

describe.each([
  ["plain", plain],
  ["with files", withFs],
  ["like Zed", zedLike],
] as const)("in an editor that is %s", (_, client) => {
  test("@path, @path#lines and @folder/ attach files, lines and listings", async () => {
    await story({ client: client(), files }, async (storyContext) => {
      const { path } = storyContext.repository;
      const text = await sent(storyContext, "Compare @src/a.ts#L2-3, (@src/b.ts) and @src/.");
      expect(text).toContain("Compare @src/a.ts#L2-3, (@src/b.ts) and @src/.");
      expect(attached(text)).toEqual([join(path, "src/a.ts"), join(path, "src/b.ts"), join(path, "src")]);
      expect(text).toContain("2: two\\n3: three\\n");
      expect(text).not.toContain("1: one");
      expect(text).toContain("1: b\\n");
      expect(text).toMatch(/a\.ts\\nb\.ts/);
    });
  });
});

test("the user sees the text as written with a link, live and loaded", async () => {
  await story({ files }, async ({ editor, model, repository }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Seen.");
    await editor.prompt(sessionId, "Look at @src/a.ts#L2");
    await editor.restart();
    await editor.initialize();
    await editor.load(sessionId);
    const replyText = editor.updates(sessionId, "user_message_chunk").map(({ content }) => content);
    const uri = `${pathToFileURL(join(repository.path, "src/a.ts")).href}#L2:2`;
    expect(replyText).toEqual([
      { type: "text", text: "Look at @src/a.ts#L2" },
      { type: "resource_link", uri, name: "src/a.ts" },
    ]);
  });
});

test.each([
  ["an address", "Write to me@src/a.ts and x@example.com"],
  ["a fence", "```\n@src/a.ts\n```"],
  ["a fence that is not closed", "~~~ts\n@src/a.ts"],
  ["a span of code", "The decorator `@src/a.ts` and ``a ` @src/b.ts``"],
  ["a path without @", "See src/a.ts and ./dot.png"],
  ["what is not there", "@src/none.ts @ @. @@ @/ @build"],
  ["a place outside of the workspace", "@/etc/hostname @../ @~"],
])("%s is not changed", async (_, prompt) => {
  await story({ files }, async (storyContext) => {
    const text = await sent(storyContext, prompt);
    expect(attached(text)).toEqual([]);
    expect(text).not.toContain("image_url");
  });
});

test("sends @image as an image if the model accepts images, otherwise its name", async () => {
  await story({ files }, async (storyContext) => {
    const text = await sent(storyContext, "See @dot.png");
    expect(text).toContain("dot.png (image/png");
  });
});

test("a large image is scaled down for a model that accepts images", async () => {
  const wide = { ...files, "wide.png": createPng(4_000, 20) };
  const scripted = {
    limit: { context: 100_000, output: 8_000 },
    modalities: { input: ["text", "image"], output: ["text"] },
  };
  await story({ files: wide }, async (storyContext) => {
    const { home, model } = storyContext;
    const provider = { test: { options: { baseURL: model.url, apiKey: "k" }, models: { scripted } } };
    const config = JSON.stringify({ model: "test/scripted", provider });
    await home.write({ ".config/fairlead/fairlead.json": config });
    const text = await sent(storyContext, "See @wide.png");
    expect(text).toContain("scaled down from 4000 × 20 to 2000 × 10 pixels");
    const [, data = ""] = /"data:image\/png;base64,([^"\\]+)/.exec(text) ?? [];
    expect(readImageHeader(Buffer.from(data, "base64"))).toMatchObject({ width: 2_000, height: 10 });
  });
});

test("a notice says when the model cannot see an attachment", async () => {
  await story({ files }, async (storyContext) => {
    await sent(storyContext, "See @dot.png");
    const { entries } = storyContext.editor.wire;
    const lines = entries.filter(({ direction }) => direction === "fromAgent").map(({ line }) => line);
    expect(lines.join("\n")).toContain(
      "Scripted cannot see dot.png. Choose a model that supports such files",
    );
  });
});

test("an image of more than 5 MiB is omitted, and the model is informed", async () => {
  const data = Buffer.alloc(5 * 1024 * 1024 + 1).toString("base64");
  await story({ files }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply("I cannot see it.");
    await editor.prompt(sessionId, [
      { type: "text", text: "See" },
      { type: "image", mimeType: "image/png", data },
    ]);
    const [message] = model.requests[0]?.messages.slice(-1) ?? [];
    expect(JSON.stringify(message)).toContain(
      "The user attached image/png (image/png), but it is left out: it has 5242881 bytes",
    );
  });
});

test("a denied file is not read; one that needs asking is, because the user named it", async () => {
  const config = { permission: { read: { "*": "allow", "*.env": "ask", "secret.txt": "deny" } } };
  await story({ config, files }, async (storyContext) => {
    const text = await sent(storyContext, "Read @.env, @secret.txt");
    expect(text).toContain("KEY=1");
    expect(text).not.toContain("hidden");
    expect(text).toMatch(/The user attached file:.*secret\.txt, but it could not be read: the rule read/);
  });
});

test("more than twenty paths are listed, not attached; more than 200 are not looked up", async () => {
  const many = Object.fromEntries(Array.from({ length: 22 }, (_, at) => [`f${at}.txt`, `${at}\n`]));
  const nobody = Array.from({ length: 190 }, (_, at) => `nobody${at}`);
  await story({ files: many }, async (storyContext) => {
    const words = [...Object.keys(many), ...nobody];
    const text = await sent(storyContext, words.map((word) => `@${word}`).join(" "));
    expect(attached(text)).toHaveLength(20);
    expect(text).toContain("2 more paths that the user named with @ were not attached.");
    expect(text).toContain("12 more words with @ were not looked up: they may name files as well.");
  });
});

test("a mentioned file counts as read and can be edited immediately", async () => {
  await story({ files, config: { permission: { edit: "allow" } } }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("edit", { filePath: "src/b.ts", oldString: "b", newString: "c" })).reply("Done.");
    await editor.prompt(sessionId, "Change @src/b.ts");
    expect(model.requests[1]?.toolResults).toEqual([expect.stringContaining("Changed src/b.ts")]);
  });
});
