import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { SKILLS_LIMIT, buildSystemPrompt, type SystemPromptInput } from "../../../src/turn/system-prompt.ts";

const familyPrompt = (family: string) =>
  readFileSync(resolve(import.meta.dirname, `../../../prompts/families/${family}.md`), "utf8").trim();

const input: SystemPromptInput = {
  agent: {},
  family: "claude",
  environment: {
    cwd: "/work/shop",
    isGit: true,
    platform: "linux",
    date: "Mon Mar 02 2026",
    additionalDirectories: [],
    modelName: "Scripted",
  },
  skills: [],
  instructions: [],
};

const environmentBlock = `# Environment

Working directory: /work/shop
Inside a git repository: yes
Platform: linux
Date: Mon Mar 02 2026
Model: Scripted`;

test("without anything else the prompt is the family's and the environment", () => {
  expect(buildSystemPrompt(input)).toEqual([familyPrompt("claude"), environmentBlock]);
});

test("each family has its own prompt", () => {
  const families = ["claude", "gpt", "codex", "gemini", "open", "small"] as const;
  const prompts = families.map((family) => buildSystemPrompt({ ...input, family })[0]);
  expect(prompts).toEqual(families.map(familyPrompt));
  expect(new Set(prompts).size).toBe(families.length);
});

test("an agent's own prompt replaces the family's", () => {
  expect(buildSystemPrompt({ ...input, agent: { prompt: "You review.\n" } })).toEqual([
    "You review.",
    environmentBlock,
  ]);
});

test("orders its blocks: agent, environment, skills, instructions, the message's own", () => {
  const blocks = buildSystemPrompt({
    ...input,
    agent: { prompt: "You review." },
    environment: { ...input.environment, isGit: false, additionalDirectories: ["/work/api", "/work/web"] },
    skills: [
      { name: "pdf", description: "Reads\n  PDF files." },
      { name: "release", description: "Cuts a release." },
    ],
    instructions: [
      { path: "/work/AGENTS.md", text: "Use pnpm.\n" },
      { path: "/work/shop/AGENTS.md", text: "Prices are in cents." },
    ],
    system: "  Answer in French. ",
  });
  expect(blocks).toEqual([
    "You review.",
    `# Environment

Working directory: /work/shop
Inside a git repository: no
Platform: linux
Date: Mon Mar 02 2026
Model: Scripted
Further directories of this project:
- /work/api
- /work/web`,
    `# Skills

Load one with the skill tool when its description fits the request.

- pdf: Reads PDF files.
- release: Cuts a release.`,
    `# Instructions

Instructions of the user and the project. If two of them conflict, follow the later one; what the user asks in the conversation takes precedence.

## From /work/AGENTS.md

Use pnpm.

## From /work/shop/AGENTS.md

Prices are in cents.`,
    "Answer in French.",
  ]);
});

test("long lists of skills and long descriptions are cut and say so", () => {
  const skills = Array.from({ length: SKILLS_LIMIT + 2 }, (_, index) => ({
    name: `skill-${index}`,
    description: index === 0 ? "x".repeat(501) : "Short.",
  }));
  const lines = buildSystemPrompt({ ...input, skills })[2]?.split("\n") ?? [];
  expect(lines.at(4)).toBe(`- skill-0: ${"x".repeat(500)}… (cut)`);
  expect(lines.at(-2)).toBe(`- skill-${SKILLS_LIMIT - 1}: Short.`);
  expect(lines.at(-1)).toBe("(2 more skills are not listed.)");
});

test("the same input gives the same text, so that a provider's cache stays good", () => {
  expect(buildSystemPrompt(structuredClone(input))).toEqual(buildSystemPrompt(input));
});

test("instructions of MCP servers are bounded, each and together", () => {
  const servers = ["a", "b", "c", "d"].map((name) => ({ name, text: name.repeat(2_500) }));
  const block = buildSystemPrompt({ ...input, servers }).at(-1) ?? "";
  expect(["a", "b", "c", "d"].map((name) => block.includes(name.repeat(1_999)))).toEqual([
    true,
    true,
    true,
    false,
  ]);
  expect(block).not.toContain("a".repeat(2_001));
  expect(block).toContain("## From the server d\n\n… (cut)");
});
