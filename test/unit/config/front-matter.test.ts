import { describe, expect, test } from "vitest";
import { parseMarkdown } from "../../../src/config/files/markdown.ts";
import { convertForeignAgent } from "../../../src/agent/other-agent.ts";
import { loadSkills } from "../../../src/skill/skills.ts";
import { temporaryFolder } from "../../support/temp.ts";

/** The case, the file, its settings, and whether a note reports a problem. */
type Case = readonly [shows: string, text: string, settings: Record<string, unknown>, isNoted: boolean];

const conversation = [
  "Use this agent after code was written. Examples:",
  "",
  "<example>",
  "Context: The user wrote a function.",
  'user: "Please look at it: now"',
  'assistant: "I use the agent."',
  "<commentary>",
  "The agent reviews: always.",
  "</commentary>",
  "</example>",
].join("\n");

const cases: readonly Case[] = [
  ["plain keys", "---\nname: a\nsteps: 3\n---\nBody", { name: "a", steps: 3 }, false],
  ["a byte order mark", "\uFEFF---\nname: a\n---\nBody", { name: "a" }, false],
  ["blank lines above", "\n  \n---\nname: a\n---\nBody", { name: "a" }, false],
  ["CRLF", "---\r\nname: a\r\ntools: Read, Grep\r\n---\r\nBody", { name: "a", tools: "Read, Grep" }, false],
  ["blanks after the dashes", "---  \nname: a\n---\t\nBody", { name: "a" }, false],
  [
    "a colon in a value",
    "---\ndescription: Use it when: needed\n---\nBody",
    { description: "Use it when: needed" },
    false,
  ],
  [
    "a colon in a value, with CRLF",
    "---\r\ndescription: Use it: now\r\n---\r\nBody",
    { description: "Use it: now" },
    false,
  ],
  [
    "brackets in a value",
    "---\nargument-hint: [file] [line]\n---\nBody",
    { "argument-hint": "[file] [line]" },
    false,
  ],
  [
    "a sign that YAML reserves",
    "---\ndescription: `code` first\n---\nBody",
    { description: "`code` first" },
    false,
  ],
  [
    "a value that goes on unindented",
    "---\nname: a\ndescription: One\ntwo three\nmodel: m\n---\nBody",
    { name: "a", description: "One\ntwo three", model: "m" },
    true,
  ],
  [
    "a conversation as description",
    `---\nname: a\ndescription: ${conversation}\nmodel: inherit\ncolor: blue\n---\nBody`,
    { name: "a", description: conversation, model: "inherit", color: "blue" },
    true,
  ],
  [
    "the same with CRLF",
    `---\nname: a\ndescription: ${conversation}\nmodel: inherit\n---\nBody`.replaceAll("\n", "\r\n"),
    { name: "a", description: conversation, model: "inherit" },
    true,
  ],
  [
    "quotes that are not closed",
    '---\nname: a\ndescription: "Say\n---\nBody',
    { name: "a", description: '"Say' },
    true,
  ],
  [
    "a quote inside of quotes",
    '---\nname: a\ndescription: "Say "yes" now"\n---\nBody',
    { name: "a", description: 'Say "yes" now' },
    true,
  ],
  [
    "tabs as indentation",
    "---\nname: a\npermission:\n\tbash: deny\n---\nBody",
    { name: "a", permission: { bash: "deny" } },
    true,
  ],
  [
    "a list beside a broken value",
    "---\ntools:\n  - Read\n  - Grep\ndescription: [a\n---\nBody",
    { tools: ["Read", "Grep"], description: "[a" },
    true,
  ],
  ["a key twice", "---\nname: a\nname: b\n---\nBody", { name: "b" }, true],
  [
    "a block text beside a broken value",
    "---\ndescription: |\n  One\n  two\nname: {a\n---\nBody",
    { description: "One\ntwo\n", name: "{a" },
    true,
  ],
  [
    "no end, then a blank line",
    "---\nname: a\ndescription: b\n\nBody",
    { name: "a", description: "b" },
    true,
  ],
  ["no end, then a heading", "---\nname: a\n# Title\nBody", { name: "a" }, true],
  [
    "comments and unknown keys",
    "---\n# note\nname: a\nx-own: 1\n---\nBody",
    { name: "a", "x-own": 1 },
    false,
  ],
  ["a key without a value", "---\nname: a\nmodel:\n---\nBody", { name: "a", model: null }, false],
  ["a rule in the text, no front matter", "Body\n\n---\n\nMore", {}, false],
];

