import { describe, expect, test } from "vitest";
import { evaluate } from "../../../src/permission/judge.ts";
import type { Action, Rule } from "../../../src/permission/rule.ts";
import { hasInvisible, showInvisible } from "../../../src/base/text/invisible.ts";
import { analyzeShell, commandLimit } from "../../../src/shell/analysis.ts";
import { context, groups, requestsFor, rows, ruleSets } from "./shell-table.ts";

describe("a command line under rules", () => {
  test("has more than 300 cases, at least a third of them allowed", () => {
    expect(rows.length).toBeGreaterThan(300);
    expect(rows.filter((row) => row.action === "allow").length * 3).toBeGreaterThanOrEqual(rows.length);
  });

  for (const { about, rules, action, commands } of groups) {
    test(`${rules}: ${about} → ${action}`, () => {
      const verdicts = commands.map((command) => {
        const verdict = evaluate(requestsFor(command), ruleSets[rules]);
        return { command, action: verdict.action, because: verdict.reason, subject: verdict.subject };
      });
      expect(verdicts.filter((verdict) => verdict.action !== action)).toEqual([]);
    });
  }
});

test("rules for cd apply next to other commands, rules for * do not", () => {
  const judged = (command: string, more: Rule[]) =>
    evaluate(requestsFor(command), [...ruleSets.defaults, ...more]).action;
  const rule = (pattern: string, action: Action): Rule => ({ permission: "bash", pattern, action });
  const onlyLists = [rule("*", "deny"), rule("ls *", "allow")];
  expect(judged("cd src && ls", onlyLists)).toBe("allow");
  expect(judged("cd src", onlyLists)).toBe("deny");
  expect(judged("cd src && ls", [...onlyLists, rule("cd *", "deny")])).toBe("deny");
  expect(judged("ls; (cd src && ls)", [rule("cd *", "ask")])).toBe("ask");
  expect(judged("cd  'src' && ls", [rule("cd src", "deny")])).toBe("deny");
  expect(judged("cd docs && ls", [rule("cd src", "deny")])).toBe("allow");
});

