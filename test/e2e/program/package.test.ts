import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, stat, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { rgPath } from "@vscode/ripgrep";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { AgentProcess } from "../../support/program/agent-process.ts";
import { temporaryFolder } from "../../support/temp.ts";

const root = join(import.meta.dirname, "../../..");
const run = promisify(execFile);
const readJson = async (path: string): Promise<unknown> =>
  JSON.parse(await readFile(join(root, path), "utf8"));
const packageJson = z
  .object({ name: z.string(), version: z.string(), dependencies: z.record(z.string(), z.string()) })
  .parse(await readJson("package.json"));

/** The files that `npm publish` would send: paths, and sizes in bytes. */
async function packedFiles(): Promise<{ path: string; size: number }[]> {
  // On Windows npm is a script, which only a shell starts.
  const shell = process.platform === "win32";
  const { stdout } = await run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    cwd: root,
    shell,
  });
  const [{ files }] = z
    .tuple([z.object({ files: z.array(z.object({ path: z.string(), size: z.number() })) })])
    .parse(JSON.parse(stdout));
  return files;
}

/** Returns the bytes of all files in a folder. */
async function sizeOf(folder: string): Promise<number> {
  const sizes = (await readdir(folder, { recursive: true })).map(async (name) => {
    const found = await stat(join(folder, name));
    return found.isFile() ? found.size : 0;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

describe("the registry entry", () => {
  test("contains the version of the package, and no other", async () => {
    const entry = z.record(z.string(), z.unknown()).parse(await readJson("registry/fairlead/agent.json"));
    expect(entry).toMatchObject({
      id: expect.stringMatching(/^[a-z][a-z0-9-]*$/),
      version: packageJson.version,
      distribution: { npx: { package: `${packageJson.name}@${packageJson.version}`, args: ["acp"] } },
    });
    expect(packageJson.version).toMatch(/^\d+\.\d+\.\d+$/);
  });

  test("has an icon of 16 by 16 in the current color", async () => {
    const icon = await readFile(join(root, "registry/fairlead/icon.svg"), "utf8");
    expect(icon).toMatch(/^<svg [^>]*width="16" height="16" viewBox="0 0 16 16"/);
    const colors = [...icon.matchAll(/(?:fill|stroke|color|stop-color)="([^"]*)"/g)].map(
      ([, color]) => color,
    );
    expect(new Set(colors)).toEqual(new Set(["none", "currentColor"]));
    expect(icon).not.toMatch(/<style|style=|#[0-9a-f]{3}/i);
  });
});

test("the program takes at most 13 MB with ripgrep", async () => {
  const files = await packedFiles();
  const own = files.reduce((sum, { size }) => sum + size, 0);
  const programFolder = dirname(dirname(rgPath));
  const ripgrep = (await sizeOf(programFolder)) + (await sizeOf(join(root, "node_modules/@vscode/ripgrep")));
  expect(own + ripgrep).toBeLessThan(13_000_000);
});

test("the package alone answers initialize first, in an empty home and environment", async () => {
  await using place = await temporaryFolder();
  const files = await packedFiles();
  const folder = join(place.path, "package");
  for (const { path } of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await cp(join(root, path), join(folder, path));
  }
  for (const name of Object.keys(packageJson.dependencies)) {
    await mkdir(dirname(join(folder, "node_modules", name)), { recursive: true });
    await symlink(join(root, "node_modules", name), join(folder, "node_modules", name), "junction");
  }
  const home = join(place.path, "home");
  await mkdir(home);
  const env = { PATH: process.env["PATH"] ?? "", HOME: home, TERM: "dumb" };
  const agent = new AgentProcess([process.execPath, join(folder, "bin/fairlead.js"), "acp"], {
    env,
    cwd: home,
  });
  const ask = (id: number, method: string, params: object) =>
    agent.write(Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`));
  const meta = { terminal_output: true, "terminal-auth": true };
  const fs = { readTextFile: true, writeTextFile: true };
  await ask(0, "initialize", { protocolVersion: 1, clientCapabilities: { fs, terminal: true, _meta: meta } });
  await ask(1, "session/new", { cwd: home, mcpServers: [] });
  const answer = (id: number) =>
    agent.wire.bell.until(
      () =>
        agent.wire.entries.find(({ message }) => message?.kind === "response" && message.id === id)?.message
          ?.json,
      `answer ${id}`,
    );
  expect(await answer(0)).toMatchObject({
    result: { authMethods: [{ id: "fairlead" }, { id: "fairlead-setup" }] },
  });
  expect(await answer(1)).toMatchObject({ result: { sessionId: expect.any(String) } });
  expect(agent.wire.entries.map(({ problem }) => problem).filter(Boolean)).toEqual([]);
  agent.endInput();
  expect(await agent.exited).toEqual({ code: 0, signal: null });
  expect(agent.stderr).toBe("");
});
