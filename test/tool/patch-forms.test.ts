import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { toSlashes } from "../../src/base/files/paths.ts";
import { applyPatchTool } from "../../src/tool/patch/apply-patch.ts";
import { readTool } from "../../src/tool/read/read.ts";
import { planRevert, revertFile } from "../../src/undo/revert.ts";
import { call, prepare, run, toolPlace } from "./tool-place.ts";
import type { ToolPlace } from "./tool-place.ts";

type Files = Readonly<Record<string, string>>;
/** The name of the case, the patch, the files afterwards; other files stay unchanged. */
type Case = readonly [shows: string, patch: string, after: Files];

const before: Files = {
  "a.py":
    "class A:\n    def f(self):\n        x = 1\n        return x\n\n    def g(self):\n        return 2\n",
  "b.txt": "one\ntwo\nthree\n",
  "c.txt": "c\r\nd\r\n",
  "e.txt": "e",
};
const started = (...lines: string[]) => ["*** Begin Patch", ...lines].join("\n");
const patch = (...lines: string[]) => `${started(...lines)}\n*** End Patch`;
const two = ["*** Update File: b.txt", "@@", " one", "-two", "+2", " three"];
const twoDone: Files = { "b.txt": "one\n2\nthree\n" };
const indented = (lines: string, by: string) => lines.replaceAll(/^/gm, by);

