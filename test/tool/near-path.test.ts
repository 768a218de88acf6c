import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { editTool } from "../../src/tool/edit/edit.ts";
import { writeTool } from "../../src/tool/edit/write.ts";
import { readTool } from "../../src/tool/read/read.ts";
import { isPlainPath } from "../../src/tool/near-path.ts";
import { openSearch } from "../../src/workspace/search/search.ts";
import { lacksOddNames } from "../support/platform/platform.ts";
import { call, prepare, toolPlace, type ToolPlace } from "./tool-place.ts";

const issues = "https://github.com/";
/** Public reports of paths in such formats. */
const sources = {
  forms: `${issues}prathamdby/pr-agent/pull/431`,
  prefixes: `${issues}yannikzz/narracat-novel-agent/issues/37`,
  lines: `${issues}earendil-works/pi/issues/3451`,
  ranges: `${issues}earendil-works/pi/issues/3450`,
  colon: `${issues}can1357/oh-my-pi/issues/5508`,
  suffix: `${issues}can1357/oh-my-pi/issues/7788`,
  absolute: `${issues}tylerjrbuell/reactive-agents-ts/issues/201`,
  dropped: `${issues}alvinunreal/oh-my-opencode-slim/issues/1143`,
  workspace: `${issues}OpenHands/OpenHands/pull/1070`,
  repair: `${issues}Lexus2016/hermes-agent-evolution/pull/2447`,
  quotes: `${issues}raullenchai/Rapid-MLX/pull/1600`,
  blanks: `${issues}leehack/llamadart/pull/300`,
  slash: `${issues}BrokkAi/brokk-app/pull/855`,
  basename: `${issues}HKUDS/nanobot/pull/653`,
} as const;

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

const served: readonly (readonly [source: keyof typeof sources, path: string, shows: RegExp])[] = [
  ["slash", "/src/cart.js", /^1: one/],
  ["forms", String.raw`src\cart.js`, /^1: one/],
  ["lines", "src/cart.js:3", /^3: three\n4: four$/],
  ["ranges", "src/cart.js:2-3", /^2: two\n3: three$/],
  ["lines", "src/cart.js:2:5", /^2: two/],
  ["forms", "src/cart.js#L2-L3", /^2: two\n3: three$/],
  ["forms", "src/cart.js#L4", /^4: four$/],
  ["quotes", '"src/cart.js"', /^1: one/],
  ["quotes", "'src/cart.js'", /^1: one/],
  ["quotes", "`src/cart.js`", /^1: one/],
  ["quotes", "\u201csrc/cart.js\u201d", /^1: one/],
  ["blanks", "src/cart.js ", /^1: one/],
  ["blanks", " src/cart.js", /^1: one/],
  ["blanks", "src/cart.js\n", /^1: one/],
  ["prefixes", "@src/cart.js", /^1: one/],
  ["prefixes", "a/src/cart.js", /^1: one/],
  ["prefixes", "b/src/cart.js", /^1: one/],
  ["suffix", "work/src/cart.js", /^1: one/],
  ["basename", "cart.js", /^1: one/],
  ["basename", "./cart.js", /^1: one/],
  ["suffix", "util/index.js", /^1: util/],
  ["lines", "cart.js:4", /^4: four/],
  ["prefixes", "b/src/cart.js:2", /^2: two/],
  ["quotes", "'docs/read me.md'", /^1: text/],
  ["colon", ":src/cart.js", /^1: one/],
  ["forms", "[cart](src/cart.js)", /^1: one/],
  ["forms", "<src/cart.js>", /^1: one/],
  ["forms", "(src/cart.js)", /^1: one/],
  ["forms", "src/cart.js.", /^1: one/],
  ["forms", "src/cart.js,", /^1: one/],
  ["forms", "docs/read%20me.md", /^1: text/],
  ["forms", String.raw`docs/read\ me.md`, /^1: text/],
  ["forms", "$PWD/src/cart.js", /^1: one/],
  ["forms", "${workspaceFolder}/src/cart.js", /^1: one/],
  ["repair", "src/\u200bcart.js", /^1: one/],
  ["repair", "Src/Cart.js", /^1: one/],
  ["repair", "src/CART.JS:2", /^2: two/],
  ["repair", "lib/cart.js", /^1: one/],
  ["repair", "shop/src/cart.js", /^1: one/],
  ["absolute", "/no-such-root/user/project/src/cart.js", /^1: one/],
  ["workspace", "/workspace-that-is-not-here/src/cart.js", /^1: one/],
  ["dropped", "/no-such-root/cart.js:3", /^3: three/],
  ["forms", "src/*.js", /^1: one/],
  ["forms", "**/cart.*", /^1: one/],
];

