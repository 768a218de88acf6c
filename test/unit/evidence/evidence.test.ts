import { describe, expect, test } from "vitest";
import { describeCall, orderActivity } from "../../../src/evidence/activity.ts";
import { renderEvidence, titleOf } from "../../../src/evidence/describe.ts";
import { findEvidence } from "../../../src/evidence/evidence.ts";
import type { Activity } from "../../../src/message/activity.ts";
import { newPartId } from "../../../src/message/ids.ts";
import type { ToolPart } from "../../../src/message/part.ts";

const folders = { cwd: "/w", home: "/home/me" };
const change = (path: string): Activity => ({ type: "change", path: `/w/${path}`, before: "1", after: "2" });
const run = (command: string, exitCode = 0): Activity => ({
  type: "command",
  command,
  end: "exited",
  exitCode,
});
const writing = (command: string, path: string): Activity => ({
  type: "command",
  command,
  changes: [{ path: `/w/${path}`, before: "1", after: "2" }],
  end: "exited",
  exitCode: 0,
});

function titleFor(activities: readonly Activity[], text = ""): string | undefined {
  const evidence = findEvidence(activities, text, folders);
  return evidence && titleOf(evidence.facts);
}

describe("the evidence of a turn", () => {
  const turns: [name: string, activities: Activity[], text: string, title: string | undefined][] = [
    ["only plans", [change(".fairlead/plans/a.md")], "All tests pass.", undefined],
    [
      "only build outputs written by commands",
      [run("echo a > dist/a.js"), run("ls > /tmp/a")],
      "",
      undefined,
    ],
    [
      "a script that may be a check",
      [change("a.ts"), run("./run-tests.sh")],
      "All tests pass.",
      "1 file changed; after the last change ./run-tests.sh ended with exit code 0 (no known check)",
    ],
    [
      "a call of an MCP server",
      [change("a.ts"), { type: "call", title: "ide_run" }],
      "All tests pass.",
      "1 file changed; after the last change only ide_run was called (no known check)",
    ],
    [
      "a claim about another check",
      [change("a.ts"), run("npm test")],
      "Tests pass and the build succeeds.",
      "1 file changed; the model says that the build succeeds, but no build was run after the last change",
    ],
    [
      "a formatter after the tests",
      [change("a.ts"), run("npm test"), run("npx prettier --write .")],
      "Done.",
      "1 file changed; npm test was not run again after the last change",
    ],
    [
      "a script after the tests that changes files which its text does not name",
      [change("a.ts"), run("npm test"), writing("./generate.sh", "b.ts")],
      "Done.",
      "2 files changed; after the last change ./generate.sh ended with exit code 0 (no known check)",
    ],
    [
      "a claim after a script that changes files",
      [run("npm test"), writing("python3 fix.py", "b.ts")],
      "All tests pass.",
      "1 file changed; the model says that tests pass, but npm test was not run again after the last change",
    ],
    [
      "a script that changes nothing but outputs",
      [change("a.ts"), run("npm test"), writing("./pack.sh", "dist/a.js")],
      "Tests pass.",
      "1 file changed; after the last change npm test passed",
    ],
    [
      "tests that write snapshots",
      [change("a.ts"), run("npm test"), writing("npm test -- -u", "a.snap")],
      "Tests pass.",
      "2 files changed; after the last change npm test passed, npm test -- -u passed",
    ],
    [
      "a linter that fixes",
      [change("a.ts"), run("npx eslint --fix src")],
      "The linter is clean.",
      "1 file changed; after the last change npx eslint --fix src passed",
    ],
    [
      "a failure that a later run repairs",
      [change("a.ts"), run("npm test", 1), run("npm test")],
      "Tests pass.",
      "1 file changed; after the last change npm test passed",
    ],
    [
      "a later run that fails",
      [change("a.ts"), run("npm test -- a"), run("npm test", 1)],
      "Tests pass.",
      "1 file changed; the model says that tests pass, but npm test failed with exit code 1",
    ],
    [
      "a run in another folder",
      [
        change("a/b.ts"),
        { type: "command", command: "npm test", folder: "/w/a", end: "exited", exitCode: 0 },
      ],
      "Tests pass.",
      "1 file changed; after the last change npm test passed",
    ],
    [
      "a write and a check in one line",
      [run("cat > a.ts <<'X'\nexport {};\nX\nnpm test")],
      "Tests pass.",
      "Files changed by 1 command; after the last change npm test passed",
    ],
  ];
  test.each(turns)("with %s", (_, activities, text, title) => {
    expect(titleFor(activities, text)).toBe(title);
  });

  test("lists a limited number of files", () => {
    const evidence = findEvidence(
      Array.from({ length: 50 }, (_, at) => change(`${at}.ts`)),
      "",
      folders,
    );
    expect(evidence?.facts).toMatchObject({ moreFiles: 10, files: expect.objectContaining({ length: 40 }) });
    expect(evidence && titleOf(evidence.facts)).toMatch(/^50 files changed/);
    expect(evidence && renderEvidence(evidence.facts)).toContain(", and 10 more");
  });

  test("shows commands with backticks correctly", () => {
    const evidence = findEvidence([change("a.ts"), run("node `which a`")], "", folders);
    expect(evidence && renderEvidence(evidence.facts)).toContain(
      "`` node `which a` `` ended with exit code 0",
    );
  });

  test("calls for a reminder after an edit only", () => {
    const reminders = [
      [change("a.ts")],
      [change("README.md")],
      [change("a.ts"), run("npm test")],
      [change("a.ts"), run("npm test"), change("README.md")],
      [change("a.ts"), run("npm test"), run("cargo fmt")],
      [change("a.ts"), run("git diff")],
      [{ type: "refusal" }, change("a.ts")],
      [run("sed -i s/a/b/ a.ts")],
    ] satisfies Activity[][];
    expect(reminders.map((activities) => findEvidence(activities, "", folders)?.reminder)).toEqual([
      "nothing",
      undefined,
      undefined,
      undefined,
      undefined,
      "nothing",
      undefined,
      "nothing",
    ]);
  });
});

