import { chmod, mkdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readTool } from "../../src/tool/read/read.ts";
import { writeTool } from "../../src/tool/edit/write.ts";
import { sha256 } from "../../src/base/text/hash.ts";
import { call, description, prepare, run, shouting, toolPlace } from "./tool-place.ts";
import { lacksFileModes } from "../support/platform/platform.ts";

const hashOf = (text: string) => sha256(Buffer.from(text));

test("a new file is created with its folders", async () => {
  await using place = await toolPlace();
  expect(await call(writeTool, { filePath: "src/new/a.ts", content: "one\ntwo\n" }, place)).toEqual({
    status: "completed",
    output: "Created src/new/a.ts (+2 -0 lines).",
    changes: [
      {
        path: place.path("src/new/a.ts"),
        operation: "add",
        before: null,
        after: hashOf("one\ntwo\n"),
        additions: 2,
        deletions: 0,
      },
    ],
  });
  expect(await place.text("src/new/a.ts")).toBe("one\ntwo\n");
  expect(place.context.seen.get(place.path("src/new/a.ts"))).toBe(hashOf("one\ntwo\n"));
});

test("the question shows the whole texts before and after", async () => {
  await using place = await toolPlace({ a: "one\ntwo\n" });
  await call(readTool, { filePath: "a" }, place);
  const described = await description(writeTool, { filePath: "a", content: "one\n2\n" }, place);
  expect(described).toEqual({
    title: "Write a",
    kind: "edit",
    locations: [{ path: place.path("a"), line: 2 }],
    preview: { diffs: [{ path: place.path("a"), oldText: "one\ntwo\n", newText: "one\n2\n" }] },
    permissions: [
      { permission: "edit", subjects: [{ text: "a", also: [place.rulePath("a")] }], always: ["a"] },
    ],
  });
  expect(await place.text("a")).toBe("one\ntwo\n");
});

test("changes nothing if undo cannot store the content, and explains why", async () => {
  await using place = await toolPlace({ a: "old\n" });
  await place.write({ "../snapshots": "a file in the way" });
  await call(readTool, { filePath: "a" }, place);
  await expect(call(writeTool, { filePath: "a", content: "new\n" }, place)).rejects.toThrow(
    `${place.path("a")} was not changed, because its content cannot be saved for undo: a file is in the place of a folder. Ask the user`,
  );
  expect(await place.text("a")).toBe("old\n");
});

test("both contents are kept for undo", async () => {
  await using place = await toolPlace({ a: "old\n" });
  await call(readTool, { filePath: "a" }, place);
  const { changes } = await call(writeTool, { filePath: "a", content: "new\nnewer\n" }, place);
  expect(changes).toEqual([
    {
      path: place.path("a"),
      operation: "update",
      before: hashOf("old\n"),
      after: hashOf("new\nnewer\n"),
      additions: 2,
      deletions: 1,
    },
  ]);
  const { snapshots } = place.context.workspace;
  expect(String(await snapshots.load(hashOf("old\n")))).toBe("old\n");
});

test("a file that was not read, or changed since, is not overwritten", async () => {
  await using place = await toolPlace({ a: "theirs\n" });
  const input = { filePath: "a", content: "mine\n" };
  await expect(prepare(writeTool, input, place)).rejects.toThrow(
    "was not read in this session. Read it first.",
  );
  await call(readTool, { filePath: "a" }, place);
  await place.write({ a: "theirs again\n" });
  await expect(prepare(writeTool, input, place)).rejects.toThrow(
    "was changed since it was read. Read it again",
  );
  expect(await place.text("a")).toBe("theirs again\n");
});

test("a file saved again with the same content is no change", async () => {
  await using place = await toolPlace({ a: "same\n" });
  await call(readTool, { filePath: "a" }, place);
  await writeFile(place.path("a"), "same\n");
  await call(writeTool, { filePath: "a", content: "new\n" }, place);
  expect(await place.text("a")).toBe("new\n");
});

test("keeps what the user changes between question and answer", async () => {
  await using place = await toolPlace({ a: "one\n" });
  await call(readTool, { filePath: "a" }, place);
  const prepared = await prepare(writeTool, { filePath: "a", content: "mine\n" }, place);
  const creation = await prepare(writeTool, { filePath: "b", content: "mine\n" }, place);
  await place.write({ a: "theirs\n", b: "theirs\n" });
  await expect(run(prepared, place)).rejects.toThrow("was changed since it was read");
  await expect(run(creation, place)).rejects.toThrow("was changed since it was read");
  expect([await place.text("a"), await place.text("b")]).toEqual(["theirs\n", "theirs\n"]);
});

test("does not create a file again that vanished between question and answer", async () => {
  await using place = await toolPlace({ a: "one\n" });
  await call(readTool, { filePath: "a" }, place);
  const prepared = await prepare(writeTool, { filePath: "a", content: "mine\n" }, place);
  await rm(place.path("a"));
  await expect(run(prepared, place)).rejects.toThrow(expect.objectContaining({ name: "ToolFailure" }));
  await expect(stat(place.path("a"))).rejects.toThrow("ENOENT");
});

