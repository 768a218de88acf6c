import { type ZodType, z } from "zod";
import { messageOf } from "../../base/errors.ts";
import { excerpt } from "../../base/text/excerpt.ts";
import { isRecord } from "../../base/text/record.ts";
import { UsageError } from "../command-line/usage.ts";
import { findJson } from "./find-json.ts";
import { readTextFile } from "./text-file.ts";

export type CheckedAnswer =
  | { readonly outcome: "valid"; readonly value: unknown }
  /** `problems` are lines for the user and the model. */
  | { readonly outcome: "invalid"; readonly problems: readonly string[] };

/** Maximum problems of an answer to report, and characters of each. */
const problemLimit = 10;
const problemLength = 300;

/** The JSON schema of an answer. */
export class AnswerSchema {
  /** Instructions for the model, which follow the prompt. */
  readonly instruction: string;
  readonly #validator: ZodType;

  constructor(schema: unknown, validator: ZodType) {
    this.#validator = validator;
    this.instruction = [
      "Your last message must be one JSON value that is valid by the JSON Schema below, and nothing else: no explanation and no Markdown fence.",
      "",
      "```json",
      JSON.stringify(schema),
      "```",
    ].join("\n");
  }

  /** Finds the JSON value in an answer and validates it. */
  check(answer: string): CheckedAnswer {
    const found = findJson(answer);
    if (found === undefined) return { outcome: "invalid", problems: ["The answer contains no JSON value."] };
    const parsed = this.#validator.safeParse(found.value);
    if (parsed.success) return { outcome: "valid", value: found.value };
    const problems = parsed.error.issues.map(({ path, message }) =>
      excerpt(`${formatPath(path)}: ${message}`, problemLength),
    );
    return { outcome: "invalid", problems: problems.slice(0, problemLimit) };
  }
}

/** Formats the request for another answer. */
export function askAgain(problems: readonly string[]): string {
  return [
    "Your answer does not match the JSON Schema:",
    "",
    ...problems.map((problem) => `- ${problem}`),
    "",
    "Answer with the corrected JSON value only.",
  ].join("\n");
}

/** Reads the schema of --schema. Throws {@link UsageError} if it cannot be used. */
export async function readSchema(path: string | undefined): Promise<AnswerSchema | undefined> {
  if (path === undefined) return undefined;
  const schema = parse(await readTextFile("schema", path), path);
  if (!isRecord(schema)) throw new UsageError(`--schema: ${path} is not a JSON Schema object`, "run");
  try {
    return new AnswerSchema(schema, z.fromJSONSchema(schema));
  } catch (error) {
    throw new UsageError(`--schema: ${path} cannot be used: ${messageOf(error)}`, "run");
  }
}

function parse(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--schema: ${path} is not JSON: ${messageOf(error)}`, "run");
  }
}

/** Formats a path as in JavaScript: `items[2].name`; the whole value is `(answer)`. */
function formatPath(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "(answer)";
  const text = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
  return text.startsWith(".") ? text.slice(1) : text;
}
