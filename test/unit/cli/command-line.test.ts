import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { findCommand, parseCall } from "../../../src/cli/command-line/command-line.ts";
import { commands } from "../../../src/cli/command-table.ts";
import { formatCommandHelp, formatOverview } from "../../../src/cli/terminal/help.ts";
import { fitLines, tableLines } from "../../../src/cli/terminal/output.ts";
import { styleFor } from "../../../src/cli/terminal/style.ts";

function parse(...words: string[]) {
  const requested = findCommand(words, commands);
  if (requested.kind !== "call") throw new Error(`${words.join(" ")} asks for ${requested.kind}`);
  return parseCall(requested.command, requested.args, commands);
}

const pageOf = (width: number) => ({ style: styleFor({}, {}), width });

const problem = (...words: string[]): string => {
  try {
    parse(...words);
  } catch (error) {
    return String(error);
  }
  return "none";
};

describe("errors in a command line", () => {
  test.each([
    [["ru"], 'unknown command "ru". Did you mean run?'],
    [["fly"], 'unknown command "fly"'],
    [
      ["sessions", "shwo"],
      'sessions takes list, show, summary, diff, export, view, import, delete, stats, not "shwo". Did you mean sessions show?',
    ],
    [["sessions", "show"], "sessions show needs SESSION"],
    [["sessions", "show", "a", "b"], "sessions show takes SESSION; unexpected: b"],
    [["run", "--formatt", "json"], "run has no flag --formatt. Did you mean --format?"],
    [["run", "-x", "hi"], "run has no flag -x. Put -- before text that begins with a dash"],
    [["run", "--format", "xml"], '--format takes text, json, not "xml"'],
    [["run", "--format", "jso"], '--format takes text, json, not "jso". Did you mean json?'],
    [["run", "--cwd"], "--cwd needs a value: --cwd DIR"],
    [["run", "--cwd", "--trust"], "--cwd needs a value: --cwd DIR"],
    [["run", "--trust=yes"], "--trust takes no value"],
    [["run", "--max-steps", "0"], '--max-steps takes a whole number of at least 1, not "0"'],
    [["run", "--max-cost", "much"], '--max-cost takes a number above 0, not "much"'],
    [["run", "--model", "a", "--model", "b"], "--model is given twice: a and b"],
  ])("%j", (words, message) => {
    expect(problem(...words)).toBe(`UsageError: ${message}`);
  });
});

test("parses values, flags, lists, and words after two dashes", () => {
  const call = parse("run", "-f", "a", "--file=b", "--trust", "-m", "x/y", "--", "--explain", "this");
  expect([call.texts("file"), call.has("trust"), call.text("model"), call.operands]).toEqual([
    ["a", "b"],
    true,
    "x/y",
    ["--explain", "this"],
  ]);
  expect(parse("sessions", "list", "--limit", "5").number("limit")).toBe(5);
  expect(parse("agent", "create", "a", "poet").name).toBe("agents create");
});

test("help is found for everything, in every way to ask", () => {
  const all = formatOverview(commands, pageOf(120));
  for (const { names } of commands) {
    expect(all).toContain(`fairlead ${names[0]}`);
    for (const name of names)
      expect(formatCommandHelp(name.split(" "), commands, pageOf(120))).toContain("fairlead ");
  }
  expect(findCommand(["run", "hi", "--help"], commands)).toEqual({ kind: "help", words: ["run"] });
  expect(findCommand(["help", "sessions"], commands)).toEqual({ kind: "help", words: ["sessions"] });
  expect(findCommand([], commands)).toEqual({ kind: "help", words: [] });
  expect(problem("run", "--", "--help")).toBe("none");
});

