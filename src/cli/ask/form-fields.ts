import { isRecord } from "../../base/text/record.ts";
import type { Prompt, PromptOption } from "./prompt.ts";

export type FieldValue = string | number | boolean | string[];

/** A field of a form, as a question. */
export interface FormField {
  readonly name: string;
  /** Lines of the question. */
  readonly question: readonly string[];
  readonly prompt: Prompt;
  /** The field that typed text belongs to, instead of this one. */
  readonly textField: string | undefined;
  /** Converts the answer; undefined if nothing was answered. */
  toValue(chosen: readonly number[], text: string): FieldValue | undefined;
}

/** Reads the fields of a form's schema. A text field that belongs to a choice becomes part of its question. */
export function readFields(schema: unknown): FormField[] {
  if (!isRecord(schema) || !isRecord(schema["properties"])) return [];
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const entries = Object.entries(schema["properties"]).flatMap(([name, field]): [string, Field][] =>
    isRecord(field) ? [[name, field]] : [],
  );
  const textFields = new Map(
    entries.flatMap(([name, field]): [string, string][] => {
      const owner = getOwner(field);
      return owner === undefined ? [] : [[owner, name]];
    }),
  );
  return entries.flatMap(([name, field]) =>
    getOwner(field) === undefined
      ? [createField(name, field, textFields.get(name), !required.includes(name))]
      : [],
  );
}

const escape = "skip";

type Field = Readonly<Record<string, unknown>>;

/** Returns the choice that a text field belongs to. */
function getOwner(field: Field): string | undefined {
  const meta = field["_meta"];
  const custom = isRecord(meta) ? meta["_askUserQuestionCustomAnswer"] : undefined;
  return isRecord(custom) && typeof custom["questionId"] === "string" ? custom["questionId"] : undefined;
}

function createField(
  name: string,
  field: Field,
  textField: string | undefined,
  isOptional: boolean,
): FormField {
  const question = [field["title"], field["description"]].filter((text) => typeof text === "string");
  const base = { name, question: question.length === 0 ? [name] : question, textField };
  const isMultiple = field["type"] === "array";
  const choices = readChoices(isMultiple && isRecord(field["items"]) ? field["items"] : field);
  if (field["type"] === "boolean")
    return {
      ...base,
      prompt: { options: [{ label: "Yes" }, { label: "No" }], escape, findByWord: findYesOrNo },
      toValue: ([index]) => (index === undefined ? undefined : index === 0),
    };
  if (choices.length > 0)
    return {
      ...base,
      prompt: {
        options: choices.map(({ option }) => option),
        escape,
        isMultiple,
        ...(textField !== undefined && { textHint: "type another answer" }),
      },
      toValue: (chosen) => {
        const values = chosen.flatMap((index) => choices[index]?.value ?? []);
        return isMultiple ? values : values[0];
      },
    };
  const isNumber = field["type"] === "number" || field["type"] === "integer";
  return {
    ...base,
    prompt: {
      options: [],
      escape,
      textHint: "type the answer",
      isOptional,
      check: (text) => findProblem(text, field),
    },
    toValue: (_chosen, text) => (text === "" ? undefined : isNumber ? Number(text) : text),
  };
}

function findYesOrNo(word: string): number | undefined {
  return /^y$/i.test(word) ? 0 : /^n$/i.test(word) ? 1 : undefined;
}

/** Reads the choices of `oneOf`, `anyOf` or `enum`. A title `label — description` is shown as label and hint. */
function readChoices(field: Field): { readonly value: string; readonly option: PromptOption }[] {
  const listed = field["oneOf"] ?? field["anyOf"];
  if (Array.isArray(listed))
    return listed.filter(isRecord).flatMap((choice) => {
      const { const: value, title } = choice;
      if (typeof value !== "string") return [];
      const shown = typeof title === "string" ? title : value;
      const hint = shown.startsWith(`${value} — `) ? shown.slice(value.length + 3) : undefined;
      return [{ value, option: hint === undefined ? { label: shown } : { label: value, hint } }];
    });
  const values = Array.isArray(field["enum"]) ? field["enum"] : [];
  return values.flatMap((value) => (typeof value === "string" ? [{ value, option: { label: value } }] : []));
}

/** Returns why a text is not a value of a text or number field. */
function findProblem(text: string, field: Field): string | undefined {
  const { type, minimum, maximum, minLength, maxLength } = field;
  if (type === "number" || type === "integer") {
    const value = Number(text);
    if (!Number.isFinite(value)) return "Answer with a number.";
    if (type === "integer" && !Number.isInteger(value)) return "Answer with a whole number.";
    if (typeof minimum === "number" && value < minimum) return `The number must be at least ${minimum}.`;
    if (typeof maximum === "number" && value > maximum) return `The number must be at most ${maximum}.`;
    return undefined;
  }
  if (typeof minLength === "number" && text.length < minLength) return `At least ${minLength} characters.`;
  if (typeof maxLength === "number" && text.length > maxLength) return `At most ${maxLength} characters.`;
  return undefined;
}
