import { createHash } from "node:crypto";
import { diffLines } from "diff";
import { contentText } from "../support/model/chat-server.ts";
import { toList, toObject, toText, type JsonObject } from "../support/json.ts";
import type { ModelRequest } from "../support/model/model-server.ts";
import { useSlashes, withSlashes } from "../support/platform/path-spelling.ts";

/** A request split into parts that can be read and compared, without values that differ between machines. */
export interface RequestParts {
  readonly system: string;
  readonly tools: ReadonlyMap<string, string>;
  readonly messages: string;
  /** The other fields of the body. */
  readonly fields: string;
}

/** Folders and other texts that differ from run to run, and their replacements. */
export type Masks = readonly (readonly [found: string, shown: string])[];

export function toParts({ body, system }: ModelRequest, masks: Masks): RequestParts {
  const { messages, tools, ...fields } = body;
  const folders = masks.map(([found]) => found);
  const mask = (text: string) =>
    masks
      .reduce(
        (masked, [found, shown]) => masked.replaceAll(withSlashes(found), shown),
        useSlashes(text, folders),
      )
      .replaceAll(/^(Platform|Date|Model): .*$/gm, "$1: <$1>");
  const conversation = toList(messages)
    .map(toObject)
    .filter(({ role }) => role !== "system" && role !== "developer");
  return {
    system: mask(system),
    tools: new Map(toList(tools).map((tool) => describeTool(toObject(toObject(tool).function)))),
    messages: mask(conversation.map(describeMessage).join("\n\n")),
    fields: mask(
      Object.entries(fields)
        .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
        .join("\n"),
    ),
  };
}

function describeTool({ name, description, parameters }: JsonObject): [string, string] {
  return [String(name), `${String(description).trim()}\n\n${JSON.stringify(parameters, undefined, 1)}`];
}

function describeMessage(message: JsonObject): string {
  const { role, content, tool_calls: calls, reasoning_content: thought } = message;
  const isMarked = JSON.stringify([message.cache_control, content]).includes('"cache_control"');
  const parts = typeof content === "string" ? [content] : toList(content).map(toObject).map(describePart);
  const lines = [
    ...(thought === undefined ? [] : [`(thought) ${toText(thought)}`]),
    ...parts.filter((text) => text !== ""),
    ...toList(calls)
      .map((call) => toObject(toObject(call).function))
      .map(({ name, arguments: input }) => `(call) ${String(name)} ${String(input)}`),
  ];
  return [`---- ${String(role)}${isMarked ? ", cache mark" : ""} ----`, ...lines].join("\n");
}

function describePart(part: JsonObject): string {
  const { type, text, image_url: image } = part;
  if (type === "text") return toText(text) ?? contentText(text);
  const { length } = String(toObject(image).url);
  return `(${String(type)} of ${length} characters)`;
}

export const hashText = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 8);

/** Returns only the lines that differ, so that a change of a shared text changes one file. */
export function describeDifference(base: string, text: string, baseName: string): string {
  if (text === base) return `(as in ${baseName})`;
  const changes = diffLines(`${base}\n`, `${text}\n`).filter(({ added, removed }) => added || removed);
  const lines = changes.flatMap(({ added, value }) =>
    value
      .replace(/\n$/, "")
      .split("\n")
      .map((line) => `${added ? "+" : "-"} ${line}`.trimEnd()),
  );
  return [`(as in ${baseName}, with these changes)`, ...lines].join("\n");
}
