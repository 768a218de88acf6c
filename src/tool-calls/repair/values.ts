import { quoteWord } from "../../base/text/quote-word.ts";
import { isRecord } from "../../base/text/record.ts";
import { parseTolerantJson } from "./json-text.ts";
import { type Aliases, normalizeKey, repairKeys } from "./keys.ts";
import { quoteValue, type Repairs } from "./repairs.ts";
import { getItems, getProperty, getRequired, getTypes, hasType, type Schema } from "./schema.ts";

export interface ValueContext {
  readonly aliases: Aliases;
  /** Whether keys outside the schema are not parameters. */
  readonly isClosed: boolean;
  /** Whether a list for a text may be a program with its arguments. */
  readonly runsCommands: boolean;
  readonly repairs: Repairs;
}

/** Texts that models write for an optional argument that they leave out. */
const absentTexts: ReadonlySet<string> = new Set(["null", "undefined", "None"]);

/** Words for the values of enums, without case and `_-`. */
const synonyms: ReadonlyMap<string, string> = new Map(
  Object.entries({
    completed: ["done", "complete", "finished", "closed"],
    pending: ["todo", "open", "notstarted", "new", "queued"],
    inprogress: ["doing", "active", "started", "wip", "ongoing", "current"],
    cancelled: ["canceled", "dropped"],
    high: ["critical", "urgent"],
    medium: ["normal", "med"],
    low: ["minor"],
  }).flatMap(([value, words]) => words.map((word) => [word, value])),
);

/** Repairs keys and values of an object. */
export function repairObject(
  value: Readonly<Record<string, unknown>>,
  schema: Schema,
  context: ValueContext,
  path = "",
): Readonly<Record<string, unknown>> {
  const keyed = repairKeys(value, schema, context);
  const required = new Set(getRequired(schema));
  const repaired: [string, unknown][] = [];
  for (const [key, field] of Object.entries(keyed)) {
    const property = getProperty(schema, key);
    if (property !== undefined && !required.has(key) && isAbsent(field, property)) {
      if (field !== null) context.repairs.add("omitted", `${path}${key} left out`, quoteValue(field));
    } else
      repaired.push([
        key,
        property === undefined ? field : repairValue(field, property, context, `${path}${key}`),
      ]);
  }
  return Object.fromEntries(repaired);
}

/** Whether the model wrote the value to leave out an optional argument. */
function isAbsent(value: unknown, schema: Schema): boolean {
  if (value === null) return hasOwnType(schema) && !getTypes(schema).includes("null");
  if (typeof value !== "string") return false;
  const isAllowed = Array.isArray(schema.enum) && schema.enum.includes(value);
  if (absentTexts.has(value)) return !isAllowed;
  const takesEmpty = getTypes(schema).includes("string") && schema.minLength === undefined && !schema.enum;
  return value.trim() === "" && !takesEmpty && hasOwnType(schema);
}

const hasOwnType = (schema: Schema): boolean => getTypes(schema).length > 0 || Array.isArray(schema.enum);

/** Returns the value that the schema wants if the given one has a single meaning, else the given one. */
function repairValue(value: unknown, schema: Schema, context: ValueContext, path: string): unknown {
  const chosen = Array.isArray(schema.enum) ? findChoice(value, schema.enum) : undefined;
  if (chosen !== undefined) {
    if (chosen !== value) context.repairs.add("value", `${path} = ${chosen}`, quoteValue(value));
    return chosen;
  }
  const converted = hasType(value, schema) ? value : convert(value, schema, context);
  if (converted !== value)
    context.repairs.add("value", describeConversion(path, converted), quoteValue(value));
  if (Array.isArray(converted)) {
    const items = getItems(schema);
    return items === undefined
      ? converted
      : converted.map((item, index) => repairValue(item, items, context, `${path}[${index}]`));
  }
  return isRecord(converted) && isRecord(schema.properties)
    ? repairObject(converted, schema, context, `${path}.`)
    : converted;
}

