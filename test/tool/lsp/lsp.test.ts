import { describe, expect, test } from "vitest";
import { toSlashes } from "../../../src/base/files/paths.ts";
import { requestLimits } from "../../../src/lsp/language-server.ts";
import { lspTool } from "../../../src/tool/lsp/lsp.ts";
import { allProviders, lspPlace, range } from "./lsp-place.ts";
import { description, prepare, run } from "../tool-place.ts";

const files = { "a.txt": "let sum = 1\nuse sum\n", "b.txt": "from a: sum\n" };
const definition = { operation: "goToDefinition", filePath: "a.txt", symbol: "sum", line: 2 };
const method = "textDocument/definition";

describe("an answer with locations", () => {
  const link = {
    targetUri: "$root/a.txt",
    targetRange: range(0, 0, 11),
    targetSelectionRange: range(0, 4, 7),
  };
  test.each<[string, unknown]>([
    ["a location", { uri: "$root/a.txt", range: range(0, 4) }],
    ["a list of locations", [{ uri: "$root/a.txt", range: range(0, 4) }]],
    ["links", [link, link]],
    ["an encoded address", [{ uri: "$root/%61.txt", range: range(0, 4) }]],
    ["invalid ones among others", [{ uri: 1 }, { uri: "$root/a.txt", range: range(0, 4) }, null]],
  ])("may be %s", async (_, answer) => {
    await using place = await lspPlace(files, { answers: { [method]: [answer] } });
    expect(await place.ask(definition)).toBe("a.txt:\n  1:5: let sum = 1");
    expect(await place.received(method)).toEqual([
      { textDocument: { uri: place.uri("a.txt") }, position: { line: 1, character: 4 } },
    ]);
  });

  test("may be empty, with advice", async () => {
    await using place = await lspPlace(files, { answers: { [method]: [null] } });
    expect(await place.ask(definition)).toBe(
      "test found nothing there. Check the place with read, or use grep.",
    );
  });

  test("may name virtual addresses and outside files, whose text is not shown", async () => {
    const answers = {
      [method]: [
        [
          { uri: "jdt://contents/rt.jar/String.class", range: range(9, 0) },
          { uri: "$root/../library.txt", range: range(2, 0) },
        ],
      ],
    };
    await using place = await lspPlace(files, { answers });
    const tool = lspTool(place.queries);
    const prepared = await prepare(tool, definition, place);
    const base = { callId: "call", signal: place.context.signal, output: () => {} };
    const result = await prepared.run({
      ...base,
      isAllowed: (permissions) => permissions.every(({ permission }) => permission === "read"),
      waitUntilReady: async () => {},
      limits: { folder: place.context.workspace.outputFolder },
    });
    expect(result).toMatchObject({
      output: `jdt://contents/rt.jar/String.class:\n  10:1\n\n${toSlashes(place.outside)}/library.txt:\n  3:1`,
    });
    expect(result).not.toHaveProperty("locations");
  });

  test("is sorted by file and bounded, and names the omitted ones", async () => {
    const many = (name: string, count: number) =>
      Array.from({ length: count }, (_, line) => ({ uri: `$root/${name}`, range: range(line, 0) }));
    const answers = { "textDocument/references": [[...many("a.txt", 90), ...many("b.txt", 60)]] };
    await using place = await lspPlace(files, { answers });
    const found = await place.ask({ ...definition, operation: "findReferences" });
    expect(found.split("\n").filter((line) => line.startsWith("  "))).toHaveLength(100);
    expect(found).toMatch(
      /\n\n\[50 more are left out: b\.txt \(50\)\. Search these files with grep to see them\.\]$/,
    );
  });
});

describe("columns", () => {
  const wide = { "a.txt": "é😀 sum\n" };
  test.each([
    ["utf-8", 7],
    ["utf-16", 4],
    ["utf-32", 3],
  ])("are counted in %s if the server says so", async (positionEncoding, column) => {
    const capabilities = { ...allProviders, positionEncoding };
    const answer = { uri: "$root/a.txt", range: range(0, column) };
    await using place = await lspPlace(wide, { capabilities, answers: { [method]: [answer] } });
    expect(await place.ask({ ...definition, line: 1 })).toBe("a.txt:\n  1:5: é😀 sum");
    expect(await place.received(method)).toMatchObject([{ position: { line: 0, character: column } }]);
  });
});

