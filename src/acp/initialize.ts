import type { AuthMethod, InitializeRequest, InitializeResponse } from "@agentclientprotocol/sdk/unstable";

/** The protocol version that is spoken; another one asked for is answered with it. */
const protocolVersion = 1;

export const authMethodId = "fairlead";
export const setupMethodId = "fairlead-setup";

/** What the program knows of itself before anything else. */
export interface ProgramInfo {
  version: string;
  /** The command line that starts it, without the command's name: what older clients run in a terminal. */
  launch: readonly string[];
}

/**
 * The answer to `initialize`. Pure and without imports at run time: it is given before anything else of the program
 * is loaded, and again when the protocol library has been, and both answers must be equal. `params` are the client's,
 * checked or not.
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

/** The first one always works without a question where a model can be used: some clients always call it. */
function createAuthMethods(launch: readonly string[], capabilities: unknown): AuthMethod[] {
  const agentMethod: AuthMethod = {
    id: authMethodId,
    name: "Model provider",
    description:
      "Uses the key that is set in the environment (such as OPENAI_API_KEY) or in fairlead.json. Nothing else is asked.",
  };
  const setup = createSetupMethod(launch, {
    typed: getProperty(getProperty(capabilities, "auth"), "terminal") === true,
    byMeta: getProperty(getProperty(capabilities, "_meta"), "terminal-auth") === true,
  });
  return setup === undefined ? [agentMethod] : [agentMethod, setup];
}

/** Asks in a terminal. Older clients know such a method by its `_meta` and need the whole command line. */
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
    description: "Asks in a terminal for a provider and its key, and stores it.",
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
 * The params with a version in them that the protocol has: where none can be read the client gets the one that is
 * spoken, as for any that is not.
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

/** Whether it is what clients send. */
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
