import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import { execa } from "execa";
import { parse } from "jsonc-parser";
import { afterAll, describe, expect, test } from "vitest";
import { loadConfig } from "../../../src/config/load.ts";
import { commands } from "../../../src/cli/command-table.ts";
import { formatCommandHelp, formatOverview, maxPageWidth } from "../../../src/cli/terminal/help.ts";
import { styleFor } from "../../../src/cli/terminal/style.ts";
import { writeProgram } from "../../support/platform/path-program.ts";
import { lacksJoinedTurns } from "../../support/platform/platform.ts";
import { environment } from "../../support/program/environment.ts";
import { type Example, examples } from "../../support/examples.ts";
import { startModelServer } from "../../support/model/model-server.ts";
import { story } from "../../support/editor/story.ts";
import { findSandboxProblem } from "../sandbox/sandbox-problem.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";
import { thoughtText } from "../../support/transcript.ts";

// Checks, loads and runs the examples in the pages, as a reader would.

const sandboxProblem = await findSandboxProblem();
const root = join(import.meta.dirname, "../../..");
const all = await examples();

const of = (...languages: string[]) => all.filter(({ language }) => languages.includes(language));
/** JSON is a configuration of this program unless the line above names another program's file. */
const configurations = of("json", "jsonc").filter(
  ({ file }) => file === undefined || /(?:fairlead|opencode)\.jsonc?$/.test(file),
);
const files = all.filter((example): example is Example & { file: string } =>
  /^\.(?:fairlead|opencode)\/.*\.(?:md|ts|js|mjs)$/.test(example.file ?? ""),
);

describe("configurations in the pages", () => {
  test.for(configurations)(
    "$place matches the schema, and the program accepts it without a message",
    async (example) => {
      const value: unknown = parse(example.text, [], { allowTrailingComma: false });
      const schema: object = JSON.parse(await readFile(join(root, "schema/config.schema.json"), "utf8"));
      const validate = new Ajv2020({ strict: false }).compile(schema);
      expect([validate(value), validate.errors]).toEqual([true, null]);
      await using folder = await temporaryFolder({ ".config/fairlead/fairlead.jsonc": example.text });
      const { path: home } = folder;
      const env = Object.fromEntries(
        [...example.text.matchAll(/\{env:(\w+)\}/g)].map(([, name]) => [name, "x"]),
      );
      const { problems, notes } = await loadConfig({
        cwd: home,
        home,
        env,
        platform: "linux",
        managed: home,
      });
      expect({ problems, notes }).toEqual({ problems: [], notes: [] });
    },
  );
});