const accepted: readonly Case[] = [
  ["the plain form", patch(...two), twoDone],
  ["a here-document around it", `apply_patch <<'EOF'\n${patch(...two)}\nEOF`, twoDone],
  ["a here-document with double quotes", `apply_patch <<"PATCH"\n${patch(...two)}\nPATCH\n`, twoDone],
  ["a here-document alone", `<<EOF\n${patch(...two)}\nEOF\n`, twoDone],
  ["a command before the here-document", `cd . && apply_patch <<-EOF\n${patch(...two)}\nEOF\n`, twoDone],
  ["a fence around it", `\`\`\`\n${patch(...two)}\n\`\`\``, twoDone],
  ["no end", started(...two), twoDone],
  ["no end, then an empty line", `${started(...two)}\n`, twoDone],
  ["no end in a here-document", `apply_patch <<'EOF'\n${started(...two)}\nEOF`, twoDone],
  ["no end in a fence", `\`\`\`diff\n${started(...two)}\n\`\`\``, twoDone],
  ["blanks around the marks", `  *** Begin Patch  \n${two.join("\n")}\n *** End Patch `, twoDone],
  ["an indented header of a file", patch("  *** Update File: b.txt", ...two.slice(1)), twoDone],
  ["a tab before the header of a file", patch("\t*** Update File: b.txt", ...two.slice(1)), twoDone],
  [
    "an indented header after a new file",
    patch("*** Add File: n", "+n", "  *** Delete File: b.txt"),
    { n: "n\n", "b.txt": "" },
  ],
  [
    "an indented header after a deleted file",
    patch("*** Delete File: b.txt", " *** Add File: n", "+n"),
    { n: "n\n", "b.txt": "" },
  ],
  ["all lines indented", indented(patch(...two), "    "), twoDone],
  [
    "all lines indented in a here-document",
    `apply_patch <<'EOF'\n${indented(patch(...two), "  ")}\nEOF`,
    twoDone,
  ],
  ["CRLF", patch(...two).replaceAll("\n", "\r\n"), twoDone],
  [
    "CRLF in the file",
    patch("*** Update File: c.txt", "@@", " c", "-d", "+D", "+E"),
    { "c.txt": "c\r\nD\r\nE\r\n" },
  ],
  [
    "blanks at the ends of lines",
    patch("*** Update File: b.txt  ", "@@  ", " one  ", "-two ", "+2"),
    twoDone,
  ],
  [
    "empty lines between sections",
    patch("", ...two, "", "*** Add File: n", "+n", "", ""),
    { ...twoDone, n: "n\n" },
  ],
  ["no line of @@", patch("*** Update File: b.txt", " one", "-two", "+2"), twoDone],
  ["numbered headers", patch("*** Update File: b.txt", "@@ -1,3 +1,3 @@", ...two.slice(2)), twoDone],
  ["a numbered header of one line", patch("*** Update File: b.txt", "@@ -2 +2 @@", "-two", "+2"), twoDone],
  [
    "a numbered header with a name",
    patch("*** Update File: a.py", "@@ -1,3 +1,3 @@ class A:", "-        x = 1", "+        x = 2"),
    { "a.py": before["a.py"]?.replace("x = 1", "x = 2") ?? "" },
  ],
  [
    "headers of another format",
    patch("*** Update File: b.txt", "--- a/b.txt", "+++ b/b.txt", "@@ -1,3 +1,3 @@", ...two.slice(2)),
    twoDone,
  ],
  [
    "an anchor that is closed",
    patch("*** Update File: a.py", "@@ def g(self): @@", "-        return 2", "+        return 3"),
    { "a.py": before["a.py"]?.replace("return 2", "return 3") ?? "" },
  ],
  [
    "two anchors that are closed",
    patch(
      "*** Update File: a.py",
      "@@ class A: @@",
      "@@     def g(self): @@",
      "-        return 2",
      "+        return 3",
    ),
    { "a.py": before["a.py"]?.replace("return 2", "return 3") ?? "" },
  ],
  ["dots as an anchor", patch("*** Update File: b.txt", "@@ ... @@", "-two", "+2"), twoDone],
  [
    "the end of the file",
    patch("*** Update File: b.txt", "@@", "-three", "+3", "*** End of File"),
    { "b.txt": "one\ntwo\n3\n" },
  ],
  [
    "an indented end of the file",
    patch("*** Update File: b.txt", "@@", "-three", "+3", "  *** End of File"),
    { "b.txt": "one\ntwo\n3\n" },
  ],
  [
    "new lines at the end of the file",
    patch("*** Update File: b.txt", "@@", "+four", "*** End of File"),
    { "b.txt": "one\ntwo\nthree\nfour\n" },
  ],
  [
    "the remark that a line has no newline",
    patch(
      "*** Update File: e.txt",
      "@@",
      "-e",
      "\\ No newline at end of file",
      "+f",
      "\\ No newline at end of file",
    ),
    { "e.txt": "f" },
  ],
  [
    "lines without the blank before them",
    patch("*** Update File: b.txt", "@@", "one", "-two", "+2", "three"),
    twoDone,
  ],
  [
    "indented lines without the blank before them",
    patch("*** Update File: a.py", "@@", "    def f(self):", "+        w = 0", "        x = 1"),
    { "a.py": before["a.py"]?.replace("        x", "        w = 0\n        x") ?? "" },
  ],
  [
    "an empty line that stays without its blank",
    patch("*** Update File: a.py", "@@", "         return x", "", "-    def g(self):", "+    def h(self):"),
    { "a.py": before["a.py"]?.replace("g(self)", "h(self)") ?? "" },
  ],
  [
    "one file twice",
    patch(...two, "*** Update File: b.txt", "@@", "-one", "+1"),
    { "b.txt": "1\n2\nthree\n" },
  ],
  [
    "one file twice, another between",
    patch(...two, "*** Add File: n", "+n", "*** Update File: b.txt", "@@", "-three", "+3"),
    { "b.txt": "one\n2\n3\n", n: "n\n" },
  ],
  [
    "a file deleted and added",
    patch("*** Delete File: b.txt", "*** Add File: b.txt", "+new"),
    { "b.txt": "new\n" },
  ],
  [
    "a rename",
    patch("*** Update File: b.txt", "*** Move to: n/b.txt"),
    { "b.txt": "", "n/b.txt": "one\ntwo\nthree\n" },
  ],
  [
    "a rename with a hunk that only has lines that stay",
    patch("*** Update File: b.txt", "*** Move to: n.txt", "@@", " one", " two"),
    { "b.txt": "", "n.txt": "one\ntwo\nthree\n" },
  ],
  [
    "an indented rename",
    patch("*** Update File: b.txt", "  *** Move to: n.txt", "@@", "-two", "+2"),
    { "b.txt": "", "n.txt": "one\n2\nthree\n" },
  ],
  [
    "a hunk of lines that stay beside another",
    patch("*** Update File: b.txt", "@@", " one", "@@", "-two", "+2"),
    twoDone,
  ],
  ["a new file over one that was read", patch("*** Add File: b.txt", "+new"), { "b.txt": "new\n" }],
  ["a new file over one with CRLF", patch("*** Add File: c.txt", "+x", "+y"), { "c.txt": "x\r\ny\r\n" }],
  [
    "a rename onto a file that was read",
    patch("*** Update File: b.txt", "*** Move to: e.txt", "@@", "-two", "+2"),
    { "b.txt": "", "e.txt": "one\n2\nthree\n" },
  ],
  [
    "a rename onto itself with a change",
    patch("*** Update File: b.txt", "*** Move to: b.txt", "@@", "-two", "+2"),
    twoDone,
  ],
  ["an empty new file", patch("*** Add File: n"), { n: "" }],
];

