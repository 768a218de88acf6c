import { describe, expect, test } from "vitest";
import { evaluate } from "../../../src/permission/judge.ts";
import { parseRules } from "../../../src/permission/parse-rules.ts";
import { analyzeShell } from "../../../src/shell/analysis.ts";
import { createShellContext, toShellRequests } from "../../../src/tool/command-analysis.ts";

const folders = {
  cwd: "C:\\work\\app",
  roots: ["C:\\work\\app"],
  home: "C:\\Users\\Ada",
  shell: "C:\\Program Files\\Git\\bin\\bash.exe",
};
/** Without a disk: each path is its own real path. */
const context = {
  ...createShellContext(folders, "win32"),
  resolve: (path: string) => path,
  list: () => [],
  readText: () => undefined,
};

const effects = (command: string) =>
  analyzeShell(command, context)
    .filter(({ type }) => type !== "run")
    .map(({ type, text }) => [type, text]);

describe("on Windows, a command line of Git's bash", () => {
  test.each([
    ["cat src/a.ts", [["read", "src/a.ts"]]],
    ["cat 'src\\a.ts'", [["read", "src/a.ts"]]],
    ["cat C:/work/app/src/a.ts", [["read", "src/a.ts"]]],
    ["cat 'c:\\work\\app\\src\\a.ts'", [["read", "src/a.ts"]]],
    ["cat /c/work/app/src/a.ts", [["read", "src/a.ts"]]],
    ["cd /c/work/app/src && cat a.ts", [["read", "src/a.ts"]]],
    [
      "cd 'C:\\work' && cat app/a.ts",
      [
        ["outside", "C:/work"],
        ["read", "a.ts"],
      ],
    ],
    [
      "git -C C:/work/app/src log > ../out.txt",
      [
        ["outside", "C:/work"],
        ["write", "C:/work/out.txt"],
      ],
    ],
    [
      "cat C:/Windows/win.ini",
      [
        ["outside", "C:/Windows"],
        ["read", "C:/Windows/win.ini"],
      ],
    ],
    [
      "cat ~/.ssh/id",
      [
        ["outside", "C:/Users/Ada/.ssh"],
        ["read", "C:/Users/Ada/.ssh/id"],
      ],
    ],
    ["cat 'C:src\\a.ts'", [["read", "src/a.ts"]]],
    [
      "cat D:notes.txt",
      [
        ["outside", "D:/"],
        ["read", "D:/notes.txt"],
      ],
    ],
  ])("%s", (command, found) => {
    expect(effects(command)).toEqual(expect.arrayContaining(found));
    expect(effects(command).filter(([, text]) => /\\|^\/c/.test(text ?? ""))).toEqual([]);
  });

  test.each([
    ["rm 'secret\\key'", "secret/*"],
    ["rm secret/key", "secret\\*"],
    ["rm ~/keys/a", "~/keys/*"],
    ["rm C:/Users/Ada/keys/a", "C:\\Users\\Ada\\keys\\*"],
  ])("%s is denied by the rule %s", (command, pattern) => {
    const rules = parseRules({ "*": "allow", edit: { [pattern]: "deny" } }, folders.home, "\\");
    expect(evaluate(toShellRequests(analyzeShell(command, context)), rules).action).toBe("deny");
  });
});
