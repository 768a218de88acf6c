import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** More files than this side by side belong into folders by concept. READMEs do not count. */
const maxFiles = 15;
const maxReadmeLines = 10;
/** Words of ARCHITECTURE.md, which is read before everything else. */
const maxArchitectureWords = 1_200;
/** The page that names the files of a delta, a call and a load. */
const walksPage = "docs/development/walks.md";
const maxWalksWords = 700;
/** Recorded messages, and a package that only names a version of Node. */
const dataFolders = ["test/golden", "test/node"];

/** Returns what is wrong with a folder and those in it. */
function problemsOf(folder: string): string[] {
  if (dataFolders.includes(folder)) return [];
  const entries = readdirSync(folder, { withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name !== "README.md");
  const readme = join(folder, "README.md");
  const lines = existsSync(readme) ? readFileSync(readme, "utf8").trimEnd().split("\n").length : 0;
  return [
    ...(files.length > maxFiles
      ? [`${folder} has ${files.length} files. Move some into folders, so that at most ${maxFiles} remain.`]
      : []),
    ...(lines === 0
      ? [`${folder} has no README.md. Write what it contains and where to begin reading.`]
      : []),
    ...(lines > maxReadmeLines ? [`${readme} has ${lines} lines. Shorten it to ${maxReadmeLines}.`] : []),
    ...entries
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) => problemsOf(`${folder}/${entry.name}`)),
  ];
}

/** Returns the decisions that have the number of another one. */
function duplicateDecisions(folder: string): string[] {
  const byNumber = Map.groupBy(readdirSync(folder), (name) => name.slice(0, "0000".length));
  return [...byNumber.values()]
    .filter((names) => names.length > 1)
    .map(
      (names) =>
        `${names.join(" and ")} in ${folder} have one number. Give one of them the next free number.`,
    );
}

/** Returns a problem if a page has more words than its readers have time for. */
function tooManyWords(page: string, limit: number): string[] {
  const words = readFileSync(page, "utf8").split(/\s+/).filter(Boolean).length;
  return words <= limit ? [] : [`${page} has ${words} words. Shorten it to ${limit}.`];
}

/** Returns the files that the walks name and that do not exist. */
function missingInWalks(): string[] {
  const names = [...readFileSync(walksPage, "utf8").matchAll(/`([\w/-]+\.ts)`/g)].map(
    ([, name = ""]) => name,
  );
  if (names.length === 0) return [`${walksPage} names no files.`];
  return names
    .filter((name) => !existsSync(join("src", name)))
    .map((name) => `${walksPage} names src/${name}, which does not exist. Name the file that replaces it.`);
}

const problems = [
  ...["src", "test"].flatMap(problemsOf),
  ...duplicateDecisions("docs/decisions"),
  ...tooManyWords("ARCHITECTURE.md", maxArchitectureWords),
  ...tooManyWords(walksPage, maxWalksWords),
  ...missingInWalks(),
];
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
