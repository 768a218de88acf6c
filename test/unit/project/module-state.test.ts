import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { toSlashes } from "../../../src/base/files/paths.ts";

const source = join(import.meta.dirname, "../../../src");

/** Memos of pure functions of immutable values: without them, every result is the same. */
const memos: readonly string[] = [
  "agent/built-in.ts: builtInNames",
  "message/estimate.ts: textCounts",
  "message/estimate.ts: valueCounts",
  "permission/default-rules.ts: readingCommandRules",
];

const declaration = /^(?:export )?(let|var|const) (\w+)[^=\n]*=\s*([^\n]*)/gm;
const factory = /^(?:lazy|once|memoizePer|deferred)\b/;
const collection = /^new (?:Map|Set|WeakMap|WeakSet|Array)\b|^\[\];|^\{\};/;
const stateful = /^new (?:Serial|KeyedSerial|RateLimiter|AbortController|EventEmitter)\b/;

/** Names of a module's top-level variables that can change. */
function findState(text: string): string[] {
  return [...text.matchAll(declaration)].flatMap(([, keyword, name = "", value = ""]) => {
    const isWritten = new RegExp(
      `\\b${name}(?:\\.(?:set|add|delete|clear|push|splice|shift)\\(|\\[[^\\]]+\\] =[^=])`,
    ).test(text);
    const isState =
      keyword !== "const" ||
      factory.test(value) ||
      stateful.test(value) ||
      (collection.test(value) && isWritten);
    return isState ? [name] : [];
  });
}

test("modules contain constants and memos of pure functions only", async () => {
  const names = (await readdir(source, { recursive: true })).map((name) => toSlashes(name));
  const files = names.filter((name) => /(?<!\.d)\.ts$/.test(name) && !name.startsWith("model/"));
  const found = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(source, file), "utf8");
      return findState(text).map((name) => `${file}: ${name}`);
    }),
  );
  expect(files.length).toBeGreaterThan(400);
  expect(found.flat().toSorted()).toEqual(memos);
});

test("the check finds variables, written collections and lazy values", () => {
  expect(
    findState(
      [
        "let count = 0;",
        "const known = new Set(['a']);",
        "const cache = new Map<string, number>();",
        "export const first = lazy(() => []);",
        "cache.set('a', 1);",
      ].join("\n"),
    ),
  ).toEqual(["count", "cache", "first"]);
});
