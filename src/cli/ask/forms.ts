import type { CreateElicitationRequest, CreateElicitationResponse } from "@agentclientprotocol/sdk";
import type { Asker } from "./asker.ts";
import { type FieldValue, type FormField, readFields } from "./form-fields.ts";
import { toScreenLine } from "../live/text-lines.ts";

/** A form that was answered, for programs that read the run. */
export interface FormOutcome {
  readonly action: "accept" | "decline" | "cancel";
  readonly response: CreateElicitationResponse;
  readonly isInterrupted: boolean;
}

/** Asks for the fields of a form, one after another. Escape declines the whole form. */
export async function askForm(
  request: CreateElicitationRequest,
  asker: Asker,
  signal: AbortSignal,
): Promise<FormOutcome> {
  const fields = readFields("requestedSchema" in request ? request.requestedSchema : undefined);
  const content: Record<string, FieldValue> = {};
  const [only] = fields;
  const isSingle = fields.length === 1 && only?.question.includes(request.message) === true;
  if (!isSingle) for (const line of request.message.split("\n")) asker.say(toScreenLine(line));
  for (const [index, field] of fields.entries()) {
    say(field, asker, fields.length > 1 ? `${index + 1}/${fields.length} ` : "");
    const answer = await asker.ask(field.prompt, signal);
    if (answer.kind === "interrupted") return createOutcome("cancel", {}, true);
    if (answer.kind === "withdrawn") return createOutcome("cancel");
    if (answer.kind === "closed") {
      asker.confirm("skipped");
      return createOutcome("decline");
    }
    const { chosen, text } = answer;
    const value = field.toValue(chosen, field.textField === undefined ? text : "");
    if (value !== undefined) content[field.name] = value;
    if (field.textField !== undefined && text !== "") content[field.textField] = text;
    asker.confirm(describe(field, chosen, text));
  }
  return createOutcome("accept", content);
}

function say({ question }: FormField, asker: Asker, number: string): void {
  const [first = "", ...more] = question.join(": ").split("\n");
  asker.question(`${number}${first}`);
  for (const line of more) asker.say(`  ${toScreenLine(line)}`);
}

function describe({ prompt: { options } }: FormField, chosen: readonly number[], text: string): string {
  const parts = [...chosen.flatMap((index) => options[index]?.label ?? []), ...(text === "" ? [] : [text])];
  return parts.length === 0 ? "(empty)" : parts.map(toScreenLine).join(", ");
}

function createOutcome(
  action: FormOutcome["action"],
  content: Record<string, FieldValue> = {},
  isInterrupted = false,
): FormOutcome {
  const response = action === "accept" ? { action, content } : { action };
  return { action, response, isInterrupted };
}
