import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { assertProgramIsFor } from "./program-system.ts";
import { archiveName, type Target, targetNamed } from "./targets.ts";

// Packs the built program with Node and ripgrep for one target: an archive that runs on a machine without Node, and a
// file with its SHA-256.
const { values, positionals } = parseArgs({
  options: {
    /** Node's program for the target. */
    node: { type: "string" },
    /** The folder of the unpacked package `@vscode/ripgrep-PLATFORM-ARCH`. */
    ripgrep: { type: "string" },
    out: { type: "string", default: "release" },
  },
  allowPositionals: true,
});
const [name] = positionals;
if (name === undefined || values.node === undefined || values.ripgrep === undefined)
  throw new Error("Usage: build-archive.ts TARGET --node FILE --ripgrep FOLDER [--out FOLDER]");

const root = join(import.meta.dirname, "../..");
const target = targetNamed(name);
const { version } = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));
const work = mkdtempSync(join(tmpdir(), "fairlead-archive-"));
try {
  fill(work, target, { node: resolve(values.node), ripgrep: resolve(values.ripgrep) });
  mkdirSync(values.out, { recursive: true });
  const archive = join(resolve(values.out), archiveName(version, target));
  pack(work, archive);
  const hash = createHash("sha256").update(readFileSync(archive)).digest("hex");
  writeFileSync(`${archive}.sha256`, `${hash}  ${archiveName(version, target)}\n`);
  console.log(archive);
} finally {
  rmSync(work, { recursive: true, force: true });
}

function fill(
  folder: string,
  { platform, arch, libc }: Target,
  parts: { node: string; ripgrep: string },
): void {
  const app = join(folder, "app");
  const system = `${platform}-${arch}`;
  const isWindows = platform === "win32";
  for (const program of [parts.node, join(parts.ripgrep, "bin", isWindows ? "rg.exe" : "rg")])
    assertProgramIsFor(system, program, libc);
  for (const path of packedFiles())
    if (!isNativePartOfOther(path, system)) copy(join(root, path), join(app, path));
  for (const path of ["package.json", "LICENSE", "lib"])
    copy(join(root, "node_modules/@vscode/ripgrep", path), join(app, "node_modules/@vscode/ripgrep", path));
  copy(parts.ripgrep, join(app, `node_modules/@vscode/ripgrep-${system}`));
  copy(join(root, "LICENSE"), join(folder, "LICENSE"));
  const node = join(folder, isWindows ? "node.exe" : "node");
  copy(parts.node, node);
  const launcher = join(folder, isWindows ? "fairlead.cmd" : "fairlead");
  copy(join(import.meta.dirname, isWindows ? "launcher.cmd" : "launcher.sh"), launcher);
  for (const program of [node, launcher]) chmodSync(program, 0o755);
}

/** Returns the paths of the files that npm would publish. */
function packedFiles(): string[] {
  // On Windows npm is a script, which only a shell starts.
  const shell = process.platform === "win32";
  const printed = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    cwd: root,
    shell,
  });
  const [{ files }] = z
    .tuple([z.object({ files: z.array(z.object({ path: z.string() })) })])
    .parse(JSON.parse(printed.toString()));
  return files.map(({ path }) => path);
}

function isNativePartOfOther(path: string, system: string): boolean {
  return path.endsWith(".node") && !path.endsWith(`-${system}.node`);
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { recursive: true, dereference: true });
}

/**
 * Gives the same bytes for the same files where tar is GNU tar: others lack these options. Names no file to tar, because
 * GNU tar takes a drive's letter for a machine.
 */
function pack(folder: string, archive: string): void {
  const isGnu = execFileSync("tar", ["--version"]).toString().includes("GNU tar");
  const stable = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  // An entry for the folder itself would give its mode to the folder that it is unpacked into.
  const args = [...(isGnu ? stable : []), "-czf", "-", ...readdirSync(folder).sort()];
  writeFileSync(archive, execFileSync("tar", args, { cwd: folder, maxBuffer: Infinity }));
}
