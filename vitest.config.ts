import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";

/** Loads prompt texts as strings, as the bundler does. */
const markdownAsText = {
  name: "markdown-as-text",
  enforce: "pre" as const,
  load(id: string) {
    if (!id.endsWith(".md")) return undefined;
    return `export default ${JSON.stringify(readFileSync(id, "utf8"))};`;
  },
};

/** What repeats the same many times: kills, damages, generated cases, hundreds of turns. */
const longTests = [
  "test/crash/*.test.ts",
  "test/property/*.test.ts",
  "test/streams/*.test.ts",
  "test/e2e/{compaction,context,lifecycle,order}.test.ts",
  "test/unit/session-store.test.ts",
];

/** With `--mode long`, the tests that repeat much do so in full; otherwise every test runs, and those in part. */
export default defineConfig(({ mode }) => ({
  plugins: [markdownAsText],
  test: {
    setupFiles: ["test/support/seed.ts"],
    include: mode === "long" ? longTests : ["test/**/*.test.ts"],
    provide: { isLong: mode === "long" },
    pool: "forks",
    isolate: false,
    // Stories wait for other processes most of their time.
    maxWorkers: 4,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    allowOnly: false,
    passWithNoTests: false,
  },
}));
