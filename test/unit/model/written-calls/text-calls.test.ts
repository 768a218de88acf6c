import { describe, expect, test } from "vitest";
import { TextCalls } from "../../../../src/model/answer/written-calls/text-calls.ts";
import { lookAlikes, offeredTools, writtenCallCases } from "./written-calls-cases.ts";

/** Streams an answer in chunks. Returns the text shown while it streams and the content of its end. */
function stream(answer: string, pieces: number, isCut = false) {
  const calls = new TextCalls(offeredTools);
  let shown = "";
  for (let at = 0; at < answer.length; at += pieces)
    shown += calls.add("text", answer.slice(at, at + pieces));
  const end = calls.end(isCut);
  return { shown: shown + end.shown.text, early: shown, end };
}

const sizes = [1, 3, 7, 10_000];

describe("calls in a streamed answer", () => {
  test.each(writtenCallCases.map((one, index) => [`${index + 1} ${one.format}`, one] as const))(
    "%s are separated from the text, in chunks of any size",
    (_, { text, calls }) => {
      const before = "Let me read the file first:\n\n";
      for (const size of sizes) {
        const { shown, end } = stream(before + text, size);
        expect(end.calls.map(({ tool, input }) => ({ tool, input }))).toEqual(calls);
        expect(shown.trim()).toBe(text.startsWith("count") ? `${before}count` : before.trim());
        expect(shown + end.calls.map(({ markup }) => markup).join("")).toBe(before + text);
      }
    },
  );

  test.each(lookAlikes.map((answer) => [answer]))("%j is text", (answer) => {
    for (const size of sizes) {
      const { shown, end } = stream(answer, size);
      expect(end.calls).toEqual([]);
      expect(shown).toBe(answer);
    }
  });

  test("prose, lists, links and code are shown as they stream", () => {
    const prose = [
      "# Done\n\n- I changed [a.ts](src/a.ts) and a < b.\n- See [1] and {x}.\n",
      "\n```ts\nconst a = [1, 2];\nif (a < 3) call();\n```\n\nThe tests pass.\n",
      '```json\n{ "name": "fairlead", "version": "1.0.0" }\n```\n\nThat is the package.\nAll done: yes',
    ].join("");
    for (const size of sizes) expect(stream(prose, size).early).toBe(prose);
  });

  test("a truncated call is reported and not run", () => {
    const cut = "I write it.\n<tool_call>\n<function=bash>\n<parameter=command>\nrm -rf bui";
    expect(stream(cut, 5, true).end).toMatchObject({ calls: [], cut: { tool: "bash" } });
    expect(stream(cut, 5, true).shown).toBe("I write it.\n");
    expect(stream(cut, 5).end).toMatchObject({ calls: [] });
    expect(stream(cut, 5).end.cut).toBeUndefined();
    const json = '<tool_call>\n{"name": "bash", "arguments": {"command": "rm -rf bui';
    expect(stream(json, 5, true).end).toMatchObject({ calls: [], cut: { tool: "bash", markup: json } });
  });

  test("are found in the reasoning if there is no text", () => {
    const calls = new TextCalls(offeredTools);
    calls.add("reasoning", "I read it.\n");
    calls.add("reasoning", '<tool_call>{"name": "list", "arguments": {}}</tool_call>');
    calls.add("text", "\n");
    expect(calls.end(false).calls).toMatchObject([{ tool: "list" }]);
  });

  test("long arguments are held in moderate time", () => {
    const long = `<function=edit>\n<parameter=newString>\n${"line of code;\n".repeat(20_000)}</parameter>\n</function>`;
    expect(stream(long, 4).end.calls).toMatchObject([{ tool: "edit" }]);
    expect(stream(`{"name": "read", "x": "${"word ".repeat(40_000)}`, 4).end.calls).toEqual([]);
  });
});
