import { mkdir, symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { BundledSkills } from "../../../src/skill/bundled-skills.ts";
import { loadSkills, type SkillSources } from "../../../src/skill/skills.ts";
import { skillTool } from "../../../src/tool/skill.ts";
import { temporaryFolder, type TemporaryFolder } from "../../support/temp.ts";
import { call, toolPlace } from "../../tool/tool-place.ts";

const skill = (name: string, description: string, body = "Do it.") =>
  `---\nname: ${name}\ndescription: ${description}\n---\n${body}\n`;

/** A home and a repository `repo`, with the session in `repo/app`. */
function sources({ path }: TemporaryFolder, more: Partial<SkillSources> = {}): SkillSources {
  const root = join(path, "repo");
  return {
    bundled: { folder: join(path, "bundled"), load: () => Promise.resolve([]) },
    otherFolders: [
      { path: join(path, "home/.claude"), scope: "home" },
      { path: join(root, ".claude"), scope: "project" },
    ],
    folders: [{ path: join(root, ".opencode"), scope: "project" }],
    cwd: join(root, "app"),
    root,
    home: join(path, "home"),
    ...more,
  };
}

test("skills come from every folder, later ones override, and that is reported", async () => {
  await using folder = await temporaryFolder({
    "bundled/review/SKILL.md": skill("review", "Bundled."),
    "home/.claude/skills/mine/SKILL.md": skill("mine", "At home."),
    "home/.claude/skills/review/SKILL.md": skill("review", "At home."),
    "repo/.claude/skills/mine/SKILL.md": skill("mine", "In the project."),
    "repo/.opencode/skill/deep/er/SKILL.md": "---\ndescription: >\n  Two\n  lines.\n---\nText.",
    "repo/extra/one/SKILL.md": skill("one", "By a path."),
    "home/own/two/SKILL.md": skill("two", "By a path at home."),
  });
  const { skills, problems } = await loadSkills(sources(folder, { paths: ["extra", "~/own"] }));
  expect(skills.map(({ name, description }) => `${name}: ${description}`)).toEqual([
    "er: Two lines.",
    "mine: In the project.",
    "one: By a path.",
    "review: At home.",
    "two: By a path at home.",
  ]);
  const path = (name: string) => join(folder.path, name, ".claude/skills/mine/SKILL.md");
  expect(problems).toEqual([
    { path: path("repo"), message: `is used; the skill "mine" of ${path("home")} is not` },
  ]);
});

test("unreadable bundled skills are reported and the others are loaded", async () => {
  await using folder = await temporaryFolder({ "home/.claude/skills/a/SKILL.md": skill("a", "Fine.") });
  const bundled = new BundledSkills(join(folder.path, "bundled"));
  const { skills, problems } = await loadSkills(sources(folder, { bundled }));
  expect(skills.map(({ name }) => name)).toEqual(["a"]);
  expect(problems).toEqual([
    {
      path: bundled.folder,
      message: expect.stringMatching(/cannot read the bundled skills \(ENOENT.*reinstall Fairlead$/),
    },
  ]);
});

test("an invalid skill is reported and does not affect the others", async () => {
  await using folder = await temporaryFolder({
    "home/.claude/skills/a/SKILL.md": skill("a", "Fine."),
    "home/.claude/skills/b/SKILL.md": "---\nname: b\n---\nNo description.",
    "home/.claude/skills/c/SKILL.md": skill("two words", "Bad name."),
    "home/.claude/skills/d/SKILL.md": "---\n: [\n---\n",
    "home/.claude/skills/e/SKILL.md": "x".repeat(300_000),
  });
  const { skills, problems } = await loadSkills(sources(folder));
  expect(skills.map(({ name }) => name)).toEqual(["a", "c"]);
  expect(problems.map(({ message }) => message)).toEqual([
    expect.stringContaining("description:"),
    'its name "two words" is invalid; renamed to "c"',
    expect.stringContaining("the front matter cannot be read"),
    expect.stringContaining("has 300000 bytes"),
  ]);
});

test("links of a project stay inside it, the user's own may lead outside", async () => {
  await using folder = await temporaryFolder({
    "elsewhere/private/SKILL.md": skill("private", "Not the project's."),
    "elsewhere/shared/SKILL.md": skill("shared", "The user's."),
  });
  await mkdir(join(folder.path, "repo/.claude/skills"), { recursive: true });
  await mkdir(join(folder.path, "home/.claude/skills"), { recursive: true });
  await symlink(join(folder.path, "elsewhere/private"), join(folder.path, "repo/.claude/skills/private"));
  await symlink(join(folder.path, "elsewhere/shared"), join(folder.path, "home/.claude/skills/shared"));
  await symlink(folder.path, join(folder.path, "home/.claude/skills/round"));
  const { skills, problems } = await loadSkills(sources(folder));
  expect(skills.map(({ name }) => name)).toContain("shared");
  expect(problems).toContainEqual({
    path: join(folder.path, "repo/.claude/skills/private"),
    message: `leads out of ${join(folder.path, "repo")} and is ignored`,
  });
});

test("no more skills are used than the limit", async () => {
  const names = Array.from({ length: 301 }, (_, index) => `skill-${String(index).padStart(3, "0")}`);
  await using folder = await temporaryFolder(
    Object.fromEntries(names.map((name) => [`home/.claude/skills/${name}/SKILL.md`, skill(name, "One.")])),
  );
  const { skills, problems } = await loadSkills(sources(folder));
  expect(skills).toHaveLength(300);
  expect(problems).toEqual([{ path: "skills", message: "301 skills found; only the first 300 are used" }]);
});

test("the bundled skills are complete", async () => {
  await using folder = await temporaryFolder();
  const bundled = new BundledSkills(resolve(import.meta.dirname, "../../../skills"));
  const { skills, problems } = await loadSkills(sources(folder, { bundled }));
  expect(skills.map(({ name }) => name)).toEqual([
    "code-review",
    "configure-fairlead",
    "write-agent-or-skill",
  ]);
  expect(problems).toEqual([]);
});

test("the tool returns the text, the folder and up to ten file names", async () => {
  await using place = await toolPlace({
    "skills/big/SKILL.md": skill("big", "Big.", "Read a/0.md first."),
    ...Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`skills/big/a/${index}.md`, "x"])),
  });
  const path = place.path("skills/big/SKILL.md");
  const big = { name: "big", description: "Big.", path, folder: place.path("skills/big") };
  const tool = skillTool({ skills: [big] });
  const { output } = await call(tool, { name: "big" }, place);
  expect(output).toBe(
    [
      '<skill name="big">',
      "Read a/0.md first.",
      "</skill>",
      "",
      `Its folder is ${big.folder}; relative paths in it start there. Its files:`,
      ...[0, 1, 10, 11, 2, 3, 4, 5, 6, 7].map((number) => `- a/${number}.md`),
      "(and 2 more)",
    ].join("\n"),
  );
  const prepared = await tool.prepare({ name: "big" }, place.context);
  expect(prepared.permissions).toEqual([
    { permission: "skill", subjects: [{ text: "big" }], always: ["big"] },
  ]);
  await expect(tool.prepare({ name: "small" }, place.context)).rejects.toThrow(
    'There is no skill "small". Skills: big.',
  );
});
