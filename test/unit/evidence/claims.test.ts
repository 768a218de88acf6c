import { describe, expect, test } from "vitest";
import { findClaims } from "../../../src/evidence/claims.ts";

const claims: [text: string, ...kinds: string[]][] = [
  ["All tests pass.", "test"],
  ["All 12 tests pass now, and I updated the docs.", "test"],
  ["The test suite is green.", "test"],
  ["Tests: 12 passed, 0 failed", "test"],
  ["I ran the tests and they passed.", "test"],
  ["✅ All unit tests are passing", "test"],
  ["The change passes all existing tests.", "test"],
  ["**All tests pass** after the change.", "test"],
  ["`npm test` passes.", "test"],
  ["The build succeeds without errors.", "build"],
  ["It compiles cleanly.", "build"],
  ["`npm run build` completed successfully.", "build"],
  ["Type checking passes and lint is clean.", "types", "lint"],
  ["All checks pass.", "check"],
  ["Alle Tests laufen durch.", "test"],
  ["Die Tests sind grün.", "test"],
  ["Alle 14 Tests wurden bestanden.", "test"],
  ["Der Build ist erfolgreich.", "build"],
  ["Tous les tests passent.", "test"],
  ["Les tests sont verts.", "test"],
  ["La compilation réussit.", "build"],
  ["Todas las pruebas pasan.", "test"],
  ["Los tests han pasado.", "test"],
  ["El proyecto compila correctamente.", "build"],
  ["所有测试都通过了。", "test"],
  ["测试全部通过。", "test"],
  ["构建成功。", "build"],
  ["すべてのテストが通りました。", "test"],
  ["テストは全てパスしました。", "test"],
  ["ビルドに成功しました。", "build"],
];

const noClaims = [
  "The tests should pass now.",
  "Tests do not pass yet.",
  "Not all tests pass.",
  "If the tests pass, merge it.",
  "Once the tests pass I will commit.",
  "Do all tests pass?",
  "I could not run the tests.",
  "Please check that the tests pass.",
  "The tests passed before my change.",
  "Two tests failed and ten passed.",
  "I added a test that passes an empty list.",
  "The test passes a string to the parser.",
  "I wrote tests for the pass function.",
  'The issue says "all tests pass".',
  "The message is `all tests pass`.",
  "> All tests pass.",
  "```\nAll tests pass.\n```",
  "```sh\n# all tests pass\nnpm test\n",
  "Run `npm test` to see whether it passes.",
  "The build script is in package.json.",
  "Die Tests sollten durchlaufen.",
  "Die Tests laufen nicht durch.",
  "Wenn die Tests grün sind, ist es fertig.",
  "Les tests ne passent pas.",
  "Les tests devraient passer.",
  "Las pruebas no pasan.",
  "Las pruebas deberían pasar; si las pruebas pasan, avísame.",
  "测试没有通过。",
  "测试应该会通过。",
  "如果测试通过，就可以合并。",
  "测试通过了吗？",
  "テストは通りません。",
  "テストが通るはずです。",
  "テストが通れば完了です。",
];

describe("a claim", () => {
  test.each(claims)("is found in %j", (text, ...kinds) => {
    expect(findClaims(text)).toEqual(kinds);
  });

  test.each(noClaims)("is not found in %j", (text) => {
    expect(findClaims(text)).toEqual([]);
  });

  test("is found among other sentences", () => {
    expect(findClaims("I did not touch the docs. All tests pass. Should I commit?")).toEqual(["test"]);
  });
});
