import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const repository = "https://github.com/owner/name";

test("the README of the package has no links into a checkout", async () => {
  const script = join(root, "scripts/release/package-readme.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [script, "--repository", repository]);
  const links = [...stdout.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  expect(links.filter((target) => !target.startsWith("https://"))).toEqual([]);
  const own = links.filter((target) => target.startsWith(repository));
  expect(own.length).toBeGreaterThan(8);
  const paths = own.map((target) => /\/(?:blob|raw)\/v[\d.]+\/([^#]+)/.exec(target)?.[1] ?? target);
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  expect(stdout).toContain(`${repository}/raw/v`);
});
