import { z } from "zod";
import { showInvisible } from "../permission/invisible.ts";
import { defineTool, type Tool, type ToolContext, ToolFailure, type ToolResult } from "../tool/tool.ts";
import type { Asked } from "./plugin-host.ts";
import { type LoadedModule, ranToolSchema } from "./protocol.ts";

/** How long a call may take, in milliseconds: as long as a command at most. */
export const runLimitMs = 10 * 60_000;
/** Characters of the arguments in a call's title. */
const titleLimit = 100;
/** Characters of the facts that are stored with a call, as JSON. */
const metadataLimit = 10_000;

/** Asks the host; the tool is the module's own. */
export interface ToolHost {
  check(args: unknown, signal: AbortSignal): Promise<Asked>;
  run(args: unknown, context: ToolContext, callId: string, signal: AbortSignal): Promise<Asked>;
}

/** A tool that a module brought. Its permission has its name and asks by default: nobody knows what it does. */
export function moduleTool(
  { name, description, schema }: LoadedModule["tools"][number],
  file: string,
  host: ToolHost,
): Tool {
  return defineTool({
    name,
    description,
    input: argsSchema,
    schema,
    asks: true,
    kind: "other",
    concurrency: "shared",
    async prepare(args, context) {
      const checked = await host.check(args, context.signal);
      if (checked.outcome === "input") throw new ToolFailure(inputProblem(checked.message));
      if (checked.outcome !== "value") throw failure(name, file, checked);
      return {
        title: titleOf(name, args),
        locations: [],
        preview: { text: `${name} of ${file}\n${JSON.stringify(args, null, 2)}` },
        permissions: [{ permission: name, subjects: [{ text: "*" }], always: ["*"] }],
        run: async ({ callId, signal }) => {
          const ran = await host.run(args, context, callId, signal);
          if (ran.outcome !== "value") throw failure(name, file, ran);
          return toResult(ran.value);
        },
      };
    },
  });
}

const argsSchema = z.record(z.string(), z.unknown());

function toResult(value: unknown): ToolResult {
  const { output, title, metadata } = ranToolSchema.parse(value);
  return {
    status: "completed",
    output,
    ...(title && { title: shownTitle(title) }),
    ...(metadata && { metadata: boundedFacts(metadata) }),
  };
}

/** A title that an author's code gives, as one short line in which nothing acts. */
export function shownTitle(title: string): string {
  return shorten(showInvisible(title.slice(0, titleLimit * 10).replaceAll(/\s+/g, " ")));
}

/** What an author's code says of a call, as far as it is stored with it. */
export function boundedFacts(metadata: Record<string, unknown>): Record<string, unknown> {
  return JSON.stringify(metadata).length > metadataLimit ? { leftOut: "too long" } : metadata;
}

function failure(name: string, file: string, asked: Exclude<Asked, { outcome: "value" }>): ToolFailure {
  return new ToolFailure(`The tool ${name} (${file}) failed: ${asked.message}`);
}

function inputProblem(lines: string): string {
  return `Invalid arguments. Call the tool again with these fixed:\n${lines}`;
}

function titleOf(name: string, args: unknown): string {
  return `${name} ${shorten(showInvisible(JSON.stringify(args).replaceAll(/\s+/g, " ")))}`;
}

function shorten(text: string): string {
  return text.length > titleLimit ? `${text.slice(0, titleLimit)}…` : text;
}