describe("a hover", () => {
  const contents: [string, unknown, string][] = [
    ["a text", "number", "number"],
    ["a marked text", { language: "ts", value: "let a" }, "```ts\nlet a\n```"],
    ["a list", ["one", { language: "ts", value: "two" }, ""], "one\n\n```ts\ntwo\n```"],
    ["markup", { kind: "markdown", value: "**bold**" }, "**bold**"],
  ];
  test.each(contents)("may be %s", async (_, value, shown) => {
    await using place = await lspPlace(files, { answers: { "textDocument/hover": [{ contents: value }] } });
    expect(await place.ask({ ...definition, operation: "hover" })).toBe(shown);
  });

  test("is truncated if it is long", async () => {
    const answers = { "textDocument/hover": [{ contents: "x".repeat(5_000) }] };
    await using place = await lspPlace(files, { answers });
    expect(await place.ask({ ...definition, operation: "hover" })).toMatch(
      /^x{4000}\n\n\[1000 more characters are left out\. Read the declaration for the rest\.\]$/,
    );
  });
});

describe("symbols", () => {
  const nested = [
    {
      name: "Cart",
      kind: 5,
      range: range(0, 0, 11),
      selectionRange: range(0, 4, 7),
      children: [{ name: "add", kind: 6, range: range(1, 0, 7), selectionRange: range(1, 4, 7) }],
    },
  ];
  const flat = [
    { name: "Cart", kind: 5, location: { uri: "$root/a.txt", range: range(0, 0) } },
    { name: "add", kind: 6, containerName: "Cart", location: { uri: "$root/a.txt", range: range(1, 0) } },
  ];

  test.each([
    ["nested", nested, "1: class Cart\n  2: method add"],
    ["flat", flat, "1: class Cart\n2: method add (Cart)"],
  ])("of a file may be %s", async (_, answer, shown) => {
    await using place = await lspPlace(files, { answers: { "textDocument/documentSymbol": [answer] } });
    expect(await place.ask({ operation: "documentSymbol", filePath: "a.txt" })).toBe(shown);
  });

  test("of the workspace are found with an open file of the project, exact name first", async () => {
    const answer = [
      { name: "sumAll", kind: 12, location: { uri: "$root/b.txt" } },
      { name: "sum", kind: 12, containerName: "maths", location: { uri: "$root/a.txt", range: range(0, 4) } },
    ];
    await using place = await lspPlace(files, { answers: { "workspace/symbol": [answer] } });
    expect(await place.ask({ operation: "workspaceSymbol", symbol: "sum" })).toBe(
      "function sum in maths: a.txt:1\nfunction sumAll: b.txt:1",
    );
    expect(await place.received("textDocument/didOpen")).toHaveLength(1);
  });

  test("name a location without a file or a line", async () => {
    const answers = {
      "textDocument/documentSymbol": [nested],
      "workspace/symbol": [flat],
      [method]: [{ uri: "$root/a.txt", range: range(1, 4) }],
    };
    await using place = await lspPlace(files, { answers });
    for (const given of [
      { symbol: "add", filePath: "a.txt" },
      { symbol: "Cart.add()", filePath: "a.txt" },
    ])
      expect(await place.ask({ operation: "goToDefinition", ...given })).toBe("a.txt:\n  2:5: use sum");
    expect(await place.ask({ operation: "goToDefinition", symbol: "Cart#add" })).toContain("a.txt:");
    const positions = (await place.received(method)).map((params) => params);
    expect(positions).toMatchObject([
      { position: { line: 1, character: 4 } },
      { position: { line: 1, character: 4 } },
      { position: { line: 1, character: 0 } },
    ]);
    expect(await place.ask({ operation: "goToDefinition", symbol: "Basket.add" })).toBe(
      "No symbol is named Basket.add. Give filePath, or look for it with grep.",
    );
  });

  test("of one name in several files are listed to choose from", async () => {
    const found = ["a", "b"].map((name) => {
      return { name: "sum", kind: 13, location: { uri: `$root/${name}.txt`, range: range(0, 0) } };
    });
    await using place = await lspPlace(files, { answers: { "workspace/symbol": [found] } });
    expect(await place.ask({ operation: "hover", symbol: "sum" })).toBe(
      "2 symbols are named sum. Give filePath and line of the one you mean:\n- a.txt:1 (variable)\n- b.txt:1 (variable)",
    );
  });
});