describe("the activity of calls", () => {
  const callOf = (part: Partial<ToolPart> & Pick<ToolPart, "tool" | "state">): ToolPart => ({
    id: newPartId(),
    type: "tool",
    callId: newPartId(),
    ...part,
  });
  const listActivity = (...parts: ToolPart[]) => orderActivity(parts.map(describeCall));
  const done = (
    start: number,
    metadata: Record<string, unknown>,
    input: unknown = {},
  ): ToolPart["state"] => ({
    status: "completed",
    input,
    output: "",
    metadata,
    time: { start, end: start + 5 },
  });

  test("is in the order in which calls of a step ran", () => {
    const bash = (start: number, command: string) =>
      callOf({ tool: "bash", kind: "execute", state: done(start, { exitCode: 0 }, { command }) });
    expect(listActivity(bash(20, "b"), bash(10, "a"))).toEqual([run("a"), run("b")]);
  });

  test("of parallel tasks has their commands before their changes", () => {
    const task = (start: number, ...activity: Activity[]) =>
      callOf({ tool: "task", kind: "think", state: done(start, { activity }) });
    const parts = [task(1, change("a.ts"), run("npm test")), task(2, change("b.ts"), run("npm run lint"))];
    expect(listActivity(...parts)).toEqual([
      run("npm test"),
      run("npm run lint"),
      change("a.ts"),
      change("b.ts"),
    ]);
    expect(listActivity(...parts.slice(0, 1))).toEqual([change("a.ts"), run("npm test")]);
  });

  test("of a background task has its changes last if something began meanwhile", () => {
    const activity = [change("a.ts"), run("npm test")];
    const task = (time?: number): ToolPart => {
      const end = { state: "completed", description: "has finished", output: "" } as const;
      return callOf({
        tool: "task",
        kind: "think",
        title: "Look (@general)",
        state: {
          status: "completed",
          output: "",
          metadata: { activity },
          time: { start: 10, end: 11 },
          job: { id: 1, ...(time !== undefined && { end: { ...end, time } }) },
        },
      });
    };
    const bash = (start: number) =>
      callOf({
        tool: "bash",
        kind: "execute",
        state: done(start, { exitCode: 0 }, { command: "make test" }),
      });
    expect(listActivity(task(20), bash(30))).toEqual([...activity, run("make test")]);
    expect(listActivity(task(40), bash(30), bash(50))).toEqual([
      run("npm test"),
      run("make test"),
      change("a.ts"),
      run("make test"),
    ]);
    expect(listActivity(task(), bash(30))).toEqual([
      { type: "task", title: "Look (@general)" },
      run("make test"),
    ]);
  });

  test("of a moved file has both paths, of which one is shown", () => {
    const moved = {
      path: "/w/b.ts",
      fromPath: "/w/a.ts",
      operation: "move" as const,
      before: "1",
      after: "1",
    };
    const changes = [{ ...moved, additions: 0, deletions: 0 }];
    const state: ToolPart["state"] = { status: "completed", output: "", changes, time: { start: 1, end: 2 } };
    const activities = listActivity(callOf({ tool: "apply_patch", kind: "edit", state }));
    expect(activities).toHaveLength(2);
    expect(findEvidence(activities, "", folders)?.facts.files).toEqual(["b.ts"]);
  });

  test("omits commands that did not run, and notes refused ones", () => {
    const failed = (reason: "failed" | "rejected" | "cancelled", end: number): ToolPart["state"] => ({
      status: "error",
      input: { command: "make" },
      error: "",
      reason,
      time: { start: 1, end },
    });
    const decision = { outcome: "rejected", by: "person", permission: "bash", subject: "make" } as const;
    const parts = [
      callOf({ tool: "bash", state: failed("failed", 1) }),
      callOf({ tool: "bash", state: failed("rejected", 1), decision }),
      callOf({ tool: "bash", state: failed("cancelled", 9) }),
      callOf({ tool: "task", state: done(2, { activity: [{ type: "change" }, "x", { type: "command" }] }) }),
    ];
    expect(listActivity(...parts)).toEqual([
      { type: "refusal" },
      { type: "command", command: "make", end: "cancelled" },
    ]);
  });
});
