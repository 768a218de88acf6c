import type { ClientCapabilities, InitializeRequest } from "@agentclientprotocol/sdk";

/** What the client said it can take; what is not said is not used. */
export interface ClientAbilities {
  /** Draws live terminals from `_meta.terminal_*` of tool calls. */
  terminalOutput: boolean;
  notices: boolean;
  /** Shows compactions of its own. */
  compaction: boolean;
  /** Shows two options of the same kind beside each other; many clients keep one of a kind. */
  optionsOfOneKind: boolean;
  /** Shows forms (elicitation). */
  forms: boolean;
  /** Gives and takes the text of files as they stand in its buffers. */
  readFiles: boolean;
  writeFiles: boolean;
}

export const noAbilities: ClientAbilities = {
  terminalOutput: false,
  notices: false,
  compaction: false,
  optionsOfOneKind: false,
  forms: false,
  readFiles: false,
  writeFiles: false,
};

export function abilitiesOf(request: InitializeRequest): ClientAbilities {
  const capabilities: ClientCapabilities = request.clientCapabilities ?? {};
  return {
    terminalOutput: capabilities._meta?.["terminal_output"] === true,
    notices: isGiven(capabilities.session?.notices),
    compaction: isGiven(capabilities.session?.compaction),
    optionsOfOneKind: request.clientInfo?.name.toLowerCase() === "zed",
    forms: isGiven(capabilities.elicitation?.form),
    readFiles: capabilities.fs?.readTextFile === true,
    writeFiles: capabilities.fs?.writeTextFile === true,
  };
}

function isGiven(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}