describe("calls", () => {
  test.each([
    ["incomingCalls", "from", "callHierarchy/incomingCalls"],
    ["outgoingCalls", "to", "callHierarchy/outgoingCalls"],
  ])(
    "%s are listed with their lines, and the server receives its own data again",
    async (operation, side, asked) => {
      const item = {
        name: "sum",
        kind: 12,
        uri: "$root/a.txt",
        range: range(0, 0),
        selectionRange: range(0, 4),
        data: 7,
      };
      const other = { ...item, name: "main", uri: "$root/b.txt" };
      const answers = {
        "textDocument/prepareCallHierarchy": [[item]],
        [asked]: [[{ [side]: other, fromRanges: [range(1, 0), range(3, 0)] }]],
      };
      await using place = await lspPlace(files, { answers });
      expect(await place.ask({ ...definition, operation })).toBe(
        "function main: b.txt:1 (calls in line 2, 4)",
      );
      expect(await place.received(asked)).toMatchObject([{ item: { data: 7 } }]);
    },
  );
});

describe("diagnostics", () => {
  const items = [
    { range: range(1, 4), severity: 2, message: "unused" },
    { range: range(0, 4), severity: 1, code: 7, message: "wrong\n  type" },
    { range: range(0, 0), severity: 4, message: "a hint" },
  ];
  const shown = "1:5 error: wrong type (7)\n2:5 warning: unused";
  const ask = { operation: "diagnostics", filePath: "a.txt" };

  test("are pulled if the server supports that", async () => {
    const capabilities = { diagnosticProvider: {} };
    const answers = { "textDocument/diagnostic": [{ kind: "full", items }] };
    await using place = await lspPlace(files, { capabilities, answers });
    expect(await place.ask(ask)).toBe(shown);
  });

  test("are pulled if the server registers that later", async () => {
    const registration = { id: "1", method: "textDocument/diagnostic" };
    const request = { id: 1, method: "client/registerCapability", params: { registrations: [registration] } };
    const answers = { "textDocument/diagnostic": [{ kind: "full", items }] };
    await using place = await lspPlace(files, { answers, sends: { initialized: [request] } });
    expect(await place.ask(ask)).toBe(shown);
  });

  test("are awaited if the server pushes them", async () => {
    const params = { uri: "$root/a.txt", diagnostics: items };
    const report = { method: "textDocument/publishDiagnostics", params };
    await using place = await lspPlace(files, { sends: { "textDocument/didOpen": [report] } });
    expect(await place.ask(ask)).toBe(shown);
  });

  test("of a file without any are reported as none", async () => {
    const capabilities = { diagnosticProvider: {} };
    const answers = { "textDocument/diagnostic": [{ kind: "full", items: [] }] };
    await using place = await lspPlace(files, { capabilities, answers });
    expect(await place.ask(ask)).toBe("No errors or warnings in a.txt.");
  });
});

