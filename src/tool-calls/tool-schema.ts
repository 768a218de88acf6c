import builtInSchemas from "../../schema/tools.json" with { type: "json" };
import type { Tool } from "../tool/tool.ts";

type JsonSchema = Readonly<Record<string, unknown>>;

/** Schemas of built-in tools, generated at build time: converting them at runtime takes longer than a request. */
const schemas: ReadonlyMap<string, JsonSchema> = new Map(Object.entries(builtInSchemas));

/** Returns the JSON Schema of the tool's input; undefined for a built-in tool without a generated one. */
export function findSchema({ name, schema }: Tool): JsonSchema | undefined {
  return schema ?? schemas.get(name);
}

export function requireSchema(tool: Tool): JsonSchema {
  const schema = findSchema(tool);
  if (schema === undefined) throw new Error(`schema/tools.json lacks ${tool.name}: run npm run generate`);
  return schema;
}

/** Whether the tool is part of the program, and not of a server, a plugin or a project. */
export const isBuiltIn = (name: string): boolean => schemas.has(name);
