import { describe, expect, test } from "vitest";
import { findShownText } from "../../../src/shell/analysis.ts";
import { context } from "./shell-table.ts";

const find = (command: string) =>
  findShownText(command, { ...context, cwd: "/w", start: "/w", roots: ["/w"], resolve: (path) => path }).map(
    ({ path, extent, isAlone }) => `${path} ${extent}${isAlone === true ? " alone" : ""}`,
  );

describe("files whose text a command line prints", () => {
  test.each([
    ["cat a.ts", ["/w/a.ts whole"]],
    ["cat -n a.ts b.ts", ["/w/a.ts whole", "/w/b.ts whole"]],
    ["cat a.ts 2>/dev/null", ["/w/a.ts whole"]],
    ["cat a.ts 2>&1", ["/w/a.ts whole"]],
    ["cat /w/src/../a.ts", ["/w/a.ts whole"]],
    ["nl -ba a.ts", ["/w/a.ts whole"]],
    ["cd src && cat a.ts", ["/w/src/a.ts whole"]],
    ["git status; cat a.ts", ["/w/a.ts whole"]],
    ["ls\ncat a.ts", ["/w/a.ts whole"]],
    ["cat a.ts && echo --- && cat b.ts", ["/w/a.ts whole", "/w/b.ts whole"]],
    ["head -50 a.ts", ["/w/a.ts part"]],
    ["head -n 50 a.ts", ["/w/a.ts part"]],
    ["tail -n +20 a.ts", ["/w/a.ts part"]],
    ["sed -n '1,20p' a.ts", ["/w/a.ts part"]],
    ["sed -n 1,20p a.ts", ["/w/a.ts part"]],
    ["sed -n -e 5p -e '/x/,$p' a.ts", ["/w/a.ts part"]],
    ["sed -n '1,20p;20q' a.ts", ["/w/a.ts part"]],
    ["cat a.ts | head -20", ["/w/a.ts part"]],
    ["nl -ba a.ts | sed -n '10,20p'", ["/w/a.ts part"]],
    ["cat a.ts | grep -n foo | head", ["/w/a.ts part"]],
    ["grep -n foo a.ts", ["/w/a.ts matches alone"]],
    ["rg -n foo a.ts", ["/w/a.ts matches alone"]],
    ["grep -rn foo src", ["/w/src matches alone"]],
    ["grep -n foo a.ts b.ts", ["/w/a.ts matches", "/w/b.ts matches"]],
    ["rg -n foo", ["/w matches alone"]],
    ["rg -n -C 3 foo src | head -40", ["/w/src matches alone"]],
  ])("%s", (command, shown) => {
    expect(find(command)).toEqual(shown);
  });

  test.each([
    "cat a.ts > b.ts",
    "cat a.ts >> b.ts",
    "cat a.ts &> b.ts",
    "cat < a.ts",
    "cat a.ts | wc -l",
    "cat a.ts | sed s/a/b/",
    "cat a.ts | tr a b | head",
    "cat a.ts | head > b.ts",
    "cat a.ts &",
    "cat a.ts || true",
    "false || cat a.ts",
    "x=$(cat a.ts)",
    "echo $(cat a.ts)",
    "if true; then cat a.ts; fi",
    "for f in a b; do cat a.ts; done",
    "f() { cat a.ts; }",
    "cat() { echo no; }; cat a.ts",
    "alias cat=true; cat a.ts",
    "! cat a.ts | head",
    "cat $UNKNOWN",
    "cd $UNKNOWN && cat a.ts",
    "cat",
    "cat -",
    "wc -l a.ts",
    "sed 's/a/b/' a.ts",
    "sed -n 's/a/b/p' a.ts",
    "sed -i 1p a.ts",
    "sed 1p a.ts",
    "grep -c foo a.ts",
    "grep -l foo a.ts",
    "grep -rl foo src",
    "grep -o foo a.ts",
    "grep -q foo a.ts",
    "rg --files",
    "rg foo -r bar a.ts",
    "grep foo",
    "./cat a.ts",
    "python a.ts",
    "cat 'a.ts",
    "bash -c 'cat a.ts'",
    `cat ${"a".repeat(20_001)}`,
  ])("nothing for %j", (command) => {
    expect(find(command)).toEqual([]);
  });
});
