import { titleOfObject } from "../base/text/call-titles.ts";
import { realpath } from "node:fs/promises";
import { relative } from "node:path";
import { z } from "zod";
import description from "../../prompts/tools/skill.md";
import { messageOf } from "../base/errors.ts";
import { excerpt } from "../base/text/excerpt.ts";
import { findFiles } from "../config/files/folder-walk.ts";
import { readMarkdownFile } from "../config/files/markdown-file.ts";
import type { Skill, StoredSkill } from "../skill/skill.ts";
import { toSlashes } from "../base/files/paths.ts";
import { defineTool, type Tool, ToolFailure, type ToolResult } from "./tool.ts";

/** File names listed with a skill. */
const filesLimit = 10;
/** Characters of the names that are listed for an unknown skill, and of that skill's own name. */
const namesLimit = 300;
const nameLimit = 80;

const inputSchema = z.object({ name: z.string().describe("The skill's name, as it is listed.") });

/** Loads one of the skills. */
export function skillTool({ skills }: { skills: readonly Skill[] }): Tool {
  return defineTool({
    name: "skill",
    otherNames: ["load_skill", "use_skill", "activate_skill"],
    aliases: {
      name: ["skill", "skill_name"],
    },
    description,
    input: inputSchema,
    kind: "read",
    concurrency: "shared",
    async prepare({ name }) {
      const skill = skills.find((one) => one.name === name);
      if (skill === undefined) throw new ToolFailure(unknownSkill(name, skills));
      return {
        title: titleOfObject("Load the skill", name),
        locations: "path" in skill ? [{ path: skill.path }] : [],
        permissions: [{ permission: "skill", subjects: [{ text: name }], always: [name] }],
        run: async () => ("path" in skill ? loadSkill(skill) : createResult(skill, skill.text, givenNote)),
      };
    },
  });
}

const givenNote = "The user's editor gave this skill for the session; it has no files.";

async function loadSkill(skill: StoredSkill): Promise<ToolResult> {
  const body = await readBody(skill);
  const files = await findFiles(skill.folder, { wanted: () => true, within: skill.folder });
  const names = files
    .filter((path) => path !== skill.path)
    .map((path) => toSlashes(relative(skill.folder, path)));
  return createResult(skill, body, describeFolder(skill, names).join("\n"));
}

function createResult({ name }: Skill, body: string, notes: string): ToolResult {
  const output = [`<skill name="${name}">`, body, "</skill>"].join("\n");
  return { status: "completed", output, notes };
}

/** Reads the current text, but follows no link that replaced the file meanwhile. */
async function readBody({ path }: StoredSkill): Promise<string> {
  try {
    if ((await realpath(path)) !== path) throw new ToolFailure("it is now a link to another place");
    return (await readMarkdownFile(path)).body;
  } catch (thrown) {
    const message = `${path} cannot be read: ${messageOf(thrown)}. Go on without it.`;
    throw new ToolFailure(message, { cause: thrown });
  }
}

function describeFolder({ folder }: StoredSkill, names: readonly string[]): string[] {
  const head = `Its folder is ${folder}; relative paths in it start there.`;
  if (names.length === 0) return [head];
  const rest = names.length - filesLimit;
  return [
    `${head} Its files:`,
    ...names.slice(0, filesLimit).map((name) => `- ${name}`),
    ...(rest > 0 ? [`(and ${rest} more)`] : []),
  ];
}

/** Lists the skills that have a word of the name in their name or description, or else the first skills. */
function unknownSkill(name: string, skills: readonly Skill[]): string {
  const lead = `There is no skill "${excerpt(name, nameLimit)}".`;
  if (skills.length === 0) return `${lead} No skills exist here. Go on without one.`;
  const words = name.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? [];
  const matching = skills.filter((skill) => {
    const text = `${skill.name} ${skill.description}`.toLowerCase();
    return words.some((word) => text.includes(word));
  });
  const isMatch = matching.length > 0;
  const listed = listNames(isMatch ? matching : skills);
  return `${lead} ${isMatch ? "Skills that match" : "Skills"}: ${listed}. Call skill with one of these names, or go on without one.`;
}

function listNames(skills: readonly Skill[]): string {
  const names: string[] = [];
  let left = namesLimit;
  for (const skill of skills) {
    left -= skill.name.length + 2;
    if (left < 0) break;
    names.push(skill.name);
  }
  const rest = skills.length - names.length;
  return rest > 0 ? `${names.join(", ")} and ${rest} more` : names.join(", ");
}
