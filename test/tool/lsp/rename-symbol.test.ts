import { describe, expect, test } from "vitest";
import { allProviders, lspPlace, range, renameTool, type LspPlace } from "./lsp-place.ts";
import { call, description, prepare, run } from "../tool-place.ts";

const files = { "a.txt": "let sum = 1\r\nuse sum\r\n", "b.txt": "from a: sum\n" };
const input = { filePath: "a.txt", symbol: "sum", newName: "total", line: 1 };
const edit = (line: number, first: number, end: number) => ({
  range: range(line, first, end),
  newText: "total",
});
const inA = [edit(0, 4, 7), edit(1, 4, 7)];
const inB = [edit(0, 8, 11)];
const method = "textDocument/rename";
const failure = (place: LspPlace, given: object = input) =>
  call(renameTool(place), given, place).then(
    ({ output }) => `succeeded: ${output}`,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );

describe("an edit of the server", () => {
  test.each<[string, unknown]>([
    ["changes by file", { changes: { "$root/a.txt": inA, "$root/b.txt": inB } }],
    [
      "changes of documents",
      {
        documentChanges: [
          { textDocument: { uri: "$root/a.txt", version: 1 }, edits: inA },
          { textDocument: { uri: "$root/b.txt", version: null }, edits: inB },
        ],
        changes: { "$root/a.txt": [] },
      },
    ],
  ])("may be %s; all files change at once", async (_, answer) => {
    await using place = await lspPlace(files, { answers: { [method]: [answer] } });
    const result = await call(renameTool(place), input, place);
    expect(result.output).toBe("Renamed sum to total: 3 places in 2 files.\n\na.txt (+2 -2)\nb.txt (+1 -1)");
    expect(result.changes).toMatchObject([
      { path: place.path("a.txt"), operation: "update", additions: 2, deletions: 2 },
      { path: place.path("b.txt"), operation: "update", additions: 1, deletions: 1 },
    ]);
    expect(await place.text("a.txt")).toBe("let total = 1\r\nuse total\r\n");
    expect(await place.text("b.txt")).toBe("from a: total\n");
  });

  test("may create, move and delete files", async () => {
    const answer = {
      documentChanges: [
        { textDocument: { uri: "$root/a.txt", version: null }, edits: inA },
        { kind: "rename", oldUri: "$root/a.txt", newUri: "$root/total.txt" },
        { kind: "create", uri: "$root/list.txt" },
        { textDocument: { uri: "$root/list.txt", version: null }, edits: [edit(0, 0, 0)] },
        { kind: "delete", uri: "$root/b.txt" },
      ],
    };
    await using place = await lspPlace(files, { answers: { [method]: [answer] } });
    const { changes } = await call(renameTool(place), input, place);
    expect(changes).toMatchObject([
      { path: place.path("total.txt"), operation: "move", fromPath: place.path("a.txt") },
      { path: place.path("list.txt"), operation: "add" },
      { path: place.path("b.txt"), operation: "delete" },
    ]);
    expect(await place.text("total.txt")).toContain("let total");
    expect(await place.text("list.txt")).toBe("total");
    for (const name of ["a.txt", "b.txt"]) await expect(place.text(name)).rejects.toThrow("ENOENT");
  });

  const document = (uri: string, edits: unknown[] = inA) => ({ textDocument: { uri, version: null }, edits });
  test.each<[string, unknown[], string]>([
    ["a virtual address", [document("jdt://x")], "The server changes jdt://x, which is not a file."],
    ["a missing file", [document("$root/c.txt")], "The server edits c.txt, which does not exist."],
    [
      "edits that overlap",
      [document("$root/a.txt", [edit(0, 4, 7), edit(0, 6, 9)])],
      "The server sent edits of a.txt that overlap.",
    ],
    [
      "a line that does not exist",
      [document("$root/a.txt", [edit(9, 0, 1)])],
      "The server edits line 10 of a.txt, which has 3 lines: it knows another text.",
    ],
    [
      "a file that exists",
      [{ kind: "create", uri: "$root/b.txt" }],
      "The server creates b.txt, which exists already.",
    ],
    [
      "a move over a file",
      [{ kind: "rename", oldUri: "$root/a.txt", newUri: "$root/b.txt" }],
      "The server renames a file to b.txt, which exists already.",
    ],
  ])("with %s changes nothing", async (_, documentChanges, shown) => {
    await using place = await lspPlace(files, { answers: { [method]: [{ documentChanges }] } });
    expect(await failure(place)).toContain(`${shown} Nothing was changed.`);
    expect(await place.text("a.txt")).toBe(files["a.txt"]);
  });

  test("that is invalid, or changes nothing, is refused", async () => {
    await using place = await lspPlace(files, {
      answers: { [method]: [{ changes: { a: [{ x: 1 }] } }, null] },
    });
    expect(await failure(place)).toContain("test sent an invalid edit. Nothing was changed.");
    expect(await failure(place)).toContain("The language server changes nothing to rename sum.");
  });
});

