import type {
  AuthMethod,
  ClientCapabilities,
  InitializeResponse,
} from "@agentclientprotocol/sdk/experimental/v2/unstable";
import { type ClientFeatures, noAbilities } from "../client-capabilities.ts";
import { initializeResult, type Program } from "../initialize.ts";

/** The answer of version 1 in the form of version 2, so that both say the same of the program. */
export function draftInitializeResult(
  program: Program,
  client: ClientCapabilities | undefined,
): InitializeResponse {
  const clientCapabilities = { auth: { terminal: isGiven(client?.auth?.terminal) } };
  const {
    agentInfo,
    agentCapabilities,
    authMethods = [],
    _meta,
  } = initializeResult(program, {
    clientCapabilities,
  });
  return {
    protocolVersion: 2,
    info: { name: "fairlead", ...agentInfo, version: program.version },
    capabilities: {
      session: {
        prompt: { image: {}, embeddedContext: {} },
        mcp: { stdio: {}, ...(agentCapabilities?.mcpCapabilities?.http && { http: {} }) },
        delete: {},
        additionalDirectories: {},
        fork: {},
        title: {},
        archive: {},
        status: {},
        systemPrompt: { mode: { override: {} } },
      },
      auth: { status: {} },
      providers: {},
      ...(_meta && { _meta }),
    },
    authMethods: authMethods.map(toAuthMethod),
  };
}

/** What is optional in version 1 belongs to every client of version 2. */
export function draftAbilities(client: ClientCapabilities | undefined): ClientFeatures {
  return {
    ...noAbilities,
    terminalOutput: true,
    notices: true,
    compaction: true,
    optionsOfOneKind: true,
    cancelledCalls: true,
    switches: true,
    forms: isGiven(client?.elicitation?.form),
  };
}

type StableMethod = NonNullable<ReturnType<typeof initializeResult>["authMethods"]>[number];

function toAuthMethod(method: StableMethod): AuthMethod {
  const { id: methodId, name, description } = method;
  const common = { methodId, name, ...(description && { description }) };
  if (!("type" in method)) return { ...common, type: "agent" };
  return { ...common, type: "terminal", args: method.args ?? [], env: [] };
}

function isGiven(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}
