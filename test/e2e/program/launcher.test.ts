import { constants } from "node:fs";
import { copyFile, mkdir, readdir, readFile, readlink, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { execa } from "execa";
import ts from "typescript-classic";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { useSlashes, withSlashes } from "../../support/platform/path-spelling.ts";
import { lacksShellScripts } from "../../support/platform/platform.ts";
import { type Files, type TemporaryFolder, temporaryFolder } from "../../support/temp.ts";

const root = join(import.meta.dirname, "../../..");
const launcher = await readFile(join(root, "bin/fairlead.js"), "utf8");
const { engines } = z
  .object({ engines: z.object({ node: z.string() }) })
  .parse(JSON.parse(await readFile(join(root, "package.json"), "utf8")));

const program = { "dist/main.cjs": "console.log('started', ...process.argv.slice(2));" };
const isWindows = process.platform === "win32";
const nodePackage = `node-${isWindows ? "win" : process.platform}-${process.arch}`;
const brought = join("node_modules", nodePackage, "bin", isWindows ? "node.exe" : "node");
const checkout = { "scripts/build.ts": "", "node_modules/rolldown/package.json": "{}" };

/** A module for `node --require` that gives the version to every Node but the one in the module's folder. */
const pretendVersion = (version: string) => `const node = ${JSON.stringify(version)};
if (!process.execPath.startsWith(__dirname))
  Object.defineProperty(process, "versions", { value: { ...process.versions, node } });`;

/** Starts a copy of the launcher in this folder, as if Node had the version. */
async function launch(version: string, files: Files, bring?: (path: string) => Promise<void>) {
  await using place = await temporaryFolder({
    "bin/fairlead.js": launcher,
    "bin/package.json": '{"type": "commonjs"}',
    "as-version.cjs": pretendVersion(version),
    ...files,
  });
  await bring?.(join(place.path, brought));
  const { exitCode, stdout, stderr } = await execa(
    process.execPath,
    [join(place.path, "bin/fairlead.js"), "doctor", "--json"],
    {
      reject: false,
      env: { NODE_OPTIONS: `--require="${withSlashes(join(place.path, "as-version.cjs"))}"` },
    },
  );
  const shown = useSlashes(stderr, [place.path]).replaceAll(withSlashes(place.path), "<root>");
  return { exitCode, stdout, stderr: shown };
}

/** Copies the current Node, which differs from a link to it as another version would. */
async function copyNode(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await copyFile(process.execPath, path, constants.COPYFILE_FICLONE);
}

describe("the launcher", () => {
  test.each(["22.12.0", "22.12.1-nightly2024", "22.21.0", "23.0.0", "24.11.0", "100.0.0"])(
    "starts the program on Node %s",
    async (version) => {
      expect(await launch(version, program)).toEqual({
        exitCode: 0,
        stdout: "started doctor --json",
        stderr: "",
      });
    },
  );

  test.each(["22.11.0", "22.5.1", "22.0.0", "22.9.0", "21.99.0", "20.20.2", "18.0.0", "12.22.12", "8.17.0"])(
    "reports on Node %s which version it needs, and loads nothing",
    async (version) => {
      const broken = { "dist/main.cjs": "throw new Error('loaded');" };
      const { exitCode, stdout, stderr } = await launch(version, broken);
      expect([exitCode, stdout]).toEqual([1, ""]);
      expect(stderr).toContain(`fairlead needs Node 22.12 or newer; this is Node ${version} (`);
      expect(stderr).toContain("https://nodejs.org");
      expect(stderr.split("\n")).toHaveLength(2);
    },
  );

  test("needs the version that package.json names", () => {
    expect(engines.node).toBe(">=22.12");
  });

  test("runs on the checkout's Node, and passes on arguments, output and exit code", async () => {
    const files = {
      "dist/main.cjs": `const { join, relative } = require("path");
console.log(relative(join(__dirname, ".."), process.execPath), ...process.argv.slice(2));
process.exitCode = 7;`,
    };
    for (const version of ["20.20.2", "22.5.1"])
      expect(await launch(version, files, copyNode)).toEqual({
        exitCode: 7,
        stdout: `${brought} doctor --json`,
        stderr: "",
      });
  });

  test("does not restart itself forever when the checkout's Node is too old as well", async () => {
    const bring = async (path: string) => {
      await mkdir(dirname(path), { recursive: true });
      await symlink(process.execPath, path);
    };
    const { exitCode, stderr } = await launch("20.0.0", program, bring);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("fairlead needs Node 22.12 or newer")]);
  });

  test("explains what to run when the program is not built", async () => {
    const missing = "fairlead is not built: <root>/dist/main.cjs is missing.";
    expect((await launch("24.0.0", checkout)).stderr).toBe(`${missing} Run "npm run build" in <root>.`);
    expect(await launch("24.0.0", { "scripts/build.ts": "" })).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: `${missing} Run "npm ci" in <root>.`,
    });
    expect((await launch("24.0.0", {})).stderr).toBe(
      "fairlead is not complete: <root>/dist/main.cjs is missing. Install it again.",
    );
  });

  test("shows an error of the program itself unchanged", async () => {
    const broken = { "dist/main.cjs": "require('./chunk-missing.cjs');" };
    const { exitCode, stderr } = await launch("24.0.0", broken);
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringContaining("Cannot find module './chunk-missing.cjs'"),
    ]);
  });

  test("has no syntax and no module names that old versions of Node do not know", () => {
    const printed = (target: ts.ScriptTarget) =>
      ts.transpileModule(launcher, { compilerOptions: { target, module: ts.ModuleKind.ESNext } }).outputText;
    expect(printed(ts.ScriptTarget.ES2015)).toBe(printed(ts.ScriptTarget.ESNext));
    expect(launcher).not.toContain('"node:');
  });
});

