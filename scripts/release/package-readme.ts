import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";

// Prints the README for the package, which has no docs folder: links lead to the repository, at the release's tag.
const { values } = parseArgs({
  options: {
    /** https://github.com/OWNER/NAME */
    repository: { type: "string" },
  },
});
const repository = z.url({ protocol: /^https$/ }).parse(values.repository);
const root = join(import.meta.dirname, "../..");
const { version } = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));
const readme = readFileSync(join(root, "README.md"), "utf8");
const absolute = readme.replaceAll(/\]\((?!https?:|#)([^)\s]+)\)/g, (_, path: string) => {
  const view = path.endsWith(".svg") ? "raw" : "blob";
  return `](${repository}/${view}/v${version}/${path})`;
});
process.stdout.write(absolute);
