import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent, type StoryContext, type StoryOptions } from "../../support/editor/story.ts";
import { toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();
const files = { "src/a.txt": "one\n", "b.txt": "two\n" };

/** Makes the calls in one step. Returns the request with their results. */
async function runCalls(
  calls: readonly reply.Step[],
  check?: (context: StoryContext & { sessionId: string }) => Promise<void>,
  options: StoryOptions = {},
): Promise<ModelRequest> {
  let answer: ModelRequest | undefined;
  await story({ files, ...options }, async (context) => {
    const { sessionId } = await context.editor.newSession();
    context.model.reply(calls).reply("Done.");
    await context.editor.prompt(sessionId, "Go");
    answer = context.model.requests[1];
    await check?.({ ...context, sessionId });
  });
  if (answer === undefined) throw new Error("The model was not asked again.");
  return answer;
}

const served: readonly (readonly [string, string, unknown, RegExp])[] = [
  ["another key", "read", { file_path: "src/a.txt" }, /1: one[^]*Read as filePath \(you sent file_path\)\./],
  ["a number as text", "read", { filePath: "src/a.txt", limit: "1" }, /1: one[^]*limit = 1 \(you sent "1"\)/],
  ["a trailing comma", "read", '{"filePath": "src/a.txt",}', /1: one[^]*a trailing comma/],
  ["a fence", "read", '```json\n{"filePath": "src/a.txt"}\n```', /1: one/],
  ["Python quotes", "read", "{'filePath': 'src/a.txt'}", /1: one/],
  ["JSON in a text", "read", JSON.stringify('{"filePath": "src/a.txt"}'), /1: one/],
  ["a wrapper", "read", { arguments: { filePath: "src/a.txt" } }, /1: one/],
  [
    "a prefix",
    "functions.read",
    { filePath: "src/a.txt" },
    /1: one[^]*Read as read \(you sent functions\.read\)/,
  ],
  ["a token of the template", "read<|channel|>commentary", { filePath: "src/a.txt" }, /1: one/],
  ["a tool of another program", "search_file_content", { query: "one" }, /src\/a\.txt/],
  [
    "a list for a command",
    "shell",
    { command: ["bash", "-lc", "cat b.txt"] },
    /two[^]*command = "cat b\.txt"/,
  ],
  [
    "words for a status",
    "todo_write",
    { todos: '[{"content": "Look", "status": "done"}]' },
    /1 of 1 todos done/,
  ],
  ["a line after the path", "read", { filePath: "src/a.txt:1" }, /1: one[^]*Read src\/a\.txt/],
  ["a path with backslashes", "read", { filePath: String.raw`src\a.txt` }, /1: one/],
  ["an unknown key", "grep", { pattern: "one", "-i": true }, /-i is not a parameter and was ignored/],
];

describe("calls that are nearly right", () => {
  test.each(served)("%s is served and named", async (_, tool, input, result) => {
    const { toolResults } = await runCalls([reply.call(tool, input)]);
    expect(toolResults).toEqual([expect.stringMatching(result)]);
  });

  test("the history has the arguments as they were sent, the card those that run", async () => {
    const { messages } = await runCalls(
      [reply.call("read", { file_path: "src/a.txt", limit: "1" })],
      async ({ editor, sessionId }) => {
        expect(toolCalls(editor.updates(sessionId))).toMatchObject([
          { title: "src/a.txt", rawInput: { filePath: "src/a.txt", limit: 1 } },
        ]);
      },
    );
    expect(JSON.stringify(messages)).toContain(String.raw`{\"file_path\":\"src/a.txt\",\"limit\":\"1\"}`);
  });

  test("permission is asked for the command that runs", async () => {
    const call = reply.call("shell", { cmd: ["sh", "-c", "touch made"] });
    await runCalls(
      [call],
      async ({ editor }) => {
        expect(editor.permissionRequests).toMatchObject([
          { toolCall: { rawInput: { command: "touch made" } } },
        ]);
      },
      { config: { permission: { bash: "ask" } }, permission: "allow_once" },
    );
  });
});

describe("refusals", () => {
  test("quote the place of a mistake in JSON", async () => {
    const { toolResults } = await runCalls([reply.call("read", '{"filePath": src/a.txt, "limit": 1}')]);
    expect(toolResults).toEqual([expect.stringMatching(/not valid JSON.*near: .*src\/a\.txt/)]);
  });

  test("say that a pattern cannot match across lines", async () => {
    const { toolResults } = await runCalls([
      reply.call("grep", { pattern: String.raw`one\ntwo` }),
      reply.call("grep", { pattern: "absent" }),
    ]);
    expect(toolResults).toEqual([
      expect.stringMatching(/No lines match.*each line is matched alone/),
      expect.not.stringContaining("matched alone"),
    ]);
  });
});

describe("calls that could do harm", () => {
  test.each([
    ["write", '{"filePath": "new.txt", "content": "half'],
    ["write", '{"filePath": "new.txt", "content": "half"'],
    ["bash", '{"command": "touch new.txt"'],
    ["write", '{"filePath": "new.txt", "content": "say "hi" now"}'],
  ])("%s with %s is refused", async (tool, raw) => {
    const { toolResults } = await runCalls([reply.call(tool, raw)], async ({ editor }) => {
      expect(editor.permissionRequests).toEqual([]);
    });
    expect(toolResults).toEqual([expect.stringMatching(/not valid JSON|cut off/)]);
  });
});