test.each(accepted)("a patch with %s is applied, and undone as a whole", async (_shows, patchText, after) => {
  await using place = await toolPlace(before);
  await readAll(place);
  const { changes = [] } = await call(applyPatchTool, { patchText }, place);
  const expected = { ...before, ...after };
  for (const [name, text] of Object.entries(after)) if (text === "" && name in before) delete expected[name];
  expect(await allFiles(place)).toEqual(expected);
  const steps = changes.flatMap(({ path, operation, fromPath, before: old = null, after: fresh = null }) =>
    operation === "move" && fromPath !== undefined
      ? [
          { path: fromPath, before: old, after: null },
          { path, before: null, after: fresh },
        ]
      : [{ path, before: old, after: fresh }],
  );
  for (const revert of planRevert(steps)) {
    if (revert.reach === "none") throw new Error("a change cannot be undone");
    await revertFile(place.context.workspace, revert);
  }
  expect(await allFiles(place)).toEqual(before);
});

const good = ["*** Update File: e.txt", "@@", "-e", "+f"];

test.each([
  ["a hunk that fits nowhere", [...good, "*** Update File: b.txt", "@@", "-four", "+4"], "fits nowhere"],
  [
    "a rename whose lines are not there",
    [...good, "*** Update File: b.txt", "*** Move to: n", "@@", " four"],
    "fits nowhere",
  ],
  ["a hunk of lines that stay only", [...good, "*** Update File: b.txt", "@@", " one"], "changes nothing"],
  ["text between sections", [...good, "*** Delete File: b.txt", "what"], "expected"],
  ["a new file without plus signs", [...good, "*** Add File: n", "text"], 'begins with "+"'],
  [
    "one file in two sections that overlap",
    [...good, ...two, "*** Update File: b.txt", "@@", "-two", "+zwei"],
    "fits nowhere",
  ],
  [
    "one file moved and changed",
    [...good, "*** Update File: b.txt", "*** Move to: n", ...two],
    "more than once",
  ],
  ["a new file twice", [...good, "*** Add File: n", "+1", "*** Add File: n", "+2"], "more than once"],
  [
    "an anchor that is not there",
    [...good, "*** Update File: a.py", "@@ def h(self): @@", "-x", "+y"],
    'no line "def h(self):"',
  ],
  ["a rename onto a folder", [...good, "*** Update File: b.txt", "*** Move to: ."], "is a folder"],
])("a patch with %s is rejected, and nothing is changed", async (_shows, lines, message) => {
  await using place = await toolPlace(before);
  await readAll(place);
  await expect(prepare(applyPatchTool, { patchText: patch(...lines) }, place)).rejects.toThrow(message);
  expect(await allFiles(place)).toEqual(before);
});

test.each([
  ["an added file", patch("*** Add File: b.txt", "+new"), "b.txt exists already."],
  ["a moved file", patch("*** Update File: e.txt", "*** Move to: b.txt"), "b.txt exists already."],
])(
  "%s does not replace a file that was not read or was changed since",
  async (_shows, patchText, message) => {
    await using place = await toolPlace(before);
    await call(readTool, { filePath: "e.txt" }, place);
    await expect(prepare(applyPatchTool, { patchText }, place)).rejects.toThrow(message);
    await call(readTool, { filePath: "b.txt" }, place);
    const prepared = await prepare(applyPatchTool, { patchText }, place);
    await place.write({ "b.txt": "mine\n" });
    await expect(run(prepared, place)).rejects.toThrow("was changed since");
    expect(await allFiles(place)).toEqual({ ...before, "b.txt": "mine\n" });
  },
);

async function readAll(place: ToolPlace): Promise<void> {
  for (const filePath of Object.keys(before)) await call(readTool, { filePath }, place);
}

async function allFiles(place: ToolPlace): Promise<Files> {
  const entries = await readdir(place.path("."), { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isFile())
    .map((entry) => toSlashes(relative(place.cwd, join(entry.parentPath, entry.name))));
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await place.text(name)] as const)),
  );
}
