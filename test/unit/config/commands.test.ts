import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type CommandSources, loadCommands } from "../../../src/command/commands.ts";
import { type FilledPart, fillTemplate } from "../../../src/command/template.ts";
import { listCommands, parseCommand, reservedNames } from "../../../src/slash-commands/commands.ts";
import { temporaryFolder, type TemporaryFolder } from "../../support/temp.ts";

const text = (filled: readonly FilledPart[]) =>
  filled.map((piece) => (piece.kind === "text" ? piece.text : `<${piece.kind}>`)).join("");

const shells = (filled: readonly FilledPart[]) =>
  filled.flatMap((piece) => (piece.kind === "shell" ? [piece.command] : []));

const paths = (filled: readonly FilledPart[]) =>
  filled.flatMap((piece) => (piece.kind === "file" ? [piece.path] : []));

describe("a template", () => {
  test("fills in all or single arguments; the highest number takes the remaining ones", () => {
    expect(text(fillTemplate("Say $ARGUMENTS!", "a b"))).toBe("Say a b!");
    expect(text(fillTemplate("$1 then $2.", 'one "two three" four'))).toBe("one then two three four.");
    expect(text(fillTemplate("$1|$2|$3", "one"))).toBe("one||");
  });

  test("ends with the arguments if it has no place for them", () => {
    expect(text(fillTemplate("Do it.", "now"))).toBe("Do it.\n\nnow");
    expect(fillTemplate("See !`git log $1`", "v1").map(({ kind }) => kind)).toEqual(["text", "shell"]);
    expect(fillTemplate("See !`git log`", "v1").map(({ kind }) => kind)).toEqual(["text", "shell", "text"]);
    expect(text(fillTemplate("Do it.", ""))).toBe("Do it.");
  });

  test("is read once: arguments are not searched for commands, files or placeholders", () => {
    const filled = fillTemplate("echo $ARGUMENTS", "!`touch x` @secret $1 $ARGUMENTS");
    expect(filled).toEqual([
      { kind: "text", text: "echo " },
      { kind: "text", text: "!`touch x` @secret $1 $ARGUMENTS" },
    ]);
    expect(shells(fillTemplate("!$1touch x$1", "`"))).toEqual([]);
  });

  test("lists its command lines, which get arguments as values only", () => {
    expect(shells(fillTemplate("Look: !`git log -3`", "x"))).toEqual(["git log -3"]);
    expect(shells(fillTemplate('!`git show "$1"`', "it's; touch x"))).toEqual([
      `ARGUMENTS='it'\\''s; touch x'; set -- 'it'\\''s;' 'touch' 'x'; git show "$1"`,
    ]);
  });

  test("lists its files, with arguments in their paths, and ignores addresses", () => {
    expect(paths(fillTemplate("See @docs/a.md, (@src/$1.ts) and @b.md.", "main"))).toEqual([
      "docs/a.md",
      "src/main.ts",
      "b.md",
    ]);
    expect(paths(fillTemplate("Write to me@example.com or `@x`", ""))).toEqual([]);
  });

  test("stays within its limit", () => {
    const filled = text(fillTemplate("$ARGUMENTS ".repeat(100), "x".repeat(10_000)));
    expect(filled).toHaveLength(500_000 + "\n[Cut after 500000 characters.]".length);
  });
});

function sources({ path }: TemporaryFolder, more: Partial<CommandSources> = {}): CommandSources {
  return {
    configured: {},
    folders: [
      { path: join(path, "home/.claude"), scope: "home" },
      { path: join(path, "repo/.opencode"), scope: "project" },
    ],
    isTrusted: false,
    root: join(path, "repo"),
    agents: new Set(["build", "plan"]),
    reserved: reservedNames,
    ...more,
  };
}

describe("commands", () => {
  test("come from the configuration and from files; later ones override", async () => {
    await using folder = await temporaryFolder({
      "home/.claude/commands/fix.md":
        "---\ndescription: Fix it\nargument-hint: [issue] [priority]\nallowed-tools: Bash\nmodel: sonnet\n---\nFix $1.",
      "repo/.opencode/command/git/commit.md":
        "---\ndescription: Commit\nagent: plan\nmodel: test/small\nvariant: high\n---\nCommit.",
    });
    const configured = { fix: { template: "Old." }, hello: { template: "Say hello to $ARGUMENTS" } };
    expect(await loadCommands(sources(folder, { configured }))).toEqual({
      commands: [
        {
          name: "fix",
          description: "Fix it",
          hint: "[issue] [priority]",
          template: "Fix $1.",
        },
        {
          name: "git/commit",
          description: "Commit",
          agent: "plan",
          isUntrusted: true,
          model: { provider: "test", model: "small", variant: "high" },
          template: "Commit.",
        },
        {
          name: "hello",
          description: "Say hello to $ARGUMENTS",
          hint: "arguments",
          template: "Say hello to $ARGUMENTS",
        },
      ],
      problems: [],
    });
  });

  test("with errors report them and keep the valid part", async () => {
    await using folder = await temporaryFolder({
      "repo/.opencode/commands/a.md": "---\nagent: nobody\nmodel: small model\nsubtask: true\n---\nA.",
      "repo/.opencode/commands/b.md": "---\ndescription: 3\n---\nB.",
      "repo/.opencode/commands/empty.md": "---\ndescription: Empty\n---\n",
      "repo/.opencode/commands/two words.md": "C.",
      "repo/.opencode/commands/undo.md": "D.",
    });
    const { commands, problems } = await loadCommands(sources(folder));
    expect(commands.map(({ name, agent, model }) => ({ name, agent, model }))).toEqual([
      { name: "a", agent: undefined, model: undefined },
      { name: "b", agent: undefined, model: undefined },
    ]);
    expect(problems.map(({ message }) => message)).toEqual([
      expect.stringContaining("description: "),
      'agent not found: "nobody"; the session\'s agent is used',
      'model: "small model" is not of the form provider/model; the session\'s model is used',
      "it has no text; ignored",
      "the name contains a space; ignored",
      "/undo is a built-in command; ignored",
    ]);
  });

  test("of a project run nothing until it is trusted; the user's own may", async () => {
    await using folder = await temporaryFolder({
      "home/.claude/commands/mine.md": "!`git status`",
      "repo/.opencode/command/theirs.md": "!`git status`",
    });
    const names = async (isTrusted: boolean) =>
      (await loadCommands(sources(folder, { isTrusted }))).commands.map(({ name }) => name);
    expect(await names(false)).toEqual(["mine"]);
    expect(await names(true)).toEqual(["mine", "theirs"]);
  });

  test("are listed with skills; one from a file may replace a built-in prompt", () => {
    const review = { name: "review", description: "Ours", template: "Our review." };
    const place = { path: "/s/SKILL.md", folder: "/s" };
    const skills = ["review", "release"].map((name) => ({ name, description: "A skill", ...place }));
    const commands = listCommands({ commands: [review], skills });
    expect(commands.filter(({ name }) => name === "review")).toMatchObject([{ description: "Ours" }]);
    expect(parseCommand("/release  now \n", commands)).toMatchObject({
      command: { name: "release", effect: { kind: "skill", skill: "release" } },
      typed: "now",
    });
    expect(parseCommand("/releases", commands)).toBeUndefined();
    expect(parseCommand("/ release", commands)).toBeUndefined();
    expect(parseCommand("see /release", commands)).toBeUndefined();
  });
});
