import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../../support/temp.ts";

const run = promisify(execFile);
const require = createRequire(import.meta.url);
const suite = dirname(require.resolve("@modelcontextprotocol/conformance/package.json"));
const driver = fileURLToPath(new URL("../../support/mcp/conformance-program.ts", import.meta.url));
/**
 * Scenarios that are expected to fail, with the reasons. The suite fails if another one fails or one of these
 * passes.
 */
const notMet = fileURLToPath(new URL("../../support/mcp/conformance-not-met.yml", import.meta.url));
const scenarioDeadlineMs = 90_000;

/** Returns the client's scenarios that a revision of the specification requires. */
async function requiredScenarios(revision: string): Promise<string[]> {
  const text = await readFile(join(suite, "requirements", `${revision}.yaml`), "utf8");
  const [, section = ""] = /^client:\n((?: {2}- .*\n)+)/m.exec(text) ?? [];
  return [...section.matchAll(/^ {2}- (\S+)$/gm)].map(([, name = ""]) => name);
}

/** Runs a scenario of MCP's conformance suite against `fairlead acp`. Rejects with the suite's report if it fails. */
async function runScenario(scenario: string, revision: string): Promise<string> {
  await using results = await temporaryFolder();
  const options = {
    command: `${process.execPath} ${driver}`,
    scenario,
    "spec-version": revision,
    "expected-failures": notMet,
    timeout: String(scenarioDeadlineMs),
    "output-dir": results.path,
  };
  const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const { stdout, stderr } = await run(process.execPath, [join(suite, "dist/index.js"), "client", ...flags], {
    maxBuffer: 16 * 1024 * 1024,
  });
  return stdout + stderr;
}

for (const revision of ["2025-11-25", "2026-07-28"]) {
  const scenarios = await requiredScenarios(revision);

  describe(`a client according to the specification of ${revision}`, () => {
    test("has scenarios", () => {
      expect(scenarios.length).toBeGreaterThan(15);
    });

    // A scenario mostly waits.
    test.concurrent.each(scenarios)(
      "%s",
      async (scenario) => {
        const report = await runScenario(scenario, revision);
        expect(report).toMatch(/^Passed: [1-9]\d*\/\d+/m);
      },
      scenarioDeadlineMs,
    );
  });
}
