import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const read = (path: string) => readFile(join(root, path), "utf8");

test("each claim of the README is there, and so is its test", async () => {
  const readme = (await read("README.md")).replaceAll(/\*\*|\s+/g, (found) => (found === "**" ? "" : " "));
  const rows = [
    ...(await read("docs/development/claims.md")).matchAll(/^\| (.+) \| (test\/\S+) \| (.+) \|$/gm),
  ];
  expect(rows.length).toBeGreaterThan(15);
  const wrong: string[] = [];
  for (const [, claim = "", file = "", title = ""] of rows) {
    if (!readme.includes(claim)) wrong.push(`the README does not say: ${claim}`);
    const source = await read(file).catch(() => "");
    if (!source.includes(`test("${title}"`)) wrong.push(`${file} has no test: ${title}`);
  }
  expect(wrong).toEqual([]);
});
