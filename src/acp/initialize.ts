import type { AuthMethod, InitializeRequest, InitializeResponse } from "@agentclientprotocol/sdk/unstable";

/** The supported protocol version, returned also for requests of another one. */
const protocolVersion = 1;

export const authMethodId = "fairlead";
export const setupMethodId = "fairlead-setup";

export interface ProgramInfo {
  version: string;
  /** The command line that starts the program, without the subcommand; older clients run it in a terminal. */
  launch: readonly string[];
}

/**
 * Creates the response to `initialize`. Pure and without runtime imports: it is called before other modules are loaded
 * and again by the protocol SDK, and both responses must be equal. `params` may be unvalidated.
 */
export function createInitializeResult(
  { version, launch }: ProgramInfo,
  params: unknown,
): InitializeResponse {
  return {
    protocolVersion,
    agentInfo: { name: "fairlead", title: "Fairlead", version },
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: true, audio: false, embeddedContext: true },
      mcpCapabilities: { http: true, sse: true },
      sessionCapabilities: {
        list: {},
        resume: {},
        close: {},
        delete: {},
        additionalDirectories: {},
        fork: {},
        title: {},
        archive: {},
        status: {},
        systemPrompt: { mode: { override: {} } },
      },
      auth: { logout: {}, status: {} },
      providers: {},
    },
    authMethods: createAuthMethods(launch, getProperty(params, "clientCapabilities")),
    _meta: { steering: { supported: true } },
  };
}

/** The first method succeeds without a question if a model is configured, because some clients always call it. */
function createAuthMethods(launch: readonly string[], capabilities: unknown): AuthMethod[] {
  const agentMethod: AuthMethod = {
    id: authMethodId,
    name: "Model provider",
    description:
      "Uses the API key from the environment (such as OPENAI_API_KEY) or from fairlead.json, without asking.",
  };
  const setup = createSetupMethod(launch, {
    typed: getProperty(getProperty(capabilities, "auth"), "terminal") === true,
    byMeta: getProperty(getProperty(capabilities, "_meta"), "terminal-auth") === true,
  });
  return setup === undefined ? [agentMethod] : [agentMethod, setup];
}

/** Sets up a provider in a terminal. Older clients read the whole command line from `_meta`. */
function createSetupMethod(
  launch: readonly string[],
  { typed, byMeta }: { typed: boolean; byMeta: boolean },
): AuthMethod | undefined {
  if (!typed && !byMeta) return undefined;
  const label = "Set up a model provider";
  const [command = "fairlead", ...args] = launch;
  const method = {
    id: setupMethodId,
    name: label,
    description: "Asks for a provider and its API key in a terminal and stores the key.",
    ...(byMeta && { _meta: { "terminal-auth": { command, args: [...args, "setup"], label, env: {} } } }),
  };
  return typed ? { ...method, type: "terminal", args: ["setup"] } : method;
}

function getProperty(object: unknown, key: string): unknown {
  if (typeof object !== "object" || object === null) return undefined;
  return Object.entries(object).find(([name]) => name === key)?.[1];
}

/** The protocol's numbers are unsigned 16-bit. */
const highestVersion = 65_535;

/**
 * Replaces a missing or invalid protocol version in the params by a valid one, so that the client gets a response with
 * the supported version.
 */
export function normalizeVersion(params: unknown): unknown {
  const given = params ?? {};
  if (typeof given !== "object" || Array.isArray(given)) return params;
  const version = getProperty(given, "protocolVersion");
  return isVersion(version) ? params : { ...given, protocolVersion: nearestVersion(version) };
}

function nearestVersion(version: unknown): number {
  return typeof version === "number" && version > highestVersion ? highestVersion : protocolVersion;
}

function isVersion(version: unknown): boolean {
  return (
    typeof version === "number" && Number.isInteger(version) && version >= 0 && version <= highestVersion
  );
}

/** Quick check of the usual shape; other shapes are validated by the SDK. */
export function isPlainInitialize(params: unknown): params is InitializeRequest {
  if (typeof params !== "object" || params === null || !("protocolVersion" in params)) return false;
  if (!isVersion(params.protocolVersion)) return false;
  if ("clientInfo" in params && !hasName(params.clientInfo)) return false;
  if (!("clientCapabilities" in params)) return true;
  return typeof params.clientCapabilities === "object" && params.clientCapabilities !== null;
}

function hasName(info: unknown): boolean {
  return typeof info === "object" && info !== null && "name" in info && typeof info.name === "string";
}
