import { readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import * as reply from "../../support/model/reply.ts";
import { writeProgram } from "../../support/platform/path-program.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

/** Replaces runs of spaces by one space. */
const squeeze =
  "const path = process.argv.at(-1); " +
  'fs.writeFileSync(path, fs.readFileSync(path, "utf8").replaceAll(/ +/g, " "));';
const shell = (script: string) => ["sh", "-c", script, "formatter", "$FILE"];
/** Node as a formatter that is named by its path. */
const squeezer = (more: object = {}) => ({
  command: [process.execPath, "-e", `const fs = require("node:fs"); ${squeeze}`, "$FILE"],
  extensions: [".js"],
  ...more,
});

const write = (filePath: string, content: string) => reply.call("write", { filePath, content });

describe("formatters of the user's configuration", () => {
  test("format files changed by edit, write and patch, for card, model and undo", async () => {
    const config = {
      formatter: {
        squeeze: squeezer({ environment: { LOUD: "1" } }),
        off: { command: shell("echo off >> $1"), extensions: [".js"], disabled: true },
      },
    };
    const files = { "old.js": "const a = 1;\n", "other.txt": "x\n" };
    await story({ config, files }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const patch = "*** Begin Patch\n*** Add File: added.js\n+let   c  = 3;\n*** End Patch";
      model
        .reply(reply.call("read", { filePath: "old.js" }))
        .reply(reply.call("edit", { filePath: "old.js", oldString: "a = 1", newString: "a   =   2" }))
        .reply(write("new.js", "let   b = 2;\n"))
        .reply(reply.call("apply_patch", { patchText: patch }))
        .reply(write("other.js.txt", "a   b\n"))
        // The model may change the formatted text without reading it again.
        .reply(reply.call("edit", { filePath: "new.js", oldString: "let b = 2;", newString: "let b = 3;" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const text = (name: string) => readFile(join(repository.path, name), "utf8");
      expect(await text("old.js")).toBe("const a = 2;\n");
      expect(await text("new.js")).toBe("let b = 3;\n");
      expect(await text("added.js")).toBe("let c = 3;\n");
      expect(await text("other.js.txt")).toBe("a   b\n");
      const [, edited, written] = model.requests.slice(1).map(({ toolResults }) => toolResults.at(-1));
      expect(edited).toContain("Formatted by squeeze, which changed:\n1: const a = 2;");
      expect(written).toContain("Formatted by squeeze");
      const diffs = toolCalls(editor.updates(sessionId)).flatMap(({ content }) =>
        (content ?? []).flatMap((block) => (block.type === "diff" ? [block.newText] : [])),
      );
      expect(diffs).toEqual(
        expect.arrayContaining(["const a = 2;\n", "let b = 2;\n", "let c = 3;\n", "let b = 3;\n"]),
      );
      expect(diffs.join("")).not.toContain("   =");
      await editor.prompt(sessionId, "/undo");
      expect(await text("old.js")).toBe("const a = 1;\n");
      await expect(text("added.js")).rejects.toThrow("ENOENT");
    });
  });

  test("that fail or empty the file change nothing, and the model is informed", async () => {
    const config = {
      formatter: {
        broken: { command: shell('echo "bad line 3" >&2; echo junk > "$1"; exit 2'), extensions: [".js"] },
        empties: { command: shell(': > "$1"'), extensions: [".css"] },
        absent: { command: ["no-such-program-here", "$FILE"], extensions: [".go"] },
        meddles: { command: shell('echo more >> helper.txt; echo x >> "$1"'), extensions: [".py"] },
      },
    };
    await story({ config, files: { "helper.txt": "help\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      for (const name of ["a.js", "b.css", "c.go", "d.py"]) model.reply(write(name, "text\n"));
      model.reply("Done.");
      await editor.prompt(sessionId, "Go");
      const text = (name: string) => readFile(join(repository.path, name), "utf8");
      for (const name of ["a.js", "b.css", "c.go"]) expect(await text(name)).toBe("text\n");
      const results = model.requests.slice(1).map(({ toolResults }) => toolResults.at(-1));
      expect(results[0]).toContain(
        "broken could not format a.js (exit code 2: bad line 3). The file is as you wrote it.",
      );
      expect(results[1]).toContain("empties could not format b.css");
      expect(results[2]).toContain("absent could not format c.go");
      expect(results[3]).toContain("helper.txt");
      // Other files that a formatter changes are undone too.
      expect(await text("helper.txt")).toBe("help\nmore\n");
      await editor.prompt(sessionId, "/undo");
      expect(await text("helper.txt")).toBe("help\n");
    });
  });
});

describe("formatters that a project configures", () => {
  const config = { permission: { edit: "allow" } };
  const files = {
    "fairlead.json": JSON.stringify({ formatter: { squeeze: squeezer() } }),
  };

  test("run only after the user trusts them", async () => {
    await story({ config, files, permission: "reject_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(write("a.js", "a   b\n")).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(JSON.stringify(editor.permissionRequests[0])).toContain("formatter: ");
      expect(await readFile(join(repository.path, "a.js"), "utf8")).toBe("a   b\n");
      editor.permission = "allow_once";
      const { sessionId: later } = await editor.newSession();
      model.reply(write("b.js", "a   b\n")).reply("Done.");
      await editor.prompt(later, "Go");
      expect(await readFile(join(repository.path, "b.js"), "utf8")).toBe("a b\n");
    });
  });

  test("are found by their files if the user wants formatters, after one question", async () => {
    const project = { ".prettierrc": "{}", "package.json": "{}" };
    const own = { ...config, formatter: true };
    await story({ config: own, files: project, permission: "allow_once" }, async (context) => {
      const { editor, model, repository } = context;
      await writeProgram(
        join(repository.path, "node_modules/.bin"),
        "prettier",
        `import fs from "node:fs"; ${squeeze}`,
      );
      const { sessionId } = await editor.newSession();
      model.reply(write("a.js", "a   b\n")).reply(write("b.rs", "a   b\n")).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(JSON.stringify(editor.permissionRequests)).toContain(
        "run the formatter of this project: prettier",
      );
      expect(await readFile(join(repository.path, "a.js"), "utf8")).toBe("a b\n");
      expect(await readFile(join(repository.path, "b.rs"), "utf8")).toBe("a   b\n");
      await writeFile(join(repository.path, "package.json"), '{ "name": "changed" }');
      const { sessionId: later } = await editor.newSession();
      model.reply(write("c.js", "a   b\n")).reply("Done.");
      await editor.prompt(later, "Go");
      expect(editor.permissionRequests).toHaveLength(1);
      expect(await readFile(join(repository.path, "c.js"), "utf8")).toBe("a b\n");
    });
  });

  test("are found in each package of a monorepo, the nearest for each file", async () => {
    const prints = (mark: string) =>
      `import { appendFileSync } from "node:fs";\nappendFileSync(process.argv.at(-1), "${mark}\\n");\n`;
    const project = {
      "biome.json": "{}",
      "packages/web/package.json": '{ "prettier": {} }',
      "packages/api/package.json": "{}",
      "services/go/go.mod": "module a\n",
      // Settings of installed packages do not count.
      "node_modules/other/rustfmt.toml": "",
    };
    const own = { ...config, formatter: { gofmt: { disabled: true } } };
    await story({ config: own, files: project, permission: "allow_once" }, async (context) => {
      const { editor, model, repository, home } = context;
      for (const path of ["node_modules/.bin/biome", "packages/web/node_modules/.bin/prettier"]) {
        const name = basename(path);
        await writeProgram(join(repository.path, dirname(path)), name, prints(name));
      }
      const { sessionId } = await editor.newSession();
      const names = ["root.ts", "packages/web/src/a.ts", "packages/api/b.ts"];
      for (const name of names) model.reply(write(name, "x\n"));
      model.reply("Done.");
      await editor.prompt(sessionId, "Go");
      const asked = JSON.stringify(editor.permissionRequests);
      expect(
        asked.match(/run the formatter of this project: \w+/g)?.map((found) => found.split(": ")[1]),
      ).toEqual(["biome", "prettier"]);
      const text = (name: string) => readFile(join(repository.path, name), "utf8");
      expect(await Promise.all(names.map(text))).toEqual(["x\nbiome\n", "x\nprettier\n", "x\nbiome\n"]);
      const { stdout } = await fairlead(home.path, ["doctor", "--offline"], { cwd: repository.path });
      const configuredIn = /Formatter +prettier \(\.js .*\) in (.*)\n/.exec(stdout)?.[1];
      expect(configuredIn).toBe(join("packages", "web"));
      expect(stdout).not.toMatch(/Formatter .*cannot run/);
    });
  });
});
