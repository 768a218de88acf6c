import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LineWrapper } from "../../../src/cli/live/line-wrapper.ts";
import { Printer } from "../../../src/cli/live/printer.ts";
import { Screen } from "../../../src/cli/live/screen.ts";
import { widthOf } from "../../../src/cli/terminal/output.ts";
import { styleFor } from "../../../src/cli/terminal/style.ts";

/** Wraps a text that arrives in chunks of this many characters. */
function wrap(text: string, columns: number, size = 3): string[] {
  const wrapper = new LineWrapper(() => columns);
  const pieces = text.match(new RegExp(`[\\s\\S]{1,${size}}`, "gu")) ?? [];
  const printed = pieces.map((piece) => wrapper.add(piece)).join("") + wrapper.flush();
  return printed.split("\n");
}

describe("streamed text", () => {
  test("breaks between words, and continues list items below their text", () => {
    expect(wrap("The quick brown fox jumps.\n- over the lazy dog\n  12. again and again", 15)).toEqual([
      "The quick brown",
      "fox jumps.",
      "- over the lazy",
      "  dog",
      "  12. again and",
      "      again",
    ]);
  });

  test("keeps code, tables and long addresses unchanged", () => {
    const code = "```sh\nnpm install --global fairlead\n```\n| a long row | of a table |";
    expect(wrap(code, 12).join("\n")).toBe(code);
    expect(wrap("see https://example.com/a/long/address now", 12)).toEqual([
      "see",
      "https://example.com/a/long/address",
      "now",
    ]);
  });

  test("breaks between characters of scripts without spaces", () => {
    expect(wrap("二つの文字。世界の文字。", 10)).toEqual(["二つの文", "字。世界の", "文字。"]);
  });

  test("keeps every word, and no line is wider than the terminal", () => {
    const words = fc.array(fc.constantFrom("a", "word", "longer", "世界", "`x`", "é", "🎉"), {
      maxLength: 40,
    });
    fc.assert(
      fc.property(
        words,
        fc.integer({ min: 8, max: 30 }),
        fc.integer({ min: 1, max: 9 }),
        (list, columns, size) => {
          const lines = wrap(list.join(" "), columns, size);
          expect(lines.join("").replaceAll(" ", "")).toBe(list.join(""));
          expect(lines.filter((line) => widthOf(line) > columns)).toEqual([]);
        },
      ),
    );
  });

  test("is wrapped on a terminal and unchanged in a pipe", () => {
    const print = (isTTY: boolean) => {
      let written = "";
      const stream = { isTTY, columns: 30, rows: 24, write: (text: string) => (written += text) };
      const screen = new Screen({ stdout: stream, stderr: stream, env: { TERM: "dumb" } });
      const printer = new Printer({ style: styleFor({}, {}), screen });
      for (const text of ["`subtract` adds its arguments", ". I correct it and run the te", "sts."])
        printer.update({
          sessionUpdate: "agent_message_chunk",
          messageId: "1",
          content: { type: "text", text },
        });
      printer.line("1 file changed; after the last change node --test passed");
      return written;
    };
    expect(print(true)).toBe(
      "`subtract` adds its\narguments. I correct it and\nrun the tests.\n1 file changed; after the\nlast change node --test\npassed\n",
    );
    expect(print(false)).toBe(
      "`subtract` adds its arguments. I correct it and run the tests.\n1 file changed; after the last change node --test passed\n",
    );
  });
});
