import { describe, expect, test } from "vitest";
import { findWrittenCalls } from "../../../../src/model/answer/written-calls/find-calls.ts";
import { lookAlikes, offeredTools, writtenCallCases } from "./written-calls-cases.ts";

const find = (answer: string) => findWrittenCalls(answer, offeredTools);
const callsIn = (answer: string) =>
  find(answer)?.calls.map(({ tool, input, raw }) => ({ tool, input: input ?? raw }));

test("the corpus has each format in two shapes, with its report", () => {
  const formats = new Set(writtenCallCases.map(({ format }) => format));
  expect(formats.size).toBeGreaterThanOrEqual(30);
  for (const { source } of writtenCallCases)
    expect(source).toMatch(/^https:\/\/(github\.com|docs\.vllm\.ai|lmstudio\.ai)\/.+$/);
  expect(lookAlikes.length).toBeGreaterThanOrEqual(40);
});

describe("calls as text", () => {
  test.each(writtenCallCases.map((one, index) => [`${index + 1} ${one.format}`, one] as const))(
    "%s are found",
    (_, { text: markup, calls, parsers, isLoose }) => {
      expect(callsIn(markup)).toEqual(calls);
      expect(find(markup)).toMatchObject({ parsers, isCertain: true });
      const beginnings = [
        "Let me read the file first:\n\n",
        "I need to see the logged output.\n",
        "Done so far.\n\n",
      ];
      for (const beginning of beginnings) {
        const found = find(beginning + markup);
        expect([beginning, callsIn(beginning + markup)]).toEqual([beginning, calls]);
        const isAnnounced = beginning !== "Done so far.\n\n";
        expect(found?.isCertain).toBe(isAnnounced || !isLoose);
        // The answer ends with the markup of the calls.
        const all = found?.calls.map((call) => call.markup).join("");
        expect((beginning + markup).slice(found?.start)).toBe(all);
        expect((beginning + markup).slice(0, found?.start).trim()).toBe(
          markup.startsWith("count") ? `${beginning}count` : beginning.trim(),
        );
      }
    },
  );

  test.each([
    [
      "after prose in its line",
      'Let me search: <tool_call>{"name": "list", "arguments": {}}</tool_call>',
      "list",
      {},
    ],
    ["without arguments", "<tool_call>todoread</tool_call>", "todoread", {}],
    [
      "with a name in capitals",
      '<tool_call>{"name": "Read", "arguments": {"filePath": "a"}}</tool_call>',
      "read",
      { filePath: "a" },
    ],
    [
      "with another program's name",
      '<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>',
      "read",
      { path: "a" },
    ],
    [
      "with a trailing comma",
      '<tool_call>{"name": "read", "arguments": {"filePath": "a",}}</tool_call>',
      "read",
      '{"filePath": "a",}',
    ],
    [
      "with a raw line break",
      '<tool_call>{"name": "bash", "arguments": {"command": "ls\npwd"}}</tool_call>',
      "bash",
      '{"command": "ls\npwd"}',
    ],
    [
      "after a code block that is closed",
      'The file has this:\n```ts\nconst a = 1;\n```\nNow let me run it:\n<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>',
      "bash",
      { command: "ls" },
    ],
    [
      "with the format's own tags in a value",
      "<function=edit>\n<parameter=filePath>\na.md\n</parameter>\n<parameter=newString>\nWrite </parameter> and <function=bash> here.\n</parameter>\n</function>",
      "edit",
      { filePath: "a.md", newString: "Write </parameter> and <function=bash> here." },
    ],
    [
      "with indentation and line breaks in a value",
      "<function=edit>\n<parameter=filePath>\na.md\n</parameter>\n<parameter=newString>\n  two\n\n</parameter>\n</function>",
      "edit",
      { filePath: "a.md", newString: "  two\n" },
    ],
    ["with escapes of Python", '[bash(command="echo \\"a\\"\\nls")]', "bash", { command: 'echo "a"\nls' }],
  ])("%s are found", (_, answer, tool, input) => {
    expect(callsIn(answer)).toEqual([{ tool, input }]);
  });

  test("of two tools are found in their order", () => {
    const answer =
      '<tool_call>{"name": "read", "arguments": {"filePath": "a"}}</tool_call><tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>';
    expect(callsIn(answer)?.map(({ tool }) => tool)).toEqual(["read", "bash"]);
  });

  test("after an earlier, truncated call are not certain", () => {
    const cut = "<function=edit>\n<parameter=newString>\n";
    const whole = "<function=bash>\n<parameter=command>\nrm -rf build\n</parameter>\n</function>";
    expect(find(cut + whole)?.isCertain ?? false).toBe(false);
  });

  test("with long values are found", () => {
    const value = `\`\`\`js\n${"call();\n".repeat(5_000)}\`\`\``;
    const answer = `<function=edit>\n<parameter=filePath>a.md</parameter>\n<parameter=newString>\n${value}\n</parameter>\n</function>`;
    expect(callsIn(answer)).toEqual([{ tool: "edit", input: { filePath: "a.md", newString: value } }]);
  });

  test("are found in moderate time", () => {
    const openers = [
      "<tool_call>",
      "<function=read>",
      "<parameter=filePath>",
      "[",
      "{",
      "```\n",
      "<read>",
      "a=",
      "\n",
      " ",
    ];
    for (const opener of openers) expect(find(opener.repeat(50_000))).toBeUndefined();
    expect(find(`<function=read>${"<parameter=a>".repeat(50_000)}</function>`)).toBeUndefined();
    expect(find(`<|python_tag|>read(${"a=b,".repeat(50_000)}`)).toBeUndefined();
    expect(find(`<|open|>call tool="read"${" ".repeat(50_000)}`)).toBeUndefined();
  });
});

test.each(lookAlikes.map((answer) => [answer]))("%j is not a call", (answer) => {
  expect(find(answer)).toBeUndefined();
});
