import type { ClientCapabilities, InitializeRequest } from "@agentclientprotocol/sdk/unstable";

/** Features of the client, derived from its `initialize` request. Features it does not announce are not used. */
export interface ClientFeatures {
  /** Draws live terminals from `_meta.terminal_*` of tool calls. */
  terminalOutput: boolean;
  notices: boolean;
  /** Reads permission decisions (`_meta.decision` of session updates). */
  decisions: boolean;
  /** Reads the field `deleted` of diffs (draft; `_meta.deleted_diffs`). */
  deletedDiffs: boolean;
  /** Shows compactions as such. */
  compaction: boolean;
  /** Shows several permission options of the same kind; many clients show only one per kind. */
  duplicateOptionKinds: boolean;
  /** Sends the reason of a rejection with the rejection (`_meta.feedback`), so it is not asked for it. */
  feedback: boolean;
  /** Renders titles of tool calls as Markdown. */
  markdownTitles: boolean;
  /** Shows forms (elicitation). */
  forms: boolean;
  /** Opens URLs for the user (elicitation). */
  urls: boolean;
  /** Whether a user answers permission requests (false with `_meta.unattended`). */
  isAttended: boolean;
  /** Whether a program reads the output (`_meta.scripted`). */
  isScripted: boolean;
  /** Reads files including unsaved changes in its buffers. */
  readFiles: boolean;
  writeFiles: boolean;
  /**
   * How it shows the work of tasks: the task's card only, calls nested below the task's call
   * (`_meta.claudeCode.parentToolUseId`), or child sessions (unstable).
   */
  childWork: "card" | "nested" | "sessions";
  /** How it shows plan documents (unstable): as links to their files, or as Markdown. */
  planDocuments: "none" | "file" | "markdown";
  /** Reads token usage in the response to a prompt (unstable). Assumed if it announces another unstable feature. */
  turnUsage: boolean;
  /** Distinguishes cancelled calls from failed ones. */
  cancelledCalls: boolean;
  /** Supports boolean session options. */
  booleanOptions: boolean;
  /** Shows the details of an internal error only if its data has no other fields. */
  errorDetailsOnly: boolean;
}

export const noFeatures: ClientFeatures = {
  terminalOutput: false,
  notices: false,
  decisions: false,
  deletedDiffs: false,
  compaction: false,
  duplicateOptionKinds: false,
  feedback: false,
  markdownTitles: false,
  forms: false,
  urls: false,
  isAttended: false,
  isScripted: false,
  readFiles: false,
  writeFiles: false,
  childWork: "card",
  planDocuments: "none",
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
    decisions: capabilities._meta?.["decisions"] === true,
    deletedDiffs: capabilities._meta?.["deleted_diffs"] === true,
    compaction: isSupported(capabilities.session?.compaction),
    duplicateOptionKinds: isZed || capabilities._meta?.["duplicate_option_kinds"] === true,
    feedback: capabilities._meta?.["feedback"] === true,
    markdownTitles: isZed,
    forms: isSupported(capabilities.elicitation?.form),
    urls: isSupported(capabilities.elicitation?.url),
    isAttended: isAttended(capabilities),
    isScripted: capabilities._meta?.["scripted"] === true,
    readFiles: capabilities.fs?.readTextFile === true,
    writeFiles: capabilities.fs?.writeTextFile === true,
    childWork: getChildWork(request),
    planDocuments: isSupported(capabilities.plan) ? "file" : "none",
    turnUsage: isSupported(capabilities.plan) || isSupported(capabilities.subagents),
    cancelledCalls: false,
    booleanOptions: isSupported(capabilities.session?.configOptions?.boolean),
    errorDetailsOnly: isZed,
  };
}

/** Clients that show nested calls; the protocol has no capability for it. */
const nestingClients = new Set(["zed", "agent-shell"]);

function getChildWork({ clientCapabilities, clientInfo }: InitializeRequest): ClientFeatures["childWork"] {
  if (isSupported(clientCapabilities?.subagents)) return "sessions";
  return nestingClients.has(clientInfo?.name.toLowerCase() ?? "") ? "nested" : "card";
}

/** Returns whether a user answers permission requests. */
export function isAttended(capabilities: { _meta?: Record<string, unknown> | null } | undefined): boolean {
  return capabilities?._meta?.["unattended"] !== true;
}

function isSupported(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}
