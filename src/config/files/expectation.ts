import type { z } from "zod";
import generatedSchema from "../../../schema/config.schema.json" with { type: "json" };
import { nearest } from "../../base/text/nearest.ts";
import { isRecord } from "../../base/text/record.ts";

type Issue = z.core.$ZodIssue;

/** What was expected where a value is wrong, in words for the person. The value itself may be a key and is not told. */
export function expectationOf(issue: Issue, value: unknown): string {
  const forms = [...new Set(formsOf(issue))];
  if (forms.length === 0) return issue.message.charAt(0).toLowerCase() + issue.message.slice(1);
  if (value === undefined) return `is missing; expected ${either(forms)}`;
  const not = issue.code === "invalid_type" ? `, not ${kindOf(value)}` : "";
  return `expected ${either(forms)}${not}`;
}

/** The same of an issue with its place, as one finds it when a whole value is checked. */
export function describeIssue(issue: Issue, whole: unknown): { field: string; message: string } {
  return { field: issue.path.join("."), message: expectationOf(issue, valueAt(whole, issue.path)) };
}

/** What is said of a setting that does not exist. */
export function unknownSetting(path: readonly (string | number)[], key: string): string {
  const meant = nearest(key, settingsAt(path, generatedSchema));
  return `there is no such setting${meant === undefined ? "" : `; did you mean ${meant}?`}`;
}

/** What would have been right; nothing where the issue has words of its own. */
function formsOf(issue: Issue): readonly string[] {
  switch (issue.code) {
    case "invalid_type":
      return [nouns[issue.expected] ?? issue.expected];
    case "invalid_value":
      return issue.values.map((value) => JSON.stringify(value));
    case "too_small":
      return [
        boundOf(issue.origin, Number(issue.minimum), issue.inclusive === false ? "above" : "of at least"),
      ];
    case "too_big":
      return [
        boundOf(issue.origin, Number(issue.maximum), issue.inclusive === false ? "below" : "of at most"),
      ];
    case "invalid_union":
      return issue.errors.flatMap((form) => form.slice(0, 1).flatMap(formsOf));
    default:
      return [];
  }
}

const nouns: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list […]",
  object: "an object {…}",
  record: "an object {…}",
};

function boundOf(origin: string, limit: number, word: string): string {
  if (origin === "string")
    return limit <= 1 ? "a text that is not empty" : `a text ${word} ${limit} characters`;
  if (origin === "array") return `a list ${word} ${limit} ${limit === 1 ? "entry" : "entries"}`;
  return `a number ${word} ${limit}`;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return nouns[typeof value]?.replace(" {…}", "") ?? typeof value;
}

function either(forms: readonly string[]): string {
  const [last = "", ...others] = forms.toReversed();
  return others.length === 0 ? last : `${others.toReversed().join(", ")} or ${last}`;
}

/** The names that the schema knows at a place; none where any may stand. */
function settingsAt(path: readonly (string | number)[], schema: unknown): string[] {
  if (!isRecord(schema)) return [];
  const forms = Array.isArray(schema["anyOf"]) ? schema["anyOf"] : [];
  const below = forms.flatMap((form: unknown) => settingsAt(path, form));
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const [key, ...rest] = path;
  if (key === undefined) return [...Object.keys(properties), ...below];
  return [
    ...settingsAt(rest, properties[key] ?? schema["items"] ?? schema["additionalProperties"]),
    ...below,
  ];
}

/** What stands at a path; undefined where nothing does. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const key of path) {
    if (Array.isArray(at)) at = at[Number(key)];
    else if (isRecord(at) && Object.hasOwn(at, key)) at = at[String(key)];
    else return undefined;
  }
  return at;
}
