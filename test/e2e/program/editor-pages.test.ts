import { mkdir, rm, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { execa } from "execa";
import { expect, test } from "vitest";
import { editors } from "../../../src/cli/setup/editors.ts";
import { writeProgram } from "../../support/platform/path-program.ts";
import { environment } from "../../support/program/environment.ts";
import { examples } from "../../support/examples.ts";
import { startModelServer } from "../../support/model/model-server.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";

// The pages for editors contain the output of `fairlead setup`, and the snippets that a reader copies start
// the program.

const root = join(import.meta.dirname, "../../..");
const all = await examples();
const pages = all.filter(({ place }) => place.startsWith("docs/editors/"));
const start = { command: "fairlead", args: ["acp"] };

const packed = (text: string): string => text.replaceAll(/\s+/g, "");

test.for(editors.filter(({ id }) => id !== "other"))(
  "the page for $name shows the output of setup",
  (editor) => {
    const snippet = packed(editor.snippet(start));
    expect(pages.some(({ text }) => packed(text).includes(snippet))).toBe(true);
  },
);

test("README shows the output of setup for Zed", () => {
  const zed = editors.find(({ id }) => id === "zed");
  const shown = all.find(
    ({ place, text }) => place.startsWith("README.md") && text.includes("agent_servers"),
  );
  expect(JSON.parse(shown?.text ?? "")).toEqual(JSON.parse(zed?.snippet(start) ?? ""));
});

test.for(pages.filter(({ language }) => language === "lua" || language === "elisp"))(
  "$place has balanced brackets, and starts the program",
  ({ text }) => {
    const code = text.replaceAll(/"[^"]*"/g, (word) => (/fairlead|acp/.test(word) ? word : ""));
    const closed = code.match(/[)}]/g);
    expect(code.match(/[({]/g)).toHaveLength(closed?.length ?? 0);
    expect(code).toMatch(/(?:command|default)\W+"fairlead"[^]{0,60}"acp"/);
  },
);

test("the script for the protocol's SDK runs unchanged", async () => {
  const script = all.find(
    ({ place, text }) => place.startsWith("docs/editors/scripts.md") && text.includes("ndJsonStream"),
  );
  const model = await startModelServer();
  await using home = await temporaryFolder();
  await using repository = await gitRepository();
  // Installed next to our own packages, as it would be in a reader's project.
  const file = join(root, "node_modules/.cache/fairlead-tests/script.mjs");
  try {
    const load = `import ${JSON.stringify(pathToFileURL(join(root, "bin/fairlead.js")).href)};`;
    await writeProgram(join(home.path, "bin"), "fairlead", load);
    await writeConfig(home.path, model.url);
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, script?.text ?? "");
    model.reply("A sample.");
    const env = environment(home.path);
    const path = [join(home.path, "bin"), env["PATH"]].join(delimiter);
    const { stdout } = await execa(process.execPath, [file], {
      cwd: repository.path,
      env: { ...env, PATH: path },
      extendEnv: false,
      timeout: 30_000,
    });
    expect(stdout).toBe("A sample.");
    expect(model.requests[0]?.userText).toContain("What is this?");
    model.assertClean();
  } finally {
    await rm(file, { force: true });
    await model.close();
  }
});

test.for(pages.filter(({ language }) => language === "js"))("$place is JavaScript", async ({ text }) => {
  await using folder = await temporaryFolder({ "script.mjs": text });
  const { stderr } = await execa(process.execPath, ["--check", join(folder.path, "script.mjs")], {
    reject: false,
  });
  expect(stderr).toBe("");
});

test.for(pages.filter(({ language }) => language === "sh"))(
  "$place names the command that serves editors",
  ({ text }) => {
    const lines = text.trim().split("\n");
    expect(lines.filter((line) => !line.includes('"fairlead acp"'))).toEqual([]);
  },
);
