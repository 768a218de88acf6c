import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Creates the project that the pictures show, as a git repository: `subtract` is wrong, and `test` finds it. */
export function createSumsProject(folder: string, test: string): void {
  mkdirSync(folder);
  const files = {
    "sum.js": "export const add = (a, b) => b + a;\nexport const subtract = (a, b) => a + b;\n",
    "sum.test.js": test,
    "package.json": '{ "name": "sums", "private": true, "type": "module" }\n',
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  execFileSync("git", ["init", "--quiet"], { cwd: folder });
}
