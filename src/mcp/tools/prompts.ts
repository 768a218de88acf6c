import { z } from "zod";
import type { ServerAnswers } from "../../message/sampling.ts";
import type { Attachment } from "../../message/part.ts";
import { promptAnswerSchema, readBlocks, type ReadContent } from "./content.ts";
import type { OfferedPrompt } from "../offers/offers.ts";
import type { McpServer } from "../server.ts";
import { describeFailedCall } from "./tools.ts";

/** A prompt of a server, which the user calls like a command. */
export interface ServerPrompt {
  /** `server:prompt`, without spaces. */
  readonly name: string;
  readonly description: string;
  /** Hint for the arguments after the name. */
  readonly hint: string | undefined;
  /** Requests the text from the server. `typed` is the text after the name. */
  fill(typed: string, signal: AbortSignal): Promise<FilledPrompt>;
}

export type FilledPrompt =
  | {
      readonly outcome: "filled";
      readonly text: string;
      readonly attachments: readonly Attachment[];
    }
  | { readonly outcome: "cancelled" }
  /** Message for the user. */
  | { readonly outcome: "refused"; readonly reason: string };

export function createServerPrompt(
  server: McpServer,
  offered: OfferedPrompt,
  answers: ServerAnswers,
): ServerPrompt {
  const given = offered.arguments.map(({ name, isRequired }) => (isRequired ? `<${name}>` : `[${name}]`));
  return {
    name: `${server.settings.name}:${offered.name}`.replaceAll(/\s+/g, "_"),
    description: offered.description.replaceAll(/\s+/g, " ").trim(),
    hint: given.length === 0 ? undefined : given.join(" "),
    fill: (typed, signal) => fill(server, offered, typed, { ...answers, signal }),
  };
}

async function fill(
  server: McpServer,
  offered: OfferedPrompt,
  typed: string,
  user: ServerAnswers & { signal: AbortSignal },
): Promise<FilledPrompt> {
  const values = parseArguments(
    typed,
    offered.arguments.map(({ name }) => name),
  );
  const missing = offered.arguments.filter(
    ({ name, isRequired }) => isRequired && values[name] === undefined,
  );
  if (missing.length > 0) return { outcome: "refused", reason: describeMissing(offered, missing) };
  const params = { name: offered.name, arguments: values };
  const answered = await server.request("prompts/get", params, promptAnswerSchema, user);
  if (answered.outcome === "answered")
    return { outcome: "filled", ...(await readMessages(answered.value.messages, user.signal)) };
  if (answered.failure.kind === "cancelled") return { outcome: "cancelled" };
  return { outcome: "refused", reason: describeFailedCall(answered.failure, server) };
}

/** Parses values by name (`name=value`) or in order; the last argument takes the rest. Quotes group words. */
export function parseArguments(typed: string, names: readonly string[]): Record<string, string> {
  const words = [...typed.matchAll(/(?:[^\s"']+=)?(?:"[^"]*"|'[^']*')|\S+/g)].map(([word]) => word);
  const values: Record<string, string> = {};
  const inOrder: string[] = [];
  for (const word of words) {
    const [, name = "", value = ""] = /^([^\s"'=]+)=(.*)$/s.exec(word) ?? [];
    if (names.includes(name)) values[name] = unquote(value);
    else inOrder.push(unquote(word));
  }
  const open = names.filter((name) => values[name] === undefined);
  for (const [index, name] of open.entries()) {
    const isLast = index === open.length - 1;
    const value = isLast ? inOrder.slice(index).join(" ") : inOrder[index];
    if (value !== undefined && value !== "") values[name] = value;
  }
  return values;
}

function unquote(word: string): string {
  return /^(["'])(.*)\1$/s.exec(word)?.[2] ?? word;
}

function describeMissing(
  { arguments: all }: OfferedPrompt,
  missing: readonly { readonly name: string }[],
): string {
  const names = missing.map(({ name }) => name).join(", ");
  return `It needs ${names}. Write the values after the name, in the order ${all.map(({ name }) => name).join(", ")}, or as name=value.`;
}

const contentSchema = z.union([z.array(z.unknown()), z.unknown().transform((one) => [one])]);

/** Joins the messages to one text, with roles if there are messages of both sides. */
async function readMessages(
  messages: readonly { role: string; content: unknown }[],
  signal: AbortSignal,
): Promise<{ text: string; attachments: readonly Attachment[] }> {
  const parts: ({ role: string } & ReadContent)[] = [];
  for (const { role, content } of messages)
    parts.push({ role, ...(await readBlocks(contentSchema.parse(content), signal)) });
  const isOneSided = parts.every(({ role }) => role === "user");
  const texts = parts.map(({ role, text }) => (isOneSided ? text : `[${role}]\n${text}`));
  return { text: texts.join("\n\n"), attachments: parts.flatMap(({ attachments }) => attachments) };
}
