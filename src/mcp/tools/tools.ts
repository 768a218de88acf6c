import { z } from "zod";
import { sha256 } from "../../base/text/hash.ts";
import type { ServerAnswers } from "../../message/sampling.ts";
import type { TraceContext } from "../../message/trace-context.ts";
import { defineTool, type RunContext, type Tool, ToolFailure, type ToolResult } from "../../tool/tool.ts";
import { callAnswerSchema, readAnswer } from "./content.ts";
import type { OfferedTool } from "../offers/offers.ts";
import type { Progress } from "../connection/connection.ts";
import type { RequestFailure } from "../connection/failures.ts";
import type { McpServer } from "../server.ts";
import { describeSettings } from "../server-settings.ts";

const inputSchema = z.record(z.string(), z.unknown());
type Input = z.infer<typeof inputSchema>;

/** Maximum length of a description in a permission request, in characters. */
const shownDescription = 600;
/** Maximum number of progress lines per call. */
const progressLimit = 1_000;
const progressLength = 300;

/** Wraps a server's tool. It asks for permission unless the user's rules allow it. */
export function createServerTool(
  name: string,
  server: McpServer,
  offered: OfferedTool,
  answers: ServerAnswers,
): Tool {
  // "Always" applies to the current definition: a changed tool asks again.
  const version = `${name}@${getVersion(server, offered)}`;
  return defineTool<Input>({
    name,
    description: offered.description || `The tool ${offered.name} of the MCP server ${server.settings.name}.`,
    input: inputSchema,
    schema: offered.schema,
    source: `the MCP server ${server.settings.name}`,
    server: server.settings.name,
    asks: true,
    kind: "other",
    // The server's read-only hint only allows concurrent calls; it does not affect permissions.
    concurrency: offered.isReadOnly ? "shared" : "exclusive",
    async prepare(input, { trace }) {
      const subject = {
        text: version,
        reason: `calls ${offered.name} of the MCP server ${server.settings.name}`,
      };
      return {
        title: `${server.settings.name}: ${offered.name}`,
        locations: [],
        preview: { text: describeTool(server, offered) },
        permissions: [{ permission: name, subjects: [subject], always: [version] }],
        run: (run) => callTool(server, offered, { input, trace }, answers, run),
      };
    },
  });
}

function getVersion({ settings }: McpServer, offered: OfferedTool): string {
  const target = settings.type === "local" ? [settings.command, settings.args, settings.cwd] : [settings.url];
  const what = [settings.name, target, offered];
  return sha256(JSON.stringify(what)).slice(0, 12);
}

function describeTool({ settings }: McpServer, { description, isReadOnly }: OfferedTool): string {
  const about = description.trim();
  return [
    `MCP server: ${describeSettings(settings)}`,
    ...(about === "" ? [] : [`The server says: ${truncate(about, shownDescription)}`]),
    ...(isReadOnly ? ["The server says that it only reads."] : []),
  ].join("\n");
}

async function callTool(
  server: McpServer,
  { name }: OfferedTool,
  { input, trace }: { input: Input; trace: TraceContext | undefined },
  answers: ServerAnswers,
  run: RunContext,
): Promise<ToolResult> {
  const params = { name, arguments: input, ...(trace && { _meta: trace }) };
  const progress = new ProgressLines((line) => run.output(line));
  const user = {
    ...answers,
    signal: run.signal,
    callId: run.callId,
    onProgress: (one: Progress) => progress.add(one),
  };
  const called = await server.request("tools/call", params, callAnswerSchema, user);
  if (called.outcome === "failed")
    throw new ToolFailure(describeFailedCall(called.failure, server), { cause: called.failure });
  const { text, attachments } = await readAnswer(called.value, run.signal);
  if (called.value.isError === true)
    return { status: "failed", error: text || `${name} failed without saying why.`, notes: failedHint };
  return { status: "completed", output: text || "(no output)", attachments };
}

const failedHint =
  "The error is from the MCP server. Fix the arguments if they are the cause, or go on without it.";

/** Describes a failed request for the model. */
export function describeFailedCall(failure: RequestFailure, { settings, callTimeoutMs }: McpServer): string {
  const who = `The MCP server ${settings.name}`;
  switch (failure.kind) {
    case "timed-out":
      return `${who} did not answer within ${callTimeoutMs / 1_000} s, so the call was stopped. It is unknown whether it had an effect. Try something smaller, or continue without it.`;
    case "dropped":
      if (failure.isTask)
        return `${who} lost its connection while the task was running: ${failure.reason}. It is unknown whether the task goes on. Continue without it; the user can check it with /mcp.`;
      return `${who} lost its connection during the call and again during the retry: ${failure.reason}. Continue without it; the user can check it with /mcp.`;
    case "unauthorized":
      return `${who} requires authorization by the user. Ask them to send: /mcp auth ${settings.name}`;
    case "cancelled":
      return "The call was cancelled. Go on without it.";
    case "visit":
      return `${who} requires the user to visit ${failure.visits.map(({ url }) => url).join(" and ")} first, which they did not do. Ask them to do it, or go on without it.`;
    case "failed":
      return `${who} refused the call: ${failure.reason}\n\n${failedHint}`;
  }
}

/** Shows the progress of a running call as lines. */
class ProgressLines {
  readonly #show: (line: string) => void;
  #count = 0;

  constructor(show: (line: string) => void) {
    this.#show = show;
  }

  add({ progress, total, message }: Progress): void {
    if (++this.#count > progressLimit) return;
    const share = total === undefined ? progress?.toString() : `${progress} of ${total}`;
    const text = message === undefined ? undefined : truncate(message, progressLength);
    this.#show(`${[share, text].filter((each) => each !== undefined).join(": ")}\n`);
  }
}

function truncate(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}…`;
}
