import { describe, expect, test } from "vitest";
import { evaluate } from "../../src/permission/evaluate.ts";
import { analyzeShell, explainShell } from "../../src/permission/shell.ts";
import { context, groups, rows, ruleSets } from "./shell-table.ts";

describe("a command line under rules", () => {
  test("is judged in more than 300 forms, of which at least a third must stay allowed", () => {
    expect(rows.length).toBeGreaterThan(300);
    expect(rows.filter((row) => row.action === "allow").length * 3).toBeGreaterThanOrEqual(rows.length);
  });

  for (const { about, rules, action, commands } of groups) {
    test(`${rules}: ${about} → ${action}`, () => {
      const verdicts = commands.map((command) => {
        const verdict = evaluate(analyzeShell(command, context), ruleSets[rules]);
        return { command, action: verdict.action, because: verdict.reason, subject: verdict.subject };
      });
      expect(verdicts.filter((verdict) => verdict.action !== action)).toEqual([]);
    });
  }
});
