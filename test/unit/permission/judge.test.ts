import { describe, expect, test } from "vitest";
import { defaultRules, readingCommandRules } from "../../../src/permission/default-rules.ts";
import { evaluate, isHidden } from "../../../src/permission/judge.ts";
import { parseRules, parseToolSwitches, getToolPermission } from "../../../src/permission/parse-rules.ts";
import { permissionSchema } from "../../../src/permission/permission-config.ts";
import { covers, expandHome, isCatchAll, matches, overlaps } from "../../../src/permission/pattern.ts";
import type { Action, PermissionRequest, Rule, Subject } from "../../../src/permission/rule.ts";

const rule = (permission: string, pattern: string, action: Action): Rule => ({ permission, pattern, action });
const request = (permission: string, ...subjects: (string | Subject)[]): PermissionRequest => ({
  permission,
  subjects: subjects.map((subject) => (typeof subject === "string" ? { text: subject } : subject)),
  always: [],
});
const action = (rules: Rule[], ...requests: PermissionRequest[]) => evaluate(requests, rules).action;

describe("a pattern", () => {
  test.each([
    ["*", "", true],
    ["*", "a\nb", true],
    ["a*c", "abbbc", true],
    ["a*c", "abbbd", false],
    ["a?c", "a\nc", true],
    ["a?c", "ac", false],
    ["a*b*c", "a-b-b-c", true],
    ["a*bb*c", "abc", false],
    ["*.env", "src/.env", true],
    ["*.env", ".env.local", false],
    ["ab*ba", "aba", false],
    ["git *", "git", true],
    ["git *", "git status", true],
    ["git *", "gitx", false],
    ["git status", "git status -s", false],
    ["src/**", "src/a/b.ts", true],
    ["a.b", "axb", false],
    ["(a|b)[c]+$", "(a|b)[c]+$", true],
    ["*?x?*", "axb", true],
    ["", "", true],
    ["", "a", false],
  ])("%j on %j: %s", (pattern, text, expected) => {
    expect(matches(pattern, text)).toBe(expected);
  });

  test.each([
    [".e*", "*.env", true],
    ["src/*.ts", "*.env", false],
    ["src/*", "*.env", true],
    ["a*", "b*", false],
    ["?", "ab", false],
    ["git *", "git", true],
    ["*a*b*", "*b*a*", true],
  ])("%j and %j have a text in common: %s", (left, right, expected) => {
    expect(overlaps(left, right)).toBe(expected);
  });

  test("covers another only if it matches all of its texts", () => {
    expect(covers("src/*", "src/*.ts")).toBe(true);
    expect(covers("src/?.ts", "src/*.ts")).toBe(false);
    expect(covers("*.ts", "src/*")).toBe(false);
    expect(covers("*", "src/*")).toBe(true);
  });

  test("recognizes the catch-all and expands the home folder", () => {
    expect(["*", "**", "* ", "?*", ""].filter(isCatchAll)).toEqual(["*", "**"]);
    expect(
      ["~/a", "$HOME/a", "~", "~ada/a", "a/~", "$HOMES"].map((text) => expandHome(text, "/home/$&")),
    ).toEqual(["/home/$&/a", "/home/$&/a", "/home/$&", "~ada/a", "a/~", "$HOMES"]);
  });
});

