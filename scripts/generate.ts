import { readFileSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { type LoadHookSync, registerHooks } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import stableProtocol from "@agentclientprotocol/sdk/schema/v1/schema.unstable.json" with { type: "json" };
import draftProtocol from "@agentclientprotocol/sdk/schema/v2/schema.unstable.json" with { type: "json" };
import { z } from "zod";
import { isRecord } from "../src/base/text/record.ts";
import { parseMarkdown } from "../src/config/files/markdown.ts";
import {
  agentConfigSchema,
  commandFrontMatterSchema,
  configSchema,
  skillFrontMatterSchema,
} from "../src/config/schema.ts";
import { messageIdSchema, partIdSchema, sessionIdSchema } from "../src/message/ids.ts";
import { messageSchema, sessionInfoSchema } from "../src/message/message.ts";
import { credentialsSchema } from "../src/model/keys/credentials.ts";
import { storedApprovalsSchema } from "../src/permission/approvals.ts";
import { projectSchema } from "../src/project/records.ts";
import { changeSchema, storedMessageSchema } from "../src/storage/change.ts";
import { modelTable } from "./model-table.ts";
import { protocolParams } from "./protocol-params.ts";

// Writes the files that are made from others; with --check it only says which of them are out of date.
const schemas = {
  "schema/config.schema.json": { title: "Fairlead configuration", schema: configSchema },
  "schema/agent.schema.json": { title: "Front matter of an agent", schema: agentConfigSchema },
  "schema/command.schema.json": { title: "Front matter of a command", schema: commandFrontMatterSchema },
  "schema/skill.schema.json": { title: "Front matter of a skill", schema: skillFrontMatterSchema },
  "schema/session.schema.json": { title: "A stored session", schema: sessionInfoSchema },
  "schema/message.schema.json": { title: "A stored message", schema: messageSchema },
};

/** Schemas of values that are read often; `base/json-schema.ts` compiles their checks. */
const checkedSchemas: Readonly<Record<string, z.ZodType>> = {
  approvals: storedApprovalsSchema,
  change: changeSchema,
  credentials: credentialsSchema,
  message: storedMessageSchema,
  project: projectSchema,
  session: sessionInfoSchema,
};

/** JSON schemas cannot express a custom check: the patterns of ids. */
const idPatterns: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  [messageIdSchema, "^msg_[0-9A-Za-z]{1,64}$"],
  [partIdSchema, "^prt_[0-9A-Za-z]{1,64}$"],
  [sessionIdSchema, "^ses_[0-9A-Za-z]{1,64}$"],
]);

const inexpressibleTypes: ReadonlySet<string> = new Set([
  "bigint",
  "custom",
  "date",
  "function",
  "map",
  "set",
  "symbol",
  "transform",
]);

/** Returns the schemas of `checkedSchemas` without keywords that restrict nothing, because each start loads them. */
function generateChecks(): unknown {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(checkedSchemas)) registry.add(schema, { id });
  const schemas = z.toJSONSchema(registry, {
    io: "output",
    reused: "ref",
    unrepresentable: "any",
    override({ zodSchema, jsonSchema }) {
      const { type } = zodSchema._zod.def;
      const pattern = idPatterns.get(zodSchema);
      if (pattern !== undefined) Object.assign(jsonSchema, { type: "string", pattern });
      else if (inexpressibleTypes.has(type))
        throw new Error(`a schema of the type ${type} has no generated check`);
    },
  });
  return omitRedundant(schemas);
}

function omitRedundant(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(omitRedundant);
  if (!isRecord(schema)) return schema;
  const entries = Object.entries(schema).map(([key, value]) => [key, omitRedundant(value)] as const);
  return Object.fromEntries(entries.filter(([key, value]) => !isRedundant(key, value, schema)));
}

function isRedundant(key: string, value: unknown, { type, const: constant, enum: values }: Json): boolean {
  switch (key) {
    case "$schema":
    case "$id":
      return true;
    case "type":
      return typeof constant === "string" || Array.isArray(values);
    case "minimum":
    case "maximum":
      return type === "integer" && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER;
    case "propertyNames":
      return isDeepStrictEqual(value, { type: "string" });
    default:
      return false;
  }
}

type Json = Readonly<Record<string, unknown>>;

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
      parseMarkdown(await readFile(path, "utf8")).settings,
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

/** Regenerates the part of a page between its markers. */
async function withTable(path: string): Promise<string> {
  const page = await readFile(path, "utf8");
  const marks = /(<!-- generated by npm run generate -->\n)[\s\S]*(<!-- end -->)/;
  if (!marks.test(page)) throw new Error(`${path} has no marks for its table`);
  const table = await modelTable();
  return page.replace(marks, (_, start: string, end: string) => `${start}\n${table}\n${end}`);
}

/** Input schema of each built-in tool, as sent to models, by name. */
async function toolSchemas(): Promise<Record<string, unknown>> {
  registerHooks({ load: loadText });
  const [{ builtInTools }, { taskTool }, { toolSearch }, { callTool }, { LanguageQueries }] =
    await Promise.all([
      import("../src/tool/registry.ts"),
      import("../src/tool/task/task.ts"),
      import("../src/tool-calls/on-demand/tool-search.ts"),
      import("../src/tool-calls/on-demand/call-tool.ts"),
      import("../src/lsp/language-queries.ts"),
    ]);
  const endpoint = { url: "http://localhost" };
  const servers = () => Promise.reject(new Error("no language server runs here"));
  const folders = { servers: {}, root: "/", cwd: "/", confine: servers };
  const languages = new LanguageQueries({ folders, choices: [], servers });
  const tools = [
    ...builtInTools({
      skills: [],
      search: { web: endpoint, code: endpoint },
      languages,
    }),
    taskTool({ agents: [] }),
    toolSearch([]),
    callTool,
  ];
  return Object.fromEntries(tools.map(({ name, input }) => [name, inputSchema(input)]));
}

function inputSchema(input: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...schema } = z.toJSONSchema(input, { io: "input", unrepresentable: "any" });
  return schema;
}

/** Descriptions of tools stand in files of their own, which the bundler makes texts of. */
const loadText: LoadHookSync = (url, context, next) => {
  if (!url.endsWith(".md")) return next(url, context);
  const text = readFileSync(fileURLToPath(url), "utf8");
  return { format: "module", source: `export default ${JSON.stringify(text)}`, shortCircuit: true };
};

const generated: [string, unknown][] = Object.entries(schemas).map(([path, { title, schema }]) => [
  path,
  { title, ...z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) },
]);
generated.push(["schema/tools.json", await toolSchemas()]);
generated.push(["schema/checks.json", generateChecks()]);
generated.push(["schema/acp-v1-params.json", protocolParams(stableProtocol)]);
generated.push(["schema/acp-v2-params.json", protocolParams(draftProtocol)]);
generated.push(["skills/index.json", await skillIndex()]);
generated.push(["registry/fairlead/agent.json", await registryEntry()]);
const texts = generated.map(([path, json]): [string, string] => [path, `${JSON.stringify(json, null, 2)}\n`]);
// Types alone: authors of plugins import the source itself.
texts.push(["schema/plugin.d.ts", await readFile("src/plugin/author.ts", "utf8")]);
texts.push(["docs/models.md", await withTable("docs/models.md")]);

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
