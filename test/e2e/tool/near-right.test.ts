import { existsSync } from "node:fs";
import { join, sep } from "node:path";
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

describe("calls that are nearly correct", () => {
  test.each(served)("%s is accepted, and the result names the repair", async (_, tool, input, result) => {
    const { toolResults } = await runCalls([reply.call(tool, input)]);
    expect(toolResults).toEqual([expect.stringMatching(result)]);
  });

  test("the history has the arguments as sent, the card those that run", async () => {
    const { messages } = await runCalls(
      [reply.call("read", { file_path: "src/a.txt", limit: "1" })],
      async ({ editor, sessionId }) => {
        expect(toolCalls(editor.updates(sessionId))).toMatchObject([
          { title: "Read src/a.txt (line 1)", rawInput: { filePath: "src/a.txt", limit: 1 } },
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

const use = (recipient_name: string, parameters: unknown) => ({ recipient_name, parameters });
const parallel = (...tool_uses: unknown[]) => reply.call("multi_tool_use.parallel", { tool_uses });

describe("several calls in one", () => {
  test("each is run, with a card and a result", async () => {
    const { messages, toolResults } = await runCalls(
      [
        parallel(
          use("functions.read", { file_path: "src/a.txt" }),
          use("functions.bash", { cmd: "cat b.txt" }),
        ),
      ],
      async ({ editor, sessionId }) => {
        expect(toolCalls(editor.updates(sessionId))).toMatchObject([
          { title: "Read src/a.txt", name: "read", kind: "read", status: "completed" },
          { title: "cat b.txt", name: "bash", kind: "execute", status: "completed" },
        ]);
      },
    );
    expect(toolResults).toEqual([
      expect.stringMatching(/1: one[^]*call 1 of 2 \(you sent multi_tool_use\.parallel\)/),
      expect.stringMatching(/two[^]*call 2 of 2 \(you sent multi_tool_use\.parallel\)/),
    ]);
    // The arguments are unchanged, and each call has its own id.
    const history = JSON.stringify(messages);
    expect(history).toContain(String.raw`{\"file_path\":\"src/a.txt\"}`);
    expect(history).toContain(String.raw`{\"cmd\":\"cat b.txt\"}`);
    const ids = history.match(/(?<="tool_call_id":")[^"]+/g) ?? [];
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(history).toContain(`"id":"${id}"`);
  });

  test("each passes the permission gate", async () => {
    const calls = [
      use("functions.bash", { command: "touch made" }),
      use("functions.read", { filePath: "b.txt" }),
    ];
    const { toolResults } = await runCalls(
      [parallel(...calls)],
      async ({ editor }) => {
        expect(editor.permissionRequests).toMatchObject([
          { toolCall: { title: "touch made", rawInput: { command: "touch made" } } },
        ]);
      },
      { config: { permission: { bash: { "*": "ask" } } }, permission: "allow_once" },
    );
    expect(toolResults).toHaveLength(2);
  });

  test("one that is denied does not run, and the others do", async () => {
    const { toolResults } = await runCalls(
      [
        parallel(
          use("functions.bash", { command: "touch made" }),
          use("functions.read", { filePath: "b.txt" }),
        ),
      ],
      async ({ repository }) => {
        expect(existsSync(join(repository.path, "made"))).toBe(false);
      },
      { config: { permission: { bash: { "*": "allow", "touch *": "deny" } } } },
    );
    expect(toolResults).toEqual([
      expect.stringMatching(/Not run\. A rule forbids/),
      expect.stringMatching(/1: two/),
    ]);
  });

  test("one with an unknown name is refused, and the others run", async () => {
    const { toolResults } = await runCalls([
      parallel(
        use("functions.nothing", {}),
        use("multi_tool_use.parallel", { tool_uses: [] }),
        use("read", { filePath: "b.txt" }),
      ),
    ]);
    expect(toolResults).toEqual([
      expect.stringMatching(/There is no tool "functions\.nothing"/),
      expect.stringMatching(/There is no tool "multi_tool_use\.parallel"/),
      expect.stringMatching(/1: two/),
    ]);
  });

  test.each([
    ["an empty list", { tool_uses: [] }, /The list of calls in multi_tool_use\.parallel is empty/],
    ["no list", { recipient_name: "functions.read" }, /needs a list of calls in tool_uses/],
    [
      "a cut list",
      '{"tool_uses": [{"recipient_name": "functions.bash", "parameters": {"command": "touch made"}}',
      /not valid JSON|ends too early/,
    ],
  ])("%s is refused with the next step", async (_, input, says) => {
    const { toolResults } = await runCalls(
      [reply.call("multi_tool_use.parallel", input)],
      async ({ editor, sessionId, repository }) => {
        expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ status: "failed" }]);
        expect(existsSync(join(repository.path, "made"))).toBe(false);
      },
    );
    expect(toolResults).toEqual([expect.stringMatching(says)]);
    expect(toolResults[0]).toMatch(/Nothing was run\. Call each tool by its own name/);
  });
});

describe("error messages", () => {
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

describe("explain why a search finds nothing", () => {
  const source = { "src/a.ts": "const Total = price(1);\nlet cost = $5;\n", "src/b.ts": "x\n" };
  const grep = (pattern: string, more: object = {}) => reply.call("grep", { pattern, ...more });
  const glob = (pattern: string, path?: string) => reply.call("glob", { pattern, path });
  /** On Windows a backslash separates folders, so that the pattern matches. */
  const withBackslash = (found: RegExp, none: RegExp) => (sep === "\\" ? found : none);
  test.each([
    [grep("cost = $5"), /write \\\$ for the character \$/],
    [grep("let ^cost"), /write \\\^ for the character \^/],
    [grep(String.raw`total\|cost`), /write \| between alternatives/],
    [grep(String.raw`price\(\d\)`), /1: const Total/],
    [grep("/cost/"), /slashes around the pattern/],
    [grep("'cost'"), /quotes around the pattern/],
    [grep("const total"), /Without regard to upper and lower case 1 line matches: put \(\?i\) before/],
    [grep("(?i)absent"), /^No lines match in the working directory\.$/],
    [grep("absent"), /^No lines match in the working directory\.$/],
    [
      grep("Total", { include: String.raw`src\*.ts` }),
      withBackslash(/1: const Total/, /No lines match.*separate folders by \//),
    ],
    [grep("price("), /is not valid: unclosed group/],
    [glob(String.raw`src\*.ts`), withBackslash(/^src\/[ab]\.ts$/m, /No files match.*separate folders by \//)],
    [glob("/somewhere/else/*.ts"), /A leading \/ means the folder that is searched/],
    [glob("../*.ts"), /does not lead out of the folder/],
    [glob("src/*.ts", "src"), /Patterns are relative to the folder that is searched/],
    [glob("{a,b.ts"), /bracket is not closed/],
    [glob("a"), /no wildcard/],
    [glob("**/*.py"), /^No files match in the working directory\.$/],
  ])("%#", async (call, says) => {
    const { toolResults } = await runCalls([call], undefined, { files: source });
    expect(toolResults).toEqual([expect.stringMatching(says)]);
    expect(toolResults[0]?.length).toBeLessThan(480);
  });
});

describe("cut calls", () => {
  const cut = `{"filePath": "new.txt", "content": "${"line\\n".repeat(535)}`;
  test.each([
    [
      "the limit of output tokens",
      "length",
      /The arguments were cut off because the limit of output tokens was reached\. Nothing was run\. /,
    ],
    [
      "a server that does not say so",
      "tool_calls",
      /The arguments of write are not valid JSON: they end too early\. /,
    ],
  ])("by %s report how much arrived, and what to do", async (_, reason, says) => {
    const { toolResults } = await runCalls(
      [reply.call("write", cut), reply.finish(reason)],
      async ({ repository }) => {
        expect(existsSync(join(repository.path, "new.txt"))).toBe(false);
      },
    );
    expect(toolResults).toEqual([expect.stringMatching(says)]);
    expect(toolResults[0]).toContain(
      `Arrived: ${cut.length.toLocaleString("en-US")} characters, cut within \`content\`. Send less at once: write the first part, then add the rest with further calls`,
    );
    expect(toolResults[0]?.length).toBeLessThan(480);
  });

  test("of a few characters are sent again completely", async () => {
    const { toolResults } = await runCalls([reply.call("bash", '{"command": "ls'), reply.finish("length")]);
    expect(toolResults).toEqual([
      expect.stringMatching(/Arrived: 15 characters, cut within `command`\. Call it again\.$/),
    ]);
  });
});

describe("calls with a risky repair", () => {
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
