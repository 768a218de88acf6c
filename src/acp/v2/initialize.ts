import type {
  AuthMethod,
  ClientCapabilities,
  InitializeResponse,
} from "@agentclientprotocol/sdk/experimental/v2/unstable";
import { type ClientFeatures, isAttended, noFeatures } from "../client-capabilities.ts";
import { rewindModes } from "../../undo/rewind-modes.ts";
import { createInitializeResult, type ProgramInfo } from "../initialize.ts";

export const draftVersion = 2;

/** With capabilities of `session/inject` and `session/rewind`, which the protocol's library does not have yet. */
type DraftInitializeResponse = InitializeResponse & {
  capabilities: {
    session: {
      inject: { modes: string[]; steerInStream: string[]; pending: { replace: boolean } };
      rewind: { edit_prompt: boolean };
    };
  };
};

/** Converts the version 1 response to version 2, so that both announce the same capabilities. */
export function createDraftInitializeResult(
  program: ProgramInfo,
  client: ClientCapabilities | undefined,
): DraftInitializeResponse {
  const clientCapabilities = { auth: { terminal: isSupported(client?.auth?.terminal) } };
  const {
    agentInfo,
    agentCapabilities,
    authMethods = [],
    _meta,
  } = createInitializeResult(program, {
    clientCapabilities,
  });
  return {
    protocolVersion: draftVersion,
    info: { name: "fairlead", ...agentInfo, version: program.version },
    capabilities: {
      session: {
        prompt: { image: {}, embeddedContext: {} },
        mcp: { stdio: {}, ...(agentCapabilities?.mcpCapabilities?.http && { http: {} }) },
        delete: {},
        additionalDirectories: {},
        fork: {},
        inject: { modes: ["queue", "steer"], steerInStream: ["finish"], pending: { replace: true } },
        rewind: { edit_prompt: true },
        title: {},
        archive: {},
        status: {},
        systemPrompt: { mode: { override: {} } },
      },
      auth: { status: {} },
      providers: {},
      _meta: { ..._meta, rewindSession: { modes: [...rewindModes] } },
    },
    authMethods: authMethods.map(toAuthMethod),
  };
}

/** Enables the features that are optional in version 1 and required in version 2. */
export function parseDraftFeatures(client: ClientCapabilities | undefined): ClientFeatures {
  return {
    ...noFeatures,
    terminalOutput: true,
    childWork: "sessions",
    planDocuments: "markdown",
    notices: true,
    compaction: true,
    duplicateOptionKinds: true,
    cancelledCalls: true,
    booleanOptions: true,
    forms: isSupported(client?.elicitation?.form),
    isAttended: isAttended(client),
  };
}

type StableMethod = NonNullable<ReturnType<typeof createInitializeResult>["authMethods"]>[number];

function toAuthMethod(method: StableMethod): AuthMethod {
  const { id: methodId, name, description } = method;
  const common = { methodId, name, ...(description && { description }) };
  if (!("type" in method)) return { ...common, type: "agent" };
  return { ...common, type: "terminal", args: method.args ?? [], env: [] };
}

function isSupported(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}
