import { isSame } from "../../base/memoize.ts";
import type { Config } from "../../config/schema.ts";
import type { ServerAnswers } from "../../message/sampling.ts";
import type { Tool } from "../../tool/tool.ts";
import type { ServerCapabilities } from "../offers/offers.ts";
import type { McpServer } from "../server.ts";
import type { ToolNames } from "./tool-names.ts";

/** Bounds of the tools of all servers together: their number, and the characters of their definitions. */
interface ToolsLimit {
  readonly count: number;
  readonly length: number;
}

/** Tools that a request may contain. Providers accept about 128 tools. */
export const sentLimit: ToolsLimit = { count: 100, length: 256 * 1024 };
/** Tools that the model may find by search. */
const foundLimit: ToolsLimit = { count: 1_000, length: 4 * 1024 * 1024 };

export interface ServerToolsDeps {
  readonly answers: ServerAnswers;
  /** Called before a resource is read. */
  onRead(server: McpServer, uri: string): void;
  report: (text: string) => void;
}

/** The tools of the servers of one session. */
export class ServerTools {
  readonly #deps: ServerToolsDeps;
  readonly #tools = new Map<string, { offered: unknown; server: McpServer; tool: Tool }>();
  #built: { key: readonly unknown[]; tools: readonly Tool[] } | undefined;
  /** Number of omitted tools that was reported to the user. */
  #omittedReported = 0;

  constructor(deps: ServerToolsDeps) {
    this.#deps = deps;
  }

  /** Builds the tools of the servers, with names that differ from `taken`. `mode`: whether requests contain them all. */
  async build(
    all: readonly McpServer[],
    taken: readonly string[],
    mode: Config["mcp_tools"],
  ): Promise<readonly Tool[]> {
    const servers = all.filter(({ offers }) => offers.tools.length > 0 || offers.hasResources);
    if (servers.length === 0) return [];
    const key = [taken.join(), mode, ...servers, ...servers.map(({ offers }) => offers)];
    if (this.#built !== undefined && isSame(this.#built.key, key)) return this.#built.tools;
    const [{ ToolNames }, { createServerTool }, { createResourceTools }] = await Promise.all([
      import("./tool-names.ts"),
      import("./tools.ts"),
      import("./resource-tools.ts"),
    ]);
    const { answers } = this.#deps;
    const names = new ToolNames(taken);
    const toTool: ToTool = (name, server, offered) =>
      this.#getOrCreate(name, server, offered, () => createServerTool(name, server, offered, answers));
    const offered = servers.flatMap((server) => listTools(server, names, toTool));
    const tools = [...createResourceTools(servers, this.#deps), ...this.#limitTools(offered, mode)];
    this.#built = { key, tools };
    return tools;
  }

  forget(server: McpServer): void {
    for (const [name, { server: owner }] of this.#tools) if (owner === server) this.#tools.delete(name);
  }

  /** Returns the same object while the tool is unchanged, since model definitions are cached per object. */
  #getOrCreate(name: string, server: McpServer, offered: OfferedTool, make: () => Tool): Tool {
    const cached = this.#tools.get(name);
    if (cached !== undefined && cached.server === server && isAlike(cached.offered, offered))
      return cached.tool;
    const tool = make();
    this.#tools.set(name, { offered, server, tool });
    return tool;
  }

  #limitTools(tools: readonly Tool[], mode: Config["mcp_tools"]): Tool[] {
    const limit = mode === "all" ? sentLimit : foundLimit;
    let length = 0;
    const used = tools.filter((tool, index) => {
      length += tool.name.length + tool.description.length + JSON.stringify(tool.schema).length;
      return index < limit.count && length <= limit.length;
    });
    const more = tools.length - used.length;
    if (more > 0) this.#reportOmitted(used.length, more);
    return used;
  }

  #reportOmitted(used: number, more: number): void {
    if (this.#omittedReported === more) return;
    this.#omittedReported = more;
    this.#deps.report(
      `The MCP servers offer ${used + more} tools together, more than can be offered to a model: the first ${used} are used. Disable servers that you do not need ("enabled": false).`,
    );
  }
}

type OfferedTool = ServerCapabilities["tools"][number];
type ToTool = (name: string, server: McpServer, offered: OfferedTool) => Tool;

function listTools(server: McpServer, names: ToolNames, toTool: ToTool): Tool[] {
  const { offers, settings } = server;
  // Sorted, because names that clash depend on the order.
  const sorted = offers.tools.toSorted((left, right) => (left.name < right.name ? -1 : 1));
  return sorted.map((offered) => toTool(names.nameFor(settings.name, offered.name), server, offered));
}

function isAlike(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
