import type { GivenPrompt } from "../message/message.ts";
import { invalidParams } from "./errors.ts";

/** Characters of the instructions that a client may give; they are sent with each model call. */
const longestPrompt = 100_000;

/** The instructions of a client as it sends them, in the form of either version of the protocol. */
export interface SentPrompt {
  mode: string;
  content: readonly { type: string; text?: unknown }[];
}

/** Unstable: what a client says of the model's instructions. Throws for what cannot be done. */
export function toGivenPrompt(sent: SentPrompt | null | undefined): GivenPrompt | undefined {
  if (sent === undefined || sent === null) return undefined;
  const { mode } = sent;
  if (mode !== "append" && mode !== "override")
    throw invalidParams(`systemPrompt.mode must be "append" or "override", not "${mode}".`);
  const text = sent.content.map(toText).join("\n\n");
  if (text.trim() === "") throw invalidParams("systemPrompt.content has no text.");
  if (text.length > longestPrompt)
    throw invalidParams(`systemPrompt.content may have ${longestPrompt} characters, not ${text.length}.`);
  return { mode, text };
}

function toText({ type, text }: SentPrompt["content"][number]): string {
  if (type !== "text" || typeof text !== "string")
    throw invalidParams(`systemPrompt.content must be text; "${type}" is not supported.`);
  return text;
}
