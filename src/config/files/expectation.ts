import type { z } from "zod";
import generatedSchema from "../../../schema/config.schema.json" with { type: "json" };
import { nearest } from "../../base/text/nearest.ts";
import { isRecord } from "../../base/text/record.ts";

type Issue = z.core.$ZodIssue;

/** Describes for the user what was expected. Never shows the value, because it may be a key. */
export function describeExpectation(issue: Issue, value: unknown): string {
  const forms = [...new Set(listForms(issue))];
  if (forms.length === 0) return issue.message.charAt(0).toLowerCase() + issue.message.slice(1);
  if (value === undefined) return `is missing; expected ${joinWithOr(forms)}`;
  const not = issue.code === "invalid_type" ? `, not ${kindOf(value)}` : "";
  return `expected ${joinWithOr(forms)}${not}`;
}

/** Describes an issue together with its field. */
export function describeIssue(issue: Issue, whole: unknown): { field: string; message: string } {
  return { field: issue.path.join("."), message: describeExpectation(issue, getValue(whole, issue.path)) };
}

/** Message for an unknown setting, with a suggestion. */
export function describeUnknownSetting(path: readonly (string | number)[], key: string): string {
  const suggestion = nearest(key, listSettings(path, generatedSchema));
  return `unknown setting${suggestion === undefined ? "" : `; did you mean ${suggestion}?`}`;
}

/** Expected forms; empty if the issue has its own message. */
function listForms(issue: Issue): readonly string[] {
  switch (issue.code) {
    case "invalid_type":
      return [nouns[issue.expected] ?? issue.expected];
    case "invalid_value":
      return issue.values.map((value) => JSON.stringify(value));
    case "too_small":
      return [
        describeBound(
          issue.origin,
          Number(issue.minimum),
          issue.inclusive === false ? "above" : "of at least",
        ),
      ];
    case "too_big":
      return [
        describeBound(
          issue.origin,
          Number(issue.maximum),
          issue.inclusive === false ? "below" : "of at most",
        ),
      ];
    case "invalid_union":
      return issue.errors.flatMap((form) => form.slice(0, 1).flatMap(listForms));
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

function describeBound(origin: string, limit: number, word: string): string {
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

function joinWithOr(forms: readonly string[]): string {
  const [last = "", ...others] = forms.toReversed();
  return others.length === 0 ? last : `${others.toReversed().join(", ")} or ${last}`;
}

/** Setting names that the schema knows at a path; empty if any name is allowed. */
function listSettings(path: readonly (string | number)[], schema: unknown): string[] {
  if (!isRecord(schema)) return [];
  const forms = Array.isArray(schema["anyOf"]) ? schema["anyOf"] : [];
  const below = forms.flatMap((form: unknown) => listSettings(path, form));
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const [key, ...rest] = path;
  if (key === undefined) return [...Object.keys(properties), ...below];
  return [
    ...listSettings(rest, properties[key] ?? schema["items"] ?? schema["additionalProperties"]),
    ...below,
  ];
}

/** Value at a path; undefined if there is none. */
export function getValue(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const key of path) {
    if (Array.isArray(at)) at = at[Number(key)];
    else if (isRecord(at) && Object.hasOwn(at, key)) at = at[String(key)];
    else return undefined;
  }
  return at;
}