describe("a server that", () => {
  test("registers a method later is asked, but not after it unregistered", async () => {
    const registrations = [{ id: "1", method, registerOptions: {} }];
    const request = { id: 1, method: "client/registerCapability", params: { registrations } };
    const removal = {
      id: 2,
      method: "client/unregisterCapability",
      params: { unregisterations: [{ id: "1" }] },
    };
    const script = {
      capabilities: {},
      answers: { [method]: [{ uri: "$root/a.txt", range: range(0, 4) }] },
      sends: { initialized: [request], [method]: [removal] },
    };
    await using place = await lspPlace(files, script);
    expect(await place.ask(definition)).toBe("a.txt:\n  1:5: let sum = 1");
    expect(await place.ask(definition)).toBe(
      "test does not support going to definitions. Use grep and read instead.",
    );
  });

  test("starts slowly may still register methods when it is initialized", async () => {
    const registrations = [{ id: "1", method, registerOptions: {} }];
    const request = { id: 1, method: "client/registerCapability", params: { registrations } };
    const script = {
      capabilities: {},
      answers: { [method]: [{ uri: "$root/a.txt", range: range(0, 4) }] },
      sends: { initialized: [request] },
      initializeMs: requestLimits.registerMs,
    };
    await using place = await lspPlace(files, script);
    expect(await place.ask(definition)).toBe("a.txt:\n  1:5: let sum = 1");
  });

  test("requests settings and edits gets responses", async () => {
    const sends = {
      initialized: [
        { id: 1, method: "workspace/configuration", params: { items: [{ section: "a" }] } },
        { id: 2, method: "workspace/applyEdit", params: { edit: { changes: {} } } },
      ],
    };
    const answers = { [method]: [{ uri: "$root/a.txt", range: range(0, 4) }] };
    await using place = await lspPlace(files, { answers, sends });
    expect(await place.ask(definition)).toContain("a.txt");
  });

  test("lacks a method is named with an alternative", async () => {
    await using place = await lspPlace(files, { capabilities: {} });
    expect(await place.ask({ operation: "workspaceSymbol", symbol: "sum" })).toBe(
      "test does not support symbols of the workspace. Use grep and read instead.",
    );
  });

  test("answers with an error is quoted", async () => {
    const $error = { code: -32_603, message: "no project" };
    await using place = await lspPlace(files, { answers: { [method]: [{ $error }] } });
    expect(await place.ask(definition)).toBe(
      "test answered with an error: no project Use grep and read instead.",
    );
  });

  test("could not answer because something changed is asked again", async () => {
    const $error = { code: -32_801, message: "content modified" };
    const answer = { uri: "$root/a.txt", range: range(0, 4) };
    await using place = await lspPlace(files, { answers: { [method]: [{ $error }, answer] } });
    expect(await place.ask(definition)).toBe("a.txt:\n  1:5: let sum = 1");
  });

  test("does not answer in time is not asked again", async () => {
    await using place = await lspPlace(
      files,
      { answers: { [method]: [{ $silent: true }] } },
      { answerMs: 50 },
    );
    expect(await place.ask(definition)).toMatch(
      /^test did not answer within 0\.05 s; it may still be reading the project\. Try again later, or use grep\.$/,
    );
    // A later request is received after the cancel.
    await place.ask({ ...definition, operation: "hover" });
    expect(await place.received("$/cancelRequest")).toHaveLength(1);
  });

  test("exits is restarted a few times, then given up", async () => {
    await using place = await lspPlace(files, { answers: { [method]: [{ $exit: 3 }] } });
    expect(await place.ask(definition)).toMatch(/it ended with exit code 3.* Use grep and read instead\.$/);
    expect(await place.ask(definition)).toMatch(/it ended with exit code 3/);
    expect(await place.ask(definition)).toBe(
      "The language server test was started 4 times and ended each time. Use grep and read instead.",
    );
    expect(await place.received("initialize")).toHaveLength(4);
  });

  const begin = { token: "i", value: { kind: "begin", title: "Indexing", percentage: 42 } };
  const end = { token: "i", value: { kind: "end" } };
  const progress = (params: object) => ({ method: "$/progress", params });

  test("indexes the project first is asked again when it is done", async () => {
    const answer = { uri: "$root/a.txt", range: range(0, 4) };
    const sends = { [method]: [progress(begin), progress(end)] };
    await using place = await lspPlace(files, { answers: { [method]: [[], answer] }, sends });
    expect(await place.ask(definition)).toBe("a.txt:\n  1:5: let sum = 1");
  });

  test("indexes for long is asked anyway, and the result says so", async () => {
    const answer = { uri: "$root/a.txt", range: range(0, 4) };
    const sends = { initialized: [progress(begin)] };
    await using place = await lspPlace(files, { answers: { [method]: [answer] }, sends }, { indexingMs: 20 });
    expect(await place.ask(definition)).toBe(
      "a.txt:\n  1:5: let sum = 1\n\ntest is still busy (Indexing 42 %), so this may be incomplete.",
    );
  });

  test("knows an older text of a file is informed and asked again", async () => {
    const answer = (line: number) => ({ uri: "$root/b.txt", range: range(line, 0) });
    await using place = await lspPlace(files, { answers: { [method]: [answer(0), answer(0), answer(1)] } });
    await place.ask(definition);
    await place.write({ "b.txt": "new\nfrom a: sum\n" });
    expect(await place.ask(definition)).toBe("b.txt:\n  2:1: from a: sum");
    expect(await place.received("workspace/didChangeWatchedFiles")).toEqual([
      { changes: [{ uri: place.uri("b.txt"), type: 2 }] },
    ]);
  });
});

