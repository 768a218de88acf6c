import { realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";
import { messageOf } from "../base/errors.ts";
import { describeIssue } from "../config/files/expectation.ts";
import { filesBelow, type Report } from "../config/files/folder-walk.ts";
import { downTo, type ConfigSource } from "../config/load.ts";
import { readMarkdownFile } from "../config/files/markdown-file.ts";
import { skillDescriptionLimit, skillFrontMatterSchema } from "../config/schema.ts";
import type { BundledSkills } from "./bundled-skills.ts";
import type { Skill } from "./skill.ts";

/** Skills of one session; further ones are reported and left out. */
const skillsLimit = 300;

export interface SkillSources {
  /** The folder with the skills that come with the program, and their index. */
  readonly bundled: BundledSkills;
  /** `.claude` and `.agents` folders, lowest first. */
  readonly otherFolders: readonly ConfigSource[];
  /** Configuration folders, lowest first. */
  readonly folders: readonly ConfigSource[];
  /** `skills.paths`: absolute, from `~/`, or relative to `cwd` or a folder above it up to the root. */
  readonly paths?: readonly string[] | undefined;
  readonly cwd: string;
  /** The worktree's root, or `cwd` where there is none: links of the project's skills lead no further. */
  readonly root: string;
  readonly home: string;
}

/** One folder below which skills may lie. */
interface SkillPlace {
  readonly path: string;
  readonly within?: string;
}

export interface SkillProblem {
  readonly path: string;
  readonly message: string;
}

export interface LoadedSkills {
  /** By name. */
  readonly skills: readonly Skill[];
  readonly problems: readonly SkillProblem[];
  /** Where skills were looked for that can change. */
  readonly places: readonly string[];
}

/** Finds every `SKILL.md`; of two skills with one name the later wins and it is said. Never throws for what it finds. */
export async function loadSkills(sources: SkillSources): Promise<LoadedSkills> {
  const problems: SkillProblem[] = [];
  const report: Report = (path, message) => problems.push({ path, message });
  const places = placesOf(sources);
  const found = new Map<string, Skill>();
  const bundled = await bundledSkills(sources.bundled, report);
  for (const skill of bundled) found.set(skill.name, skill);
  for (const path of await skillFiles(places, report)) {
    const skill = await readSkill(path, report);
    if (skill === undefined) continue;
    const other = found.get(skill.name);
    if (other !== undefined && !bundled.includes(other))
      report(skill.path, `is used; the skill "${skill.name}" of ${other.path} is not`);
    found.set(skill.name, skill);
  }
  const skills = [...found.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  return { skills, problems, places: places.map(({ path }) => path) };
}

async function bundledSkills({ folder, load }: BundledSkills, report: Report): Promise<readonly Skill[]> {
  try {
    return await load();
  } catch (error) {
    report(folder, `the program's own skills cannot be read (${messageOf(error)}); reinstall Fairlead`);
    return [];
  }
}

function placesOf(sources: SkillSources): SkillPlace[] {
  const { otherFolders, folders, root } = sources;
  const limited = ({ scope }: ConfigSource) => (scope === "project" ? { within: root } : {});
  return [
    ...otherFolders.map((folder) => ({ path: join(folder.path, "skills"), ...limited(folder) })),
    ...folders.flatMap((folder) =>
      ["skill", "skills"].map((name) => ({ path: join(folder.path, name), ...limited(folder) })),
    ),
    ...(sources.paths ?? []).flatMap((path) => configuredPlaces(path, sources)),
  ];
}

function configuredPlaces(path: string, { cwd, root, home }: SkillSources): SkillPlace[] {
  if (path.startsWith("~/")) return [{ path: join(home, path.slice(2)) }];
  if (isAbsolute(path)) return [{ path }];
  return downTo({ cwd, worktree: root }).map((folder) => ({ path: join(folder, path), within: root }));
}

/** Real paths, each once, where it is found last. */
async function skillFiles(places: readonly SkillPlace[], report: Report): Promise<string[]> {
  const wanted = (name: string) => name === "SKILL.md";
  const found = await Promise.all(
    places.map(({ path, within }) => filesBelow(path, { wanted, within, report })),
  );
  const real = await Promise.all(found.flat().map((path) => realpath(path)));
  const files = real.filter((path, index) => real.lastIndexOf(path) === index);
  if (files.length > skillsLimit)
    report("skills", `${files.length} skills were found; only the first ${skillsLimit} are used`);
  return files.slice(0, skillsLimit);
}

async function readSkill(path: string, report: Report): Promise<Skill | undefined> {
  try {
    const { settings, note } = await readMarkdownFile(path);
    const folder = dirname(path);
    if (note !== undefined) report(path, note);
    const named = repaired({ name: basename(folder), ...settings }, path, report);
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

/** A name that cannot be used becomes the folder's, or is spelled in another way; a long description is cut. */
function repaired(settings: Record<string, unknown>, path: string, report: Report): Record<string, unknown> {
  const { name, description } = settings;
  const own = basename(dirname(path));
  const usable = [name, own, slugOf(own), slugOf(String(name))].find(isName) ?? name;
  if (usable !== name)
    report(path, `its name "${String(name)}" cannot be used; it is called "${String(usable)}"`);
  return { ...settings, name: usable, description: cutDescription(description, path, report) };
}

function cutDescription(description: unknown, path: string, report: Report): unknown {
  if (typeof description !== "string") return description;
  const line = description.replaceAll(/\s+/g, " ").trim();
  if (line.length <= skillDescriptionLimit) return line;
  report(path, `its description is longer than ${skillDescriptionLimit} characters; the model sees so many`);
  // A pair of surrogates is not cut in two.
  return `${line.slice(0, skillDescriptionLimit - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

function isName(name: unknown): name is string {
  return skillFrontMatterSchema.shape.name.safeParse(name).success;
}

/** `My Skill (new)` as `my-skill-new`. */
function slugOf(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_.:]+/gu, "-")
    .replaceAll(/^[^\p{L}\p{N}]+|-+$/gu, "");
}
