import { z } from "zod";
import { excerpt } from "../../base/text/excerpt.ts";
import { isRecord } from "../../base/text/record.ts";
import { findHeaderProblem } from "./header-parameters.ts";
import { SchemaCheck } from "./input-schema.ts";
import type { OfferedPrompt, OfferedResource, OfferedTemplate, OfferedTool } from "./offers.ts";

/** Maximum number of items per kind and server, and maximum length of their descriptions. */
export const offerLimit = 500;
const descriptionLimit = 8_000;
const nameLimit = 256;
/** Maximum number of notes about omitted items. */
const namedLimit = 5;

const name = z.string().min(1).max(nameLimit);
const description = z
  .string()
  .transform((text) => excerpt(text, descriptionLimit))
  .nullish()
  .catch(undefined)
  .transform((text) => text ?? undefined);
const title = z
  .string()
  .max(nameLimit)
  .nullish()
  .catch(undefined)
  .transform((text) => text ?? undefined);
const uri = z.string().min(1).max(8_000);

const toolSchema = z.looseObject({
  name,
  title,
  description,
  inputSchema: z.unknown().optional(),
  annotations: z
    .looseObject({ title, readOnlyHint: z.boolean().nullish().catch(undefined) })
    .nullish()
    .catch(undefined),
  execution: z.looseObject({ taskSupport: z.string().optional() }).nullish().catch(undefined),
});

const promptSchema = z.looseObject({
  name,
  title,
  description,
  arguments: z
    .array(z.looseObject({ name, required: z.boolean().nullish().catch(undefined) }))
    .max(50)
    .nullish(),
});

const resourceSchema = z.looseObject({ uri, name, description, mimeType: title });
const templateSchema = z.looseObject({ uriTemplate: uri, name, description });

/** A list as the server sent it, with problems of the whole list. */
export interface GivenList {
  readonly items: readonly unknown[];
  /** Whether there were more items than {@link offerLimit}. */
  readonly isCut: boolean;
}

/** How tools of a server may be called. */
export interface ToolSupport {
  /** Whether parameters may be sent in HTTP headers. */
  readonly usesHeaders: boolean;
  /** Whether tools may run as tasks. */
  readonly hasTasks: boolean;
}

/** Returns the usable tools. The notes name the others. */
export function parseTools(
  { items, isCut }: GivenList,
  support: ToolSupport,
): { tools: OfferedTool[]; notes: string[] } {
  const check = new SchemaCheck();
  const tools = new Map<string, OfferedTool>();
  const left: string[] = [];
  for (const [index, item] of items.entries()) {
    const parsed = toolSchema.safeParse(item);
    if (!parsed.success) {
      left.push(`${getName(item, index)} (it is not described as a tool)`);
      continue;
    }
    const tool = toTool(parsed.data, check, support);
    if ("problem" in tool) left.push(`${parsed.data.name} (${tool.problem})`);
    else if (tools.has(tool.name)) left.push(`${tool.name} (a second one of this name)`);
    else tools.set(tool.name, tool);
  }
  return { tools: [...tools.values()], notes: createNotes("tools", left, isCut) };
}

export function parsePrompts({ items, isCut }: GivenList): { prompts: OfferedPrompt[]; notes: string[] } {
  const { found, left } = parseEach(items, promptSchema);
  const prompts = found.map(({ name, description, title, arguments: given }) => ({
    name,
    description: description ?? title ?? "",
    arguments: (given ?? []).map((one) => ({ name: one.name, isRequired: one.required === true })),
  }));
  return {
    prompts: omitDuplicates(prompts, (prompt) => prompt.name),
    notes: createNotes("prompts", left, isCut),
  };
}

export function parseResources({ items, isCut }: GivenList): {
  resources: OfferedResource[];
  notes: string[];
} {
  const { found, left } = parseEach(items, resourceSchema);
  const resources = found.map(({ uri, name, description, mimeType }) => ({
    uri,
    name,
    description,
    mimeType,
  }));
  return {
    resources: omitDuplicates(resources, (resource) => resource.uri),
    notes: createNotes("resources", left, isCut),
  };
}

export function parseTemplates({ items, isCut }: GivenList): {
  templates: OfferedTemplate[];
  notes: string[];
} {
  const { found, left } = parseEach(items, templateSchema);
  const templates = found.map(({ uriTemplate, name, description }) => ({ uriTemplate, name, description }));
  return { templates, notes: createNotes("resource templates", left, isCut) };
}

function toTool(
  given: z.output<typeof toolSchema>,
  check: SchemaCheck,
  { usesHeaders, hasTasks }: ToolSupport,
): OfferedTool | { problem: string } {
  const { taskSupport = "forbidden" } = given.execution ?? {};
  if (taskSupport === "required" && !hasTasks)
    return { problem: "it works as a task only, and the server does not support tasks" };
  const checked = check.check(given.inputSchema);
  if ("problem" in checked) return checked;
  const problem =
    usesHeaders && isRecord(given.inputSchema) ? findHeaderProblem(given.inputSchema) : undefined;
  if (problem !== undefined) return { problem };
  const title = given.title ?? given.annotations?.title;
  return {
    name: given.name,
    title,
    description: given.description ?? title ?? "",
    schema: checked.schema,
    isReadOnly: given.annotations?.readOnlyHint === true,
    isTask: hasTasks && (taskSupport === "required" || taskSupport === "optional"),
  };
}

function parseEach<T>(items: readonly unknown[], schema: z.ZodType<T>): { found: T[]; left: string[] } {
  const found: T[] = [];
  const left: string[] = [];
  for (const [index, item] of items.entries()) {
    const parsed = schema.safeParse(item);
    if (parsed.success) found.push(parsed.data);
    else left.push(getName(item, index));
  }
  return { found, left };
}

function getName(item: unknown, index: number): string {
  const named = z.object({ name: z.string().min(1) }).safeParse(item);
  return named.success ? named.data.name.slice(0, nameLimit) : `number ${index + 1}`;
}

function omitDuplicates<T>(items: readonly T[], keyOf: (item: T) => string): T[] {
  const byKey = new Map<string, T>();
  for (const item of items) if (!byKey.has(keyOf(item))) byKey.set(keyOf(item), item);
  return [...byKey.values()];
}

function createNotes(kind: string, left: readonly string[], isCut: boolean): string[] {
  const named = left.slice(0, namedLimit).join(", ");
  const rest = left.length > namedLimit ? ` and ${left.length - namedLimit} more` : "";
  return [
    ...(left.length > 0 ? [`${kind} left out: ${named}${rest}`] : []),
    ...(isCut ? [`it offers more than ${offerLimit} ${kind}; the first ${offerLimit} are known`] : []),
  ];
}
