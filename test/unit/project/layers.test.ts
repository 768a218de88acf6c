import { execFile } from "node:child_process";
import { readdir, writeFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { toSlashes } from "../../../src/base/files/paths.ts";
import { temporaryFolder } from "../../support/temp.ts";

const root = join(import.meta.dirname, "../../..");
const program = join(root, "node_modules/dependency-cruiser/bin/dependency-cruise.mjs");

const reportSchema = z.object({
  modules: z.array(
    z.object({ source: z.string(), dependencies: z.array(z.object({ resolved: z.string() })) }),
  ),
  summary: z.object({ violations: z.array(z.object({ rule: z.object({ name: z.string() }) })) }),
});

/** Runs the checker of `npm run layers` on the `src` of a folder. */
async function checkLayers(folder: string) {
  const config = join(root, ".dependency-cruiser.cjs");
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [program, "--config", config, "--output-type", "json", "src"],
    { cwd: folder, maxBuffer: 100 * 1024 * 1024 },
  ).catch((error: { stdout: string }) => error);
  return reportSchema.parse(JSON.parse(stdout));
}

async function violationsOf(files: Record<string, string>): Promise<string[]> {
  await using folder = await temporaryFolder();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(folder.path, path, ".."), { recursive: true });
    await writeFile(join(folder.path, path), text);
  }
  const { summary } = await checkLayers(folder.path);
  return summary.violations.map(({ rule }) => rule.name);
}

describe("the checker of the layers", () => {
  test("reads every file of the program and its imports, and finds no violation", async () => {
    const report = await checkLayers(root);
    const files = (await readdir(join(root, "src"), { recursive: true }))
      .map((name) => toSlashes(name))
      .filter((name) => /(?<!\.d)\.ts$/.test(name));
    const read = new Map(report.modules.map(({ source, dependencies }) => [source, dependencies]));
    expect(files.filter((name) => !read.has(`src/${name}`))).toEqual([]);
    const imported = read.get("src/conversation/project.ts")?.map(({ resolved }) => resolved) ?? [];
    expect(imported, "a file that has type-only imports alone").toContain("src/workspace/workspace.ts");
    expect(report.summary.violations).toEqual([]);
  }, 60_000);

  test("finds an import that goes upward, type-only ones included", async () => {
    const violations = await violationsOf({
      "src/base/low.ts": 'import type { High } from "../acp/high.ts";\nexport type Low = High;\n',
      "src/acp/high.ts": "export type High = number;\n",
    });
    expect(violations).toContain("no-import-upward-from-base");
  }, 60_000);

  test("keeps the shell analysis below the permission rules", async () => {
    const violations = await violationsOf({
      "src/shell/facts.ts": 'import type { Rule } from "../permission/rule.ts";\nexport type Fact = Rule;\n',
      "src/permission/rule.ts": "export type Rule = string;\n",
    });
    expect(violations).toContain("no-import-upward-from-shell");
  }, 60_000);

  test("finds cycles between files", async () => {
    const violations = await violationsOf({
      "src/tool/one.ts": 'import type { Two } from "./two.ts";\nexport type One = Two | 1;\n',
      "src/tool/two.ts": 'import type { One } from "./one.ts";\nexport type Two = One | 2;\n',
    });
    expect(violations).toContain("no-cycle");
  }, 60_000);
});
