import { readdirSync, readFileSync, writeFileSync } from "node:fs";
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
];
const pattern = new RegExp(`\\b(${avoided.join("|").replaceAll(" ", "\\s+")})\\b`, "gi");

/** How often each folder may still contain them. The figures only fall. */
const allowedFile = "scripts/allowed-words.json";

const folders = ["src", "test", "scripts", "prompts", "skills", "docs"];

/** Counts the avoided words per folder, two levels deep. */
function count(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const folder of folders) {
    for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
      if (!/\.(ts|md)$/.test(name) || name.endsWith("check-words.ts")) continue;
      const hits = readFileSync(join(folder, name), "utf8").match(pattern)?.length ?? 0;
      const [first = ""] = name.split(/[/\\]/);
      const key = first === name ? folder : `${folder}/${first}`;
      if (hits > 0) counts[key] = (counts[key] ?? 0) + hits;
    }
  }
  return Object.fromEntries(Object.entries(counts).sort(([one], [other]) => (one < other ? -1 : 1)));
}

const counts = count();
if (process.argv.includes("--lower")) {
  writeFileSync(allowedFile, `${JSON.stringify(counts, null, 2)}\n`);
} else {
  const allowed: Record<string, number> = JSON.parse(readFileSync(allowedFile, "utf8"));
  const grown = Object.entries(counts).filter(([folder, hits]) => hits > (allowed[folder] ?? 0));
  for (const [folder, hits] of grown)
    console.error(
      `${folder} has ${hits} of the words that scripts/check-words.ts avoids, ${allowed[folder] ?? 0} are allowed.`,
    );
  if (grown.length > 0) {
    console.error("Use plainer words. Where there are fewer now: npm run words -- --lower.");
    process.exitCode = 1;
  }
}
