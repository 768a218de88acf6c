import { readFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { estimateTokenCount } from "tokenx";
import { describe, expect, test } from "vitest";
import { toList, toObject } from "../../support/json.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { writeProgram } from "../../support/platform/path-program.ts";
import { story } from "../../support/editor/story.ts";
import { typescriptServer } from "../../support/program/typescript-server.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { toolCalls } from "../../support/transcript.ts";
import { withFs } from "../../support/editor/clients.ts";

const config = { lsp: { typescript: typescriptServer } };

const files = {
  "tsconfig.json": '{ "compilerOptions": { "strict": true, "noEmit": true, "types": [], "lib": ["es5"] } }\n',
  "src/sum.ts": "/** Adds. */\nexport function sum(a: number, b: number) {\n  return a + b;\n}\n",
  "src/use.ts":
    'import { sum } from "./sum";\nexport const three = () => sum(1, 2);\nexport const bad: string = 1;\n',
};

const resultsOf = (requests: readonly ModelRequest[]) =>
  requests.slice(1).map(({ toolResults }) => toolResults.at(-1));

describe("a real language server", () => {
  test("answers each question of the model, and its cards can be followed", async () => {
    await story({ files, config }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const ask = (input: object) => reply.call("lsp", input);
      const use = { filePath: "src/use.ts", symbol: "sum" };
      model
        .reply(ask({ operation: "goToDefinition", ...use, line: 2 }))
        .reply(ask({ operation: "findReferences", filePath: "src/sum.ts", symbol: "sum" }))
        .reply(ask({ operation: "hover", filePath: "src/use.ts", line: 2, character: 28 }))
        .reply(ask({ operation: "documentSymbol", filePath: "src/use.ts" }))
        .reply(ask({ operation: "workspaceSymbol", symbol: "thr" }))
        .reply(ask({ operation: "incomingCalls", symbol: "sum" }))
        .reply(ask({ operation: "diagnostics", filePath: "src/use.ts" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Look");
      expect(resultsOf(model.requests)).toEqual([
        "src/sum.ts:\n  2:17: export function sum(a: number, b: number) {",
        "src/sum.ts:\n  2:17: export function sum(a: number, b: number) {\n\n" +
          'src/use.ts:\n  1:10: import { sum } from "./sum";\n  2:28: export const three = () => sum(1, 2);',
        expect.stringMatching(/sum\(a: number, b: number\): number[\s\S]*Adds\./),
        expect.stringMatching(/^3: constant bad\n2: (function|constant) three/),
        expect.stringMatching(/^(function|constant) three.*: src\/use\.ts:2/),
        expect.stringMatching(/three: src\/use\.ts:2 \(calls in line 2\)/),
        "3:14 error: Type 'number' is not assignable to type 'string'. (2322)",
      ]);
      const [definition, references] = toolCalls(editor.updates(sessionId));
      expect(definition).toMatchObject({ kind: "search", title: "Go to definition of `sum`" });
      expect(references).toMatchObject({
        title: "Find references to `sum`",
        locations: [
          { path: join(repository.path, "src/sum.ts"), line: 2 },
          { path: join(repository.path, "src/use.ts"), line: 1 },
          { path: join(repository.path, "src/use.ts"), line: 2 },
        ],
      });
    });
  });

  test("renames in all files as one edit, through the editor, which can be undone", async () => {
    const buffers = new Map<string, string>();
    const options = { files, config: { ...config, permission: { edit: "ask" } }, client: withFs(buffers) };
    await story({ ...options, permission: "allow_once" }, async ({ editor, model, repository }) => {
      const use = join(repository.path, "src/use.ts");
      buffers.set(use, `// unsaved\n${files["src/use.ts"]}`);
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("rename_symbol", { filePath: "src/sum.ts", symbol: "sum", newName: "total" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Rename");
      expect(resultsOf(model.requests)).toEqual([
        "Renamed sum to total: 3 places in 2 files.\n\nsrc/sum.ts (+1 -1)\nsrc/use.ts (+2 -2)",
      ]);
      const [card] = toolCalls(editor.updates(sessionId));
      expect(card).toMatchObject({ kind: "edit", title: "Rename `sum` to `total`", status: "completed" });
      expect(await readFile(join(repository.path, "src/sum.ts"), "utf8")).toContain("function total(");
      const renamed = files["src/use.ts"].replaceAll("sum", "total").replace("./total", "./sum");
      expect(buffers.get(use) ?? (await readFile(use, "utf8"))).toBe(`// unsaved\n${renamed}`);
      await editor.prompt(sessionId, "/undo");
      expect(await readFile(join(repository.path, "src/sum.ts"), "utf8")).toBe(files["src/sum.ts"]);
    });
  });

  test("is available to the plan agent, without renaming", async () => {
    await story({ files, config }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      model
        .reply(reply.call("lsp", { operation: "documentSymbol", filePath: "src/sum.ts" }))
        .reply(reply.call("rename_symbol", { filePath: "src/sum.ts", symbol: "sum", newName: "total" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Plan");
      const [symbols, renamed] = resultsOf(model.requests);
      expect(symbols).toContain("2: function sum");
      expect(renamed).toContain('this call changes "src/sum.ts"');
      expect(await readFile(join(repository.path, "src/sum.ts"), "utf8")).toBe(files["src/sum.ts"]);
    });
  });
});

describe("the language server tools", () => {
  const names = ["lsp", "rename_symbol"];
  const lspNames = (request: ModelRequest) => request.toolNames.filter((name) => names.includes(name));

  test("are offered in few tokens if a server fits the project, and stay", async () => {
    await story({ files, config }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply("One.").reply("Two.");
      await editor.prompt(sessionId, "Hi");
      await repository.write({ "main.go": "package main\n" });
      await editor.prompt(sessionId, "Again");
      const [first, second] = model.requests.map(({ body }) => toList(body.tools).map(toObject));
      expect(second).toEqual(first);
      const tokens = (name: string) =>
        estimateTokenCount(JSON.stringify(first?.find((tool) => toObject(tool.function).name === name)));
      expect(tokens("lsp")).toBeLessThanOrEqual(350);
      expect(tokens("rename_symbol")).toBeLessThanOrEqual(220);
    });
  });

  test.each([
    ["no server serves the project's languages", { "notes.md": "# Notes\n" }, config],
    ["the server is disabled", files, { lsp: { typescript: { ...typescriptServer, disabled: true } } }],
    ["language servers are off", files, { lsp: false }],
  ])("are not offered if %s", async (_, given, configured) => {
    await story({ files: given, config: configured }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      expect(lspNames(await model.request(1))).toEqual([]);
    });
  });

  test("are not offered to small models", async () => {
    await story({ files, initialize: false }, async ({ editor, model, home }) => {
      const options = { baseURL: model.url, apiKey: "test-key" };
      const provider = { gateway: { options, models: { "qwen3:8b": { limit: { context: 200_000 } } } } };
      const own = { ...config, model: "gateway/qwen3:8b", provider };
      await home.write({ ".config/fairlead/fairlead.json": JSON.stringify(own) });
      await editor.initialize();
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      expect(lspNames(await model.request(1))).toEqual([]);
    });
  });
});

describe("an installed server", () => {
  /** A PATH folder with the program of a known server. */
  async function installed(folder: string) {
    const [, script = ""] = typescriptServer.command;
    const load = `import ${JSON.stringify(pathToFileURL(script).href)};`;
    await writeProgram(folder, "typescript-language-server", load);
    return { PATH: [folder, "/usr/bin", "/bin"].join(delimiter) };
  }
  const offered = { lsp: undefined };

  test.each([
    ["allow_once", ["lsp", "rename_symbol"]],
    ["reject_once", []],
  ] as const)("follows the user's answer, given once per project (%s)", async (permission, tools) => {
    await using bin = await temporaryFolder();
    const env = await installed(join(bin.path, "bin"));
    await story({ files, config: offered, env, permission }, async ({ editor, model }) => {
      for (const text of ["Hi", "Again"]) {
        const { sessionId } = await editor.newSession();
        model.reply("Hello.");
        await editor.prompt(sessionId, text);
      }
      expect(
        model.requests.map((request) => request.toolNames.filter((name) => /^(lsp|rename_)/.test(name))),
      ).toEqual([tools, tools]);
      const questions = editor.permissionRequests.map(({ toolCall }) => toolCall.title);
      expect(questions).toEqual(["Use language servers in this project: typescript?"]);
    });
  });

  test("is used without a question if configured", async () => {
    await using bin = await temporaryFolder();
    const env = await installed(join(bin.path, "bin"));
    await story({ files, config: { lsp: true }, env }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      expect((await model.request(1)).toolNames).toContain("lsp");
    });
  });
});