test("a link created after the question leads nowhere", async () => {
  await using place = await toolPlace();
  await mkdir(join(place.outside, "elsewhere"));
  const prepared = await prepare(writeTool, { filePath: "d/a", content: "mine\n" }, place);
  await symlink(join(place.outside, "elsewhere"), place.path("d"));
  await expect(run(prepared, place)).rejects.toThrow("now leads to");
  await expect(stat(join(place.outside, "elsewhere/a"))).rejects.toThrow("ENOENT");
});

test("the same content writes nothing and needs only permission to read", async () => {
  await using place = await toolPlace({ a: "same\n" });
  const before = (await stat(place.path("a"), { bigint: true })).mtimeNs;
  const prepared = await prepare(writeTool, { filePath: "a", content: "same\n" }, place);
  expect(prepared.permissions.map(({ permission }) => permission)).toEqual(["read"]);
  expect(await run(prepared, place)).toEqual({
    status: "completed",
    output: "a has this content already. Nothing was changed.",
  });
  expect((await stat(place.path("a"), { bigint: true })).mtimeNs).toBe(before);
});

test("line endings, byte order mark and encoding of a file are preserved", async () => {
  const files = {
    crlf: Buffer.from("\uFEFFone\r\ntwo\r\n"),
    utf16: Buffer.from("\uFEFFone\n", "utf16le"),
    latin1: Buffer.from("grün\n", "latin1"),
  };
  await using place = await toolPlace(files);
  for (const filePath of Object.keys(files)) {
    await call(readTool, { filePath }, place);
    await call(writeTool, { filePath, content: "rötlich\nneu\n" }, place);
  }
  expect(await place.bytes("crlf")).toEqual(Buffer.from("\uFEFFrötlich\r\nneu\r\n"));
  expect(await place.bytes("utf16")).toEqual(Buffer.from("\uFEFFrötlich\nneu\n", "utf16le"));
  expect(await place.bytes("latin1")).toEqual(Buffer.from("rötlich\nneu\n", "latin1"));
  await expect(call(writeTool, { filePath: "latin1", content: "漢字" }, place)).rejects.toThrow(
    "The file is not UTF-8",
  );
});

test.skipIf(lacksFileModes)("an executable stays executable", async () => {
  await using place = await toolPlace({ "run.sh": "#!/bin/sh\n" });
  await chmod(place.path("run.sh"), 0o755);
  await call(readTool, { filePath: "run.sh" }, place);
  await call(writeTool, { filePath: "run.sh", content: "#!/bin/sh\nls\n" }, place);
  expect((await stat(place.path("run.sh"))).mode & 0o777).toBe(0o755);
});

test("folders, binary files and paths below a file are rejected", async () => {
  await using place = await toolPlace({ "d/x": "", "a.bin": "a\0b" });
  await expect(prepare(writeTool, { filePath: "d", content: "" }, place)).rejects.toThrow("d is a folder.");
  await expect(prepare(writeTool, { filePath: "a.bin", content: "" }, place)).rejects.toThrow("is binary");
  await expect(call(writeTool, { filePath: "d/x/y", content: "a" }, place)).rejects.toThrow(
    "a file is in the place of a folder",
  );
});

test("a cancelled call changes nothing", async () => {
  await using place = await toolPlace();
  const prepared = await prepare(writeTool, { filePath: "a", content: "x" }, place);
  const aborted = AbortSignal.abort();
  await expect(
    prepared.run({
      callId: "call",
      signal: aborted,
      isAllowed: () => true,
      output: () => {},
      waitUntilReady: async () => {},
      limits: { folder: place.outside },
    }),
  ).rejects.toThrow("aborted");
  await expect(stat(place.path("a"))).rejects.toThrow("ENOENT");
});

test("two unrelated large texts are compared in moderate time", async () => {
  const lines = (word: string) =>
    Array.from({ length: 20_000 }, (_, index) => `${word} ${index * 7}\n`).join("");
  await using place = await toolPlace({ a: lines("old") });
  await call(readTool, { filePath: "a" }, place);
  const begin = performance.now();
  const { changes } = await call(writeTool, { filePath: "a", content: lines("new") }, place);
  expect(changes?.[0]).toMatchObject({ additions: 20_000, deletions: 20_000 });
  expect(performance.now() - begin).toBeLessThan(3_000);
});

test("keeps the editor's version of a text, or informs the model", async () => {
  await using plain = await toolPlace();
  const place = shouting(plain);
  const wrote = await call(writeTool, { filePath: "a", content: "one\n" }, place);
  expect(wrote.output).toBe(
    "Created a (+1 -0 lines). The editor changed the text when it saved it, as its formatter does: read the file before you edit it again.",
  );
  expect(wrote.changes?.[0]?.after).toBe(hashOf("ONE\n"));

  await writeFile(join(place.outside, "snapshots", hashOf("TWO\n").slice(0, 2)), "in the way");
  const unkept = await call(writeTool, { filePath: "b", content: "two\n" }, place);
  expect(unkept.output).toContain(
    "could not be saved (a file is in the place of a folder), so this change can be neither shown nor undone",
  );
  expect(unkept.changes?.[0]?.after).toBeUndefined();
  expect(await place.text("b")).toBe("TWO\n");
});