describe("evaluate", () => {
  test("uses the last matching rule and asks without one", () => {
    expect(
      action([rule("bash", "*", "deny"), rule("bash", "git *", "allow")], request("bash", "git status")),
    ).toBe("allow");
    expect(
      action([rule("bash", "git *", "allow"), rule("bash", "*", "deny")], request("bash", "git status")),
    ).toBe("deny");
    expect(action([], request("bash", "git status"))).toBe("ask");
    expect(action([rule("*", "*", "allow")], request("github_search", "*"))).toBe("allow");
    expect(action([rule("github_*", "*", "deny")], request("github_search", "*"))).toBe("deny");
  });

  test("finds a deny after an ask and names the deciding rule", () => {
    const rules = [rule("*", "*", "ask"), rule("edit", "secret/*", "deny")];
    expect(evaluate([request("bash", "ls"), request("edit", "a", "secret/b")], rules)).toEqual({
      action: "deny",
      permission: "edit",
      subject: "secret/b",
      rule: rules[1],
      reason: 'the rule edit: "secret/*" says deny',
    });
  });

  test("allows a call without requests", () => {
    expect(evaluate([], []).action).toBe("allow");
  });

  test("matches other spellings with deny and ask, never with allow", () => {
    const subject = { text: "/bin/rm a", also: ["rm a"] };
    expect(action([rule("bash", "*", "allow"), rule("bash", "rm *", "deny")], request("bash", subject))).toBe(
      "deny",
    );
    expect(action([rule("bash", "*", "ask"), rule("bash", "rm *", "allow")], request("bash", subject))).toBe(
      "ask",
    );
    expect(
      action([rule("bash", "*", "ask"), rule("bash", "/bin/* *", "allow")], request("bash", subject)),
    ).toBe("allow");
  });

  test("lets only a rule for everything allow what is opaque", () => {
    const opaque = request("bash", { text: "git x", opaque: "unknown" });
    expect(action([rule("bash", "git *", "allow")], opaque)).toBe("ask");
    expect(action([rule("bash", "*", "allow")], opaque)).toBe("allow");
    expect(action([rule("*", "*", "allow")], opaque)).toBe("allow");
    expect(action([rule("*", "*", "allow"), rule("bash", "rm *", "deny")], opaque)).toBe("ask");
    expect(action([rule("*", "*", "allow"), rule("bash", "rm *", "ask")], opaque)).toBe("ask");
    expect(action([rule("bash", "rm *", "deny"), rule("*", "*", "allow")], opaque)).toBe("allow");
    expect(action([rule("*", "*", "allow"), rule("edit", "a", "deny")], opaque)).toBe("allow");
    expect(action([rule("*", "*", "allow"), rule("bash", "git *", "deny")], opaque)).toBe("deny");
    expect(action([rule("*", "*", "allow"), rule("bash", "*", "deny")], opaque)).toBe("deny");
  });

  test("lets a rule that spells out the options allow what they make opaque", () => {
    const opaque = request("bash", { text: "sed -i s/a/b/ c", opaque: "writes", options: ["-i"] });
    expect(action([rule("bash", "sed *", "allow")], opaque)).toBe("ask");
    expect(action([rule("bash", "sed -i *", "allow")], opaque)).toBe("allow");
    expect(action([rule("bash", "sed *-i *", "allow")], opaque)).toBe("ask");
  });

  test("checks all texts that a wildcard may match", () => {
    const rules = [rule("read", "*", "allow"), rule("read", "*.env", "deny")];
    expect(action(rules, request("read", { text: ".e*", glob: true }))).toBe("deny");
    expect(action(rules, request("read", { text: "src/*.ts", glob: true }))).toBe("allow");
    expect(action(rules, request("read", { text: "*", glob: true, names: ["a.ts"] }))).toBe("allow");
    expect(action(rules, request("read", { text: "*", glob: true, names: ["a.ts", "b.env"] }))).toBe("deny");
    expect(action([rule("read", "src/?", "allow")], request("read", { text: "src/*", glob: true }))).toBe(
      "ask",
    );
  });

  test("asks if a file below a folder may be protected", () => {
    const rules = [rule("edit", "*", "allow"), rule("edit", "config/prod/*", "deny")];
    expect(action(rules, request("edit", { text: "config", below: true }))).toBe("ask");
    expect(action(rules, request("edit", { text: ".", below: true }))).toBe("ask");
    expect(action(rules, request("edit", { text: "src", below: true }))).toBe("allow");
    expect(action(rules, request("edit", { text: "config/prod/a", below: true }))).toBe("deny");
  });

  test("does not let an ask for a part hide an earlier deny", () => {
    const deny = rule("edit", "build*", "deny");
    expect(
      action([deny, rule("edit", "*/prod/*", "ask")], request("edit", { text: "build", below: true })),
    ).toBe("deny");
    expect(action([deny, rule("edit", "*.env", "ask")], request("edit", { text: "*", glob: true }))).toBe(
      "deny",
    );
    expect(
      action([deny, rule("edit", "/w/*", "ask")], request("edit", { text: "build", also: ["/w/build"] })),
    ).toBe("deny");
    expect(action([deny, rule("edit", "*", "ask")], request("edit", "build"))).toBe("ask");
    const names = { text: "*", glob: true, names: ["a.key", "b.env"] };
    expect(
      action([rule("read", "*.key", "deny"), rule("read", "*.env", "ask")], request("read", names)),
    ).toBe("deny");
  });

  test("always asks if the subject must be confirmed", () => {
    const subject = { text: ".git/hooks/a", confirm: "git runs it" };
    expect(action([rule("*", "*", "allow")], request("edit", subject))).toBe("ask");
    expect(action([rule("edit", "*", "deny")], request("edit", subject))).toBe("deny");
  });
});

