import type { InitializeResponse } from "@agentclientprotocol/sdk/unstable";

/** The one protocol version that is spoken; another one asked for is answered with it. */
const protocolVersion = 1;

export const authMethodId = "fairlead";

/**
 * The answer to `initialize`. Pure and without imports at run time: it is given before anything else of the program
 * is loaded, and again when the protocol library has been, and both answers must be equal.
 */
export function initializeResult(version: string): InitializeResponse {
  return {
    protocolVersion,
    agentInfo: { name: "fairlead", title: "Fairlead", version },
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: true, audio: false, embeddedContext: true },
      mcpCapabilities: { http: false, sse: false },
      sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, additionalDirectories: {} },
    },
    authMethods: [
      {
        id: authMethodId,
        name: "Model provider",
        description:
          "Uses the key that is set in the environment (such as OPENAI_API_KEY) or in fairlead.json. Nothing else is asked.",
      },
    ],
    _meta: { steering: { supported: true } },
  };
}
