import { noSandbox } from "../../tool/lsp/no-sandbox.ts";
import { mkdir, symlink } from "node:fs/promises";
import { basename, delimiter, join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Config } from "../../../src/config/schema.ts";
import { findFiles } from "../../../src/lsp/servers/find-files.ts";
import { ProjectServers } from "../../../src/lsp/project-servers.ts";
import type { ServerAnswers } from "../../../src/lsp/servers/select-servers.ts";
import { commandEnding, writeProgram } from "../../support/platform/path-program.ts";
import { type Files, temporaryFolder } from "../../support/temp.ts";

/** A project, and a PATH with these programs. */
async function open(files: Files, programs: readonly string[], config?: Config["lsp"]) {
  const folder = await temporaryFolder();
  const [root, bin] = [join(folder.path, "project"), join(folder.path, "bin")];
  await Promise.all([root, bin].map((path) => mkdir(path)));
  await folder.write(
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`project/${name}`, text])),
  );
  for (const name of programs) await writeProgram(bin, name);
  let answers: ServerAnswers = { agreed: [], declined: [] };
  const openWith = (more: { path?: string; config?: Config["lsp"] } = {}) =>
    new ProjectServers({
      config: "config" in more ? more.config : config,
      root,
      cwd: root,
      roots: [root],
      env: () => ({ PATH: more.path ?? bin }),
      confine: noSandbox,
      servers: () => Promise.reject(new Error("no server starts here")),
      answers: { load: async () => answers, save: async (given) => void (answers = given) },
    });
  return { root, bin, openWith, servers: openWith(), [Symbol.asyncDispose]: () => folder.remove() };
}

const namesIn = async (servers: ProjectServers) =>
  (await servers.choices()).map(({ name, state }) => `${name}: ${state}`);

test("installed servers for the project's languages are offered, one per language", async () => {
  const programs = ["gopls", "rust-analyzer", "pylsp", "pyright-langserver", "yaml-language-server"];
  await using place = await open({ "main.go": "", "src/deep/a.py": "", "a.yaml": "" }, programs);
  expect(await namesIn(place.servers)).toEqual(["pyright: open", "gopls: open"]);
  expect((await place.servers.offered())?.servers).toEqual([
    { name: "pyright", program: join(place.bin, `pyright-langserver${commandEnding}`) },
    { name: "gopls", program: join(place.bin, `gopls${commandEnding}`) },
  ]);
  expect(await place.servers.queries()).toBeUndefined();
});

test("an accepted server is used from the next load, a declined one never offered", async () => {
  for (const isAgreed of [true, false]) {
    await using place = await open({ "main.go": "" }, ["gopls"]);
    const before = await place.servers.queries();
    await (await place.servers.offered())?.answer(isAgreed);
    expect([before, await place.servers.queries()], "a conversation keeps its tools").toEqual([
      undefined,
      undefined,
    ]);
    const later = place.openWith();
    expect(await later.offered()).toBeUndefined();
    expect((await later.queries()) !== undefined).toBe(isAgreed);
    expect(await namesIn(later)).toEqual([`gopls: ${isAgreed ? "usable" : "declined"}`]);
  }
});

describe("the configuration decides which servers are used", () => {
  const cases: [string, Config["lsp"], string[]][] = [
    ["true for all that are installed", true, ["gopls: usable"]],
    ["false for none", false, []],
    ["a name for one", { gopls: {} }, ["gopls: usable"]],
    ["a name that is not installed", { rust: {} }, ["rust: missing", "gopls: open"]],
    ["disabled", { gopls: { disabled: true } }, ["gopls: off"]],
    ["another server for the language", { own: { command: ["own"], extensions: [".go"] } }, ["own: usable"]],
    ["an additional server that checks only", { "yaml-ls": {} }, ["yaml-ls: missing", "gopls: open"]],
  ];
  test.each(cases)("%s", async (_, config, shown) => {
    await using place = await open({ "main.go": "" }, ["gopls"], config);
    expect(await namesIn(place.servers)).toEqual(shown);
  });
});

test("a program inside the project, or a link into it, is not used", async () => {
  await using place = await open({ "main.go": "" }, [], true);
  const own = join(place.root, "bin");
  const program = await writeProgram(own, "gopls");
  expect(await namesIn(place.openWith({ path: own }))).toEqual([]);
  await symlink(program, join(place.bin, basename(program)));
  expect(await namesIn(place.openWith({ path: [place.bin, own].join(delimiter) }))).toEqual([]);
});

test("deno serves only projects with its configuration", async () => {
  const programs = ["deno", "typescript-language-server"];
  await using plain = await open({ "a.ts": "", "sub/deno.json": "{}" }, programs);
  expect(await namesIn(plain.servers)).toEqual(["typescript: open"]);
  await using own = await open({ "a.ts": "", "deno.json": "{}" }, programs);
  expect(await namesIn(own.servers)).toEqual(["deno: open"]);
});

test("a project without files for a configured server has no tool, unless it is large", async () => {
  const config = { own: { command: ["own"], extensions: [".x"] } };
  await using small = await open({ "a.txt": "" }, [], config);
  expect(await small.servers.queries()).toBeUndefined();
  const many = Object.fromEntries(Array.from({ length: 400 }, (_, at) => [`d${at}/a.txt`, ""]));
  await using large = await open(many, [], config);
  expect(await large.servers.queries()).toBeDefined();
});

test("the search for languages ignores hidden folders and node_modules", async () => {
  await using folder = await temporaryFolder({
    "a.ts": "",
    ".git/b.go": "",
    "node_modules/c/d.rs": "",
    "src/e.py": "",
  });
  const { paths, isComplete } = await findFiles(folder.path);
  expect([paths, isComplete]).toEqual([["a.ts", "src/e.py"].map((name) => join(folder.path, name)), true]);
});
