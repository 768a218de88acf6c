import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { rgPath } from "@vscode/ripgrep";
import { execa } from "execa";
import { beforeAll, afterAll, expect, test } from "vitest";
import { readLibc } from "../../../scripts/release/program-system.ts";
import { windowsPrograms } from "../../support/platform/platform.ts";
import { environment } from "../../support/program/environment.ts";
import { type TemporaryFolder, temporaryFolder } from "../../support/temp.ts";

const isWindows = process.platform === "win32";
const run = promisify(execFile);
const root = join(import.meta.dirname, "../../..");
const system = `${process.platform}-${process.arch}`;
const target = readLibc(process.execPath) === "musl" ? `${system}-musl` : system;

let place: TemporaryFolder;
let unpacked: string;
let entries: string[];
let program: string;
let env: Record<string, string>;

/** Packs the program for this system with the Node that runs the tests, and unpacks the archive. */
beforeAll(async () => {
  place = await temporaryFolder();
  const out = join(place.path, "out");
  const script = join(root, "scripts/release/build-archive.ts");
  const parts = ["--node", process.execPath, "--ripgrep", dirname(dirname(rgPath))];
  await run(process.execPath, [script, target, ...parts, "--out", out], { cwd: root });
  unpacked = join(place.path, "with a space");
  await mkdir(unpacked);
  const archive = (await readdir(out)).find((name) => name.endsWith(".tar.gz")) ?? "";
  // Without the drive of Windows, which GNU tar takes for a machine.
  await run("tar", ["-xzf", `../out/${archive}`], { cwd: unpacked });
  const listed = await run("tar", ["-tzf", `../out/${archive}`], { cwd: unpacked });
  entries = listed.stdout.trimEnd().split(/\r?\n/);
  const hash = createHash("sha256")
    .update(await readFile(join(out, archive)))
    .digest("hex");
  expect(await readFile(join(out, `${archive}.sha256`), "utf8")).toBe(`${hash}  ${archive}\n`);
  program = await findProgram();
  env = await environmentWithoutNode();
}, 120_000);
afterAll(() => place[Symbol.asyncDispose]());

test("the archive does not change the mode of the folder that it is unpacked into", () => {
  const names = new Set(entries.map((path) => path.split("/")[0]));
  const programs = isWindows ? ["fairlead.cmd", "node.exe"] : ["fairlead", "node"];
  expect(names).toEqual(new Set(["LICENSE", "app", ...programs]));
});

test("the archive has one native lock and one ripgrep", async () => {
  const files = await readdir(unpacked, { recursive: true });
  const named = (text: string) => files.filter((path) => path.includes(text));
  expect(named(".node").map((path) => basename(path))).toEqual([`fs-native-extensions-${system}.node`]);
  expect(await readdir(join(unpacked, "app/node_modules/@vscode"))).toEqual(["ripgrep", `ripgrep-${system}`]);
});

test("the archive has the licenses of its libraries, and a native lock that loads", async () => {
  const licenses = await readFile(join(unpacked, "app/dist/THIRD-PARTY-LICENSES.txt"), "utf8");
  for (const name of ["@agentclientprotocol/sdk", "fs-native-extensions", "zod"])
    expect(licenses).toContain(`\n${name} `);
  // With bash, for without it other things come first on Windows.
  const { stdout } = await execa(program, ["doctor"], {
    env: environment(place.path),
    extendEnv: false,
    cwd: unpacked,
    shell: isWindows,
    reject: false,
  });
  expect(stdout).toContain(process.platform);
  expect(stdout).not.toContain("native part");
}, 30_000);

test("the archive plays the demo without Node, bash and git", async () => {
  await expect(run("node", ["--version"], { env })).rejects.toThrow("ENOENT");
  const { stdout, stderr } = await execa(program, ["demo"], {
    env,
    extendEnv: false,
    cwd: unpacked,
    shell: isWindows,
  });
  expect(stdout).toContain("after the last change node --test passed");
  expect(stdout).toContain("Done. What you saw was the real program");
  expect(stderr).toBe("");
}, 120_000);

/** Returns the program of the archive in `unpacked`, through a link where a link to it works. */
async function findProgram(): Promise<string> {
  if (isWindows) return ".\\fairlead.cmd";
  const link = join(place.path, "fairlead");
  await symlink(join(unpacked, "fairlead"), link);
  return link;
}

/** Returns an environment whose PATH has only the programs that the demo runs. */
async function environmentWithoutNode(): Promise<Record<string, string>> {
  const bin = join(place.path, "bin");
  const home = join(place.path, "home");
  for (const folder of [bin, home]) await mkdir(folder);
  if (isWindows) return { ...environment(home), PATH: windowsPrograms };
  for (const name of ["sh", "readlink"])
    await symlink((await run("sh", ["-c", `command -v ${name}`])).stdout.trim(), join(bin, name));
  return { PATH: bin, HOME: home };
}
