import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Words and phrases that readers had to read twice. Plain English has another word for each. */
const avoided = [
  "whoever",
  "anew",
  "at a look",
  "held against",
  "as it comes",
  "for good",
  "by whom",
  "so much that",
  "told of",
  "tells of",
  "mend",
  "mends",
  "mended",
  "heed",
  "breathe",
  "stands for",
  "stands in",
  "stands behind",
  "stand behind",
  "behind it",
  "behind that",
  "told apart",
  "is told",
  "are told",
  "was told",
  "as it stands",
  "what stands",
  "taken back",
  "brought again",
  "go round",
  "kept aside",
  "all the same",
  "summed up",
  "as ever",
  "of ours",
  "laid over",
  "beneath",
  "the person",
  "a person",
  "in words",
  "with words",
  "speaks of",
  "what becomes of",
  "what came of",
  "does wrong",
  "stand below",
  "stands below",
  "organisation",
  "catalogue",
  "colours",
  "neighbour",
  "neighbours",
  "recognise",
  "recognises",
  "towards",
];
const pattern = new RegExp(`\\b(${avoided.join("|").replaceAll(" ", "\\s+")})\\b`, "gi");

/** Titles of tests and groups, without the ids of the compatibility kit's rows, which say nothing to a reader. */
const title =
  /\b(?:test|describe)(?:\.each\([\s\S]*?\))?\(\s*(["`])((?:ACP-[\w-]+ )*)((?:(?!\1)[^\\\n]|\\.)*)\1/g;
const maxTitle = 80;

const folders = ["src", "test", "scripts", "prompts", "skills", "docs"];
const pages = ["AGENTS.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];

const texts = folders.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(ts|md)$/.test(name) && !name.endsWith("check-words.ts"))
    .map((name) => join(folder, name)),
);

for (const path of [...texts, ...pages]) {
  const text = readFileSync(path, "utf8");
  const report = (index: number, problem: string) => {
    console.error(`${path}:${text.slice(0, index).split("\n").length}: ${problem}`);
    process.exitCode = 1;
  };
  for (const { index, 0: words } of text.matchAll(pattern))
    report(
      index,
      `"${words.replaceAll(/\s+/g, " ")}" is one of the phrases that scripts/check-words.ts avoids.`,
    );
  if (!path.endsWith(".test.ts")) continue;
  for (const { index, 3: words = "" } of text.matchAll(title))
    if (words.length > maxTitle) report(index, `a title of ${words.length} characters; at most ${maxTitle}.`);
}