describe("rules", () => {
  test("come from an action, actions by permission, or actions by pattern, in order", () => {
    expect(parseRules("deny", "/home/ada")).toEqual([rule("*", "*", "deny")]);
    expect(
      parseRules(
        { edit: "ask", bash: { "*": "ask", "git *": "allow" }, read: { "~/notes/*": "deny" }, write: "deny" },
        "/home/ada",
      ),
    ).toEqual([
      rule("edit", "*", "ask"),
      rule("bash", "*", "ask"),
      rule("bash", "git *", "allow"),
      rule("read", "/home/ada/notes/*", "deny"),
      rule("edit", "*", "deny"),
    ]);
  });

  test.each([
    ["another action", { edit: "maybe" }],
    ["a boolean", { edit: { "*": true } }],
    ["a number", 7],
    ["null", null],
    ["a list", ["ask"]],
    ["a pattern that is too long", { edit: { ["a".repeat(2000)]: "ask" } }],
  ])("cannot come from %s", (_, config) => {
    expect(permissionSchema.safeParse(config).success).toBe(false);
  });

  test("come from the older switches too", () => {
    expect(parseToolSwitches({ bash: false, write: false, webfetch: true })).toEqual([
      rule("bash", "*", "deny"),
      rule("edit", "*", "deny"),
      rule("webfetch", "*", "allow"),
    ]);
    expect(["edit", "write", "multiedit", "apply_patch", "bash"].map(getToolPermission)).toEqual([
      "edit",
      "edit",
      "edit",
      "edit",
      "bash",
    ]);
  });

  test("of the defaults decide as documented", () => {
    const rules = defaultRules({ outputFolder: "/data/output", skillFolders: ["/data/skills"] });
    const decide = (permission: string, text: string) => action(rules, request(permission, text));
    expect({
      bash: decide("bash", "npm test"),
      doom: decide("doom_loop", "bash"),
      outside: decide("external_directory", "/etc"),
      output: decide("external_directory", "/data/output"),
      skill: decide("external_directory", "/data/skills/a"),
      beside: decide("external_directory", "/data/skillsx"),
      question: decide("question", "*"),
      env: decide("read", "src/.env"),
      local: decide("read", ".env.local"),
      example: decide("read", ".env.example"),
    }).toEqual({
      bash: "allow",
      doom: "ask",
      outside: "ask",
      output: "allow",
      skill: "allow",
      beside: "ask",
      question: "deny",
      env: "ask",
      local: "ask",
      example: "allow",
    });
  });

  test("hide a tool only where the last one for it denies everything", () => {
    expect(isHidden("bash", [rule("*", "*", "deny")])).toBe(true);
    expect(isHidden("bash", [rule("*", "*", "deny"), rule("bash", "git *", "allow")])).toBe(false);
    expect(isHidden("bash", [rule("bash", "rm *", "deny")])).toBe(false);
    expect(isHidden("bash", [])).toBe(false);
  });

  test("for reading commands only allow", () => {
    expect(new Set(readingCommandRules().map((entry) => `${entry.permission} ${entry.action}`))).toEqual(
      new Set(["bash allow"]),
    );
  });
});
