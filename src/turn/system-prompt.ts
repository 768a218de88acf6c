import claude from "../../prompts/families/claude.md";
import codex from "../../prompts/families/codex.md";
import gemini from "../../prompts/families/gemini.md";
import gpt from "../../prompts/families/gpt.md";
import other from "../../prompts/families/other.md";
import type { Agent } from "../agent/agent.ts";
import { memoizePer } from "../base/memoize.ts";
import type { Instruction } from "../instruction/instructions.ts";
import type { GivenPrompt } from "../message/message.ts";
import type { Model } from "../model/model.ts";

/** Skills that the model is told of; it hears how many more there are. */
export const SKILLS_LIMIT = 200;
/** Characters of one skill's description. */
const SKILL_DESCRIPTION_LIMIT = 500;

const FAMILY_PROMPTS: Readonly<Record<Model["family"], string>> = { claude, gpt, codex, gemini, other };

interface Environment {
  readonly cwd: string;
  readonly isGit: boolean;
  readonly platform: string;
  /** The day without the time: anything finer would spoil the provider's cache with every turn. */
  readonly date: string;
  readonly additionalDirectories: readonly string[];
  readonly modelName: string;
}

export interface SystemPromptInput {
  readonly agent: Pick<Agent, "prompt">;
  readonly family: Model["family"];
  readonly environment: Environment;
  readonly skills: readonly { name: string; description: string }[];
  readonly instructions: readonly Instruction[];
  /** Of the client, for the whole session. */
  readonly given?: GivenPrompt | undefined;
  /** Further system text of the message that is answered. */
  readonly system?: string;
}

/**
 * The system prompt in blocks, from what changes least to what changes most, so that a provider's cache of the
 * beginning stays good. The same input gives the same text.
 */
export function buildSystemPrompt(input: SystemPromptInput): string[] {
  const blocks = [
    mainBlock(input),
    environmentBlock(input.environment),
    skillsBlock(input.skills),
    instructionsBlock(input.instructions),
    input.given?.mode === "append" ? input.given.text.trim() : "",
    input.system?.trim() ?? "",
  ];
  return blocks.filter((block) => block !== "");
}

function mainBlock({ agent, family, given }: SystemPromptInput): string {
  if (given?.mode === "override") return given.text.trim();
  return agent.prompt?.trim() || FAMILY_PROMPTS[family].trim();
}

function environmentBlock(environment: Environment): string {
  const { cwd, isGit, platform, date, additionalDirectories, modelName } = environment;
  const lines = [
    "# Environment",
    "",
    `Working directory: ${cwd}`,
    `Inside a git repository: ${isGit ? "yes" : "no"}`,
    `Platform: ${platform}`,
    `Date: ${date}`,
    `Model: ${modelName}`,
  ];
  if (additionalDirectories.length > 0) {
    lines.push("Further directories of this project:", ...additionalDirectories.map((path) => `- ${path}`));
  }
  return lines.join("\n");
}

const cachedBlocks = memoizePer<string>();

function skillsBlock(skills: SystemPromptInput["skills"]): string {
  return skills.length === 0 ? "" : cachedBlocks(skills, [], () => listSkills(skills));
}

function listSkills(skills: SystemPromptInput["skills"]): string {
  const lines = skills
    .slice(0, SKILLS_LIMIT)
    .map(({ name, description }) => `- ${name}: ${shorten(description)}`);
  const rest = skills.length - SKILLS_LIMIT;
  if (rest > 0) lines.push(`(${rest} more skills are not listed.)`);
  return [
    "# Skills",
    "",
    "Load one with the skill tool when its description fits the request.",
    "",
    ...lines,
  ].join("\n");
}

function shorten(description: string): string {
  const line = description.replaceAll(/\s+/g, " ").trim();
  if (line.length <= SKILL_DESCRIPTION_LIMIT) return line;
  return `${line.slice(0, SKILL_DESCRIPTION_LIMIT)}… (cut)`;
}

function instructionsBlock(instructions: readonly Instruction[]): string {
  if (instructions.length === 0) return "";
  const files = instructions.map(({ path, text }) => `## From ${path}\n\n${text.trim()}`);
  const introduction =
    "What the person and the project want of you. Where two of these differ, the later one counts; what the person asks in the conversation counts more.";
  return ["# Instructions", introduction, ...files].join("\n\n");
}
