import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { parseSession, replaySession } from "./replay-session.ts";

// Replays an exported session: npm run replay -- session.json --folder DIR [--run-commands]

/** Tools with effects outside of the fresh folder. */
const tools = ["bash", "webfetch", "websearch", "codesearch", "external_directory"];
/** Folders that are not copied. */
const skipped: ReadonlySet<string> = new Set([".git", "node_modules"]);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { folder: { type: "string" }, "run-commands": { type: "boolean", default: false } },
});
const [path] = positionals;
if (path === undefined) {
  console.error("Name the file of an exported session: npm run replay -- session.json --folder DIR");
  process.exit(2);
}
const refused = values["run-commands"] ? [] : tools;
const permission = Object.fromEntries(refused.map((name) => [name, "deny"]));
const session = parseSession(await readFile(path, "utf8"));
const files = values.folder === undefined ? {} : await readFiles(values.folder);
const difference = await replaySession(session, { files, config: { permission }, refused });
console.log(difference === "" ? "No differences." : difference);
process.exitCode = difference === "" ? 0 : 1;

async function readFiles(folder: string): Promise<Record<string, Uint8Array>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((name) => !name.split(/[/\\]/).some((part) => skipped.has(part)));
  return Object.fromEntries(
    await Promise.all(paths.map(async (name) => [name, await readFile(join(folder, name))] as const)),
  );
}
