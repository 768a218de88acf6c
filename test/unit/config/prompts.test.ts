import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";
import { toSlashes } from "../../../src/base/files/paths.ts";
import {
  dateReminder,
  fill,
  placeholders,
  planReminder,
  stepLimitReminder,
  steerReminder,
} from "../../../src/conversation/reminders.ts";
import { newMessageId, newPartId, newSessionId } from "../../../src/message/ids.ts";
import type { Message } from "../../../src/message/message.ts";

const root = resolve(import.meta.dirname, "../../..");
const promptFolder = join(root, "prompts");

/** Every prompt but the tools', with its placeholders. */
const expectedPlaceholders: Record<string, string[]> = {
  "agents/author.md": [],
  "agents/compaction.md": [],
  "agents/explore.md": [],
  "agents/general.md": [],
  "agents/summary.md": [],
  "agents/title.md": [],
  "commands/init.md": [],
  "commands/review.md": [],
  "compaction.md": [],
  "families/claude.md": [],
  "families/codex.md": [],
  "families/gemini.md": [],
  "families/gpt.md": [],
  "families/open.md": [],
  "families/small.md": [],
  "reminders/announced-step.md": [],
  "reminders/build-switch.md": ["from", "to"],
  "reminders/carried.md": ["sections"],
  "reminders/changes-dropped.md": ["changes"],
  "reminders/changes-restored.md": ["changes"],
  "reminders/compacted.md": [],
  "reminders/date.md": ["date"],
  "reminders/empty-answer.md": [],
  "reminders/job-ended.md": ["jobs"],
  "reminders/leaked-call.md": ["tool"],
  "reminders/others-changed.md": ["files"],
  "reminders/plan-again.md": ["planFiles"],
  "reminders/plan.md": ["planFiles"],
  "reminders/prompt-changed.md": ["changes"],
  "reminders/resources-changed.md": ["resources"],
  "reminders/steer.md": [],
  "reminders/step-limit.md": [],
  "reminders/stop-hook.md": ["objection"],
  "reminders/summarise.md": ["form", "instructions"],
  "reminders/uncertain-call.md": ["tool"],
  "reminders/unchecked-changes.md": ["files"],
  "reminders/unproven-claim.md": ["claims"],
  "written-calls.md": [],
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

test("no prompt is empty or has an unused placeholder", () => {
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

test("fill inserts values and does not interpret their content", () => {
  expect(fill("{{a}} and {{b}}, {{a}}", { a: "{{b}} $& $1", b: "two" })).toBe(
    "{{b}} $& $1 and two, {{b}} $& $1",
  );
});

test("fill rejects a placeholder without a value, also one that every object has", () => {
  expect(() => fill("{{a}} {{b}}", { a: "1" })).toThrow("the prompt's placeholder b was given no value");
  expect(() => fill("{{toString}}", {})).toThrow("the prompt's placeholder toString was given no value");
});

test("fill rejects a value without a placeholder", () => {
  expect(() => fill("{{a}}", { a: "1", b: "2" })).toThrow("the prompt has no placeholder for b");
});

const none = { messages: [] };

test("explains plan mode once, repeats it briefly with each message, and ends it once", () => {
  const whole = planReminder("plan", undefined, none);
  expect(whole).toMatch(/^<system-reminder>\nPlan mode is on\.[^]+How to plan:/);
  expect(whole).toContain("write plan files: .opencode/plans/*.md or .fairlead/plans/*.md.");
  const again = planReminder("plan", "plan", { messages: [synthetic(whole)] });
  expect(again).toMatch(/^<system-reminder>\nPlan mode is on\. Do not change anything/);
  expect(again).toContain("plans: .opencode/plans/*.md or .fairlead/plans/*.md.");
  expect(again).not.toContain("How to plan:");
  // A compaction removed the explanation.
  expect(planReminder("plan", "plan", { messages: [synthetic(again)] })).toBe(whole);
  expect(planReminder("plan", undefined, { ...none, hasOwnPrompt: true })).toBe(again);
  expect(planReminder("build", "plan", none)).toContain("The mode changed from plan to build.");
  expect(planReminder("build", "build", none)).toBeUndefined();
  expect(planReminder("build", undefined, none)).toBeUndefined();
});

test("a new date is announced once, and again after a compaction", () => {
  const monday = Date.parse("2026-03-02T12:00:00");
  const day = 24 * 60 * 60 * 1000;
  expect(dateReminder(monday + 1, monday, [])).toBeUndefined();
  const tuesday = dateReminder(monday + day, monday, []);
  expect(tuesday).toBe("<system-reminder>\nThe date is now Tue Mar 03 2026.\n</system-reminder>");
  expect(dateReminder(monday + day, monday, [synthetic(tuesday)])).toBeUndefined();
  expect(dateReminder(monday + 2 * day, monday, [synthetic(tuesday)])).toContain("Wed Mar 04 2026");
  expect(dateReminder(monday, monday, [synthetic(tuesday)])).toContain("Mon Mar 02 2026");
});

function synthetic(text = ""): Message {
  const info = { id: newMessageId(), sessionId: newSessionId(), role: "user", agent: "plan" } as const;
  return {
    info: { ...info, time: { created: 1 } },
    parts: [{ id: newPartId(), type: "text", text, synthetic: true }],
  };
}

test("reminders are marked as messages of the program", () => {
  for (const reminder of [stepLimitReminder(), steerReminder(), planReminder("plan", undefined, none)]) {
    expect(reminder).toMatch(/^<system-reminder>\n[^]+\n<\/system-reminder>$/);
  }
});

function promptFiles(): string[] {
  const files = readdirSync(promptFolder, { recursive: true, encoding: "utf8" });
  return files
    .map((path) => toSlashes(path))
    .filter((path) => path.endsWith(".md") && !path.startsWith("tools"))
    .sort();
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
    toSlashes(relative(promptFolder, resolve(dirname(source), specifier))),
  );
}
