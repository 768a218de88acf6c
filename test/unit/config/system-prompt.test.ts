import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { joinBlocks } from "../../../src/turn/frozen-prompts.ts";
import { buildSystemBlocks, type SystemPromptInput } from "../../../src/turn/system-prompt.ts";

const buildSystemPrompt = (prompt: SystemPromptInput): string[] => joinBlocks(buildSystemBlocks(prompt));

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

test("an empty project has the family's prompt and the environment", () => {
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

test("orders its blocks: agent, environment, skills, instructions", () => {
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
  ]);
});

test("descriptions of skills are truncated, with a note", () => {
  const skills = [{ name: "long", description: "x".repeat(501) }];
  const lines = buildSystemPrompt({ ...input, skills })[2]?.split("\n") ?? [];
  expect(lines.at(-1)).toBe(`- long: ${"x".repeat(500)}… (cut)`);
});

describe("in a window of 32k tokens", () => {
  const window = 32_768;

  test("many skills have short descriptions", () => {
    const skills = Array.from({ length: 20 }, (_, at) => ({ name: `s${at}`, description: "x".repeat(100) }));
    const block = buildSystemPrompt({ ...input, window, skills })[2] ?? "";
    expect(block).toContain(`- s19: ${"x".repeat(60)}… (cut)`);
    expect(block).not.toContain("not listed");
  });

  test("further skills are counted, with how to find them", () => {
    const skills = Array.from({ length: 300 }, (_, at) => ({ name: `s${at}`, description: "Short." }));
    const block = buildSystemPrompt({ ...input, window, skills })[2] ?? "";
    expect(block.length).toBeLessThan(2_500);
    const listed = block.match(/^- s/gm)?.length ?? 0;
    expect(listed).toBeGreaterThan(50);
    expect(block).toContain(`(${300 - listed} more skills are not listed. To find one, call the skill tool`);
  });

  test("instructions have a tenth of it", () => {
    const instructions = [{ path: "/work/AGENTS.md", text: "A rule.\n".repeat(5_000) }];
    const block = buildSystemPrompt({ ...input, window, instructions }).at(-1) ?? "";
    expect(block.length).toBeLessThan(10_500);
    expect(block).toMatch(/\[Cut after \d+ bytes, to save context\. Read \/work\/AGENTS\.md/);
    expect(buildSystemPrompt({ ...input, instructions }).at(-1)).not.toContain("[Cut");
  });
});

test("the same input gives the same text, for the provider's cache", () => {
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
