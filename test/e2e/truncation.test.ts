import { readFile, stat } from "node:fs/promises";
import { expect, test } from "vitest";
import * as reply from "../support/reply.ts";
import { storiesOfOneAgent } from "../support/story.ts";
import { toolCalls } from "../support/transcript.ts";

const story = storiesOfOneAgent();

/** What a model may read of one result: the limit of 50 KB with its notice. */
const modelLimitBytes = 52 * 1024;
/** What an editor may be sent of one command, live output and end together. */
const editorLimitBytes = 512 * 1024;

const wireBytes = (lines: readonly { line: string }[]) =>
  lines.reduce((sum, { line }) => sum + Buffer.byteLength(line), 0);

const namedFile = (text: string) => /The whole(?: output)? is in (\/\S+?)[.:] /.exec(text)?.[1] ?? "";

test("an output of 10 MB is bounded for model and editor, and whole in a file that the model is told of", async () => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    const command = `yes "a line of the output" | head -c 10000000; echo; echo the end`;
    model
      .reply(reply.call("bash", { command }))
      .replyWith(({ toolResults: [output = ""] }) => [
        reply.call("grep", { pattern: "the end", path: namedFile(output) }),
      ]);
    model.reply("Seen.");
    await editor.prompt(sessionId, "Print");
    const [output = ""] = model.requests[1]?.toolResults ?? [];
    expect(Buffer.byteLength(output)).toBeLessThan(modelLimitBytes);
    expect(output).toMatch(/^\[Only the last \d+ lines of 9\.5 MB are shown\./);
    expect(output).toMatch(/the end$/);
    const whole = await readFile(namedFile(output), "utf8");
    expect(whole).toMatch(/^a line of the output\n[^]*\nthe end\n$/);
    expect(whole.length).toBeGreaterThan(10_000_000);
    expect(model.requests[2]?.toolResults).toEqual([expect.stringContaining("the end")]);
    expect(wireBytes(editor.wire.entries)).toBeLessThan(editorLimitBytes);
    expect(toolCalls(editor.updates(sessionId))).toMatchObject([
      { status: "completed" },
      { status: "completed" },
    ]);
  });
});

test("the file with the whole is for this person only", async () => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "seq 100000" })).reply("Seen.");
    await editor.prompt(sessionId, "Print");
    const { mode } = await stat(namedFile(model.requests[1]?.toolResults[0] ?? ""));
    expect(mode & 0o077).toBe(0);
  });
});

test("a binary output is described and not shown", async () => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "head -c 5000000 /dev/zero" })).reply("Seen.");
    await editor.prompt(sessionId, "Print");
    expect(model.requests[1]?.toolResults).toEqual([
      expect.stringMatching(/^\[The output is binary, about [\d.]+ MB, and is not shown/),
    ]);
    expect(wireBytes(editor.wire.entries)).toBeLessThan(editorLimitBytes);
  });
});

test("one endless line is bounded too", async () => {
  await story({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "head -c 3000000 /dev/zero | tr '\\0' x" })).reply("Seen.");
    await editor.prompt(sessionId, "Print");
    const [output = ""] = model.requests[1]?.toolResults ?? [];
    expect(Buffer.byteLength(output)).toBeLessThan(modelLimitBytes);
    expect(output).toMatch(/x{1000}$/);
    expect(wireBytes(editor.wire.entries)).toBeLessThan(editorLimitBytes);
  });
});

test("a long file is read in parts, with the place to go on", async () => {
  const lines = Array.from({ length: 5_000 }, (_, at) => `line ${at + 1}\n`).join("");
  await story({ files: { "long.txt": lines } }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model
      .reply(reply.call("read", { filePath: "long.txt" }))
      .reply(reply.call("read", { filePath: "long.txt", offset: 2001 }))
      .reply("Seen.");
    await editor.prompt(sessionId, "Read");
    const [first = ""] = model.requests[1]?.toolResults ?? [];
    expect(first).toContain("2000: line 2000\n");
    expect(first).not.toContain("2001: ");
    expect(first.split("\n").at(-1)).toMatch(/offset 2001/);
    expect(model.requests[2]?.toolResults[0]).toMatch(/^2001: line 2001\n/);
  });
});

test("the configured limits are kept", async () => {
  await story(
    { config: { tool_output: { max_lines: 20, max_bytes: 1_000 } } },
    async ({ editor, model, repository }) => {
      await repository.write(
        Object.fromEntries(Array.from({ length: 90 }, (_, at) => [`file-${at}.txt`, "x\n"])),
      );
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("glob", { pattern: "**/*.txt" })).reply("Seen.");
      await editor.prompt(sessionId, "List");
      const [output = ""] = model.requests[1]?.toolResults ?? [];
      expect(output.split("\n").filter((line) => line.endsWith(".txt")).length).toBeLessThanOrEqual(20);
      const whole = await readFile(namedFile(output), "utf8");
      expect(whole.split("\n").filter((line) => line.endsWith(".txt"))).toHaveLength(90);
    },
  );
});
