import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FetchedTexts } from "../../../src/instruction/fetched-texts.ts";
import {
  FILE_LIMIT_BYTES,
  FILES_LIMIT,
  loadInstructions,
  loadNestedInstructions,
  TOTAL_LIMIT_BYTES,
} from "../../../src/instruction/instructions.ts";

let base: string;
let root: string;

beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), "fairlead-instructions-")));
  root = join(base, "project");
  await mkdir(join(root, "packages", "shop"), { recursive: true });
});

afterEach(() => rm(base, { recursive: true }));

test("the global file comes first, then those from the root to the working directory", async () => {
  await write("config/AGENTS.md", "global");
  await write("home/.claude/CLAUDE.md", "not read");
  await write("AGENTS.md", "outside of the worktree");
  await write("project/AGENTS.md", "root");
  await write("project/packages/CLAUDE.md", "packages");
  await write("project/packages/shop/AGENTS.md", "shop");
  await write("project/packages/shop/CLAUDE.md", "second name in the same folder");

  expect(await load()).toEqual({
    instructions: [
      { path: join(base, "config/AGENTS.md"), text: "global" },
      { path: join(root, "AGENTS.md"), text: "root" },
      { path: join(root, "packages/CLAUDE.md"), text: "packages" },
      { path: join(root, "packages/shop/AGENTS.md"), text: "shop" },
    ],
    notes: [],
  });
});

test("falls back to the file in the home folder without a global one", async () => {
  await write("home/.claude/CLAUDE.md", "home");
  expect(await load()).toEqual({
    instructions: [{ path: join(base, "home/.claude/CLAUDE.md"), text: "home" }],
    notes: [],
  });
});

test("a project without instructions has none", async () => {
  expect(await load()).toEqual({ instructions: [], notes: [] });
});

test("a working directory outside of the given root is its own root", async () => {
  await write("elsewhere/AGENTS.md", "elsewhere");
  expect(await load({ cwd: join(base, "elsewhere") })).toEqual({
    instructions: [{ path: join(base, "elsewhere/AGENTS.md"), text: "elsewhere" }],
    notes: [],
  });
});

test("additional directories have their own instructions", async () => {
  await write("api/AGENTS.md", "api");
  expect(await load({ additionalDirectories: [join(base, "api")] })).toEqual({
    instructions: [{ path: join(base, "api/AGENTS.md"), text: "api" }],
    notes: [],
  });
});

test("reads configured paths and globs in order, relative ones from each folder upward", async () => {
  await write("project/docs/b.md", "b");
  await write("project/docs/a.md", "a");
  await write("project/docs/deep/c.md", "c");
  await write("project/docs/node_modules/d.md", "a package's own");
  await write("project/packages/shop/docs/e.md", "e");
  await write("home/notes.md", "notes");
  await write("elsewhere/f.md", "f");

  const { instructions, notes } = await load({
    configured: ["~/notes.md", "docs/*.md", "docs/**/*.md", join(base, "elsewhere/f.md")],
  });
  expect(instructions.map(({ text }) => text)).toEqual(["notes", "a", "b", "e", "c", "f"]);
  expect(notes).toEqual([]);
});

test("configured files that cannot be read are reported", async () => {
  expect(await load({ configured: ["https://example.com/rules.md", "gone.md", "docs/*.md"] })).toEqual({
    instructions: [],
    notes: [
      "https://example.com/rules.md was ignored: no network",
      "gone.md is configured as instructions, but no file matches",
      "docs/*.md is configured as instructions, but no file matches",
    ],
  });
});

test("a file is read once, even if several settings name it", async () => {
  await write("project/AGENTS.md", "rules");
  await symlink("../../AGENTS.md", join(root, "packages/shop/CLAUDE.md"));
  expect(await load({ configured: ["AGENTS.md"] })).toEqual({
    instructions: [{ path: join(root, "AGENTS.md"), text: "rules" }],
    notes: [],
  });
});

test("a project's secret file is not used as instructions, linked or named", async () => {
  await write("project/.env", "KEY=1");
  await symlink(".env", join(root, "AGENTS.md"));
  expect(await load({ configured: [".env"] })).toEqual({
    instructions: [],
    notes: [
      `${join(root, "AGENTS.md")} is a secret file and was ignored`,
      `${join(root, ".env")} is a secret file and was ignored`,
    ],
  });
});

test("a project's link to a file outside of it is not followed", async () => {
  await write("secret.txt", "secret");
  await symlink(join(base, "secret.txt"), join(root, "AGENTS.md"));
  expect(await load()).toEqual({
    instructions: [],
    notes: [`${join(root, "AGENTS.md")} links to a file outside of ${root} and was ignored`],
  });
});