describe("a nearly correct call", () => {
  const answers = { [method]: [{ uri: "$root/a.txt", range: range(0, 4) }] };
  const found = "a.txt:\n  1:5: let sum = 1";
  const lines = Array.from({ length: 20 }, (_, at) => `line${at + 1}`).join("\n");
  const more = { ...files, "c.txt": `${lines}\nsum\n` };

  test.each<[string, object, string]>([
    [
      "a name a few lines away",
      { line: 18, symbol: "sum", filePath: "c.txt" },
      `${found}\n\nsum is not in line 18; taken from line 21.`,
    ],
    ["a column inside the name", { line: 2, character: 6, filePath: "a.txt" }, found],
    ["a column after the name", { line: 2, character: 8, filePath: "a.txt" }, found],
    ["a name that only occurs", { symbol: "from", filePath: "b.txt" }, found],
  ])("is accepted: %s", async (_, input, shown) => {
    await using place = await lspPlace(more, { answers });
    expect(await place.ask({ operation: "goToDefinition", ...input })).toBe(shown);
  });

  test.each<[string, object, string]>([
    [
      "neither symbol nor column",
      { line: 2, filePath: "a.txt" },
      "Give symbol, the name to look at; line 2 is: use sum",
    ],
    [
      "a blank column",
      { line: 2, character: 20, filePath: "a.txt" },
      "There is no name at column 20. Give symbol instead; line 2 is: use sum",
    ],
    [
      "a line beyond the end",
      { line: 9, symbol: "sum", filePath: "a.txt" },
      "a.txt has 3 lines; there is no line 9.",
    ],
    [
      "a name far away",
      { line: 1, symbol: "sum", filePath: "c.txt" },
      "sum is not in line 1 nor near it. Leave line out, or give the right one; line 1 is: line1",
    ],
    [
      "a name that does not occur",
      { symbol: "total", filePath: "a.txt" },
      "total does not occur in a.txt. Look for it with grep, or leave filePath out.",
    ],
    ["no file", { line: 2 }, "goToDefinition needs filePath and symbol, or symbol alone."],
    [
      "no server",
      { symbol: "x", filePath: "d.md" },
      "No language server serves .md files here (there are: test). Use grep and read instead.",
    ],
  ])("is rejected with the next step: %s", async (_, input, shown) => {
    await using place = await lspPlace({ ...more, "d.md": "x" }, { answers });
    expect(await place.ask({ operation: "goToDefinition", ...input })).toBe(shown);
  });
});

test("a call describes its question, and needs lsp and read", async () => {
  await using place = await lspPlace(files, {});
  const tool = lspTool(place.queries);
  const read = {
    permission: "read",
    subjects: [{ text: "a.txt", also: [toSlashes(place.path("a.txt"))] }],
    always: ["a.txt"],
  };
  const lsp = (text: string) => ({ permission: "lsp", subjects: [{ text }], always: ["*"] });
  const input = { operation: "findReferences", filePath: "a.txt", line: 2, character: 5 };
  expect(await description(tool, input, place)).toEqual({
    title: "Find references to `sum`",
    kind: "search",
    locations: [{ path: place.path("a.txt"), line: 2 }],
    permissions: [lsp("findReferences"), read],
  });
  expect(await description(tool, { operation: "diagnostics", filePath: "a.txt" }, place)).toMatchObject({
    title: "Check a.txt for errors",
    permissions: [lsp("diagnostics"), read],
  });
  expect(await description(tool, { operation: "workspaceSymbol", symbol: "x" }, place)).toMatchObject({
    title: "Find symbols named `x`",
    locations: [],
    permissions: [lsp("workspaceSymbol")],
  });
});

test("permission for a file outside the workspace is asked before any read", async () => {
  await using place = await lspPlace(files, {});
  const tool = lspTool(place.queries);
  const input = { operation: "hover", filePath: "../none.txt", symbol: "x" };
  expect(await tool.access?.(tool.input.parse(input), place.context)).toMatchObject({
    title: "Show type of `x`",
    permissions: [{ permission: "lsp" }, { permission: "read" }, { permission: "external_directory" }],
  });
});

test("a cancelled call ends while the server is silent", async () => {
  await using place = await lspPlace(files, { answers: { [method]: [{ $silent: true }] } });
  const cancel = new AbortController();
  const context = { ...place.context, signal: cancel.signal };
  const prepared = await prepare(lspTool(place.queries), definition, { ...place, context });
  const running = run(prepared, { ...place, context });
  cancel.abort();
  await expect(running).rejects.toThrow();
});
