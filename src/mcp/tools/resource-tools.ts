import { titleOfObject, titleOfPath } from "../../base/text/call-titles.ts";
import { z } from "zod";
import listDescription from "../../../prompts/tools/list_mcp_resources.md";
import readDescription from "../../../prompts/tools/read_mcp_resource.md";
import type { ServerAnswers } from "../../message/sampling.ts";
import { defineTool, type RunContext, type Tool, ToolFailure, type ToolResult } from "../../tool/tool.ts";
import { readAnswerSchema, readContents } from "./content.ts";
import type { McpServer } from "../server.ts";
import { describeFailedCall } from "./tools.ts";

const listInput = z.object({
  server: z.string().optional().describe("Only the resources of this server; all when left out"),
});

const readInput = z.object({
  server: z.string().describe("The server's name, as list_mcp_resources gives it"),
  uri: z.string().max(8_000).describe("The resource's URI, or one made from a template"),
});

function createSchema(input: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...schema } = z.toJSONSchema(input, { io: "input" });
  return schema;
}

export interface ResourceToolsDeps {
  readonly answers: ServerAnswers;
  /** Called before a resource is read. */
  onRead(server: McpServer, uri: string): void;
}

/** Creates tools to list and read resources. None if no server has resources. */
export function createResourceTools(servers: readonly McpServer[], deps: ResourceToolsDeps): Tool[] {
  const having = servers.filter(({ offers }) => offers.hasResources);
  return having.length === 0 ? [] : [listTool(having), readTool(having, deps)];
}

function listTool(servers: readonly McpServer[]): Tool {
  return defineTool({
    name: "list_mcp_resources",
    source: "MCP resources",
    description: listDescription,
    input: listInput,
    schema: createSchema(listInput),
    kind: "search",
    concurrency: "shared",
    async prepare({ server }) {
      const wanted = server === undefined ? servers : [findServer(servers, server)];
      return {
        title: titleOfObject("List the resources of", server ?? "all MCP servers"),
        locations: [],
        permissions: [
          { permission: "list_mcp_resources", subjects: [{ text: server ?? "*" }], always: ["*"] },
        ],
        run: async () => ({ status: "completed", output: wanted.map(describeResources).join("\n\n") }),
      };
    },
  });
}

function readTool(servers: readonly McpServer[], deps: ResourceToolsDeps): Tool {
  return defineTool({
    name: "read_mcp_resource",
    source: "MCP resources",
    description: readDescription,
    input: readInput,
    schema: createSchema(readInput),
    asks: true,
    kind: "read",
    concurrency: "shared",
    async prepare({ server: name, uri }) {
      const server = findServer(servers, name);
      const subject = { text: `${name}:${uri}`, reason: `reads ${uri} from the MCP server ${name}` };
      return {
        title: titleOfPath("Read", uri, `from ${name}`),
        locations: [],
        permissions: [{ permission: "read_mcp_resource", subjects: [subject], always: [subject.text] }],
        run: (run) => {
          deps.onRead(server, uri);
          return runRead(server, uri, deps.answers, run);
        },
      };
    },
  });
}

async function runRead(
  server: McpServer,
  uri: string,
  answers: ServerAnswers,
  { signal, callId }: RunContext,
): Promise<ToolResult> {
  const read = await readResource(server, uri, { ...answers, signal, callId });
  if ("problem" in read) throw new ToolFailure(read.problem);
  return { status: "completed", output: read.text || "(no content)", attachments: read.attachments };
}

/** Reads a resource. Returns a problem for the model if it cannot be read. */
export async function readResource(
  server: McpServer,
  uri: string,
  user: ServerAnswers & { signal: AbortSignal; callId?: string },
) {
  const read = await server.request("resources/read", { uri }, readAnswerSchema, user);
  if (read.outcome === "failed") return { problem: describeFailedCall(read.failure, server) };
  return readContents(read.value.contents, user.signal);
}

function findServer(servers: readonly McpServer[], name: string): McpServer {
  const found = servers.find(({ settings }) => settings.name === name);
  if (found !== undefined) return found;
  const names = servers.map(({ settings }) => settings.name).join(", ");
  throw new ToolFailure(
    `There is no MCP server ${JSON.stringify(name)} with resources. Use one of these: ${names}.`,
  );
}

function describeResources({ settings, offers }: McpServer): string {
  const lines = [
    ...offers.resources.map(
      ({ uri, name, mimeType, description }) =>
        `- ${uri} (${name}${mimeType === undefined ? "" : `, ${mimeType}`})${createTitle(description)}`,
    ),
    ...offers.templates.map(
      ({ uriTemplate, name, description }) =>
        `- template ${uriTemplate} (${name})${createTitle(description)}`,
    ),
  ];
  return [`${settings.name}:`, ...(lines.length === 0 ? ["(no resources)"] : lines)].join("\n");
}

function createTitle(description: string | undefined): string {
  return description === undefined || description === "" ? "" : `: ${description.replaceAll(/\s+/g, " ")}`;
}
