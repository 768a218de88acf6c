import { createHash } from "node:crypto";
import { mkdir, rename, symlink, truncate, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { messageOf } from "../../src/base/errors.ts";
import { readImageHeader } from "../../src/tool/image/image-header.ts";
import { outputLimitBytes, outputLimitLines, limitOutput } from "../../src/tool/output-limit.ts";
import { readTool } from "../../src/tool/read/read.ts";
import { createPng } from "../support/png.ts";
import { call, description, prepare, run, toolPlace } from "./tool-place.ts";

const sha256 = (bytes: string | Buffer) => createHash("sha256").update(bytes).digest("hex");

test("a file is returned with numbered lines and counts as read afterwards", async () => {
  await using place = await toolPlace({ "src/a.ts": "one\n\nthree\n" });
  expect(await call(readTool, { filePath: "src/a.ts" }, place)).toEqual({
    status: "completed",
    output: "1: one\n2: \n3: three\n\n(End of file at line 3.)",
  });
  expect(place.context.seen.get(place.path("src/a.ts"))).toBe(sha256("one\n\nthree\n"));
});

test("the call is described before it runs", async () => {
  await using place = await toolPlace({ "src/a.ts": "one\n" });
  const described = await description(readTool, { filePath: place.path("src/a.ts"), offset: 3 }, place);
  expect(described).toEqual({
    title: "Read src/a.ts (from line 3)",
    kind: "read",
    locations: [{ path: place.path("src/a.ts"), line: 3 }],
    permissions: [
      {
        permission: "read",
        subjects: [{ text: "src/a.ts", also: [place.rulePath("src/a.ts")] }],
        always: ["src/a.ts"],
      },
    ],
  });
});

test("a part is read, with the line to continue at", async () => {
  await using place = await toolPlace({ a: "1\n2\n3\n4\n5" });
  const part = await call(readTool, { filePath: "a", offset: 2, limit: 2 }, place);
  expect(part.output).toBe("2: 2\n3: 3\n\n(Lines 2-3 of 5. Go on with offset 4.)");
  const rest = await call(readTool, { filePath: "a", offset: 4 }, place);
  expect(rest.output).toBe("4: 4\n5: 5\n\n(End of file at line 5.)");
});

test("returns at most 2,000 lines, which the runner does not shorten", async () => {
  await using place = await toolPlace({ a: "x\n".repeat(5000) });
  const { output } = await call(readTool, { filePath: "a" }, place);
  expect(output.split("\n")).toHaveLength(outputLimitLines + 2);
  expect(output.endsWith("\n(Lines 1-2000 of 5000. Go on with offset 2001.)")).toBe(true);
  const shown = output.slice(0, output.lastIndexOf("\n\n"));
  expect((await limitOutput(shown, { folder: place.outside })).truncated).toBe(false);
});

test("at most 50 KB are returned at once", async () => {
  await using place = await toolPlace({ a: `${"é".repeat(500)}\n`.repeat(100) });
  const { output } = await call(readTool, { filePath: "a" }, place);
  expect(output.endsWith("\n(Lines 1-50 of 100, cut at 50 KB. Go on with offset 51.)")).toBe(true);
  expect(Buffer.byteLength(output)).toBeLessThan(outputLimitBytes + 200);
});

test("a long line is truncated at a whole character, with a note", async () => {
  await using place = await toolPlace({
    a: `${"x".repeat(1999)}😀y\nnext\n`,
    exact: `${"x".repeat(2000)}\r\n`,
  });
  const { output } = await call(readTool, { filePath: "a" }, place);
  expect(output).toBe(
    `1: ${"x".repeat(1999)}… (line cut at 2000 of 2002 characters)\n2: next\n\n(End of file at line 2.)`,
  );
  expect((await call(readTool, { filePath: "exact" }, place)).output).toBe(
    `1: ${"x".repeat(2000)}\n\n(End of file at line 1.)`,
  );
});

test("reports an empty file and an offset after the end", async () => {
  await using place = await toolPlace({ empty: "", short: "a\nb\n" });
  expect((await call(readTool, { filePath: "empty" }, place)).output).toBe("(The file is empty.)");
  await expect(call(readTool, { filePath: "short", offset: 9 }, place)).rejects.toThrow(
    "There is no line 9: the file ends at line 2.",
  );
});

test("a file too large for memory is read in pieces, counted and known", async () => {
  await using place = await toolPlace();
  const content = "0123456789abcdefghi\n".repeat(600_000);
  await writeFile(place.path("large"), content);
  const { output } = await call(readTool, { filePath: "large", offset: 599_999, limit: 1 }, place);
  expect(output).toBe(
    "599999: 0123456789abcdefghi\n\n(Lines 599999-599999 of 600000. Go on with offset 600000.)",
  );
  expect(place.context.seen.get(place.path("large"))).toBe(sha256(content));
});

test("of an enormous file only the shown part is read", async () => {
  await using place = await toolPlace({ huge: "first\nsecond\n".repeat(400) });
  await truncate(place.path("huge"), 3_000_000_000_000);
  const begin = performance.now();
  const { output } = await call(readTool, { filePath: "huge", limit: 2 }, place);
  expect(output).toBe(
    "1: first\n2: second\n\n(Lines 1-2 of a file too large to count. Go on with offset 3.)",
  );
  expect(performance.now() - begin).toBeLessThan(5_000);
  expect(place.context.seen.get(place.path("huge"))).toBeUndefined();
});

test("UTF-16 and files that are not UTF-8 are read as text", async () => {
  await using place = await toolPlace({
    utf16: Buffer.from("\uFEFFgrün\r\nrot\r\n", "utf16le"),
    big: Buffer.from("\uFEFFgrün\n", "utf16le").swap16(),
    latin1: Buffer.from("grün\n", "latin1"),
    marked: "\uFEFFgrün\n",
  });
  expect((await call(readTool, { filePath: "utf16" }, place)).output).toBe(
    "1: grün\n2: rot\n\n(End of file at line 2.)",
  );
  for (const filePath of ["big", "latin1", "marked"]) {
    expect((await call(readTool, { filePath }, place)).output).toBe("1: grün\n\n(End of file at line 1.)");
  }
});

test("binary files are refused, by their bytes and by their names", async () => {
  await using place = await toolPlace({ nul: "a\0b", controls: "\u0001\u0002\u0003abc", "a.zip": "PK text" });
  for (const filePath of ["nul", "controls", "a.zip"]) {
    await expect(call(readTool, { filePath }, place)).rejects.toThrow(
      "is binary and cannot be shown as text",
    );
  }
});

test("an image is attached, whatever its name is", async () => {
  await using place = await toolPlace({ "shot.txt": createPng(3, 2) });
  expect(await call(readTool, { filePath: "shot.txt" }, place)).toEqual({
    status: "completed",
    output: `shot.txt (image/png, ${createPng(3, 2).length} bytes) is attached.`,
    attachments: [
      {
        mime: "image/png",
        url: `data:image/png;base64,${createPng(3, 2).toString("base64")}`,
        filename: "shot.txt",
      },
    ],
  });
});

test("a large image is scaled down, and the model is informed", async () => {
  await using place = await toolPlace({ "wide.png": createPng(4_000, 10) });
  const { output, attachments } = await call(readTool, { filePath: "wide.png" }, place);
  expect(output).toMatch(/scaled down from 4000 × 10 to 2000 × 5 pixels\) is attached/);
  const bytes = Buffer.from(attachments?.[0]?.url.split(",")[1] ?? "", "base64");
  expect(readImageHeader(bytes)).toEqual({ mime: "image/png", width: 2_000, height: 5, isWhole: true });
});

