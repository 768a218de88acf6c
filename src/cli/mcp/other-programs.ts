import { join } from "node:path";
import { codeOf, messageOf, UserError } from "../../base/errors.ts";
import { readRegularFile } from "../../base/files/regular-file.ts";
import { isKnownToken } from "../../base/secrets/secret-forms.ts";
import { isRecord } from "../../base/text/record.ts";
import { configHome, type Home } from "../../config/paths.ts";
import { parseConfigFile } from "../../config/files/config-file.ts";
import { fromMcpFile } from "../../config/files/mcp-file.ts";
import { isCredential } from "../../workspace/process/environment.ts";

/** Another program with MCP servers in the user's settings. */
export interface OtherProgram {
  readonly id: string;
  readonly name: string;
  file(home: Home): string;
}

export const otherPrograms: readonly OtherProgram[] = [
  { id: "claude-code", name: "Claude Code", file: ({ home }) => join(home, ".claude.json") },
  {
    id: "claude-desktop",
    name: "Claude Desktop",
    file: (home) => join(applicationFolder(home), "Claude", "claude_desktop_config.json"),
  },
  { id: "cursor", name: "Cursor", file: ({ home }) => join(home, ".cursor", "mcp.json") },
  {
    id: "vscode",
    name: "VS Code",
    file: (home) => join(applicationFolder(home), "Code", "User", "mcp.json"),
  },
];

/** Folder in which programs with a window have their settings. */
function applicationFolder(where: Home): string {
  const { platform, home, env } = where;
  if (platform === "win32") return env["APPDATA"] || join(home, "AppData", "Roaming");
  return platform === "darwin" ? join(home, "Library", "Application Support") : configHome(where);
}

/** A server of another program in the form of the configuration, or why it cannot be used. */
export type FoundServer = { readonly name: string } & (
  | {
      readonly server: Readonly<Record<string, unknown>>;
      /** Variables that must contain its keys, which are not copied. */
      readonly variables: readonly string[];
    }
  | { readonly problem: string }
);

/** Reads the user's servers of another program; undefined if it has no settings. Throws {@link UserError}. */
export async function readServersOf(program: OtherProgram, home: Home): Promise<FoundServer[] | undefined> {
  const path = program.file(home);
  const text = await readIfExists(path);
  if (text === undefined) return undefined;
  const config = fromMcpFile(parseConfigFile(path, text).value);
  const mcp = isRecord(config) ? config["mcp"] : undefined;
  return isRecord(mcp) ? Object.entries(mcp).map(([name, server]) => toFound(name, server)) : [];
}

async function readIfExists(path: string): Promise<string | undefined> {
  try {
    return (await readRegularFile(path)).toString("utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw new UserError(`${path} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

function toFound(name: string, server: unknown): FoundServer {
  if (!/^[\w.-]+$/.test(name))
    return { name, problem: "its name has other characters than letters, digits, -, _ and ." };
  if (!isRecord(server) || !isUsable(server))
    return { name, problem: "it has neither a command nor an address" };
  if (JSON.stringify(server).includes("${input:"))
    return { name, problem: "it contains ${input:…}, which only the other program fills in" };
  const { command } = server;
  if (Array.isArray(command) && command.some((word) => typeof word === "string" && isKnownToken(word)))
    return { name, problem: "its command line contains a key" };
  const keys = new KeyReplacer();
  const converted = {
    ...server,
    ...(isRecord(server["environment"]) && { environment: keys.replaceIn(server["environment"], "") }),
    ...(isRecord(server["headers"]) && { headers: keys.replaceIn(server["headers"], `${name}_`) }),
  };
  return { name, server: converted, variables: keys.variables };
}

function isUsable({ command, url }: Record<string, unknown>): boolean {
  if (typeof url === "string") return URL.canParse(url);
  return Array.isArray(command) && command.every((word) => typeof word === "string") && command.length > 0;
}

/** Replaces keys by variables: keys do not belong in the configuration. */
class KeyReplacer {
  readonly variables: string[] = [];

  /** `prefix` begins the names of the variables. */
  replaceIn(values: Readonly<Record<string, unknown>>, prefix: string): Record<string, unknown> {
    return Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, this.#replace(name, value, prefix)]),
    );
  }

  #replace(name: string, value: unknown, prefix: string): unknown {
    if (typeof value !== "string" || value === "" || value.includes("{env:")) return value;
    const [, scheme = "", key = ""] = /^((?:Bearer|Basic) )?(.*)$/is.exec(value) ?? [];
    if (!isCredential(name, key) && !/auth|cookie/i.test(name)) return value;
    const variable = `${prefix}${name}`.toUpperCase().replaceAll(/\W/g, "_");
    this.variables.push(variable);
    return `${scheme}{env:${variable}}`;
  }
}
