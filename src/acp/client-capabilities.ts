import type { ClientCapabilities, InitializeRequest } from "@agentclientprotocol/sdk/unstable";

/** What the client said it can take; what is not said is not used. */
export interface ClientFeatures {
  /** Draws live terminals from `_meta.terminal_*` of tool calls. */
  terminalOutput: boolean;
  notices: boolean;
  /** Shows compactions of its own. */
  compaction: boolean;
  /** Shows two options of the same kind beside each other; many clients keep one of a kind. */
  duplicateOptionKinds: boolean;
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
  booleanOptions: boolean;
  /** Shows the details of an internal error only where nothing stands beside them. */
  errorDetailsOnly: boolean;
}

export const noFeatures: ClientFeatures = {
  terminalOutput: false,
  notices: false,
  compaction: false,
  duplicateOptionKinds: false,
  markdownTitles: false,
  forms: false,
  urls: false,
  readFiles: false,
  writeFiles: false,
  childWork: "card",
  planDocuments: false,
  turnUsage: false,
  cancelledCalls: false,
  booleanOptions: false,
  errorDetailsOnly: false,
};

export function parseClientFeatures(request: InitializeRequest): ClientFeatures {
  const capabilities: ClientCapabilities = request.clientCapabilities ?? {};
  const isZed = request.clientInfo?.name.toLowerCase() === "zed";
  return {
    terminalOutput: capabilities._meta?.["terminal_output"] === true,
    notices: isSupported(capabilities.session?.notices),
    compaction: isSupported(capabilities.session?.compaction),
    duplicateOptionKinds: isZed,
    markdownTitles: isZed,
    forms: isSupported(capabilities.elicitation?.form),
    urls: isSupported(capabilities.elicitation?.url),
    readFiles: capabilities.fs?.readTextFile === true,
    writeFiles: capabilities.fs?.writeTextFile === true,
    childWork: getChildWork(request),
    planDocuments: isSupported(capabilities.plan),
    turnUsage: isSupported(capabilities.plan) || isSupported(capabilities.subagents),
    cancelledCalls: false,
    booleanOptions: isSupported(capabilities.session?.configOptions?.boolean),
    errorDetailsOnly: isZed,
  };
}

/** Clients that are known to draw calls below a call; nothing in the protocol says it. */
const nestingClients = new Set(["zed", "agent-shell"]);

function getChildWork({ clientCapabilities, clientInfo }: InitializeRequest): ClientFeatures["childWork"] {
  if (isSupported(clientCapabilities?.subagents)) return "sessions";
  return nestingClients.has(clientInfo?.name.toLowerCase() ?? "") ? "nested" : "card";
}

function isSupported(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}
