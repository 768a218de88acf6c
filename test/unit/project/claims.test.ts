import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const read = (path: string) => readFile(join(root, path), "utf8");

/** Returns problems with the tests that a row names. */
async function findMissingTest(file: string, title: string): Promise<string[]> {
  const source = await read(file).catch(() => "");
  return source.includes(`("${title}", async`) || source.includes(`("${title}", () =>`)
    ? []
    : [`${file} has no test: ${title}`];
}

test("each habit of clients has its test", async () => {
  const page = await read("docs/development/client-habits.md");
  const rows = [...page.matchAll(/^\| (.+) \| (test\/\S+) \| (.+) \|$/gm)];
  expect(rows).toHaveLength(13);
  const missing = rows.map(([, , file = "", title = ""]) => findMissingTest(file, title));
  expect((await Promise.all(missing)).flat()).toEqual([]);
});

test("each claim of the README is there, and so is its test", async () => {
  const readme = (await read("README.md")).replaceAll(/\*\*|\s+/g, (found) => (found === "**" ? "" : " "));
  const rows = [
    ...(await read("docs/development/claims.md")).matchAll(/^\| (.+) \| (test\/\S+) \| (.+) \|$/gm),
  ];
  expect(rows.length).toBeGreaterThan(15);
  const wrong: string[] = [];
  for (const [, claim = "", file = "", title = ""] of rows) {
    if (!readme.includes(claim)) wrong.push(`the README does not say: ${claim}`);
    wrong.push(...(await findMissingTest(file, title)));
  }
  expect(wrong).toEqual([]);
});
