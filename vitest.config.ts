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

export default defineConfig({
  plugins: [markdownAsText],
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    isolate: false,
    // Stories wait for other processes most of their time.
    maxWorkers: 4,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    allowOnly: false,
    passWithNoTests: false,
  },
});