test("a configured path in the project is not followed out of it, an absolute one is", async () => {
  const shared = await write("shared/rules.md", "shared");
  await mkdir(join(root, "docs"));
  await symlink(shared, join(root, "docs/rules.md"));
  expect(await load({ configured: ["docs/*.md"] })).toEqual({
    instructions: [],
    notes: [`${join(root, "docs/rules.md")} links to a file outside of ${root} and was ignored`],
  });
  expect(await load({ configured: [join(root, "docs/rules.md")] })).toEqual({
    instructions: [{ path: shared, text: "shared" }],
    notes: [],
  });
});

test("a folder in place of a file is reported", async () => {
  await mkdir(join(root, "AGENTS.md"));
  expect(await load()).toEqual({
    instructions: [],
    notes: [`${join(root, "AGENTS.md")} cannot be read: it is not a file`],
  });
});

test("a long file is truncated between characters and says how to read the rest", async () => {
  const path = await write("project/AGENTS.md", `a${"é".repeat(FILE_LIMIT_BYTES)}`);
  const size = 2 * FILE_LIMIT_BYTES + 1;
  const stored = `a${"é".repeat(FILE_LIMIT_BYTES / 2 - 1)}`;
  expect(await load()).toEqual({
    instructions: [
      {
        path,
        text: `${stored}\n[Cut after ${FILE_LIMIT_BYTES} of ${size} bytes. Read ${path} for the rest.]`,
      },
    ],
    notes: [`${path} was truncated to ${FILE_LIMIT_BYTES} of its ${size} bytes`],
  });
});

test("all files together are bounded, and the model learns which ones did not fit", async () => {
  const paths: string[] = [];
  for (const name of ["1", "2", "3", "4", "5"]) {
    paths.push(await write(`project/rules/${name}.md`, "x".repeat(FILE_LIMIT_BYTES)));
  }
  const { instructions, notes } = await load({ configured: ["rules/*.md"] });
  const rest = TOTAL_LIMIT_BYTES - 3 * FILE_LIMIT_BYTES;
  expect(notes).toEqual([
    `${paths[3]} was truncated to ${rest} of its ${FILE_LIMIT_BYTES} bytes`,
    `${paths[4]} was truncated to 0 of its ${FILE_LIMIT_BYTES} bytes`,
  ]);
  expect(instructions.at(-1)).toEqual({
    path: paths[4],
    text: `\n[Cut after 0 of ${FILE_LIMIT_BYTES} bytes. Read ${paths[4]} for the rest.]`,
  });
});

test("the number of files is limited", async () => {
  for (let index = 0; index < FILES_LIMIT + 2; index++) {
    await write(`project/rules/${String(index).padStart(3, "0")}.md`, "x");
  }
  const { instructions, notes } = await load({ configured: ["rules/*.md"] });
  expect(instructions).toHaveLength(FILES_LIMIT);
  expect(notes).toEqual([
    `only ${FILES_LIMIT} instruction files are read; ${join(root, `rules/${FILES_LIMIT}.md`)} and later ones were ignored`,
  ]);
});

test("reading a file adds the instructions between it and the session's folder, once", async () => {
  await write("project/AGENTS.md", "the session has it already");
  await write("project/packages/AGENTS.md", "packages");
  await write("project/packages/shop/CLAUDE.md", "shop");
  const file = await write("project/packages/shop/cart.ts", "");
  const already = new Set<string>();
  const context = { cwd: root, roots: [], home: base, already };

  expect(await loadNestedInstructions(file, context)).toEqual({
    instructions: [
      { path: join(root, "packages/AGENTS.md"), text: "packages" },
      { path: join(root, "packages/shop/CLAUDE.md"), text: "shop" },
    ],
    notes: [],
  });
  expect([...already]).toEqual([join(root, "packages/AGENTS.md"), join(root, "packages/shop/CLAUDE.md")]);
  expect(await loadNestedInstructions(file, context)).toEqual({ instructions: [], notes: [] });
});

test("files in an additional root add its instructions, files elsewhere none", async () => {
  const outside = await write("elsewhere/AGENTS.md", "elsewhere");
  const inside = await write("api/AGENTS.md", "api");
  const context = { cwd: root, roots: [join(base, "api")], home: base, already: new Set<string>() };
  expect(await loadNestedInstructions(outside, context)).toEqual({ instructions: [], notes: [] });
  expect(await loadNestedInstructions(join(dirname(inside), "src/x.ts"), context)).toEqual({
    instructions: [{ path: inside, text: "api" }],
    notes: [],
  });
});

