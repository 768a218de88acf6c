import type { GivenPrompt } from "../../message/message.ts";
import { invalidParams } from "../errors.ts";

/** Maximum characters of a client's system prompt, which is sent with each model call. */
const promptLimit = 100_000;

/** A client's system prompt, in either protocol version. */
interface SentPrompt {
  mode: string;
  content: readonly { type: string; text?: unknown }[];
}

/** Setup params that contain the system prompt. `systemPrompt` is unstable. */
export interface ClientPromptParams {
  systemPrompt?: SentPrompt | null | undefined;
  _meta?: Record<string, unknown> | null | undefined;
}

/** Returns the client's system prompt, if any. Throws if it is invalid. */
export function parseClientPrompt(params: ClientPromptParams): GivenPrompt | undefined {
  const { systemPrompt, _meta } = params;
  return systemPrompt ? toGivenPrompt(systemPrompt) : parseLegacyPrompt(_meta?.["systemPrompt"]);
}

/** Parses the older `_meta.systemPrompt`: a string replaces the prompt, an object with `append` adds to it. */
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
    throw invalidParams(`systemPrompt.content has ${text.length} characters; the limit is ${promptLimit}.`);
  return { mode, text };
}

function toText({ type, text }: SentPrompt["content"][number]): string {
  if (type !== "text" || typeof text !== "string")
    throw invalidParams(`systemPrompt.content must be text; "${type}" is not supported.`);
  return text;
}
