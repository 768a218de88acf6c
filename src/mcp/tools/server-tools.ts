import { isSame } from "../../base/memoize.ts";
import type { Elicit } from "../../message/elicitation.ts";
import type { Tool } from "../../tool/tool.ts";
import type { ServerCapabilities } from "../offers/offers.ts";
import type { McpServer } from "../server.ts";
import type { ToolNames } from "./tool-names.ts";

/** Maximum number of server tools, and of characters of their definitions. Providers accept about 128 tools. */
const offeredLimit = 100;
const offeredLength = 256 * 1024;

export interface ServerToolsDeps {
  readonly elicit: Elicit;
  report(text: string): void;
}

/** The tools of the servers of one session. */
export class ServerTools {
  readonly #deps: ServerToolsDeps;
  readonly #tools = new Map<string, { offered: unknown; server: McpServer; tool: Tool }>();
  #built: { key: readonly unknown[]; tools: readonly Tool[] } | undefined;
  /** Number of omitted tools that was reported to the user. */
  #cutReported = 0;

  constructor(deps: ServerToolsDeps) {
    this.#deps = deps;
  }

  /** Builds the tools of the servers, with names that differ from `taken`. */
  async build(all: readonly McpServer[], taken: readonly string[]): Promise<readonly Tool[]> {
    const servers = all.filter(({ offers }) => offers.tools.length > 0 || offers.hasResources);
    if (servers.length === 0) return [];
    const key = [taken.join(), ...servers, ...servers.map(({ offers }) => offers)];
    if (this.#built !== undefined && isSame(this.#built.key, key)) return this.#built.tools;
    const [{ ToolNames }, { serverTool }, { resourceTools }] = await Promise.all([
      import("./tool-names.ts"),
      import("./tools.ts"),
      import("./resource-tools.ts"),
    ]);
    const { elicit } = this.#deps;
    const names = new ToolNames(taken);
    const toTool: ToTool = (name, server, offered) =>
      this.#kept(name, server, offered, () => serverTool(name, server, offered, elicit));
    const offered = servers.flatMap((server) => toolsOf(server, names, toTool));
    const tools = [...resourceTools(servers, elicit), ...this.#bounded(offered)];
    this.#built = { key, tools };
    return tools;
  }

  forget(server: McpServer): void {
    for (const [name, { server: owner }] of this.#tools) if (owner === server) this.#tools.delete(name);
  }

  /** Returns the same object while the tool is unchanged, since model definitions are cached per object. */
  #kept(name: string, server: McpServer, offered: OfferedTool, make: () => Tool): Tool {
    const kept = this.#tools.get(name);
    if (kept !== undefined && kept.server === server && isAlike(kept.offered, offered)) return kept.tool;
    const tool = make();
    this.#tools.set(name, { offered, server, tool });
    return tool;
  }

  #bounded(tools: readonly Tool[]): Tool[] {
    let length = 0;
    const kept = tools.filter((tool, index) => {
      length += tool.name.length + tool.description.length + JSON.stringify(tool.schema).length;
      return index < offeredLimit && length <= offeredLength;
    });
    const more = tools.length - kept.length;
    if (more > 0) this.#reportCut(kept.length, more);
    return kept;
  }

  #reportCut(kept: number, more: number): void {
    if (this.#cutReported === more) return;
    this.#cutReported = more;
    this.#deps.report(
      `The MCP servers offer ${kept + more} tools together, more than a model can be given: the first ${kept} are used. Switch servers off that you do not need ("enabled": false).`,
    );
  }
}

type OfferedTool = ServerCapabilities["tools"][number];
type ToTool = (name: string, server: McpServer, offered: OfferedTool) => Tool;

function toolsOf(server: McpServer, names: ToolNames, toTool: ToTool): Tool[] {
  const { offers, settings } = server;
  return offers.tools.map((offered) => toTool(names.nameFor(settings.name, offered.name), server, offered));
}

function isAlike(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
