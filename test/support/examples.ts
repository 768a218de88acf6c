import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { toSlashes } from "../../src/base/files/paths.ts";

const root = join(import.meta.dirname, "../..");

/** A fenced example of a page. */
export interface Example {
  /** Page and line, for reports. */
  readonly place: string;
  readonly language: string;
  /** The file that the line above names in backticks, if that line ends with a colon. */
  readonly file: string | undefined;
  readonly text: string;
}

/** The examples of README.md, of the pages in docs and of the bundled skills. */
export async function examples(): Promise<Example[]> {
  const docs = (await readdir(join(root, "docs"), { recursive: true })).filter((name) =>
    name.endsWith(".md"),
  );
  const skills = await readdir(join(root, "skills"), { withFileTypes: true });
  const pages = [
    "README.md",
    ...docs.map((name) => `docs/${toSlashes(name)}`),
    ...skills.filter((entry) => entry.isDirectory()).map(({ name }) => `skills/${name}/SKILL.md`),
  ];
  const found = await Promise.all(
    pages.map(async (page) => parseExamples(page, await readFile(join(root, page), "utf8"))),
  );
  return found.flat();
}

export function parseExamples(page: string, text: string): Example[] {
  return [...text.matchAll(/^(`{3,})(\w+)\n([^]*?)^\1$/gm)].map((match) => {
    const [, , language = "", body = ""] = match;
    const before = text.slice(0, match.index);
    const above = before.trimEnd().split("\n").at(-1) ?? "";
    const file = above.trim().endsWith(":") ? /`([^`\s]+\.\w+)`/.exec(above)?.[1] : undefined;
    return { place: `${page}:${before.split("\n").length}`, language, file, text: body };
  });
}
