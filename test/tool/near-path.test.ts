import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { editTool } from "../../src/tool/edit/edit.ts";
import { writeTool } from "../../src/tool/edit/write.ts";
import { readTool } from "../../src/tool/read/read.ts";
import { openSearch } from "../../src/workspace/search/search.ts";
import { call, prepare, toolPlace, type ToolPlace } from "./tool-place.ts";

/** Reports of paths in such forms. */
const sources = [
  "https://github.com/prathamdby/pr-agent/pull/431",
  "https://github.com/yannikzz/narracat-novel-agent/issues/37",
];

async function shop(): Promise<ToolPlace> {
  const place = await toolPlace({
    "src/cart.js": "one\ntwo\nthree\nfour\n",
    "src/util/index.js": "util\n",
    "web/index.js": "web\n",
    "a/other.js": "other\n",
    "docs/read me.md": "text\n",
  });
  const { workspace } = place.context;
  return {
    ...place,
    context: { ...place.context, workspace: { ...workspace, search: openSearch({ env: {} }) } },
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

const served: readonly (readonly [path: string, shows: RegExp])[] = [
  ["/src/cart.js", /^1: one/],
  [String.raw`src\cart.js`, /^1: one/],
  ["src/cart.js:3", /^3: three\n4: four$/],
  ["src/cart.js:2-3", /^2: two\n3: three$/],
  ["src/cart.js:2:5", /^2: two/],
  ["src/cart.js#L2-L3", /^2: two\n3: three$/],
  ["src/cart.js#L4", /^4: four$/],
  ['"src/cart.js"', /^1: one/],
  ["'src/cart.js'", /^1: one/],
  ["`src/cart.js`", /^1: one/],
  ["src/cart.js ", /^1: one/],
  [" src/cart.js", /^1: one/],
  ["src/cart.js\n", /^1: one/],
  ["@src/cart.js", /^1: one/],
  ["a/src/cart.js", /^1: one/],
  ["b/src/cart.js", /^1: one/],
  ["work/src/cart.js", /^1: one/],
  ["cart.js", /^1: one/],
  ["./cart.js", /^1: one/],
  ["util/index.js", /^1: util/],
  ["cart.js:4", /^4: four/],
  ["b/src/cart.js:2", /^2: two/],
  ["'docs/read me.md'", /^1: text/],
];

test.each(served)("reads %j as the only file that it can mean", async (filePath, shows) => {
  expect(sources).toHaveLength(2);
  await using place = await shop();
  const { output } = await call(readTool, { filePath }, place);
  const [shown, note] = output.split("\n\n");
  expect(shown).toMatch(shows);
  expect(note).toMatch(/^Read .* \(you asked for ".*", which does not exist\)\./);
});

test("reads a file URL of the workspace", async () => {
  await using place = await shop();
  const filePath = pathToFileURL(place.path("src/cart.js")).href;
  expect(await call(readTool, { filePath }, place)).toMatchObject({
    output: expect.stringMatching(/^1: one/),
  });
});

test("asks permission for the file that is read", async () => {
  await using place = await shop();
  const { permissions, title } = await prepare(readTool, { filePath: "/src/cart.js:3" }, place);
  expect(title).toBe("src/cart.js");
  expect(permissions).toMatchObject([{ permission: "read", subjects: [{ text: "src/cart.js" }] }]);
});

test.each([
  [
    "index.js",
    /Did you mean (?:src\/util\/index\.js or web\/index\.js|web\/index\.js or src\/util\/index\.js)\?/,
  ],
  ["lib/cart.js", /does not exist/],
  ["src/card.js", /Did you mean src\/cart\.js\?/],
  ["src/*.js", /use glob/],
  ["../cart.js", /does not exist/],
  ["/etc/cart.js", /does not exist/],
])("does not read another file for %j", async (filePath, says) => {
  await using place = await shop();
  await expect(prepare(readTool, { filePath }, place)).rejects.toThrow(says);
});

test("reveals no file outside the workspace", async () => {
  await using place = await shop();
  const filePath = pathToFileURL(join(place.outside, "secret.txt")).href;
  await expect(prepare(readTool, { filePath }, place)).rejects.toThrow(/does not exist\. Look for it/);
});

const edit = { oldString: "one", newString: "two" };
test.each([
  "/src/cart.js",
  String.raw`src\cart.js`,
  "src/cart.js:1",
  "cart.js",
  "a/src/cart.js",
  '"src/cart.js"',
])("suggests a path for an edit of %j, without editing", async (filePath) => {
  await using place = await shop();
  await call(readTool, { filePath: "src/cart.js" }, place);
  await expect(prepare(editTool, { filePath, ...edit }, place)).rejects.toThrow(
    /Did you mean src\/cart\.js\?/,
  );
  expect(await place.text("src/cart.js")).toMatch(/^one/);
});

test.each(["src/cart.js:3", String.raw`src\new.js`, '"src/new.js"', "src/new.js\n", "file:///src/new.js"])(
  "suggests a path for a new file %j, without writing",
  async (filePath) => {
    await using place = await shop();
    await expect(prepare(writeTool, { filePath, content: "x" }, place)).rejects.toThrow(
      /is not a plain path\. Did you mean .*\? Nothing was written/,
    );
  },
);

test("writes a new file whose name only ends like a line number", async () => {
  await using place = await shop();
  expect(await call(writeTool, { filePath: "notes:3", content: "x" }, place)).toMatchObject({
    status: "completed",
  });
});
