import { shortenTitle, titleLimit } from "../base/text/call-titles.ts";
import { z } from "zod";
import { showInvisible } from "../base/text/invisible.ts";
import { defineTool, type Tool, type ToolContext, ToolFailure, type ToolResult } from "../tool/tool.ts";
import type { HostResult } from "./plugin-host.ts";
import { type LoadedModule, ranToolSchema } from "./protocol.ts";

/** Time limit of a call in milliseconds, the same as for commands. */
export const runLimitMs = 10 * 60_000;
/** Maximum length of a call's metadata, as JSON. */
const metadataLimit = 10_000;

/** Runs a module's tool in the host. */
export interface ToolHost {
  check(args: unknown, signal: AbortSignal): Promise<HostResult>;
  run(args: unknown, context: ToolContext, callId: string, signal: AbortSignal): Promise<HostResult>;
}

/**
 * Creates a tool from a module. Its permission has the tool's name and asks by default, because its effects
 * are unknown.
 */
export function createModuleTool(
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
      if (checked.outcome === "input") throw new ToolFailure(describeInputProblem(checked.message));
      if (checked.outcome !== "value") throw failure(name, file, checked);
      return {
        title: createTitle(name, args),
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
    ...(title && { title: sanitizeTitle(title) }),
    ...(metadata && { metadata: limitMetadata(metadata) }),
  };
}

/** Sanitizes a title from a module to one short line. */
export function sanitizeTitle(title: string): string {
  return shortenTitle(showInvisible(title.slice(0, titleLimit * 10).replaceAll(/\s+/g, " ")));
}

/** Limits the size of metadata from a module. */
export function limitMetadata(metadata: Record<string, unknown>): Record<string, unknown> {
  return JSON.stringify(metadata).length > metadataLimit ? { leftOut: "too long" } : metadata;
}

function failure(name: string, file: string, result: Exclude<HostResult, { outcome: "value" }>): ToolFailure {
  return new ToolFailure(
    `The tool ${name} (${file}) failed: ${result.message}\n\nFix the arguments if they are the cause, or go on without it.`,
  );
}

function describeInputProblem(lines: string): string {
  return `Invalid arguments. Call the tool again with these fixed:\n${lines}`;
}

function createTitle(name: string, args: unknown): string {
  return `${name} ${shortenTitle(showInvisible(JSON.stringify(args).replaceAll(/\s+/g, " ")))}`;
}
