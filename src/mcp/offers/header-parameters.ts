import { isRecord } from "../../base/text/record.ts";
import type { JsonSchema } from "./offers.ts";

/** Keyword of a parameter that is repeated in an HTTP header, whose name ends in the keyword's value. */
const keyword = "x-mcp-header";
/** Characters of a header name (RFC 9110). */
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const headerTypes: readonly unknown[] = ["string", "integer", "boolean"];
/** Keywords that contain values, not schemas. */
const valueKeywords: ReadonlySet<string> = new Set(["const", "default", "enum", "examples"]);

/** Returns why the schema's header parameters are invalid: such a tool must not be called. */
export function findHeaderProblem(schema: JsonSchema): string | undefined {
  const names = new Set<string>();
  const check = (value: unknown, place: "input" | "parameter" | "other"): string | undefined => {
    if (Array.isArray(value)) return findFirst(value, (item) => check(item, "other"));
    if (!isRecord(value)) return undefined;
    return (
      (keyword in value ? findProblemIn(value, place === "parameter", names) : undefined) ??
      findFirst(Object.entries(value), ([word, inner]) => {
        if (valueKeywords.has(word)) return undefined;
        if (word !== "properties" || !isRecord(inner)) return check(inner, "other");
        const inside = place === "other" ? "other" : "parameter";
        return findFirst(Object.values(inner), (property) => check(property, inside));
      })
    );
  };
  return check(schema, "input");
}

function findProblemIn(
  { [keyword]: name, type }: Record<string, unknown>,
  isParameter: boolean,
  names: Set<string>,
): string | undefined {
  if (!isParameter) return `"${keyword}" is only allowed for parameters`;
  if (typeof name !== "string" || !headerName.test(name)) return `"${keyword}" is not a valid header name`;
  if (!headerTypes.includes(type)) return `"${keyword}" is only allowed for texts, integers and booleans`;
  if (names.has(name.toLowerCase())) return `two parameters have the "${keyword}" ${name}`;
  names.add(name.toLowerCase());
  return undefined;
}

function findFirst<T>(items: readonly T[], find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