test.each(cases)("front matter with %s is parsed", (_shows, text, settings, isNoted) => {
  const file = parseMarkdown(text);
  expect(file.settings).toEqual(settings);
  expect(file.note !== undefined).toBe(isNoted);
  expect(file.body).toContain("Body");
});

test.each(["---\na: [1\n---\nBody", "---js\n{ a: process.exit(1) }\n---\nBody", "---\n- a\n- b\n---\nBody"])(
  "front matter without a usual key is rejected: %j",
  (text) => {
    expect(() => parseMarkdown(text)).toThrow("the front matter cannot be read");
  },
);

test.each([
  ["Read, Grep", "edit"],
  ["[Read, Grep]", "edit"],
  ["- Read\n- Grep", "edit"],
  ["Read\nGrep\n", "edit"],
  ["Bash(git *), Read", "edit"],
  [["Read", "Grep"], "edit"],
])("a list of tools written as %j denies the others", (tools, denied) => {
  expect(convertForeignAgent({ tools })).toMatchObject({ permission: { [denied]: "deny" } });
  expect(convertForeignAgent({ tools })).not.toMatchObject({ permission: { read: "deny" } });
});

describe("a skill", () => {
  const load = async (files: Record<string, string>) => {
    const folder = await temporaryFolder(files);
    const loaded = await loadSkills({
      bundled: { folder: folder.path, load: () => Promise.resolve([]) },
      otherFolders: [],
      folders: [{ path: folder.path, scope: "home" }],
      cwd: folder.path,
      root: folder.path,
      home: folder.path,
    });
    await folder[Symbol.asyncDispose]();
    return loaded;
  };

  test.each([
    ["my-skill", "name: My Skill", "my-skill"],
    ["My Folder", "name: My Skill (new)", "my-folder"],
    ["two", "name: 'a/b'", "two"],
    ["three", `name: ${"x".repeat(65)}`, "three"],
    ["four", "name: 4", "four"],
    ["five", "name: '-'", "five"],
  ])("in the folder %s with %s is named %s, with a note", async (folder, name, called) => {
    const { skills, problems } = await load({
      [`skills/${folder}/SKILL.md`]: `---\n${name}\ndescription: D\n---\nBody`,
    });
    expect(skills.map((skill) => skill.name)).toEqual([called]);
    expect(problems.map(({ message }) => message)).toEqual([
      expect.stringMatching(new RegExp(`is invalid; renamed to "${called}"$`)),
    ]);
  });

  test("keeps a name with uppercase letters", async () => {
    const { skills, problems } = await load({
      "skills/a/SKILL.md": "---\nname: PDF_Tools\ndescription: D\n---\nBody",
    });
    expect([skills.map(({ name }) => name), problems]).toEqual([["PDF_Tools"], []]);
  });

  test("truncates a description that is too long, and reports it", async () => {
    const { skills, problems } = await load({
      "skills/a/SKILL.md": `---\ndescription: ${"word ".repeat(300)}\n---\nBody`,
    });
    expect(skills[0]?.description).toHaveLength(1_024);
    expect(skills[0]?.description).toMatch(/^word word .*…$/);
    expect(problems.map(({ message }) => message)).toEqual([
      "its description is longer than 1024 characters and was truncated",
    ]);
  });

  test("ignores a skill without a description, and reports it", async () => {
    const { skills, problems } = await load({ "skills/a/SKILL.md": "---\nname: a\n---\nBody" });
    expect([skills, problems.length]).toEqual([[], 1]);
  });
});
