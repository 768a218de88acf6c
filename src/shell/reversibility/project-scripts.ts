import { isRecord } from "../../base/text/record.ts";
import { hasFlag, parseOptions } from "../programs/options.ts";
import type { Argument } from "../syntax/word.ts";
import { knownText } from "../syntax/word.ts";

/** Scripts, targets or recipes of the project that a command runs. */
export interface ProjectScripts {
  readonly names: readonly string[];
  /** Files that may define them, the first that exists counts. */
  readonly files: readonly string[];
  readonly kind: "package" | "make" | "just" | "other";
}

const packageRunners = new Set(["npm", "pnpm", "cnpm", "yarn", "bun"]);
const targetRunners: Readonly<Record<string, Omit<ProjectScripts, "names">>> = {
  make: { kind: "make", files: ["GNUmakefile", "makefile", "Makefile"] },
  gmake: { kind: "make", files: ["GNUmakefile", "makefile", "Makefile"] },
  just: { kind: "just", files: ["justfile", "Justfile", ".justfile"] },
  task: { kind: "other", files: [] },
  rake: { kind: "other", files: [] },
  invoke: { kind: "other", files: [] },
  grunt: { kind: "other", files: [] },
  gulp: { kind: "other", files: [] },
  mage: { kind: "other", files: [] },
};

/** Returns the project's scripts that a command runs; undefined if it runs none, or only shows them. */
export function findProjectScripts(name: string, args: readonly Argument[]): ProjectScripts | undefined {
  const isPackage = packageRunners.has(name);
  const runner = isPackage ? { kind: "package" as const, files: ["package.json"] } : targetRunners[name];
  if (runner === undefined) return undefined;
  const options = parseOptions(args, {
    valueFlags: isPackage ? "-w --workspace --filter -F" : "-f --file -j -d --set -o -l --load-average",
    stopsAtFirstOperand: isPackage,
  });
  if (hasFlag(options, "-n --dry-run --just-print --recon --list --summary --show -t --touch -p"))
    return undefined;
  const words = options.operands
    .flatMap((word) => knownText(word) ?? [])
    .filter((word) => !word.includes("="));
  if (!isPackage) return words.length === 0 ? undefined : { ...runner, names: words };
  const [first = "", second = ""] = words;
  const script = /^run(?:-script)?$/.test(first) ? second : first;
  return script === "" ? undefined : { ...runner, names: [script] };
}

const publishingWords = new Set(
  "deploy deployment publish release undeploy unpublish promote ship".split(" "),
);
const harmlessWords = new Set(
  "build test tests check checks dry dryrun lint notes start serve watch dev local preview plan diff status log logs list validate verify changelog types typecheck e2e help clean debug bench run prepare docs doc storybook fmt format install pack package".split(
    " ",
  ),
);

/** Returns why scripts cannot be undone, as their names say: `deploy`, `docker:publish`, not `build:release`. */
export function judgeScriptNames({ names }: ProjectScripts): string | undefined {
  const found = names.find((name) => {
    const words = name.toLowerCase().split(/[^a-z\d]+/);
    return words.some((word) => publishingWords.has(word)) && !words.some((word) => harmlessWords.has(word));
  });
  return found === undefined ? undefined : `runs the script ${found}, which by its name publishes or deploys`;
}

/** Returns the shell text of scripts in the file that defines them. */
export function findScriptText({ names, kind }: ProjectScripts, file: string): string | undefined {
  const texts =
    kind === "package"
      ? listPackageScripts(names, file)
      : kind === "other"
        ? []
        : listRecipes(names, file, kind);
  return texts.length === 0 ? undefined : texts.join("\n");
}

function listPackageScripts(names: readonly string[], file: string): string[] {
  const scripts = parseScripts(file);
  const keys = names.flatMap((name) => [`pre${name}`, name, `post${name}`]);
  return keys.flatMap((key) => {
    const text = scripts[key];
    return typeof text === "string" ? [text] : [];
  });
}

function parseScripts(file: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(file);
    return isRecord(parsed) && isRecord(parsed["scripts"]) ? parsed["scripts"] : {};
  } catch {
    return {};
  }
}

/** Returns the recipes of targets and of those that they depend on. */
function listRecipes(names: readonly string[], file: string, kind: "make" | "just"): string[] {
  const wanted = new Set(names);
  const recipes = readRecipes(file);
  for (const name of wanted) for (const needed of recipes.get(name)?.needs ?? []) wanted.add(needed);
  return [...wanted].flatMap((name) =>
    (recipes.get(name)?.lines ?? []).map((line) => toShellLine(line, kind)),
  );
}

interface Recipe {
  readonly needs: readonly string[];
  readonly lines: string[];
}

function readRecipes(file: string): Map<string, Recipe> {
  const recipes = new Map<string, Recipe>();
  let current: Recipe[] = [];
  for (const line of file.replaceAll(/\\\r?\n/g, " ").split(/\r?\n/)) {
    if (/^\s+\S/.test(line)) {
      for (const recipe of current) recipe.lines.push(line.trim());
      continue;
    }
    const [, targets, needs = ""] = /^@?([\w./%-][^:=]*?)\s*::?(?!=)([^=]*)$/.exec(line) ?? [];
    if (targets === undefined) {
      if (line.trim() !== "" && !line.startsWith("#")) current = [];
      continue;
    }
    const recipe: Recipe = { needs: needs.split(/\s+/).filter((one) => one !== ""), lines: [] };
    current = [recipe];
    for (const target of targets.split(/\s+/)) recipes.set(target, recipe);
  }
  return recipes;
}

/** Replaces the variables of make and just by those of a shell, which are unknown. */
function toShellLine(line: string, kind: "make" | "just"): string {
  const command = line.replace(/^[@+-]+\s*/, "");
  if (kind === "just") return command.replaceAll(/\{\{[^}]*\}\}/g, "$X");
  return command
    .replaceAll(/\$[({]MAKE[)}]/g, "make")
    .replaceAll(/\$[({][^)}]*[)}]/g, "$X")
    .replaceAll("$$", "$");
}
