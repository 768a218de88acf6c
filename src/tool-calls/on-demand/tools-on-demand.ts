import type { Config } from "../../config/schema.ts";
import { estimateJsonOf, estimateText } from "../../message/estimate.ts";
import type { Message } from "../../message/message.ts";
import type { Model } from "../../model/model.ts";
import { sentLimit } from "../../mcp/tools/server-tools.ts";
import type { Tool } from "../../tool/tool.ts";
import { requireSchema } from "../tool-schema.ts";
import { CALL_TOOL } from "./call-tool.ts";
import { TOOL_SEARCH } from "./tool-search.ts";

/** Share of the context window that tools of servers may use before they are loaded on demand. */
const WINDOW_SHARE = 0.1;
/** Tokens that they may use if the window is unknown. */
const UNKNOWN_WINDOW_TOKENS = 8_000;

export interface OnDemandInput {
  /** The tools that the agent may use. */
  readonly tools: readonly Tool[];
  readonly model: Pick<Model, "limit">;
  readonly mode: Config["mcp_tools"];
  /** The conversation as the model sees it. */
  readonly messages: readonly Message[];
}

/** Whether the tool is loaded on demand if there are many. */
export const isServerTool = ({ server }: Tool): boolean => server !== undefined;

/**
 * Decides for one conversation whether tools of servers are loaded on demand. A conversation that began so continues so
 * until it is compacted, because a change makes the provider read all of it again.
 */
export class ToolsOnDemand {
  #isOn = false;

  /** Decides for a turn and keeps the decision. */
  decide(input: OnDemandInput): boolean {
    const isOn = this.estimate(input);
    if (isOn && input.mode !== "search") this.#isOn = true;
    return isOn;
  }

  /** Returns what {@link decide} would return. */
  estimate({ tools, model, mode = "auto", messages }: OnDemandInput): boolean {
    const offered = tools.filter(isServerTool);
    if (offered.length === 0 || mode === "all") return false;
    return mode === "search" || this.#isOn || isTooMuch(offered, model) || hasSearched(messages);
  }

  /** Forgets the decision after a compaction, when the conversation is read again anyway. */
  reconsider(): void {
    this.#isOn = false;
  }
}

function isTooMuch(tools: readonly Tool[], { limit: { context, input } }: Pick<Model, "limit">): boolean {
  if (tools.length > sentLimit.count) return true;
  const window = context ?? input;
  const most = window === undefined ? UNKNOWN_WINDOW_TOKENS : window * WINDOW_SHARE;
  return sumTokens(tools) > most;
}

/** Estimates the tokens of the tools in a request. Cached per tool. */
function sumTokens(tools: readonly Tool[]): number {
  return tools.reduce(
    (sum, tool) => sum + estimateJsonOf(requireSchema(tool)) + estimateText(tool.name + tool.description),
    0,
  );
}

/** Whether the model has used tools on demand, as in a session that was loaded again. */
function hasSearched(messages: readonly Message[]): boolean {
  return messages.some(({ parts }) =>
    parts.some((part) => part.type === "tool" && (part.tool === TOOL_SEARCH || part.through === CALL_TOOL)),
  );
}
