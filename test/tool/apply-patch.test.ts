import { access, chmod, mkdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { applyPatchTool } from "../../src/tool/patch/apply-patch.ts";
import { readTool } from "../../src/tool/read/read.ts";
import { sha256 } from "../../src/base/text/hash.ts";
import { lacksFileModes, shownMode } from "../support/platform/platform.ts";
import { call, description, prepare, run, shouting, toolPlace } from "./tool-place.ts";
import type { ToolPlace } from "./tool-place.ts";

const hashOf = (text: string) => sha256(Buffer.from(text));
const patch = (...lines: string[]) => ({
  patchText: ["*** Begin Patch", ...lines, "*** End Patch"].join("\n"),
});

async function read(place: ToolPlace, ...names: string[]): Promise<void> {
  for (const filePath of names) await call(readTool, { filePath }, place);
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

/** Returns the file's text after an update of it, following a read. */
async function updated(before: string, ...lines: string[]): Promise<string> {
  await using place = await toolPlace({ a: before });
  await read(place, "a");
  await call(applyPatchTool, patch("*** Update File: a", ...lines), place);
  return await place.text("a");
}

/** Returns why an update fails. */
async function refused(before: string, ...lines: string[]): Promise<string> {
  await using place = await toolPlace({ a: before });
  await read(place, "a");
  const failure = await prepare(applyPatchTool, patch("*** Update File: a", ...lines), place).catch(
    (error: unknown) => error,
  );
  expect(await place.text("a")).toBe(before);
  return failure instanceof Error ? `${failure.name}: ${failure.message}` : "it did not fail";
}

describe("a patch of several files", () => {
  const all = patch(
    "*** Add File: new/a.ts",
    "+one",
    "+two",
    "*** Update File: b.ts",
    "@@",
    " keep",
    "-old",
    "+new",
    "*** Update File: c.ts",
    "*** Move to: moved/c.ts",
    "@@",
    "-c",
    "+C",
    "*** Delete File: d.ts",
  );
  const files = { "b.ts": "keep\nold\n", "c.ts": "c\n", "d.ts": "d\n" };

  test("is applied as one change, and lists the files", async () => {
    await using place = await toolPlace(files);
    await chmod(place.path("c.ts"), 0o755);
    await read(place, "b.ts", "c.ts", "d.ts");
    expect(await call(applyPatchTool, all, place)).toEqual({
      status: "completed",
      output: [
        "Created new/a.ts (+2 -0 lines).",
        "Changed b.ts (+1 -1 lines).\n1: keep\n2: new",
        "Moved c.ts to moved/c.ts (+1 -1 lines).\n1: C",
        "Deleted d.ts (+0 -1 lines).",
      ].join("\n\n"),
      changes: [
        {
          path: place.path("new/a.ts"),
          operation: "add",
          before: null,
          after: hashOf("one\ntwo\n"),
          additions: 2,
          deletions: 0,
        },
        {
          path: place.path("b.ts"),
          operation: "update",
          before: hashOf("keep\nold\n"),
          after: hashOf("keep\nnew\n"),
          additions: 1,
          deletions: 1,
        },
        {
          path: place.path("moved/c.ts"),
          operation: "move",
          fromPath: place.path("c.ts"),
          before: hashOf("c\n"),
          after: hashOf("C\n"),
          additions: 1,
          deletions: 1,
          ...(!lacksFileModes && { mode: 0o755 }),
        },
        {
          path: place.path("d.ts"),
          operation: "delete",
          before: hashOf("d\n"),
          after: null,
          additions: 0,
          deletions: 1,
        },
      ],
    });
    expect(await place.text("new/a.ts")).toBe("one\ntwo\n");
    expect(await place.text("b.ts")).toBe("keep\nnew\n");
    expect(await place.text("moved/c.ts")).toBe("C\n");
    expect((await stat(place.path("moved/c.ts"))).mode & 0o777).toBe(shownMode(0o755));
    expect(await exists(place.path("c.ts"))).toBe(false);
    expect(await exists(place.path("d.ts"))).toBe(false);
    const { snapshots } = place.context.workspace;
    expect(String(await snapshots.load(hashOf("d\n")))).toBe("d\n");
    expect(place.context.seen.get(place.path("moved/c.ts"))).toBe(hashOf("C\n"));
  });

  test("is shown completely in the question, and asks for each path", async () => {
    await using place = await toolPlace(files);
    await read(place, "b.ts", "c.ts", "d.ts");
    const requested = (name: string) => ({
      permission: "edit",
      subjects: [{ text: name, also: [place.rulePath(name)] }],
      always: [name],
    });
    expect(await description(applyPatchTool, all, place)).toEqual({
      title: "Edit new/a.ts, b.ts, c.ts → moved/c.ts and 1 more",
      kind: "edit",
      locations: [
        { path: place.path("new/a.ts"), line: 1 },
        { path: place.path("b.ts"), line: 2 },
        { path: place.path("moved/c.ts"), line: 1 },
        { path: place.path("d.ts") },
      ],
      preview: {
        diffs: [
          { path: place.path("new/a.ts"), oldText: null, newText: "one\ntwo\n" },
          { path: place.path("b.ts"), oldText: "keep\nold\n", newText: "keep\nnew\n" },
          { path: place.path("moved/c.ts"), oldText: "c\n", newText: "C\n" },
          { path: place.path("d.ts"), oldText: "d\n", newText: "", isDeleted: true },
        ],
      },
      permissions: ["new/a.ts", "b.ts", "c.ts", "moved/c.ts", "d.ts"].map(requested),
    });
    expect(await place.text("b.ts")).toBe("keep\nold\n");
  });

  test("changes nothing if one file has changed since the question", async () => {
    await using place = await toolPlace(files);
    await read(place, "b.ts", "c.ts", "d.ts");
    const prepared = await prepare(applyPatchTool, all, place);
    await place.write({ "d.ts": "other\n" });
    await expect(run(prepared, place)).rejects.toThrow("was changed since it was read");
    expect(await exists(place.path("new/a.ts"))).toBe(false);
    expect(await place.text("b.ts")).toBe("keep\nold\n");
    expect(await place.text("d.ts")).toBe("other\n");
  });

  test("reverts what was written when a later write fails", async () => {
    await using place = await toolPlace({ "b.ts": "b\n", "e.ts": "e\n" });
    await read(place, "b.ts", "e.ts");
    const prepared = await prepare(
      applyPatchTool,
      patch(
        "*** Update File: b.ts",
        "@@",
        "-b",
        "+B",
        "*** Delete File: e.ts",
        "*** Add File: f/x",
        "+x",
        "*** Add File: f/x/y",
        "+y",
      ),
      place,
    );
    // f/x becomes a file, so that no folder of that name can be created for the last one.
    await expect(run(prepared, place)).rejects.toThrow(
      /a file is in the place of a folder\. Use another path\. The whole change was undone/,
    );
    expect(await place.text("b.ts")).toBe("b\n");
    expect(await place.text("e.ts")).toBe("e\n");
    expect(await exists(place.path("f/x"))).toBe(false);
  });

  test("may not name a file twice, in any spelling", async () => {
    await using place = await toolPlace({ a: "a\n" });
    await symlink(place.path("a"), place.path("link"));
    await read(place, "a");
    const twice = patch("*** Update File: a", "@@", "-a", "+b", "*** Update File: link", "@@", "-a", "+c");
    await expect(prepare(applyPatchTool, twice, place)).rejects.toThrow("more than once");
  });
});

describe("a patch does not", () => {
  test("replace a file that appeared since the question", async () => {
    await using place = await toolPlace();
    const late = await prepare(applyPatchTool, patch("*** Add File: c", "+x"), place);
    await place.write({ c: "mine\n" });
    await expect(run(late, place)).rejects.toThrow("was changed since");
    expect(await place.text("c")).toBe("mine\n");
  });

  test.each([
    "*** Update File: a\n@@\n-c\n+b",
    "*** Update File: a\n@@\n- a\n+b",
    "*** Update File: a\n@@\n-}\n+b",
    "*** Update File: a\n@@ a\n+b",
    "*** Delete File: a",
    "*** Update File: a\n*** Move to: b",
  ])("change a file that was not read: %j", async (text) => {
    await using place = await toolPlace({ a: "a\n}\n" });
    const attempt = async () => run(await prepare(applyPatchTool, patch(text), place), place);
    await expect(attempt()).rejects.toThrow("was not read");
    await read(place, "a");
    await place.write({ a: "a\n}\nb\n" });
    await expect(attempt()).rejects.toThrow("was changed since");
    expect(await place.text("a")).toBe("a\n}\nb\n");
  });

  test("delete a file after an update by exact lines alone", async () => {
    await using place = await toolPlace({ a: "total = 1\nx\n" });
    const update = patch("*** Update File: a", "@@", "-total = 1", "+total = 2");
    expect((await prepare(applyPatchTool, update, place)).permissions).toMatchObject([
      { permission: "edit" },
      { permission: "read" },
    ]);
    await call(applyPatchTool, update, place);
    expect(await place.text("a")).toBe("total = 2\nx\n");
    await expect(prepare(applyPatchTool, patch("*** Delete File: a"), place)).rejects.toThrow(
      "Only a part of",
    );
  });

  test("fail without naming the nearest lines", async () => {
    await using place = await toolPlace({ a: "one\n  return total(list);\n}\n" });
    await read(place, "a");
    const wrong = patch("*** Update File: a", "@@", "-  return total(lists);", "+x");
    await expect(prepare(applyPatchTool, wrong, place)).rejects.toThrow(
      /fits nowhere: the file does not have its lines\. The nearest lines are:\n2: {3}return total\(list\);/,
    );
  });

  test("change folders, missing or binary files", async () => {
    await using place = await toolPlace({ "a.txt": "a\n" });
    await mkdir(place.path("folder"));
    await writeFile(place.path("binary"), Buffer.from([0, 1, 2, 0]));
    const failing = (name: string) =>
      prepare(applyPatchTool, patch(`*** Delete File: ${name}`), place).catch((error: unknown) =>
        String(error),
      );
    expect(await failing("folder")).toContain("is a folder");
    expect(await failing("b.txt")).toContain("Did you mean a.txt?");
    expect(await failing("binary")).toContain("is binary");
  });

  test("leave the workspace or change the agent's configuration without a question", async () => {
    await using place = await toolPlace();
    const outside = await prepare(applyPatchTool, patch("*** Add File: ../x", "+x"), place);
    expect(outside.permissions.map(({ permission }) => permission)).toEqual(["edit", "external_directory"]);
    const own = await prepare(applyPatchTool, patch("*** Add File: .fairlead/x", "+x"), place);
    expect(own.permissions[0]?.subjects[0]?.confirm).toContain("configuration");
  });

  test("take long for a file that repeats itself, or for its many lines", async () => {
    const same = "x\n".repeat(300_000);
    const long = ["@@", ...Array.from({ length: 5_000 }, () => " x"), "-z", "+y"];
    const often = Array.from({ length: 500 }, () => ["@@", " x", "-x", "+y"]).flat();
    const begin = performance.now();
    expect(await refused(same, ...long)).toContain("The hunk fits nowhere: the file does not have its lines");
    expect(await refused(same, ...often)).toContain(
      "Hunk 1 of 500 fits in more than 2000 places (line 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and others).",
    );
    expect(await refused(`${same}a\n`, "@@", "-x", "+y", "*** End of File")).toContain(
      "its lines are at line 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and others, not at the end",
    );
    expect(await updated(`${same}a\n${same}`, "@@", "-a", "+b")).toBe(`${same}b\n${same}`);
    expect(performance.now() - begin).toBeLessThan(10_000);
  });

  test("delete or move a link, through which its target would go", async () => {
    await using place = await toolPlace({ a: "a\n", "d/f": "f\n" });
    await symlink("a", place.path("link"));
    await symlink("d", place.path("folder"));
    await read(place, "link", "folder/f");
    for (const lines of [["*** Delete File: link"], ["*** Update File: link", "*** Move to: b"]])
      await expect(prepare(applyPatchTool, patch(...lines), place)).rejects.toThrow(
        "link is a link to a. Name that file if it is meant, or change the link with a command.",
      );
    await call(applyPatchTool, patch("*** Update File: link", "@@", "-a", "+b"), place);
    expect(await place.text("a")).toBe("b\n");
    await call(applyPatchTool, patch("*** Delete File: folder/f"), place);
    expect(await exists(place.path("d/f"))).toBe(false);
  });

  test("follow a link created after the question", async () => {
    await using place = await toolPlace({ "f/a": "a\n" });
    await read(place, "f/a");
    const prepared = await prepare(applyPatchTool, patch("*** Delete File: f/a"), place);
    await mkdir(join(place.outside, "other"));
    await writeFile(join(place.outside, "other/a"), "a\n");
    await rm(place.path("f"), { recursive: true });
    await symlink(join(place.outside, "other"), place.path("f"));
    await expect(run(prepared, place)).rejects.toThrow("now leads to");
    expect(await exists(join(place.outside, "other/a"))).toBe(true);
  });
});

describe("an update", () => {
  test("keeps line endings, byte order mark and a missing last newline", async () => {
    expect(await updated("\uFEFFone\r\ntwo\r\nthree", "@@", " one", "-two", "+2", "+zwei")).toBe(
      "\uFEFFone\r\n2\r\nzwei\r\nthree",
    );
    expect(await updated("one\ntwo", "@@", " two", "+three")).toBe("one\ntwo\nthree");
    expect(await updated("one\ntwo\r\nthree\n", "@@", "-three", "+3")).toBe("one\ntwo\r\n3\n");
  });

  test("finds lines that differ in blanks or punctuation, and keeps the file's own", async () => {
    expect(await updated("one  \ntwo\n", "@@", " one", "-two", "+2")).toBe("one  \n2\n");
    expect(await updated("say \u201Chi\u201D \u2013 now\nx\n", "@@", ' say "hi" - now', "-x", "+y")).toBe(
      "say \u201Chi\u201D \u2013 now\ny\n",
    );
    const indented = "\tif (x) {\n\t\ta();\n\t}\n";
    expect(await updated(indented, "@@", " if (x) {", "-  a();", "+  b();", "+  c();", " }")).toBe(
      "\tif (x) {\n\t\tb();\n\t\tc();\n\t}\n",
    );
  });

  test("reports which hunks fit only approximately", async () => {
    await using place = await toolPlace({ a: "one  \ntwo\n" });
    await read(place, "a");
    const { output } = await call(
      applyPatchTool,
      patch("*** Update File: a", "@@", "-one", "+1", " two"),
      place,
    );
    expect(output).toContain("The lines of hunk 1 matched only approximately");
  });

  const twins = "def f():\n    x = 1\n    return x\n\ndef g():\n    x = 1\n    return x\n";

  test("is refused if its lines occur in several places", async () => {
    expect(await refused(twins, "@@", "-    return x", "+    return 2")).toMatch(
      /ToolFailure: a: The hunk fits in 2 places \(line 3, 7\)\./,
    );
  });

  test("finds its place below the line of @@, and not in later lines", async () => {
    expect(await updated(twins, "@@ def g():", "-    return x", "+    return 2")).toBe(
      twins.replace(/return x\n$/, "return 2\n"),
    );
    expect(await updated(twins, "@@ def f():", "-    return x", "+    return 2")).toBe(
      twins.replace("return x", "return 2"),
    );
    expect(await updated(twins, "@@ def g", " def g():", "-    x = 1", "+    x = 2")).toBe(
      twins.replace(/(?<=g\(\):\n {4})x = 1/, "x = 2"),
    );
    const other = "def f():\n    return 2\n\ndef g():\n    return 1\n";
    expect(await refused(other, "@@ def f():", "-    return 1", "+    return 3")).toContain(
      'fits nowhere: its lines are at line 5, which is not below "def f():"',
    );
  });

  test("finds its place by several @@ from outer to inner", async () => {
    const text = "class A {\n  run() {\n    go();\n  }\n}\nclass B {\n  run() {\n    go();\n  }\n}\n";
    expect(await updated(text, "@@ class B {", "@@   run() {", "-    go();", "+    stop();")).toBe(
      text.replace(/go\(\);(?![^]*go\(\);)/, "stop();"),
    );
  });

  test("distinguishes equal places by the order of the hunks", async () => {
    expect(
      await updated(twins, "@@", "-    return x", "+    return 1", "@@", "-    return x", "+    return 2"),
    ).toBe(twins.replace("return x", "return 1").replace("return x", "return 2"));
    expect(await updated("a\nb\n", "@@", "-b", "+B", "@@", "-a", "+A")).toBe("A\nB\n");
    expect(await refused("a\nb\nc\n", "@@", "-a", "-b", "+x", "@@", "-b", "-c", "+y")).toContain(
      "Two hunks change the same lines",
    );
  });

  test("at the end of the file applies only there", async () => {
    const text = "x\ny\nx\n";
    expect(await updated(text, "@@", "-x", "+z", "*** End of File")).toBe("x\ny\nz\n");
    expect(await updated(text, "@@", "+z", "*** End of File")).toBe("x\ny\nx\nz\n");
    expect(await refused(text, "@@", "-y", "+z", "*** End of File")).toContain("not at the end of the file");
  });

  test("of added lines only needs a place", async () => {
    expect(await updated("a\nb\n", "@@ a", "+new")).toBe("a\nnew\nb\n");
    expect(await updated("", "@@", "+new")).toBe("new\n");
    expect(await refused("a\nb\n", "@@", "+new")).toContain("nothing says where they belong");
  });

  test("that fits nowhere or changes nothing is refused", async () => {
    expect(await refused("a\nb\n", "@@", "-c", "+d")).toContain(
      'the file does not have its lines, from "c" on',
    );
    expect(await refused("a\nb\n", "@@ nowhere", "-a", "+d")).toContain('no line "nowhere"');
    expect(await refused("a\nb\n", "@@", "-a", "+a")).toContain("leaves it as it is");
    expect(await refused("a\nb\n", "@@", " a", " b")).toContain("changes nothing");
  });
});

test.each([
  ["", 'has no line "*** Begin Patch"'],
  ["*** Begin Patch\n", "names no file"],
  ["*** Begin Patch\n*** End Patch", "names no file"],
  ["*** Begin Patch\nwhat\n*** End Patch", "Line 2 of the patch: expected"],
  ["*** Begin Patch\n*** Add File: a\nx\n*** End Patch", 'each line of a new file begins with "+"'],
  ["*** Begin Patch\n*** Add File:\n+x\n*** End Patch", "the path is missing"],
  ["*** Begin Patch\n*** Update File: a\n@@\nx\n*** End Patch", "the update changes nothing"],
  ["*** Begin Patch\n*** Update File: a\n*** End Patch", "the update changes nothing"],
])("an invalid patch is rejected with the line: %j", async (patchText, problem) => {
  await using place = await toolPlace();
  await expect(prepare(applyPatchTool, { patchText }, place)).rejects.toThrow(problem);
});

test("text that models write around a patch is ignored", async () => {
  await using place = await toolPlace({ a: "a\n", b: "b\n" });
  await read(place, "a", "b");
  const patchText =
    "apply_patch <<'EOF'\r\n*** Begin Patch\r\n*** Update File: a\r\n@@ -1,1 +1,1 @@\r\n-a\r\n+A\r\n\r\n*** Delete File: b\r\n\r\n*** Add File: c\r\n+c\r\n\r\n*** End Patch\r\nEOF\r\n";
  await call(applyPatchTool, { patchText }, place);
  expect(await place.text("a")).toBe("A\n");
  expect(await exists(place.path("b"))).toBe(false);
  expect(await place.text("c")).toBe("c\n");
});

describe("an editor that formats files when saving", () => {
  test("is reported, and undo restores from the saved text", async () => {
    await using plain = await toolPlace({ a: "ONE\nTWO\n" });
    const place = shouting(plain);
    await read(place, "a");
    const update = patch("*** Update File: a", "@@", "-TWO", "+two!");
    const { output, changes } = await call(applyPatchTool, update, place);
    expect(output).toContain("The editor changed the text when it saved it");
    expect(changes?.[0]?.after).toBe(hashOf("ONE\nTWO!\n"));
    expect(String(await place.context.workspace.snapshots.load(hashOf("ONE\nTWO!\n")))).toBe("ONE\nTWO!\n");
    await call(applyPatchTool, patch("*** Update File: a", "@@", "-TWO!", "+three"), place);
    expect(await place.text("a")).toBe("ONE\nTHREE\n");
  });

  test("undoes a failed patch", async () => {
    await using plain = await toolPlace({ a: "ONE\n" });
    const place = shouting(plain);
    await read(place, "a");
    const failing = patch(
      "*** Update File: a",
      "@@",
      "-ONE",
      "+two",
      "*** Add File: f",
      "+x",
      "*** Add File: f/y",
      "+y",
    );
    await expect(run(await prepare(applyPatchTool, failing, place), place)).rejects.toThrow("was undone");
    expect(await place.text("a")).toBe("ONE\n");
    expect(await exists(place.path("f"))).toBe(false);
  });
});

test("hunks that could take forever to find get an answer soon", { timeout: 20_000 }, async () => {
  const hunk = ["@@", ...Array.from({ length: 500 }, () => " same"), "-same", "+other"];
  const hunks = Array.from({ length: 200 }, () => hunk).flat();
  expect(await refused("same\n".repeat(100_000), ...hunks)).toContain(
    "Hunk 1 of 200 fits in more than 2000 places",
  );
});