test.each(served)("%s: reads %j as the only file that it can mean", async (source, filePath, shows) => {
  expect(sources[source]).toMatch(/^https:\/\/github\.com\/.+\/(?:issues|pull)\/\d+$/);
  await using place = await shop();
  const { output } = await call(readTool, { filePath }, place);
  const [shown, note] = output.split("\n\n");
  expect(shown).toMatch(shows);
  // Windows takes backslashes and any case itself.
  if (!existsSync(resolve(place.cwd, filePath)))
    expect(note).toMatch(/^Read .* \(you asked for ".*", which does not exist\)\./);
});

test("reads a path below the working directory with a wrong folder", async () => {
  await using place = await shop();
  const { output } = await call(readTool, { filePath: place.path("lib/cart.js") }, place);
  expect(output).toMatch(/^1: one[^]*Read src\/cart\.js/);
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
  expect(title).toBe("Read src/cart.js (from line 3)");
  expect(permissions).toMatchObject([{ permission: "read", subjects: [{ text: "src/cart.js" }] }]);
});

test.each([
  [
    "index.js",
    /Did you mean (?:src\/util\/index\.js or web\/index\.js|web\/index\.js or src\/util\/index\.js)\?/,
  ],
  ["lib/index.js", /does not exist/],
  ["src/card.js", /Did you mean src\/cart\.js\?/],
  ["**/index.js", /use glob/],
  ["src/*.ts", /use glob/],
  ["lib/absent.js", /does not exist/],
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
  ...(process.platform === "win32" ? [] : [String.raw`src\cart.js`, "SRC/cart.js"]),
  "src/cart.js:1",
  "cart.js",
  "a/src/cart.js",
  '"src/cart.js"',
  "lib/cart.js",
  "[cart](src/cart.js)",
  "/no-such-root/src/cart.js",
])("suggests a path for an edit of %j, without editing", async (filePath) => {
  await using place = await shop();
  await call(readTool, { filePath: "src/cart.js" }, place);
  await expect(prepare(editTool, { filePath, ...edit }, place)).rejects.toThrow(
    /Did you mean src\/cart\.js\?/,
  );
  expect(await place.text("src/cart.js")).toMatch(/^one/);
});

test("a path with backslashes is plain only on systems with that separator", () => {
  expect(isPlainPath(String.raw`src\new.js`, "/")).toBe(false);
  expect(isPlainPath(String.raw`C:\work\src\new.js`, "\\")).toBe(true);
  expect(isPlainPath(String.raw`"C:\work\src\new.js"`, "\\")).toBe(false);
});

test.each([
  "src/cart.js:3",
  '"src/new.js"',
  "src/new.js\n",
  ...(process.platform === "win32" ? [] : [String.raw`src\new.js`, "file:///src/new.js"]),
])("suggests a path for a new file %j, without writing", async (filePath) => {
  await using place = await shop();
  await expect(prepare(writeTool, { filePath, content: "x" }, place)).rejects.toThrow(
    /is not a plain path\. Did you mean .*\? Nothing was written/,
  );
});

test.skipIf(lacksOddNames)("writes a new file whose name only ends like a line number", async () => {
  await using place = await shop();
  expect(await call(writeTool, { filePath: "notes:3", content: "x" }, place)).toMatchObject({
    status: "completed",
  });
});

test.runIf(lacksOddNames)("neither reads nor writes the streams of a file", async () => {
  await using place = await shop();
  await expect(call(writeTool, { filePath: "notes:3", content: "x" }, place)).rejects.toThrow(
    "names a stream",
  );
  await expect(call(readTool, { filePath: "src/cart.js::$DATA" }, place)).rejects.toThrow("does not exist");
});
