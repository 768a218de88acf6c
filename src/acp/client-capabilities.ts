import type { ClientCapabilities, InitializeRequest } from "@agentclientprotocol/sdk/unstable";

/** What the client said it can take; what is not said is not used. */
export interface ClientFeatures {
  /** Draws live terminals from `_meta.terminal_*` of tool calls. */
  terminalOutput: boolean;
  notices: boolean;
  /** Shows compactions of its own. */
  compaction: boolean;
  /** Shows two options of the same kind beside each other; many clients keep one of a kind. */
  optionsOfOneKind: boolean;
  /** Reads the titles of calls as Markdown. */
  markdownTitles: boolean;
  /** Shows forms (elicitation). */
  forms: boolean;
  /** Brings the person to an address (elicitation). */
  urls: boolean;
  /** Gives and takes the text of files as they stand in its buffers. */
  readFiles: boolean;
  writeFiles: boolean;
  /**
   * What it draws of the work of tasks: their cards alone, calls below a call (by `_meta.claudeCode.parentToolUseId`),
   * or child sessions of their own (unstable).
   */
  childWork: "card" | "nested" | "sessions";
  /** Shows plans that are documents (unstable). */
  planDocuments: boolean;
  /** Reads what a turn used in the answer to its prompt (unstable): whoever names another unstable ability does. */
  turnUsage: boolean;
  /** Tells calls that were cancelled from those that failed. */
  cancelledCalls: boolean;
  /** Has switches among the options of a session. */
  switches: boolean;
  /** Shows the details of an internal error only where nothing stands beside them. */
  bareDetails: boolean;
}

export const noAbilities: ClientFeatures = {
  terminalOutput: false,
  notices: false,
  compaction: false,
  optionsOfOneKind: false,
  markdownTitles: false,
  forms: false,
  urls: false,
  readFiles: false,
  writeFiles: false,
  childWork: "card",
  planDocuments: false,
  turnUsage: false,
  cancelledCalls: false,
  switches: false,
  bareDetails: false,
};

export function abilitiesOf(request: InitializeRequest): ClientFeatures {
  const capabilities: ClientCapabilities = request.clientCapabilities ?? {};
  const isZed = request.clientInfo?.name.toLowerCase() === "zed";
  return {
    terminalOutput: capabilities._meta?.["terminal_output"] === true,
    notices: isGiven(capabilities.session?.notices),
    compaction: isGiven(capabilities.session?.compaction),
    optionsOfOneKind: isZed,
    markdownTitles: isZed,
    forms: isGiven(capabilities.elicitation?.form),
    urls: isGiven(capabilities.elicitation?.url),
    readFiles: capabilities.fs?.readTextFile === true,
    writeFiles: capabilities.fs?.writeTextFile === true,
    childWork: childWorkOf(request),
    planDocuments: isGiven(capabilities.plan),
    turnUsage: isGiven(capabilities.plan) || isGiven(capabilities.subagents),
    cancelledCalls: false,
    switches: isGiven(capabilities.session?.configOptions?.boolean),
    bareDetails: isZed,
  };
}

/** Clients that are known to draw calls below a call; nothing in the protocol says it. */
const nesting = new Set(["zed", "agent-shell"]);

function childWorkOf({ clientCapabilities, clientInfo }: InitializeRequest): ClientFeatures["childWork"] {
  if (isGiven(clientCapabilities?.subagents)) return "sessions";
  return nesting.has(clientInfo?.name.toLowerCase() ?? "") ? "nested" : "card";
}

function isGiven(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}