test("an image or PDF that cannot be shown says why and what to do", async () => {
  await using place = await toolPlace({
    "cut.png": createPng(3, 2).subarray(0, 40),
    "huge.png": createPng(30_000, 30_000, ""),
    "cut.pdf": "%PDF-1.7\nhalf of it",
    "whole.pdf": "%PDF-1.7\n…\n%%EOF\n",
  });
  const failure = (filePath: string) => call(readTool, { filePath }, place).catch(messageOf);
  expect(await failure("cut.png")).toMatch(
    /cut.png cannot be shown: it is damaged.*Make a smaller or another copy/,
  );
  expect(await failure("huge.png")).toContain("it has 30000 × 30000 pixels, more than the limit of 40000000");
  expect(await failure("cut.pdf")).toContain("its beginning or its end is missing");
  expect(await failure("whole.pdf")).toMatchObject({ attachments: [{ mime: "application/pdf" }] });
});

test("a folder is listed, folders and links to folders with a slash", async () => {
  await using place = await toolPlace({ "d/b.txt": "", "d/a/x": "" });
  await symlink("a", place.path("d/link"));
  await symlink("nowhere", place.path("d/lost"));
  const listed = await call(readTool, { filePath: "d" }, place);
  expect(listed.output).toBe("a/\nb.txt\nlink/\nlost\n\n(All entries: 4.)");
  const part = await call(readTool, { filePath: "d", offset: 2, limit: 2 }, place);
  expect(part.output).toBe("b.txt\nlink/\n\n(Entries 2-3 of 4. Go on with offset 4.)");
  await mkdir(place.path("empty"));
  expect((await call(readTool, { filePath: "empty" }, place)).output).toBe("(The folder is empty.)");
});

test("a link created after the question is not followed", async () => {
  await using place = await toolPlace({ "d/a": "mine" });
  const prepared = await prepare(readTool, { filePath: "d/a" }, place);
  await mkdir(`${place.outside}/secret`);
  await writeFile(`${place.outside}/secret/a`, "theirs");
  await rename(place.path("d"), place.path("moved"));
  await symlink(`${place.outside}/secret`, place.path("d"));
  await expect(run(prepared, place)).rejects.toThrow("now leads to");
});

test("a missing file suggests similar names", async () => {
  await using place = await toolPlace({ "src/index.ts": "", "src/indent.ts": "", "src/zebra.md": "" });
  await expect(prepare(readTool, { filePath: "src/Index.tsx" }, place)).rejects.toThrow(
    "src/Index.tsx does not exist. Did you mean src/index.ts or src/indent.ts?",
  );
});

test("a file in a subfolder adds that folder's instructions, once", async () => {
  await using place = await toolPlace({
    "src/AGENTS.md": "Use tabs here.\n",
    "src/a.ts": "a\n",
    "src/b.ts": "b\n",
  });
  const first = await call(readTool, { filePath: "src/a.ts" }, place);
  const second = await call(readTool, { filePath: "src/b.ts" }, place);
  expect(first.output).toContain("Use tabs here.");
  expect(second.output).not.toContain("Use tabs here.");
});