test("a rename is an edit of each file, with all diffs, and needs no reading before", async () => {
  const answer = { changes: { "$root/a.txt": inA, "$root/b.txt": inB } };
  await using place = await lspPlace(files, { answers: { [method]: [answer] } });
  const tool = renameTool(place);
  expect(await description(tool, input, place)).toMatchObject({
    title: "Rename `sum` to `total`",
    kind: "edit",
    locations: [{ path: place.path("a.txt") }, { path: place.path("b.txt") }],
    preview: {
      diffs: [
        { path: place.path("a.txt"), oldText: files["a.txt"], newText: "let total = 1\r\nuse total\r\n" },
        { path: place.path("b.txt"), oldText: files["b.txt"], newText: "from a: total\n" },
      ],
    },
    permissions: [
      { permission: "edit", subjects: [{ text: "a.txt" }] },
      { permission: "edit", subjects: [{ text: "b.txt" }] },
    ],
  });
  await call(tool, input, place);
  expect(["a.txt", "b.txt"].map((name) => place.context.seen.isWhole(place.path(name)))).toEqual([
    false,
    false,
  ]);
});

test("a file that changed after the question is not changed, nor are the others", async () => {
  const answer = { changes: { "$root/a.txt": inA, "$root/b.txt": inB } };
  await using place = await lspPlace(files, { answers: { [method]: [answer] } });
  const prepared = await prepare(renameTool(place), input, place);
  await place.write({ "b.txt": "other\n" });
  await expect(run(prepared, place)).rejects.toThrow(/b\.txt was changed since/);
  expect(await place.text("a.txt")).toBe(files["a.txt"]);
});

test("a server that cannot rename there, or refuses, is quoted", async () => {
  const capabilities = { ...allProviders, renameProvider: { prepareProvider: true } };
  const $error = { code: -32_602, message: "not an identifier" };
  const answers = { "textDocument/prepareRename": [null, null, range(0, 4, 7)], [method]: [{ $error }] };
  await using place = await lspPlace(files, { capabilities, answers });
  expect(await failure(place)).toContain("test says that nothing there can be renamed.");
  expect(await failure(place)).toContain("test answered with an error: not an identifier");
  expect(await failure(place, { ...input, newName: "sum" })).toContain("sum has this name already.");
  expect(await failure(place, { filePath: "a.txt", symbol: "sum", newName: "total" })).toContain(
    "sum is in several lines of a.txt (1, 2). Give line for the one you mean.",
  );
});

test("an edit is requested again if the editor has unsaved text of a file", async () => {
  const shifted = [{ range: range(1, 8, 11), newText: "total" }];
  const first = { changes: { "$root/b.txt": inB } };
  await using disk = await lspPlace(files, {
    answers: { [method]: [first, { changes: { "$root/b.txt": shifted } }] },
  });
  const { workspace } = disk.context;
  const read: typeof workspace.files.read = async (path) => {
    const found = await workspace.files.read(path);
    return path.endsWith("b.txt") ? { ...found, bytes: Buffer.from("unsaved\nfrom a: sum\n") } : found;
  };
  const fs = workspace.files;
  const buffered = {
    read,
    write: fs.write.bind(fs),
    remove: fs.remove.bind(fs),
    lock: fs.lock.bind(fs),
  };
  const place = { ...disk, context: { ...disk.context, workspace: { ...workspace, files: buffered } } };
  expect(await description(renameTool(place), input, place)).toMatchObject({
    preview: { diffs: [{ newText: "unsaved\nfrom a: total\n" }] },
  });
});
