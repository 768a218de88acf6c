import { expect, test } from "vitest";
import { approvalModes } from "../../../src/message/message.ts";
import { defaultRules } from "../../../src/permission/default-rules.ts";
import { judge } from "../../../src/permission/judge.ts";
import type { PermissionRequest, Ruleset } from "../../../src/permission/rule.ts";
import { shellAnalysis } from "../../../src/tool/command-analysis.ts";
import { type HourCall, workingHour } from "./working-hour.ts";

const root = "/work/shop";
const folders = { cwd: root, start: root, home: "/home/ada", roots: [root], shell: "bash" };
const defaults = defaultRules({ outputFolder: "/out", skillFolders: [] });
/** `setup --ask-for all`. */
const strict: Ruleset = [
  ...defaults,
  { permission: "edit", pattern: "*", action: "ask" },
  { permission: "bash", pattern: "*", action: "ask" },
];

async function toRequests(call: HourCall): Promise<readonly PermissionRequest[]> {
  if ("bash" in call) return shellAnalysis.analyze(call.bash, folders);
  const [permission, text] = "read" in call ? ["read", call.read] : ["edit", call.edit];
  return [{ permission, subjects: [{ text }], always: [] }];
}

interface JudgedCall {
  readonly call: HourCall;
  readonly requests: readonly PermissionRequest[];
}

/** Returns how many calls ask at each level; in the sandbox also those that fail in it, and each host once. */
function countQuestions(calls: readonly JudgedCall[], rules: Ruleset): Record<string, number> {
  const counts = approvalModes.map((mode) => {
    const asking = calls.filter(({ requests }) =>
      requests.some((request) => judge(request, { rules, mode }).action !== "allow"),
    );
    if (mode !== "sandboxed") return [mode, asking.length] as const;
    const unasked = calls.flatMap((one) => ("bash" in one.call && !asking.includes(one) ? [one.call] : []));
    const hosts = new Set(unasked.flatMap(({ host }) => host ?? []));
    const failing = unasked.filter(({ needsOutside }) => needsOutside === true);
    return [mode, asking.length + hosts.size + failing.length] as const;
  });
  return Object.fromEntries(counts);
}

test("an hour of work asks a bounded number of questions at each level", async () => {
  const calls = await Promise.all(
    workingHour.map(async (call) => ({ call, requests: await toRequests(call) })),
  );
  const withDefaults = countQuestions(calls, defaults);
  const askingForAll = countQuestions(calls, strict);
  console.info(`${workingHour.length} calls; questions: ${JSON.stringify({ withDefaults, askingForAll })}`);
  expect(workingHour.length).toBeGreaterThanOrEqual(150);
  // The table in docs/sandbox.md contains these numbers.
  const bounds = { ask: 13, "accept-edits": 13, sandboxed: 18, auto: 0 };
  for (const mode of approvalModes) expect(withDefaults[mode], mode).toBeLessThanOrEqual(bounds[mode]);
  expect(withDefaults["ask"]).toBeGreaterThan(5);
  expect(askingForAll["ask"]).toBeGreaterThan(100);
  expect(askingForAll["accept-edits"]).toBeLessThan(askingForAll["ask"] ?? 0);
  expect(askingForAll["sandboxed"]).toBe(withDefaults["sandboxed"]);
});
