import { readdir } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { expectGoldenText } from "../support/wire/golden.ts";
import { storiesOfOneAgent } from "../support/editor/story.ts";
import { countReminderTokens, countRequestTokens, getBudget, reminderBudgets } from "./budgets.ts";
import { describeDifference, hashText, type RequestParts, toParts } from "./request-text.ts";
import { families, type Family, getStoryOptions, type SceneName, scenes } from "./scenes.ts";

const story = storiesOfOneAgent();

const familyNames = Object.keys(families).filter((name): name is Family => name in families);
const sceneNames = Object.keys(scenes).filter((name): name is SceneName => name in scenes);
const cases = familyNames.flatMap((family) => sceneNames.map((scene) => ({ family, scene })));

interface Captured {
  readonly parts: RequestParts;
  readonly tokens: number;
}

const captured = new Map<string, Promise<Captured>>();

/** Plays a scene once and returns its request. */
function capture(family: Family, scene: SceneName): Promise<Captured> {
  const key = `${family} ${scene}`;
  const known = captured.get(key) ?? play(family, scene);
  captured.set(key, known);
  return known;
}

async function play(family: Family, name: SceneName): Promise<Captured> {
  const { promise, resolve } = Promise.withResolvers<Captured>();
  await story(getStoryOptions(family, scenes[name]), async (context) => {
    const { sessionId } = await context.editor.newSession();
    const request = await scenes[name].play(context, sessionId);
    if (request === undefined) throw new Error(`The scene ${name} made no such request.`);
    const masks = [
      [context.repository.path, "<cwd>"],
      [sessionId, "<session>"],
    ] as const;
    resolve({ parts: toParts(request, masks), tokens: countRequestTokens(request) });
  });
  return promise;
}

describe.each(cases)("the request of $family in the scene $scene", ({ family, scene }) => {
  test("matches its golden file", async () => {
    const { parts } = await capture(family, scene);
    const text = [
      parts.fields,
      section("system", await describeSystem(family, scene)),
      section("tools", await describeTools(family, scene)),
      section("messages", parts.messages),
    ].join("\n\n");
    await expectGoldenText(`requests/${family}/${scene}.txt`, `${text}\n`);
  });

  test("stays within its budget of tokens", async () => {
    const { tokens } = await capture(family, scene);
    expect(tokens).toBeLessThanOrEqual(getBudget(family, scene));
  });
});

test.each(Object.entries(reminderBudgets))(
  "the reminders of the scene %s have between 1 and %d tokens",
  async (scene, budget) => {
    for (const family of familyNames) {
      const { parts } = await capture(family, sceneNames.find((name) => name === scene) ?? "first");
      const tokens = countReminderTokens(parts.messages);
      expect(tokens, family).toBeGreaterThan(0);
      expect(tokens, family).toBeLessThanOrEqual(budget);
    }
  },
);

/** Rules that each family's prompt or tools contain. */
const guidance = {
  "how to commit": /To commit: run `git status`, `git diff` and `git log/,
  "not to commit unasked": /\b(?:not commit|No commits?)\b[^.]* unless\b/,
  "to build a new project as a whole": /empty or new project,? build the whole/i,
  "when to add tests": /\btests where the project (?:has|tests)\b/,
  "that the program compacts the conversation": /program (?:compacts|shortens)\b/,
};

describe.each(familyNames)("the first request of %s says", (family) => {
  test.each(Object.entries(guidance))("%s", async (_, words) => {
    const { system, tools } = (await capture(family, "first")).parts;
    expect([system, ...tools.values()].join("\n")).toMatch(words);
  });
});

test("each golden file belongs to a scene", async () => {
  const folder = new URL("../golden/requests/", import.meta.url);
  const found = await readdir(folder, { recursive: true });
  const files = cases.map(({ family, scene }) => `${family}/${scene}.txt`);
  const texts = found.filter((name) => name.endsWith(".txt")).map((name) => name.replaceAll("\\", "/"));
  expect(texts.toSorted()).toEqual([...files, "tokens.txt", "tools.txt"].toSorted());
});

test("the tools match their golden file", async () => {
  const texts = await listToolTexts();
  const lines = [...texts].map(([name, text]) => section(name, text));
  await expectGoldenText("requests/tools.txt", `${lines.join("\n\n")}\n`);
});

test("the sizes of requests match the golden table", async () => {
  const rows = await Promise.all(
    sceneNames.map(async (scene) => {
      const cells = familyNames.map(async (family) => {
        const { tokens } = await capture(family, scene);
        return `${roundTokens(tokens)}/${getBudget(family, scene)}`.padStart(13);
      });
      return scene.padEnd(22) + (await Promise.all(cells)).join("");
    }),
  );
  const head = "".padEnd(22) + familyNames.map((name) => name.padStart(13)).join("");
  const title = `Tokens of each request, rounded to ${tokenStep}, and its budget (test/eval/budgets.ts).`;
  await expectGoldenText("requests/tokens.txt", `${[title, "", head, ...rows].join("\n")}\n`);
});

/** Small changes of a text do not change the table. */
const tokenStep = 100;
const roundTokens = (tokens: number): number => Math.round(tokens / tokenStep) * tokenStep;

const section = (name: string, text: string): string => `======== ${name} ========\n${text}`;

/** Scenes whose system prompt begins with that of the family's first prompt. */
const ownPrompt: ReadonlySet<SceneName> = new Set(["explore", "general", "title"]);

async function describeSystem(family: Family, scene: SceneName): Promise<string> {
  const { system } = (await capture(family, scene)).parts;
  if (scene === "first") return system;
  if (!ownPrompt.has(scene)) {
    const first = await capture(family, "first");
    return describeDifference(first.parts.system, system, `${family}/first.txt`);
  }
  if (family === "claude") return system;
  const other = await capture("claude", scene);
  return describeDifference(other.parts.system, system, `claude/${scene}.txt`);
}

/** Lists the tools by name, with a hash of the text if it differs from `tools.txt`. */
async function describeTools(family: Family, scene: SceneName): Promise<string> {
  const { tools } = (await capture(family, scene)).parts;
  const usual = await listToolTexts();
  const names = [...tools].map(([name, text]) =>
    usual.get(name) === text ? name : `${name} (${hashText(text)})`,
  );
  return names.length === 0 ? "(none)" : names.join(", ");
}

/** Returns each built-in tool as a family's first prompt has it. */
async function listToolTexts(): Promise<ReadonlyMap<string, string>> {
  const first = await Promise.all(familyNames.toReversed().map((family) => capture(family, "first")));
  return new Map(
    first.flatMap(({ parts }) => [...parts.tools]).toSorted(([one], [two]) => (one < two ? -1 : 1)),
  );
}
