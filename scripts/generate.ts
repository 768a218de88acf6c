import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { parseMarkdown } from "../src/config/markdown.ts";
import {
  agentConfigSchema,
  commandFrontMatterSchema,
  configSchema,
  skillFrontMatterSchema,
} from "../src/config/schema.ts";
import { messageSchema, sessionInfoSchema } from "../src/message/message.ts";

// Writes the files that are made from others; with --check it only says which of them are out of date.
const schemas = {
  "schema/config.schema.json": { title: "Fairlead configuration", schema: configSchema },
  "schema/agent.schema.json": { title: "Front matter of an agent", schema: agentConfigSchema },
  "schema/command.schema.json": { title: "Front matter of a command", schema: commandFrontMatterSchema },
  "schema/skill.schema.json": { title: "Front matter of a skill", schema: skillFrontMatterSchema },
  "schema/session.schema.json": { title: "A stored session", schema: sessionInfoSchema },
  "schema/message.schema.json": { title: "A stored message", schema: messageSchema },
};

const packageSchema = z.object({
  name: z.string(),
  version: z.string(),
  description: z.string(),
  license: z.string(),
});

/** What the program must know of the bundled skills before any of them is opened. */
async function skillIndex(): Promise<Record<string, { name: string; description: string }>> {
  const folders = (await readdir("skills", { withFileTypes: true })).filter((entry) => entry.isDirectory());
  const files = folders.map(({ name }) => `${name}/SKILL.md`).sort();
  const entries = files.map(async (file) => {
    const path = join("skills", file);
    const { name, description } = skillFrontMatterSchema.parse(
      parseMarkdown(await readFile(path, "utf8"), path).settings,
    );
    return [file, { name, description: description.replaceAll(/\s+/g, " ").trim() }] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** How editors that read the registry of agents install this version. */
async function registryEntry(): Promise<Record<string, unknown>> {
  const { name, version, description, license } = packageSchema.parse(
    JSON.parse(await readFile("package.json", "utf8")),
  );
  const npx = { package: `${name}@${version}`, args: ["acp"] };
  return { id: name, name: "Fairlead", version, description, license, distribution: { npx } };
}

const generated: [string, unknown][] = Object.entries(schemas).map(([path, { title, schema }]) => [
  path,
  { title, ...z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) },
]);
generated.push(["skills/index.json", await skillIndex()]);
generated.push(["registry/fairlead/agent.json", await registryEntry()]);
const texts = generated.map(([path, json]): [string, string] => [path, `${JSON.stringify(json, null, 2)}\n`]);
// Types alone: what authors of plugins import is the source as it stands.
texts.push(["schema/plugin.d.ts", await readFile("src/plugin/author.ts", "utf8")]);

const isCheck = process.argv.includes("--check");
let outdated = 0;
for (const [path, text] of texts) {
  const known = await readFile(path, "utf8").catch(() => undefined);
  if (known === text) continue;
  outdated++;
  if (!isCheck) await writeFile(path, text);
  console.log(`${path} ${isCheck ? "is out of date: run npm run generate" : "written"}`);
}
process.exitCode = isCheck && outdated > 0 ? 1 : 0;
