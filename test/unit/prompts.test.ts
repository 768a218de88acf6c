import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";
import {
  fill,
  placeholders,
  planReminder,
  stepLimitReminder,
  steerReminder,
} from "../../src/conversation/reminders.ts";

const root = resolve(import.meta.dirname, "../..");
const promptFolder = join(root, "prompts");

/** Every prompt but the tools', with its placeholders. */
const expectedPlaceholders: Record<string, string[]> = {
  "agents/author.md": [],
  "agents/compaction.md": [],
  "agents/explore.md": [],
  "agents/general.md": [],
  "agents/plan.md": [],
  "agents/summary.md": [],
  "agents/title.md": [],
  "commands/init.md": [],
  "commands/review.md": [],
  "compaction.md": [],
  "families/claude.md": [],
  "families/codex.md": [],
  "families/gemini.md": [],
  "families/gpt.md": [],
  "families/other.md": [],
  "reminders/announced-step.md": [],
  "reminders/build-switch.md": ["from", "to"],
  "reminders/carried.md": ["sections"],
  "reminders/compacted.md": [],
  "reminders/empty-answer.md": [],
  "reminders/leaked-call.md": ["tool"],
  "reminders/plan.md": ["planFiles"],
  "reminders/steer.md": [],
  "reminders/step-limit.md": [],
};

test("each prompt has exactly the placeholders that the program fills", () => {
  const found = promptFiles().map((path) => [path, [...placeholders(readPrompt(path))].sort()]);
  expect(Object.fromEntries(found)).toEqual(expectedPlaceholders);
});

test("each prompt is used by the program", () => {
  const imported = importedPrompts();
  const unused = promptFiles().filter((path) => !imported.has(path));
  expect(unused).toEqual([]);
});

test("no prompt is empty or has a placeholder left over from writing", () => {
  for (const path of promptFiles()) {
    expect(readPrompt(path).trim(), path).not.toBe("");
    expect(readPrompt(path), path).not.toMatch(/TODO|FIXME|<[A-Z_]+>/);
  }
});

test("the commands' prompts take the user's arguments", () => {
  for (const path of ["commands/init.md", "commands/review.md"]) {
    expect(readPrompt(path)).toContain("$ARGUMENTS");
  }
});

test("fill puts values in place and does not look at what they contain", () => {
  expect(fill("{{a}} and {{b}}, {{a}}", { a: "{{b}} $& $1", b: "two" })).toBe(
    "{{b}} $& $1 and two, {{b}} $& $1",
  );
});

test("fill refuses a placeholder without a value, also one that every object has", () => {
  expect(() => fill("{{a}} {{b}}", { a: "1" })).toThrow("the prompt's placeholder b was given no value");
  expect(() => fill("{{toString}}", {})).toThrow("the prompt's placeholder toString was given no value");
});

test("fill refuses a value without a placeholder", () => {
  expect(() => fill("{{a}}", { a: "1", b: "2" })).toThrow("the prompt has no placeholder for b");
});

test("plan mode is recalled with every message in it, and its end once", () => {
  const on = planReminder("plan", "plan");
  expect(on).toMatch(/^<system-reminder>\nPlan mode is on\./);
  expect(on).toContain("plans, as .opencode/plans/*.md or .fairlead/plans/*.md.");
  expect(planReminder("plan", undefined)).toBe(on);
  expect(planReminder("build", "plan")).toContain("The mode changed from plan to build.");
  expect(planReminder("build", "build")).toBeUndefined();
  expect(planReminder("build", undefined)).toBeUndefined();
});

test("reminders are marked as the program's own words", () => {
  for (const reminder of [stepLimitReminder(), steerReminder(), planReminder("plan", undefined)]) {
    expect(reminder).toMatch(/^<system-reminder>\n[^]+\n<\/system-reminder>$/);
  }
});

function promptFiles(): string[] {
  const files = readdirSync(promptFolder, { recursive: true, encoding: "utf8" });
  return files.filter((path) => path.endsWith(".md") && !path.startsWith("tools")).sort();
}

function readPrompt(path: string): string {
  return readFileSync(join(promptFolder, path), "utf8");
}

function importedPrompts(): Set<string> {
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" });
  const imported = sources
    .filter((path) => path.endsWith(".ts"))
    .flatMap((path) => importsOf(join(root, "src", path)));
  return new Set(imported);
}

function importsOf(source: string): string[] {
  const specifiers = readFileSync(source, "utf8").matchAll(/from "([^"]+\.md)"/g);
  return [...specifiers].map(([, specifier = ""]) =>
    relative(promptFolder, resolve(dirname(source), specifier)),
  );
}
