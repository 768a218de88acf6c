import type { GivenPrompt } from "../../message/message.ts";
import { invalidParams } from "../errors.ts";

/** Characters of the instructions that a client may give; they are sent with each model call. */
const promptLimit = 100_000;

/** The instructions of a client as it sends them, in the form of either version of the protocol. */
interface SentPrompt {
  mode: string;
  content: readonly { type: string; text?: unknown }[];
}

/** The part of a setup's parameters that speaks of it. The first is unstable. */
export interface ClientPromptParams {
  systemPrompt?: SentPrompt | null | undefined;
  _meta?: Record<string, unknown> | null | undefined;
}

/** What a client says of the model's instructions, if it does. Throws for what cannot be done. */
export function parseClientPrompt(params: ClientPromptParams): GivenPrompt | undefined {
  const { systemPrompt, _meta } = params;
  return systemPrompt ? toGivenPrompt(systemPrompt) : parseLegacyPrompt(_meta?.["systemPrompt"]);
}

/** Before the protocol had a place for it, clients said it so: a text replaces, an object with `append` adds. */
function parseLegacyPrompt(sent: unknown): GivenPrompt | undefined {
  if (typeof sent === "string" && sent.trim() !== "")
    return toGivenPrompt({ mode: "override", content: [{ type: "text", text: sent }] });
  if (typeof sent !== "object" || sent === null || !("append" in sent)) return undefined;
  const { append: text } = sent;
  if (typeof text !== "string" || text.trim() === "") return undefined;
  return toGivenPrompt({ mode: "append", content: [{ type: "text", text }] });
}

function toGivenPrompt(sent: SentPrompt): GivenPrompt {
  const { mode } = sent;
  if (mode !== "append" && mode !== "override")
    throw invalidParams(`systemPrompt.mode must be "append" or "override", not "${mode}".`);
  const text = sent.content.map(toText).join("\n\n");
  if (text.trim() === "") throw invalidParams("systemPrompt.content has no text.");
  if (text.length > promptLimit)
    throw invalidParams(`systemPrompt.content may have ${promptLimit} characters, not ${text.length}.`);
  return { mode, text };
}

function toText({ type, text }: SentPrompt["content"][number]): string {
  if (type !== "text" || typeof text !== "string")
    throw invalidParams(`systemPrompt.content must be text; "${type}" is not supported.`);
  return text;
}