test("help fits its terminal, and names are never broken", () => {
  for (const width of [120, 80, 44]) {
    const pages = commands.map(
      ({ names }) => formatCommandHelp(names[0].split(" "), commands, pageOf(width)) ?? "",
    );
    const lines = [formatOverview(commands, pageOf(width)), ...pages].join("").split("\n");
    const tooWide = lines.filter((line) => line.length > width && !/^(?:fairlead|Fairlead| +-)/.test(line));
    expect(tooWide).toEqual([]);
  }
  const lines = formatCommandHelp(["run"], commands, pageOf(80))?.split("\n") ?? [];
  const at = lines.findIndex((line) => line.includes("--permission"));
  expect(lines.slice(at, at + 2)).toEqual([
    "  --permission POLICY         answer when a rule asks: ask, allow or deny (ask",
    "                              if stdin and stderr are terminals, else deny)",
  ]);
});

test("a table fits its terminal: the widest column shrinks, wide characters are two", () => {
  const style = styleFor({}, {});
  const rows = [
    ["a", "1", "a title that goes on and on"],
    ["漢字", "200", "short"],
  ];
  const columns = [{ name: "id" }, { name: "n", right: true }, { name: "title" }];
  expect(tableLines(columns, rows, { style, width: 30 })).toEqual([
    "ID      N  TITLE",
    "a       1  a title that goes …",
    "漢字  200  short",
  ]);
});

test("in a narrow terminal text columns shrink, ids lose their start, numbers stay", () => {
  const style = styleFor({}, {});
  const columns = [
    { name: "session", keepsEnd: true },
    { name: "cost", right: true },
    { name: "title" },
    { name: "folder", keepsEnd: true },
  ];
  const rows = [["ses_0123456789abcdef", "$1234.5678", "A title of some length", "/home/somebody/work"]];
  expect(tableLines(columns, rows, { style, width: 60 })).toEqual([
    "SESSION               COST  TITLE            FOLDER",
    "…3456789abcdef  $1234.5678  A title of som…  …/somebody/work",
  ]);
  expect(tableLines(columns, rows, { style, width: 10 })[1]).toBe(
    "…56789abcdef  $1234.5678  A title of …  …mebody/work",
  );
});

test("a table that is too wide loses empty columns and then its gaps", () => {
  const style = styleFor({}, {});
  const columns = [{ name: "model" }, { name: "in", right: true }, { name: "takes" }, { name: "without" }];
  const rows = [["local/coder", "1", "", "thinking"]];
  expect(tableLines(columns, rows, { style, width: 40 })[0]).toBe("MODEL        IN  TAKES  WITHOUT");
  expect(tableLines(columns, rows, { style, width: 26 })).toEqual([
    "MODEL        IN  WITHOUT",
    "local/coder   1  thinking",
  ]);
  expect(tableLines(columns, rows, { style, width: 24 })[1]).toBe("local/coder  1 thinking");
});

test("lines that are wider than the terminal break between words", () => {
  expect(fitLines("short\nunknown command. Did you mean run?", 20)).toBe(
    "short\nunknown command. Did\nyou mean run?",
  );
  expect(fitLines("a line that is long", undefined)).toBe("a line that is long");
});

const pages = ["docs/command-line.md", "docs/setup.md"].map((path) =>
  readFileSync(join(import.meta.dirname, "../../..", path), "utf8"),
);

/** All calls of the program in the examples for a shell, as words. */
function examples(): string[][] {
  const blocks = pages.flatMap((page) =>
    [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = ""]) => block),
  );
  const lines = blocks.flatMap((block) => block.split("\n"));
  return lines.flatMap((line) => {
    const call = /(?:^|\| )fairlead (.*)$/.exec(line)?.[1]?.replace(/ +#.*$|>.*$| \| jq.*$/, "") ?? "";
    const words = [...call.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)];
    return words.length === 0
      ? []
      : [words.map(([, double, single, bare]) => double ?? single ?? bare ?? "")];
  });
}

describe("the examples of the documents", () => {
  test.each(examples().map((words) => [words.join(" "), words] as const))("fairlead %s", (_, words) => {
    expect(problem(...words)).toBe("none");
  });

  test("include every command", () => {
    const shown = new Set(examples().map((words) => parse(...words).name));
    const mentioned = commands.map(({ names }) => names[0]).filter((name) => !shown.has(name));
    expect(mentioned.filter((name) => !pages.join("").includes(`fairlead ${name}`))).toEqual([]);
  });
});
