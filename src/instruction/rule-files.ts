import { toSlashes } from "../base/files/paths.ts";
import { join, relative } from "node:path";
import { Minimatch } from "minimatch";
import { isFolder } from "../base/files/file-stat.ts";
import { findFiles } from "./file-patterns.ts";
import { type FrontMatter, readFrontMatter, splitList } from "./front-matter.ts";

/** A rule file of Cursor or GitHub Copilot. */
export interface RuleFile {
  /** Real path. */
  readonly path: string;
  readonly text: string;
  /** When it applies: always, with matching files, or when the model decides so by its description. */
  readonly use: "always" | "files" | "described";
  readonly patterns: readonly string[];
  readonly description: string;
}

/** Where rule files are, below the folder that they apply to. */
const ruleFolders = [
  { name: join(".cursor", "rules"), pattern: "**/*.mdc" },
  { name: join(".github", "instructions"), pattern: "**/*.instructions.md" },
] as const;

/** Whether the path is that of a rule file. */
export function isRuleFile(path: string): boolean {
  const parts = toSlashes(path);
  return /\/\.cursor\/rules\/.*\.mdc$|\/\.github\/instructions\/.*\.instructions\.md$/.test(parts);
}

/** Lists the rule files below a folder, sorted by path. */
export async function listRuleFiles(folder: string): Promise<string[]> {
  const paths: string[] = [];
  for (const { name, pattern } of ruleFolders) {
    const rules = join(folder, name);
    // Each prompt and each read looks here, and most folders have no rules.
    if (!isFolder(rules)) continue;
    paths.push(...(await findFiles(pattern, { home: folder, folders: [rules] })).paths);
  }
  return paths;
}

/** Parses a rule file. Undefined for one that applies only when the user names it. */
export function parseRuleFile(path: string, content: string): RuleFile | undefined {
  const { fields, body }: FrontMatter = readFrontMatter(content);
  const description = fields.get("description") ?? "";
  const patterns = splitList(fields.get("globs") ?? fields.get("applyTo") ?? "");
  const rule = { path, text: body.trim(), patterns, description };
  if (
    fields.get("alwaysApply") === "true" ||
    patterns.some((pattern) => pattern === "**" || pattern === "**/*")
  )
    return { ...rule, use: "always" };
  if (patterns.length > 0) return { ...rule, use: "files" };
  // Copilot's instructions without applyTo are added by hand too.
  return description === "" ? undefined : { ...rule, use: "described" };
}

/** Whether a rule applies to a file. Patterns are relative to the rule's folder; one without a slash matches names. */
export function appliesTo({ patterns }: RuleFile, folder: string, file: string): boolean {
  const path = toSlashes(relative(folder, file));
  return patterns.some((pattern) =>
    new Minimatch(pattern.replace(/^\.?\//, ""), { dot: true, matchBase: true, nocomment: true }).match(path),
  );
}

/** Lists the rules that the model may have to read by itself. Undefined if there are none. */
export function describeRules(rules: readonly RuleFile[]): string | undefined {
  const listed = rules.filter(({ use }) => use !== "always");
  if (listed.length === 0) return undefined;
  const lines = listed.map(({ path, description, patterns }) => {
    const when = [description, patterns.length === 0 ? "" : `for ${patterns.join(", ")}`].filter(Boolean);
    return `- ${path}: ${when.join("; ")}`;
  });
  return ["Rules for parts of this project. Read a file before you work on what it is for.", ...lines].join(
    "\n",
  );
}
