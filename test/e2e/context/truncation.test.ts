import { readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { toolCalls } from "../../support/transcript.ts";

const storyOfAgent = storiesOfOneAgent();
/** A window large enough for each result. */
const story: typeof storyOfAgent = (options, play) =>
  storyOfAgent({ limit: { context: 400_000, output: 8_000 }, ...options }, play);

/** Maximum bytes of one result for the model: the limit of 50 KB with its notice. */
const modelLimitBytes = 52 * 1024;
/** Maximum bytes of one command for an editor, live output and end together. */
const editorLimitBytes = 512 * 1024;

const wireBytes = (lines: readonly { line: string }[]) =>
  lines.reduce((sum, { line }) => sum + Buffer.byteLength(line), 0);

const namedFile = (text: string) => /The whole(?: output)? is in (\/\S+?)[.:] /.exec(text)?.[1] ?? "";

test("a 10 MB output is truncated for model and editor, and a file has all of it", async () => {
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
    expect(output).toMatch(
      /the end\n\n\[Only the last 2000 lines are shown; 9\.5 MB before are missing here\. .*\]$/,
    );
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

test("the file with the complete output can be read despite general rules", async () => {
  const asks = { read: "ask", grep: "ask", glob: "ask", list: "ask", external_directory: "deny" };
  const config = { permission: { ...asks, bash: { "*": "ask", "seq *": "allow" } } };
  await story({ config, permission: "reject_once" }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.call("bash", { command: "seq 5000" })).replyWith(({ toolResults: [output = ""] }) => {
      const path = namedFile(output);
      return reply.together(
        reply.callScript("read", { filePath: path, limit: 3 }),
        reply.callScript("grep", { pattern: "^77$", path }),
        reply.callScript("grep", { pattern: "^77$", path: dirname(path) }),
        reply.callScript("glob", { pattern: "bash-*", path: dirname(path) }),
        reply.callScript("list", { path: dirname(path) }),
        reply.callScript("bash", { command: `head -n 2 ${path}` }),
        reply.callScript("bash", { command: `cat ${path}` }),
      );
    });
    model.reply("Seen.");
    await editor.prompt(sessionId, "Count");
    expect(editor.permissionRequests).toEqual([]);
    expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual(
      Array.from({ length: 8 }, () => "completed"),
    );
    expect(model.requests[2]?.toolResults.slice(-7)).toEqual([
      expect.stringContaining("1"),
      ...Array.from({ length: 2 }, () => expect.stringContaining("77")),
      ...Array.from({ length: 2 }, () => expect.stringContaining("bash-")),
      "1\n2",
      expect.stringContaining("5000"),
    ]);
  });
});

test("a rule that names its folder protects the file with the complete output", async () => {
  const config = { permission: { external_directory: { "*": "ask", "*/tool-output*": "deny" } } };
  await story({ config }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model
      .reply(reply.call("bash", { command: "seq 5000" }))
      .replyWith(({ toolResults: [output = ""] }) =>
        reply.together(
          reply.callScript("read", { filePath: namedFile(output) }),
          reply.callScript("bash", { command: `cat ${namedFile(output)}` }),
        ),
      );
    model.reply("I may not.");
    await editor.prompt(sessionId, "Count");
    expect(model.requests[2]?.toolResults.slice(-2)).toEqual([
      expect.stringMatching(/^Not run\. A rule forbids external_directory/),
      expect.stringMatching(/^Not run\. A rule forbids external_directory/),
    ]);
  });
});

test("only this user can read the file with the complete output", async () => {
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
    expect(output).toMatch(/^x{51200}\n\n\[Only the last line is shown; 2\.8 MB before/);
    expect(wireBytes(editor.wire.entries)).toBeLessThan(editorLimitBytes);
  });
});

test("a long file is read in parts, with the line to continue at", async () => {
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

test("notes about an output follow it, however much of it is truncated", async () => {
  const rules = `Rules of the folder.\n${"Keep to them.\n".repeat(100)}`;
  const wide = `${"w".repeat(200)}\n`.repeat(1_000);
  const files = { "sub/AGENTS.md": rules, "sub/wide.txt": wide };
  await story({ files }, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    const report = Array.from({ length: 9_000 }, (_, at) => `finding ${at}`).join("\n");
    model.when(({ userText }) => userText === "Look around", report);
    model
      .reply(
        reply.together(
          reply.callScript("read", { filePath: "sub/wide.txt" }),
          reply.callScript("task", {
            description: "Look",
            prompt: "Look around",
            subagent_type: "general",
          }),
        ),
      )
      .reply("Seen.");
    await editor.prompt(sessionId, "Look");
    const [read = "", task = ""] =
      model.requests.find(({ toolResults }) => toolResults.length === 2)?.toolResults ?? [];
    expect(read).toMatch(
      /w{200}\n\n\(Lines 1-\d+ of 1000, cut at 50 KB\. Go on with offset \d+\.\)\n\nInstructions for this folder/,
    );
    expect(read.endsWith(rules.trim())).toBe(true);
    expect(task).toMatch(
      /finding 1999\n\n\[Cut: 7000 lines, .*\]\n\n<task_metadata>\n[^]+\n<\/task_metadata>$/,
    );
  });
});

test("keeps a command's end, exit code and path to the rest within any output limits", async () => {
  const ran = async (max_lines: number, command: string) => {
    let output = "";
    await story({ config: { tool_output: { max_lines } } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command })).reply("Seen.");
      await editor.prompt(sessionId, "Count");
      [output = ""] = model.requests[1]?.toolResults ?? [];
    });
    return output;
  };
  const numbers = (first: number, last: number) =>
    Array.from({ length: last - first + 1 }, (_, at) => first + at).join("\n");
  expect(await ran(10, "seq 10; exit 3")).toBe(`${numbers(1, 10)}\n\n[exit code 3]`);
  const cut = await ran(10, "seq 100; exit 3");
  const [shown, note, code] = cut.split("\n\n");
  expect([shown, code]).toEqual([numbers(91, 100), "[exit code 3]"]);
  expect(note).toMatch(
    /^\[Only the last 10 lines are shown; 261 bytes before are missing here\. The whole output/,
  );
  expect(await readFile(namedFile(cut), "utf8")).toBe(`${numbers(1, 100)}\n`);
  expect(await ran(5_000, "seq 4000")).toBe(numbers(1, 4_000));
});

test("uses the configured limits", async () => {
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