test("links in the pages lead to files", async () => {
  const pages = [
    "README.md",
    "SECURITY.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "AGENTS.md",
    "CHANGELOG.md",
  ];
  const docs = await readdir(join(root, "docs"), { recursive: true });
  pages.push(...docs.filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`));
  const broken: string[] = [];
  for (const page of pages) {
    // Link syntax in code is not a link.
    const text = (await readFile(join(root, page), "utf8")).replaceAll(/```[^]*?```|`[^`\n]*`/g, "");
    for (const [, target = ""] of text.matchAll(/\]\(([^)#\s]+)/g))
      if (!/^https?:/.test(target) && !existsSync(join(root, dirname(page), target)))
        broken.push(`${page}: ${target}`);
  }
  expect(broken).toEqual([]);
});

describe("files in the pages", () => {
  test("are agents, commands, skills, tools and plugins in the folders the pages name", async () => {
    const written = Object.fromEntries(files.map(({ file, text }) => [file, text]));
    await story({ files: written, permission: "allow_once" }, async ({ editor, model }) => {
      const opened = await editor.newSession();
      const { sessionId } = opened;
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hello");
      expect(thoughtText(editor.updates(sessionId))).toBe("");
      const known = JSON.stringify([opened, editor.updates(sessionId), model.requests[0]?.body]);
      const named = files.map(({ file }) => nameOf(file)).filter((name) => name !== undefined);
      expect(named.filter((name) => !known.includes(`"${name}"`))).toEqual([]);
      expect(files.length).toBeGreaterThan(4);
    });
  });

  test("in TypeScript match the types for authors", async () => {
    const folder = join(root, "node_modules/.cache/fairlead-tests/docs");
    await rm(folder, { recursive: true, force: true });
    const sources = files.filter(({ file }) => file.endsWith(".ts"));
    const paths = { "fairlead/plugin": [join(root, "schema/plugin.d.ts")] };
    const compilerOptions = {
      strict: true,
      noEmit: true,
      module: "nodenext",
      skipLibCheck: true,
      paths,
      types: ["node"],
    };
    const names = sources.map(({ file }, index) => join(folder, `${index}`, file.replace(/^\./, "")));
    const settings = JSON.stringify({ compilerOptions, files: names });
    await Promise.all(names.map((name, index) => write(name, sources[index]?.text ?? "")));
    await write(join(folder, "tsconfig.json"), settings);
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const { stdout, exitCode } = await execa(process.execPath, [tsc, "-p", folder], { reject: false });
    expect({ stdout, exitCode }).toEqual({ stdout: "", exitCode: 0 });
    expect(sources.length).toBeGreaterThan(1);
  });
});

describe("commands in the pages", async () => {
  const home = await temporaryFolder();
  const repository = await gitRepository({
    "package.json": "{}\n",
    "fairlead.json": '{"permission":{"webfetch":"allow"}}',
  });
  const model = await startModelServer();
  await writeConfig(home.path, model.url);
  const load = `import ${JSON.stringify(pathToFileURL(join(root, "bin/fairlead.js")).href)};`;
  await writeProgram(join(home.path, "bin"), "fairlead", load);
  const page = { style: styleFor({}, {}), width: maxPageWidth };
  const helps = commands.map(({ names }) => formatCommandHelp(names[0].split(" "), commands, page));
  const usage = [formatOverview(commands, page), ...helps].join("\n");

  /** Sessions whose turns wait until the user trusts the folder. */
  const detached: string[] = [];

  afterAll(async () => {
    for (const session of detached) await run(`fairlead attach ${session} --cancel`);
    await model.close();
    await Promise.all([home.remove(), repository.remove()]);
  });

  function run(line: string) {
    const env = environment(home.path);
    return execa("sh", ["-c", line], {
      cwd: repository.path,
      env: { ...env, PATH: [join(home.path, "bin"), env["PATH"]].join(delimiter) },
      extendEnv: false,
      reject: false,
      input: "",
    });
  }

  const lines = of("sh").flatMap(({ place, text }) => commandLines(text).map((line) => ({ place, line })));

  test.for(lines)("$place $line exists in the program", ({ line }) => {
    const [, command = "", ...words] = line.replaceAll(/"[^"]*"|'[^']*'/g, "").split(/\s+/);
    expect(usage).toContain(`fairlead ${command}`);
    expect(
      words.filter((word) => word.startsWith("--") && !usage.includes(word.split("=")[0] ?? "")),
    ).toEqual([]);
  });

  const isRunnable = ({ line }: { line: string }) =>
    !(sandboxProblem !== undefined && line.includes("sandboxed")) &&
    !(lacksJoinedTurns && line.includes("--detach"));

  test.for(lines.filter((one) => isHarmless(one) && isRunnable(one)))(
    "$place $line works as described",
    async ({ line }) => {
      if (line.startsWith("fairlead run")) model.reply("Done.");
      const { exitCode, stderr, stdout } = await run(line.replace(/\bDIR\b/, ".").replace("…", "Go"));
      if (line.includes("--detach")) detached.push(stdout);
      expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    },
  );

  test.for(of("console"))("$place prints what the page shows", async ({ text }) => {
    const [first = "", ...shown] = text.trimEnd().split("\n");
    const { stdout } = await run(first.replace(/^\$ /, ""));
    const printed = stdout.split("\n");
    const missing = shown.filter((line) => !printed.some((one) => fits(one, line)));
    expect(missing).toEqual([]);
  });
});

/** The name under which the program lists it. */
function nameOf(file: string): string | undefined {
  const [, , kind, name] = /^\.(fairlead|opencode)\/(\w+?)s?\/(.*)$/.exec(file) ?? [];
  if (kind === "plugin" || name === undefined) return undefined;
  return kind === "skill" ? name.replace(/\/SKILL\.md$/, "") : name.replace(/\.\w+$/, "");
}

function commandLines(text: string): string[] {
  const lines = text.split("\n").map((line) => line.replace(/\s+#.*$/, "").trim());
  return lines.filter((line) => line.startsWith("fairlead "));
}

/** Runs without a user, another program or a name that only a reader has. */
function isHarmless({ line }: { line: string }): boolean {
  return (
    /^fairlead (?:run|models|doctor|trust|permissions|--version|--help)\b/.test(line) &&
    !/[|<>]|\b(?!DIR\b)[A-Z]{2,}\b|--file|\brevoke\b/.test(line)
  );
}

/** `…` matches anything. */
function fits(printed: string, shown: string): boolean {
  let from = 0;
  return shown.split("…").every((piece) => {
    const at = printed.indexOf(piece.trim(), from);
    from = at + piece.length;
    return at !== -1;
  });
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}