describe("the script that starts the build", () => {
  const startBuild = "scripts/start-build.cjs";
  const start = async (files: Files, env: Record<string, string> = {}) => {
    const place = await temporaryFolder({
      [startBuild]: await readFile(join(root, startBuild), "utf8"),
      ...files,
    });
    const { exitCode, stdout, stderr } = await execa(process.execPath, [join(place.path, startBuild)], {
      reject: false,
      env: { npm_node_execpath: "", ...env },
    });
    return { exitCode, stdout, stderr, place };
  };
  const tools = { "scripts/build.ts": "console.log('built');", "node_modules/rolldown/package.json": "{}" };
  const build = { ...tools, "node_modules/@rolldown/binding-linux-x64-gnu/package.json": "{}" };

  /**
   * Starts the build as if the installed Node had the version; the checkout contains another one. Returns the Node that
   * builds.
   */
  async function startWithBrought(version: string, place: TemporaryFolder) {
    await place.write({
      [startBuild]: await readFile(join(root, startBuild), "utf8"),
      ...build,
      "scripts/build.ts": "console.log(process.execPath);",
      "as-version.cjs": pretendVersion(version),
    });
    await copyNode(join(place.path, brought));
    const { stdout } = await execa(process.execPath, [join(place.path, startBuild)], {
      env: {
        npm_node_execpath: "",
        NODE_OPTIONS: `--require="${withSlashes(join(place.path, "as-version.cjs"))}"`,
      },
    });
    return stdout;
  }
  const bin = "node_modules/.bin";
  /** What npm writes on Windows instead of a link. */
  const npmScripts: Files = lacksShellScripts
    ? Object.fromEntries(["node", "node.cmd", "node.ps1"].map((name) => [`${bin}/${name}`, ""]))
    : {};

  test.each(["20.20.2", "22.17.1", "23.11.0"])(
    "builds with the checkout's Node on Node %s, and links it for npm's scripts",
    async (version) => {
      await using place = await temporaryFolder({ [`${bin}/other`]: "" });
      for (const _ of ["as npm 10 leaves it", "again"]) {
        expect(await startWithBrought(version, place)).toBe(join(place.path, brought));
        // On Windows npm writes .cmd files instead of a link.
        if (lacksShellScripts) expect(await readdir(join(place.path, bin))).toEqual(["other"]);
        else expect(await readlink(join(place.path, bin, "node"))).toBe(`../${nodePackage}/bin/node`);
      }
    },
  );

  test.each(["22.18.0", "24.0.0", "26.10.0"])(
    "builds with the installed Node %s, and removes the link to another Node",
    async (version) => {
      await using place = await temporaryFolder({ [`${bin}/other`]: "", ...npmScripts });
      if (!lacksShellScripts) await symlink(`../${nodePackage}/bin/node`, join(place.path, bin, "node"));
      for (const _ of ["as npm 11 leaves it", "again"]) {
        expect(await startWithBrought(version, place)).toBe(process.execPath);
        expect(await readdir(join(place.path, bin))).toEqual(["other"]);
      }
    },
  );

  test("on Windows changes the link to npm's Node, because cmd.exe is still reading it", async () => {
    await using place = await temporaryFolder({
      [startBuild]: await readFile(join(root, startBuild), "utf8"),
      ...build,
      "as-windows.cjs": 'Object.defineProperty(process, "platform", { value: "win32" });',
      ...Object.fromEntries(
        ["node", "node.cmd", "node.ps1"].map((name) => [`node_modules/.bin/${name}`, "x"]),
      ),
    });
    const { stdout } = await execa(process.execPath, [join(place.path, startBuild)], {
      env: { npm_node_execpath: "", NODE_OPTIONS: `--require=${join(place.path, "as-windows.cjs")}` },
    });
    expect(stdout).toBe("built");
    expect(await readdir(join(place.path, "node_modules/.bin"))).toEqual(["node.cmd"]);
    const link = await readFile(join(place.path, "node_modules/.bin/node.cmd"), "utf8");
    expect(link).toBe('@"%npm_node_execpath%" %*\r\n');
  });

  test("names the Node to install if the installed one is too old and none is bundled", async () => {
    await using place = await temporaryFolder({
      [startBuild]: await readFile(join(root, startBuild), "utf8"),
      ...build,
      "as-version.cjs": pretendVersion("22.17.1"),
    });
    const { exitCode, stdout, stderr } = await execa(process.execPath, [join(place.path, startBuild)], {
      reject: false,
      env: {
        npm_node_execpath: "",
        NODE_OPTIONS: `--require="${withSlashes(join(place.path, "as-version.cjs"))}"`,
      },
    });
    expect([exitCode, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("the build needs Node 22.18 or newer, and this is Node 22.17.1.");
    expect(stderr).toContain(".nvmrc");
  });

  test("builds with the current Node if none is bundled", async () => {
    const { place, ...result } = await start(build);
    expect(result).toEqual({ exitCode: 0, stdout: "built", stderr: "" });
    await place.remove();
  });

  test.each([
    ["prepare", "install", 0],
    ["prepare", "ci", 0],
    ["prepare", "pack", 1],
    ["prepack", "pack", 1],
    ["prepare", "publish", 1],
    ["build", "run", 1],
  ])("without its tools reports that to %s of npm %s, with exit code %i", async (script, command, code) => {
    const { exitCode, stderr, place } = await start(
      {},
      { npm_lifecycle_event: script, npm_command: command },
    );
    expect([exitCode, stderr]).toEqual([code, expect.stringContaining('are missing; run "npm ci"')]);
    await place.remove();
  });

  test("names the Node to install if npm omitted native parts on an older one", async () => {
    const env = { npm_config_user_agent: "npm/10.5.1 node/v22.0.0 linux x64 workspaces/false" };
    const { exitCode, stdout, stderr, place } = await start(tools, env);
    expect([exitCode, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/native parts of the build on Node 22\.0\.0\. Install Node 22\.12 or newer .*$/);
    await place.remove();
  });

  test("fails if the build fails", async () => {
    const { exitCode, place } = await start({ ...build, "scripts/build.ts": "process.exit(3);" });
    expect(exitCode).toBe(3);
    await place.remove();
  });
});
