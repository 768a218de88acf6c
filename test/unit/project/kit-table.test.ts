import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { kitRows, type KitLevel, type KitRow } from "../../support/wire/kit-rows.ts";

const root = join(import.meta.dirname, "../../..");
const page = join(root, "docs/development/kit.md");
const testFiles = { 1: "test/e2e/wire/kit.test.ts", 2: "test/e2e/wire/kit-v2.test.ts" } as const;
const rowId = /ACP-[A-Z0-9]+(?:-[A-Z]+)*-\d+/g;

type Version = keyof typeof testFiles;
const versions: readonly Version[] = [1, 2];
const levels: readonly KitLevel[] = ["mandatory", "capability", "advisory", "informational", "own"];

const introduction = `# The compatibility kit, row by row

These are the rows of the protocol's compatibility kit (acp-tck). Each has a test with the row's id in its title, which does
the same as the kit with the built program; \`npm run test:all\` runs them all. \`UPDATE_GOLDEN=1 npx vitest run
test/unit/project/kit-table.test.ts\` generates this page from the titles, and a test fails if the page differs. "passes"
means: the suite contains the test, and the suite passes.

Rows of the level \`own\` are not in the kit, which has none about work in the background. In version 2 they are the rules
of the protocol's text, and each story with a client of version 2 is checked against the first four; in version 1 they
are what Fairlead [promises](../wire.md).
`;

/** The titles of a file's tests. */
async function titlesOf(file: string): Promise<string[]> {
  const source = await readFile(join(root, file), "utf8");
  const titles = source.matchAll(/\btest(?:\.each(?:<[^(]*>)?\([\s\S]*?\))?\(\s*"((?:[^"\\]|\\.)*)"/g);
  return [...titles].map(([, title = ""]) => title);
}

const namesRow = (title: string, id: string) =>
  [...title.matchAll(rowId)].some(([found]) => found === `ACP-${id}`);

const withoutIds = (title: string) => title.replaceAll(rowId, "").replaceAll(/\s+/g, " ").trim();

async function tableOf(version: Version): Promise<string> {
  const file = testFiles[version];
  const titles = await titlesOf(file);
  const lines = levels.flatMap((level) => kitRows[version][level].map((row) => lineOf(row, level, titles)));
  const name = version === 1 ? "Version 1" : "Version 2 (draft)";
  return `\n## ${name}\n\nTests: [${file}](../../${file})\n\n| row | level | requirement | test | result |\n|---|---|---|---|---|\n${lines.join("\n")}\n`;
}

function lineOf([id, rule, withoutTest]: KitRow, level: KitLevel, titles: readonly string[]): string {
  const title = titles.find((one) => namesRow(one, id));
  const result = title === undefined ? withoutTest : "passes";
  const shown = title === undefined ? "-" : withoutIds(title);
  return `| ACP-${id} | ${level} | ${rule} | ${shown} | ${result} |`;
}

describe("the page about the compatibility kit", () => {
  test.each(versions)(
    "has a test or a reason for each row of version %i, and a row for each test",
    async (version) => {
      const rows = levels.flatMap((level) => kitRows[version][level]);
      const titles = await titlesOf(testFiles[version]);
      const untested = rows.filter(([id]) => !titles.some((title) => namesRow(title, id)));
      expect(untested.filter(([, , reason]) => reason === undefined)).toEqual([]);
      const tested = new Set(titles.flatMap((title) => [...title.matchAll(rowId)].map(([id]) => id)));
      const known = new Set(rows.map(([id]) => `ACP-${id}`));
      expect([...tested].filter((id) => !known.has(id))).toEqual([]);
      const explained = rows.filter(([id, , reason]) => reason !== undefined && tested.has(`ACP-${id}`));
      expect(explained, "a row with a test needs no reason").toEqual([]);
    },
  );

  test("contains the tests' titles", async () => {
    const text = `${introduction}${await tableOf(1)}${await tableOf(2)}`;
    if (process.env.UPDATE_GOLDEN === "1") await writeFile(page, text);
    expect(await readFile(page, "utf8")).toBe(text);
  });
});
