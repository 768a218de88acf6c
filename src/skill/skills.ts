import { realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";
import { messageOf } from "../base/errors.ts";
import { describeIssue } from "../config/files/expectation.ts";
import { findFiles, type Report } from "../config/files/folder-walk.ts";
import { listFoldersFromRoot, type ConfigSource } from "../config/load.ts";
import { readMarkdownFile } from "../config/files/markdown-file.ts";
import { skillDescriptionLimit, skillFrontMatterSchema } from "../config/schema.ts";
import type { BundledSkills } from "./bundled-skills.ts";
import type { StoredSkill } from "./skill.ts";

/** Maximum number of skills per session; the rest is reported and ignored. */
const skillsLimit = 300;

export interface SkillSources {
  /** Folder of the bundled skills, with their index. */
  readonly bundled: BundledSkills;
  /** `.claude` and `.agents` folders, lowest precedence first. */
  readonly otherFolders: readonly ConfigSource[];
  /** Configuration folders, lowest precedence first. */
  readonly folders: readonly ConfigSource[];
  /** `skills.paths`: absolute, from `~/`, or relative to `cwd` or one of its parents up to the root. */
  readonly paths?: readonly string[] | undefined;
  readonly cwd: string;
  /** Root of the worktree, or `cwd`. Links of the project's skills must stay inside. */
  readonly root: string;
  readonly home: string;
}

/** A folder to search for skills. */
interface SkillFolder {
  readonly path: string;
  readonly within?: string;
}

export interface SkillProblem {
  readonly path: string;
  readonly message: string;
}

export interface LoadedSkills {
  /** Sorted by name. */
  readonly skills: readonly StoredSkill[];
  readonly problems: readonly SkillProblem[];
  /** Folders to watch for changes. */
  readonly folders: readonly string[];
}

/**
 * Finds every `SKILL.md`. A later skill overrides one of the same name, with a report. Never throws for
 * invalid content.
 */
export async function loadSkills(sources: SkillSources): Promise<LoadedSkills> {
  const problems: SkillProblem[] = [];
  const report: Report = (path, message) => problems.push({ path, message });
  const places = listSkillFolders(sources);
  const found = new Map<string, StoredSkill>();
  const bundled = await bundledSkills(sources.bundled, report);
  for (const skill of bundled) found.set(skill.name, skill);
  for (const path of await findSkillFiles(places, report)) {
    const skill = await readSkill(path, report);
    if (skill === undefined) continue;
    const other = found.get(skill.name);
    if (other !== undefined && !bundled.includes(other))
      report(skill.path, `is used; the skill "${skill.name}" of ${other.path} is not`);
    found.set(skill.name, skill);
  }
  const skills = [...found.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  return { skills, problems, folders: places.map(({ path }) => path) };
}

async function bundledSkills(
  { folder, load }: BundledSkills,
  report: Report,
): Promise<readonly StoredSkill[]> {
  try {
    return await load();
  } catch (error) {
    report(folder, `cannot read the bundled skills (${messageOf(error)}); reinstall Fairlead`);
    return [];
  }
}

function listSkillFolders(sources: SkillSources): SkillFolder[] {
  const { otherFolders, folders, root } = sources;
  const limited = ({ scope }: ConfigSource) => (scope === "project" ? { within: root } : {});
  return [
    ...otherFolders.map((folder) => ({ path: join(folder.path, "skills"), ...limited(folder) })),
    ...folders.flatMap((folder) =>
      ["skill", "skills"].map((name) => ({ path: join(folder.path, name), ...limited(folder) })),
    ),
    ...(sources.paths ?? []).flatMap((path) => listConfiguredFolders(path, sources)),
  ];
}

function listConfiguredFolders(path: string, { cwd, root, home }: SkillSources): SkillFolder[] {
  if (path.startsWith("~/")) return [{ path: join(home, path.slice(2)) }];
  if (isAbsolute(path)) return [{ path }];
  return listFoldersFromRoot({ cwd, worktree: root }).map((folder) => ({
    path: join(folder, path),
    within: root,
  }));
}

/** Real paths without duplicates; the last occurrence counts. */
async function findSkillFiles(skillFolders: readonly SkillFolder[], report: Report): Promise<string[]> {
  const wanted = (name: string) => name === "SKILL.md";
  const found = await Promise.all(
    skillFolders.map(({ path, within }) => findFiles(path, { wanted, within, report })),
  );
  const real = await Promise.all(found.flat().map((path) => realpath(path)));
  const files = real.filter((path, index) => real.lastIndexOf(path) === index);
  if (files.length > skillsLimit)
    report("skills", `${files.length} skills found; only the first ${skillsLimit} are used`);
  return files.slice(0, skillsLimit);
}

async function readSkill(path: string, report: Report): Promise<StoredSkill | undefined> {
  try {
    const { settings, note } = await readMarkdownFile(path);
    const folder = dirname(path);
    if (note !== undefined) report(path, note);
    const named = repairSettings({ name: basename(folder), ...settings }, path, report);
    const parsed = skillFrontMatterSchema.safeParse(named);
    if (parsed.success) return { ...parsed.data, path, folder };
    for (const issue of parsed.error.issues) {
      const { field, message } = describeIssue(issue, named);
      report(path, `${field}: ${message}`);
    }
  } catch (thrown) {
    report(path, messageOf(thrown));
  }
  return undefined;
}

/** Replaces an invalid name by a valid spelling or the folder's name, and truncates a long description. */
function repairSettings(
  settings: Record<string, unknown>,
  path: string,
  report: Report,
): Record<string, unknown> {
  const { name, description } = settings;
  const own = basename(dirname(path));
  const usable = [name, own, slugify(own), slugify(String(name))].find(isName) ?? name;
  if (usable !== name) report(path, `its name "${String(name)}" is invalid; renamed to "${String(usable)}"`);
  return { ...settings, name: usable, description: truncateDescription(description, path, report) };
}

function truncateDescription(description: unknown, path: string, report: Report): unknown {
  if (typeof description !== "string") return description;
  const line = description.replaceAll(/\s+/g, " ").trim();
  if (line.length <= skillDescriptionLimit) return line;
  report(path, `its description is longer than ${skillDescriptionLimit} characters and was truncated`);
  // Do not split a surrogate pair.
  return `${line.slice(0, skillDescriptionLimit - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

function isName(name: unknown): name is string {
  return skillFrontMatterSchema.shape.name.safeParse(name).success;
}

/** Converts `My StoredSkill (new)` to `my-skill-new`. */
function slugify(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_.:]+/gu, "-")
    .replaceAll(/^[^\p{L}\p{N}]+|-+$/gu, "");
}
