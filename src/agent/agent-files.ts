import { toSlashes } from "../base/files/paths.ts";
import { readdir, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, sep } from "node:path";
import { isMissing, messageOf } from "../base/errors.ts";
import { importModule } from "../base/import-module.ts";
import { readRegularFile } from "../base/files/regular-file.ts";
import { isSecretFile } from "../permission/secret-file.ts";

/** Maximum number of agents per folder; the rest is reported and ignored. */
const FILES_LIMIT = 500;
const FILE_LIMIT_BYTES = 256 * 1024;

/** An agent's Markdown file, not yet checked: front matter, and the body as `prompt`. */
export interface AgentFile {
  readonly name: string;
  readonly path: string;
  readonly raw: Record<string, unknown>;
}

export type ReportFile = (path: string, message: string) => void;

/** Old mode folders first, so that an agent of the same name wins. */
const PLACES = [
  { folder: "mode", isOldMode: true },
  { folder: "modes", isOldMode: true },
  { folder: "agent", isOldMode: false },
  { folder: "agents", isOldMode: false },
] as const;

/**
 * Reads the agents of a configuration folder: `{mode,modes}/**\/*.md`, then `{agent,agents}/**\/*.md`.
 * `within` is a real path: links that lead out of it or to a secret file are reported and ignored, because a
 * prompt is sent to the model without asking.
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

/** Paths relative to the root, without extension. */
async function listMarkdown(root: string, report: ReportFile): Promise<string[]> {
  try {
    const entries = (await readdir(root, { recursive: true }))
      .filter((entry) => entry.endsWith(".md"))
      .sort();
    if (entries.length > FILES_LIMIT) {
      report(root, `contains ${entries.length} files; only the first ${FILES_LIMIT} are read`);
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
    return { name: toSlashes(entry), path, raw };
  } catch (thrown) {
    report(path, messageOf(thrown));
    return undefined;
  }
}

async function assertConfined(path: string, within: string): Promise<void> {
  const real = await realpath(path);
  const relativePath = relative(within, real);
  if (relativePath === ".." || relativePath.startsWith(`..${sep}`) || isAbsolute(relativePath))
    throw new Error(`links to a file outside of ${within} and is ignored`);
  if (isSecretFile(real)) throw new Error("links to a secret file and is ignored");
}

async function readBounded(path: string): Promise<string> {
  const found = await stat(path);
  if (!found.isFile()) throw new Error("is not a regular file; an agent is a Markdown file");
  if (found.size > FILE_LIMIT_BYTES) {
    throw new Error(`has ${found.size} bytes; the limit for agents is ${FILE_LIMIT_BYTES}. Make it shorter.`);
  }
  return (await readRegularFile(path)).toString("utf8");
}
