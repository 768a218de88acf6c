import { describe, expect, test } from "vitest";
import { evaluate } from "../../../src/permission/judge.ts";
import { dialectOf, type ShellDialect } from "../../../src/shell/syntax/dialect.ts";
import { context, requestsFor, ruleSets } from "./shell-table.ts";

const judge = (dialect: ShellDialect, rules: keyof typeof ruleSets = "chosen") => {
  return (command: string) => evaluate(requestsFor(command, { ...context, dialect }), ruleSets[rules]).action;
};

/** Commands that remove or write a file in a POSIX shell, and nothing in bash. */
const readDifferently = [
  "ls; ((rm -rf src))",
  "ls; [[ a > src/a.ts ]]",
  "ls; [[ a || rm = src/a.ts ]]",
  "if [[ a > src/a.ts ]]; then ls; fi",
  "{ ls; ((rm -rf src)); } | head",
  "echo $'a\\'\nrm -rf src\necho \\'b'",
];

const plain = ["ls src", "git log --oneline", 'cat "src/a.ts"', "npm test"];

describe("a command line that only bash reads harmlessly", () => {
  test("is allowed in bash", () => {
    expect(readDifferently.map(judge("bash"))).toEqual(readDifferently.map(() => "allow"));
  });

  test("asks in a POSIX shell and in other shells", () => {
    for (const dialect of ["sh", "other"] as const)
      expect(readDifferently.map(judge(dialect))).toEqual(readDifferently.map(() => "ask"));
  });

  test("is refused if a rule denies what the other shell runs", () => {
    expect(judge("sh", "guarded")("ls; ((rm -rf src))")).toBe("deny");
  });

  test("asks as the text of a shell without the syntax of bash", () => {
    const decide = (shell: string) => judge("bash", "defaults")(`${shell} 'ls; ((1 > 0))'`);
    const likeBash = ["bash -c", "timeout 9 /bin/bash -c", "zsh -c", "eval"];
    expect(likeBash.map(decide)).toEqual(likeBash.map(() => "allow"));
    const others = ["sh -c", "timeout 9 /bin/sh -c", "env dash -c", "watch", "fish -c"];
    expect(others.map(decide)).toEqual(others.map(() => "ask"));
  });
});

test("plain words have the same meaning in every shell", () => {
  for (const dialect of ["bash", "sh", "other"] as const)
    expect(plain.map(judge(dialect))).toEqual(plain.map(() => "allow"));
});

test("an operator asks where the shell is not a POSIX shell", () => {
  expect(["ls & del src", "echo 'a & del src'", "cat src\\a.ts", "echo %PATH%"].map(judge("other"))).toEqual([
    "ask",
    "ask",
    "ask",
    "ask",
  ]);
});

test.each([
  ["/usr/bin/bash", "bash"],
  ["C:\\Program Files\\Git\\bin\\bash.exe", "bash"],
  ["zsh", "bash"],
  ["/bin/sh", "sh"],
  ["C:\\Windows\\System32\\cmd.exe", "other"],
  ["fish", "other"],
])("the dialect of %s is %s", (shell, dialect) => {
  expect(dialectOf(shell)).toBe(dialect);
});