describe("the subjects of a command line", () => {
  const parts = (command: string) =>
    analyzeShell(command, context)
      .filter(({ changesDirectory: steers }) => !steers)
      .map(({ type, text, opaque }) => [type, text, ...(opaque ? ["opaque"] : [])]);

  test("have a canonical text, without quotes, redirections and assignments", () => {
    expect(parts("X=1 'git'  log   --format=\"%h %s\" 2>&1 >out.txt")).toEqual([
      ["write", "out.txt"],
      ["run", "git log --format=%h %s"],
    ]);
  });

  test("have other spellings for deny and ask rules", () => {
    const [part] = analyzeShell("X=1 /usr/bin/git -C src 'push'", context).filter(
      (one) => one.type === "run",
    );
    expect(part).toEqual({
      type: "run",
      text: "/usr/bin/git -C src push",
      also: ["X=1 /usr/bin/git -C src 'push'", "git -C src push", "X=1", "git push"],
      irreversible: "sends commits to a remote",
      reason: "runs /usr/bin/git -C src push",
      similar: ["/usr/bin/git -C src push"],
    });
  });

  test("include a file read and a file written, with the folder outside", () => {
    expect(parts("cp src/a.ts /opt/b.ts")).toEqual([
      ["read", "src/a.ts"],
      ["outside", "/opt"],
      ["write", "/opt/b.ts"],
      ["outside", "/opt/b.ts"],
      ["write", "/opt/b.ts/a.ts"],
      ["run", "cp src/a.ts /opt/b.ts"],
    ]);
  });

  test("resolve links and include the written path", () => {
    expect(analyzeShell("cat notes.txt", context)[0]).toEqual({
      type: "read",
      text: ".env",
      also: ["/work/app/.env", "/work/app/notes.txt", "notes.txt"],
      reason: "reads .env",
      similar: [".env"],
    });
  });

  test("include the folder after cd, and both folders if cd may fail", () => {
    expect(parts("cd src && touch a")).toEqual([
      ["write", "src/a"],
      ["run", "touch a"],
    ]);
    expect(parts("cd src; touch a")).toEqual([
      ["write", "src/a"],
      ["write", "a"],
      ["run", "touch a"],
    ]);
    expect(parts("(cd src); touch a")).toEqual([
      ["write", "a"],
      ["run", "touch a"],
    ]);
    expect(parts("cd src || touch a")).toEqual([
      ["write", "a"],
      ["run", "touch a"],
    ]);
    expect(parts("! cd src && touch a")).toEqual([
      ["write", "a"],
      ["run", "touch a"],
    ]);
  });

  test("name a program by its path relative to the rules", () => {
    const programs = (command: string) =>
      analyzeShell(command, context)
        .filter(({ type, changesDirectory: steers }) => type === "run" && !steers)
        .map(({ text, also, similar, opaque }) => ({
          text,
          also,
          similar,
          ...(opaque && { opaque }),
        }));
    const elsewhere = { text: "./src/a.sh x", also: ["./a.sh x", "a.sh x"], similar: ["./src/a.sh *"] };
    expect(programs("./a.sh x")).toEqual([{ text: "./a.sh x", also: ["a.sh x"], similar: ["./a.sh *"] }]);
    expect(programs("cd src && ./a.sh x")).toEqual([elsewhere]);
    expect(programs("cd src; ./a.sh x")).toEqual([elsewhere]);
    expect(programs("cd /opt && ./a.sh").map(({ text }) => text)).toEqual(["/opt/a.sh"]);
    expect(programs('cd "$X" && ./a.sh').map(({ similar, opaque }) => [similar, opaque])).toEqual([
      [[], "the folder of its program cannot be known before it runs"],
    ]);
  });

  test("name files relative to the folder of the rules", () => {
    const inSources = { ...context, start: "/work/app/src" };
    const files = (command: string) =>
      analyzeShell(command, inSources)
        .filter(({ type }) => type !== "run")
        .map(({ type, text }) => [type, text]);
    expect(files("cat a.ts ../notes.txt > out")).toEqual([
      ["write", "src/out"],
      ["read", "src/a.ts"],
      ["read", ".env"],
    ]);
    expect(files("rm -r ../config")).toEqual([["write", "config"]]);
  });

  test("resolve a variable that is assigned once, unconditionally", () => {
    const edits = (command: string) => parts(command).filter(([type]) => type === "write");
    expect(edits("D=src; touch $D/a")).toEqual([["write", "src/a"]]);
    expect(edits("D=src; D=$X; touch $D/a")).toEqual([["write", "$D/a", "opaque"]]);
    expect(edits("false && D=src; touch $D/a")).toEqual([["write", "$D/a", "opaque"]]);
    expect(edits("(D=src); touch $D/a")).toEqual([["write", "$D/a", "opaque"]]);
    expect(edits("D=src touch $D/a")).toEqual([["write", "$D/a", "opaque"]]);
    expect(edits("D=src; read D; touch $D/a")).toEqual([["write", "$D/a", "opaque"]]);
    expect(edits("D='a b'; touch $D")).toEqual([["write", "$D", "opaque"]]);
    expect(edits("D='a b'; touch \"$D\"")).toEqual([["write", "a b"]]);
    expect(edits("for f in a b; do touch $f; done")).toEqual([
      ["write", "a"],
      ["write", "b"],
    ]);
  });

  test("are the line's own text if no command runs", () => {
    expect(parts("X=1")).toEqual([["run", "X=1"]]);
    expect(parts("cd src")).toEqual([["run", "cd src"]]);
    expect(parts("> out")).toEqual([
      ["run", "> out"],
      ["write", "out"],
    ]);
    expect(parts("")).toEqual([["run", ""]]);
  });

  test("are opaque if the line cannot be parsed", () => {
    for (const command of ["echo 'open", "a\u0007", "x".repeat(commandLimit + 1)]) {
      expect(parts(command).slice(0, 4)).toEqual(
        ["run", "outside", "write", "read"].map((type) => [type, command, "opaque"]),
      );
    }
  });

  test("are opaque if a path cannot be resolved", () => {
    const broken = {
      ...context,
      resolve: () => {
        throw new Error("ELOOP");
      },
    };
    expect(
      analyzeShell("cat a", broken)
        .slice(0, 4)
        .map((part) => part.opaque),
    ).toEqual(Array.from({ length: 4 }, () => "it cannot be read as shell text (ELOOP)"));
  });

  test("accept invisible characters only in emoji", () => {
    expect(["❤️", "👩‍👩‍👧", "é", "日本", "a\tb\n"].map(hasInvisible)).toEqual([
      false,
      false,
      false,
      false,
      false,
    ]);
    expect(
      [
        "a\u200db",
        "a\ufe0f",
        "\u202e",
        "\u200b",
        "\u2066",
        "\ufeff",
        "\u001b",
        "\r",
        "\u{e0041}",
        "\u00ad",
        "\ud800",
      ].map(hasInvisible),
    ).toEqual(Array.from({ length: 11 }, () => true));
  });
});

test("invisible characters are escaped", () => {
  expect(showInvisible("ls\u202e \u001b[31m\u200bx 👩‍👩‍👧 é\t\n")).toBe(
    "ls\\u{202e} \\u{1b}[31m\\u{200b}x 👩\\u{200d}👩\\u{200d}👧 é\t\n",
  );
  expect(showInvisible("👩‍👩‍👧 é")).toBe("👩‍👩‍👧 é");
});