function describeConversion(path: string, value: unknown): string {
  if (Array.isArray(value)) return `${path} as a list`;
  return isRecord(value) ? `${path} as an object` : `${path} = ${quoteValue(value)}`;
}

/** Finds an enum's value by the same letters or a synonym. */
function findChoice(value: unknown, choices: readonly unknown[]): string | undefined {
  if (typeof value !== "string") return undefined;
  if (choices.includes(value)) return value;
  const word = normalizeKey(value);
  const texts = choices.filter((choice) => typeof choice === "string");
  const wanted = synonyms.get(word);
  return (
    texts.find((choice) => normalizeKey(choice) === word) ??
    texts.find((choice) => normalizeKey(choice) === wanted)
  );
}

function convert(value: unknown, schema: Schema, context: ValueContext): unknown {
  for (const type of getTypes(schema)) {
    const converted = convertTo(type, value, schema, context);
    if (converted !== undefined) return converted;
  }
  return value;
}

function convertTo(type: string, value: unknown, schema: Schema, context: ValueContext): unknown {
  switch (type) {
    case "integer":
    case "number":
      return toNumber(value, type);
    case "boolean":
      return toBoolean(value);
    case "string":
      return toText(value, context);
    case "array":
      return toList(value, schema);
    case "object":
      return typeof value === "string" ? parseAs(value, isRecord) : undefined;
    default:
      return undefined;
  }
}

function toNumber(value: unknown, type: "integer" | "number"): number | undefined {
  if (typeof value !== "string" || !/^\s*[-+]?\d+(?:\.\d+)?\s*$/.test(value)) return undefined;
  const number = Number(value);
  const isFit = type === "integer" ? Number.isSafeInteger(number) : Number.isFinite(number);
  return isFit ? number : undefined;
}

function toBoolean(value: unknown): boolean | undefined {
  if (value === 1 || value === 0) return value === 1;
  const word = typeof value === "string" ? value.trim().toLowerCase() : "";
  if (/^(?:true|yes|on|1)$/.test(word)) return true;
  return /^(?:false|no|off|0)$/.test(word) ? false : undefined;
}

function toText(value: unknown, { runsCommands }: ValueContext): string | undefined {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const texts = Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
  if (!Array.isArray(value) || texts.length !== value.length || texts.length === 0) return undefined;
  if (runsCommands) return toCommandLine(texts);
  return texts.length === 1 ? texts[0] : undefined;
}

/** Returns the script of `["bash", "-lc", script]`, or the program with its arguments quoted. */
function toCommandLine(words: readonly string[]): string | undefined {
  const [program = "", option = "", script] = words;
  if (words.length === 1) return program;
  if (/^(?:\/(?:usr\/)?bin\/)?(?:ba|z|da)?sh$/.test(program) && /^-l?c$/.test(option))
    return words.length === 3 ? script : undefined;
  return words.map(quoteIfNeeded).join(" ");
}

function quoteIfNeeded(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : quoteWord(word);
}

function toList(value: unknown, schema: Schema): readonly unknown[] | undefined {
  const items = getItems(schema);
  if (typeof value === "string") {
    const list = parseAs(value, Array.isArray);
    if (list !== undefined) return list;
    const object = items && getTypes(items).includes("object") ? parseAs(value, isRecord) : undefined;
    if (object !== undefined) return [object];
    // A text that begins like a list but is not a list would become a wrong item.
    if (value.trim() === "" || /^\s*[[{]/.test(value)) return undefined;
  }
  return value !== undefined && items !== undefined && hasType(value, items) && hasOwnType(items)
    ? [value]
    : undefined;
}

/** Parses JSON text, also as Python writes it, if it has the wanted form. */
function parseAs<T>(text: string, isWanted: (value: unknown) => value is T): T | undefined {
  const value = parseTolerantJson(text)?.value;
  return isWanted(value) ? value : undefined;
}