test("files of other programs apply if there is neither AGENTS.md nor CLAUDE.md", async () => {
  await write("project/AGENTS.md", "root");
  await write("project/.cursorrules", "not read");
  await write("project/packages/.github/copilot-instructions.md", "copilot");
  await write("project/packages/.windsurfrules", "not read");
  await write("project/packages/shop/.cursorrules", "cursor");
  const { instructions } = await load();
  expect(instructions.map(({ text }) => text)).toEqual(["root", "copilot", "cursor"]);
});

test("rules of Cursor and Copilot apply always, to files, or when the model reads them", async () => {
  await write("project/AGENTS.md", "root");
  const always = await write(
    "project/.cursor/rules/always.mdc",
    "---\ndescription:\nglobs:\nalwaysApply: true\n---\nAlways.\n",
  );
  const typed = await write(
    "project/.cursor/rules/typed.mdc",
    "---\nglobs: *.ts,*.tsx\nalwaysApply: false\n---\nNo any.\n",
  );
  const api = await write(
    "project/.github/instructions/api.instructions.md",
    '---\napplyTo: "packages/**/*.{js,mjs}"\n---\nLog calls.\n',
  );
  const described = await write(
    "project/.cursor/rules/deep/release.mdc",
    "---\ndescription: How to release\n---\nTag it.\n",
  );
  await write("project/.cursor/rules/manual.mdc", "---\nalwaysApply: false\n---\nManual.\n");
  await symlink(await write("secret", "x"), join(root, ".cursor/rules/out.mdc"));

  const loaded = await load();
  expect(loaded.instructions.map(({ text }) => text)).toEqual([
    "root",
    "Always.",
    [
      "Rules for parts of this project. Read a file before you work on what it is for.",
      `- ${described}: How to release`,
      `- ${typed}: for *.ts, *.tsx`,
      `- ${api}: for packages/**/*.{js,mjs}`,
    ].join("\n"),
  ]);
  expect(loaded.notes).toEqual([
    `${join(root, ".cursor/rules/out.mdc")} links to a file outside of ${root} and was ignored`,
  ]);

  const already = new Set([join(root, "AGENTS.md"), always]);
  const context = { cwd: join(root, "packages/shop"), roots: [], worktree: root, home: base, already };
  const read = async (name: string) => {
    const { instructions } = await loadNestedInstructions(
      await write(`project/packages/shop/${name}`, ""),
      context,
    );
    return instructions.map(({ text }) => text);
  };
  expect(await read("a.css")).toEqual([]);
  expect(await read("b.ts")).toEqual(["No any."]);
  expect(await read("c.ts")).toEqual([]);
  expect(await read("d.mjs")).toEqual(["Log calls."]);
});

test("CLAUDE.md imports files, five deep, once, and not from code or outside", async () => {
  const text = [
    "Read @./docs/a.md and @~/.claude/mine.md, not `@docs/code.md` or me@docs/b.md.",
    "```",
    "@docs/code.md",
    "```",
    "@README @../outside.md @docs/missing.md @types/node",
  ];
  await write("project/CLAUDE.md", text.join("\n"));
  await write("project/docs/code.md", "not read");
  await write("project/docs/b.md", "not read");
  await write("project/README", "readme");
  await write("outside.md", "not read");
  await write("home/.claude/mine.md", "mine");
  await write("project/docs/a.md", "a @loop/1.md");
  await write("project/docs/loop/1.md", "1 @../a.md @2.md");
  for (const number of [2, 3, 4])
    await write(`project/docs/loop/${number}.md`, `${number} @${number + 1}.md`);
  await write("project/docs/loop/5.md", "not read");

  const { instructions, notes } = await load();
  expect(instructions.slice(1).map(({ text: imported }) => imported)).toEqual([
    "a @loop/1.md",
    "1 @../a.md @2.md",
    "2 @3.md",
    "3 @4.md",
    "4 @5.md",
    "mine",
    "readme",
  ]);
  expect(notes).toEqual([
    `${join(root, "CLAUDE.md")} imports ../outside.md, which is outside of ${root} and was ignored`,
    `${join(root, "CLAUDE.md")} imports docs/missing.md, which is not a file`,
  ]);
});

function load(more: { cwd?: string; configured?: string[]; additionalDirectories?: string[] } = {}) {
  return loadInstructions({
    cwd: join(root, "packages", "shop"),
    root,
    configFolders: [join(base, "config"), join(base, "other")],
    home: join(base, "home"),
    fetched: new FetchedTexts(() => Promise.reject(new Error("no network"))),
    ...more,
  });
}

async function write(path: string, text: string): Promise<string> {
  const absolute = join(base, path);
  await mkdir(dirname(absolute), { recursive: true });
  await writeFile(absolute, text);
  return absolute;
}
