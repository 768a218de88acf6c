import type { AuthMethod, InitializeResponse } from "@agentclientprotocol/sdk/unstable";

/** The stable protocol version, returned also for requests of another one. */
export const stableVersion = 1;

export const authMethodId = "fairlead";
export const setupMethodId = "fairlead-setup";

export interface ProgramInfo {
  version: string;
  /** The command line that starts the program, without the subcommand; older clients run it in a terminal. */
  launch: readonly string[];
}

/**
 * Creates the response to `initialize` in version 1. Pure and without runtime imports, because it is called before other
 * modules are loaded. `params` may be unvalidated.
 */
export function createInitializeResult(
  { version, launch }: ProgramInfo,
  params: unknown,
): InitializeResponse {
  return {
    protocolVersion: stableVersion,
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
    typed: getProperty(capabilities, "auth", "terminal") === true,
    byMeta: getProperty(capabilities, "_meta", "terminal-auth") === true,
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

/** Returns a nested own property of an unvalidated value. */
function getProperty(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce((parent: unknown, key) => {
    const isObject = typeof parent === "object" && parent !== null;
    return isObject && Object.hasOwn(parent, key) ? Reflect.get(parent, key) : undefined;
  }, value);
}

/** The protocol's numbers are unsigned 16-bit. */
const highestVersion = 65_535;

/** Returns the protocol version that the params of `initialize` request; the stable one if it is missing or invalid. */
export function getRequestedVersion(params: unknown): number {
  const version = getProperty(params, "protocolVersion");
  if (typeof version !== "number") return stableVersion;
  if (version > highestVersion) return highestVersion;
  return Number.isInteger(version) && version >= 0 ? version : stableVersion;
}

/** Returns whether an `initialize` requests a newer version than the stable one, and has the params of a newer one. */
export function requestsNewerVersion(params: unknown): boolean {
  const has = (...names: readonly string[]) => names.some((name) => getProperty(params, name) !== undefined);
  const hasStableParams = has("clientCapabilities", "clientInfo") && !has("capabilities", "info");
  return getRequestedVersion(params) > stableVersion && !hasStableParams;
}

/** Corrects the requested version, so that the client gets a response with a supported one. */
export function normalizeVersion(params: unknown): unknown {
  const given = params ?? {};
  if (typeof given !== "object" || Array.isArray(given)) return params;
  return { ...given, protocolVersion: getRequestedVersion(given) };
}
