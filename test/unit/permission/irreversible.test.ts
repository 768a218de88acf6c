import { describe, expect, test } from "vitest";
import { defaultRules } from "../../../src/permission/default-rules.ts";
import { judge, type Authority } from "../../../src/permission/judge.ts";
import type { Action, PermissionRequest, Rule } from "../../../src/permission/rule.ts";

const defaults = defaultRules({ outputFolder: "/data/output", skillFolders: [] });
const push: PermissionRequest = {
  permission: "bash",
  subjects: [{ text: "git push origin main", irreversible: "sends commits to a remote" }],
  always: ["git push origin main"],
};

const rule = (permission: string, pattern: string, action: Action): Rule => ({ permission, pattern, action });
const judged = (more: Rule[], authority: Partial<Authority> = {}) =>
  judge(push, { rules: [...defaults, ...more], ...authority });

describe("a command that cannot be undone", () => {
  test("asks by default, with the reason, and can be allowed always", () => {
    expect(judged([])).toMatchObject({
      action: "ask",
      reason: "it cannot be undone: sends commits to a remote",
      irreversible: "sends commits to a remote",
      canRemember: true,
    });
  });

  test.each([
    [rule("*", "*", "allow"), "allow"],
    [rule("bash", "*", "allow"), "allow"],
    [rule("bash", "git *", "allow"), "allow"],
    [rule("bash", "npm *", "allow"), "ask"],
    [rule("edit", "*", "allow"), "ask"],
    [rule("bash", "*", "ask"), "ask"],
    [rule("bash", "git push *", "deny"), "deny"],
  ] as const)("follows the user's rule %o: %s", (own, action) => {
    expect(judged([own]).action).toBe(action);
  });

  test("is allowed by an approval and by the mode auto, not by the mode for edits", () => {
    expect(judged([], { approvals: [rule("bash", "git push origin main", "allow")] }).action).toBe("allow");
    expect(judged([], { approvals: [rule("bash", "git push", "allow")] }).action).toBe("ask");
    expect(judged([], { mode: "auto" }).action).toBe("allow");
    expect(judged([], { mode: "accept-edits" }).action).toBe("ask");
    expect(judged([rule("bash", "git push *", "deny")], { mode: "auto" }).action).toBe("deny");
  });

  test("asks in a child session if the parent's agent would ask", () => {
    expect(judged([rule("bash", "*", "allow")], { within: [defaults] }).action).toBe("ask");
    expect(judged([], { within: [[...defaults, rule("bash", "*", "allow")]] }).action).toBe("ask");
  });
});
