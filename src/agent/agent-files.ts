import { readdir, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, sep } from "node:path";
import { isMissing, messageOf } from "../base/errors.ts";
import { importModule } from "../base/import-module.ts";
import { readRegularFile } from "../base/files/regular-file.ts";
import { isSecretFile } from "../permission/secret-file.ts";

/** Agents of one folder; further files are reported and left out. */
const FILES_LIMIT = 500;
const FILE_LIMIT_BYTES = 256 * 1024;

/** What one Markdown file says of an agent, not yet checked: its front matter, and its body as `prompt`. */
export interface AgentFile {
  readonly name: string;
  readonly path: string;
  readonly raw: Record<string, unknown>;
}

export type ReportFile = (path: string, message: string) => void;

/** Old modes first, so that an agent of the same name wins. */
const PLACES = [
  { folder: "mode", isOldMode: true },
  { folder: "modes", isOldMode: true },
  { folder: "agent", isOldMode: false },
  { folder: "agents", isOldMode: false },
] as const;

/**
 * Reads the agents of a config folder: `{mode,modes}/**\/*.md`, then `{agent,agents}/**\/*.md`. With `within`, a real path,
 * links that lead out of it or to a file of secrets are reported and left out: a prompt goes to the model unasked.
 */
export async function readAgentFiles(
  configFolder: string,
  report: ReportFile,
  within?: string,
): Promise<AgentFile[]> {
  const files: AgentFile[] = [];
  for (const { folder, isOldMode } of PLACES) {
    const root = join(configFolder, folder);
    for (const name of await listMarkdown(root, report)) {
      const file = await readAgentFile(join(root, `${name}.md`), name, report, within);
      if (file) files.push(isOldMode ? { ...file, raw: { mode: "primary", ...file.raw } } : file);
    }
  }
  return files;
}

/** Paths relative to the root, without their ending. */
async function listMarkdown(root: string, report: ReportFile): Promise<string[]> {
  try {
    const entries = (await readdir(root, { recursive: true }))
      .filter((entry) => entry.endsWith(".md"))
      .sort();
    if (entries.length > FILES_LIMIT) {
      report(root, `holds ${entries.length} files; only the first ${FILES_LIMIT} are read`);
    }
    return entries.slice(0, FILES_LIMIT).map((entry) => entry.slice(0, -".md".length));
  } catch (thrown) {
    if (!isMissing(thrown)) report(root, `cannot be listed: ${messageOf(thrown)}`);
    return [];
  }
}

async function readAgentFile(
  path: string,
  entry: string,
  report: ReportFile,
  within: string | undefined,
): Promise<AgentFile | undefined> {
  try {
    if (within !== undefined) await assertConfined(path, within);
    const { parseMarkdown } = await importModule(() => import("../config/files/markdown.ts"));
    const { settings, body, note } = parseMarkdown(await readBounded(path));
    if (note !== undefined) report(path, note);
    const raw = body === "" ? settings : { ...settings, prompt: body };
    return { name: entry.split(sep).join("/"), path, raw };
  } catch (thrown) {
    report(path, messageOf(thrown));
    return undefined;
  }
}

async function assertConfined(path: string, within: string): Promise<void> {
  const real = await realpath(path);
  const way = relative(within, real);
  if (way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way))
    throw new Error(`it links to a file outside of ${within} and is left out`);
  if (isSecretFile(real)) throw new Error("it links to a file of secrets and is left out");
}

async function readBounded(path: string): Promise<string> {
  const found = await stat(path);
  if (!found.isFile()) throw new Error("is not a file; an agent is a Markdown file");
  if (found.size > FILE_LIMIT_BYTES) {
    throw new Error(`has ${found.size} bytes; an agent may have ${FILE_LIMIT_BYTES}. Make it shorter.`);
  }
  return (await readRegularFile(path)).toString("utf8");
}
