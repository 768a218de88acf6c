import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { archiveName, commandOf, targets } from "./targets.ts";

// Writes the entry for the registry of agents with what only the release knows: the repository's address and, below
// it, the addresses of the archives.
const { values } = parseArgs({
  options: {
    /** https://github.com/OWNER/NAME */
    repository: { type: "string" },
    out: { type: "string", default: "release/registry" },
  },
});
const repository = z.url({ protocol: /^https$/ }).parse(values.repository);
const source = join(import.meta.dirname, "../../registry/fairlead");
const entry = z
  .looseObject({ id: z.string(), version: z.string(), distribution: z.looseObject({}) })
  .parse(JSON.parse(readFileSync(join(source, "agent.json"), "utf8")));
const downloads = `${repository}/releases/download/v${entry.version}`;
const binary = Object.fromEntries(
  targets.flatMap((target) => {
    if (target.registry === undefined) return [];
    const archive = `${downloads}/${archiveName(entry.version, target)}`;
    return [[target.registry, { archive, cmd: commandOf(target), args: ["acp"] }]];
  }),
);
const complete = {
  ...entry,
  repository,
  website: `${repository}#readme`,
  authors: ["The authors of Fairlead"],
  distribution: { ...entry.distribution, binary },
};
const folder = join(values.out, entry.id);
mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, "agent.json"), `${JSON.stringify(complete, null, 2)}\n`);
cpSync(join(source, "icon.svg"), join(folder, "icon.svg"));
console.log(join(folder, "agent.json"));
