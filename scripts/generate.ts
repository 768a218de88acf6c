import { readFile, writeFile } from "node:fs/promises";
import { z } from "zod";
import {
  agentConfigSchema,
  commandFrontMatterSchema,
  configSchema,
  skillFrontMatterSchema,
} from "../src/config/schema.ts";
import { messageSchema, sessionInfoSchema } from "../src/message/message.ts";

// Writes the files that are made from the code; with --check it only says which of them are out of date.
const schemas = {
  "schema/config.schema.json": { title: "Fairlead configuration", schema: configSchema },
  "schema/agent.schema.json": { title: "Front matter of an agent", schema: agentConfigSchema },
  "schema/command.schema.json": { title: "Front matter of a command", schema: commandFrontMatterSchema },
  "schema/skill.schema.json": { title: "Front matter of a skill", schema: skillFrontMatterSchema },
  "schema/session.schema.json": { title: "A stored session", schema: sessionInfoSchema },
  "schema/message.schema.json": { title: "A stored message", schema: messageSchema },
};

const isCheck = process.argv.includes("--check");
let outdated = 0;
for (const [path, { title, schema }] of Object.entries(schemas)) {
  const json = { title, ...z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) };
  const text = `${JSON.stringify(json, null, 2)}\n`;
  const known = await readFile(path, "utf8").catch(() => undefined);
  if (known === text) continue;
  outdated++;
  if (!isCheck) await writeFile(path, text);
  console.log(`${path} ${isCheck ? "is out of date: run npm run generate" : "written"}`);
}
process.exitCode = isCheck && outdated > 0 ? 1 : 0;
