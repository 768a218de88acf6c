import { stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { ContentBlock } from "@agentclientprotocol/sdk";
import { parseConfigFile } from "../../config/files/config-file.ts";
import { contentVariable, defaultsVariable } from "../../config/load.ts";
import type { Call } from "../command-line/command.ts";
import { existingFolder } from "../local-app.ts";
import { pipedText } from "../terminal/stdin.ts";
import { UsageError } from "../command-line/usage.ts";

export type PermissionPolicy = "ask" | "allow" | "deny";

/** What a run is to do, and how. */
export interface RunOptions {
  readonly blocks: readonly ContentBlock[];
  /** Absolute. */
  readonly cwd: string;
  readonly agent: string | undefined;
  readonly model: string | undefined;
  readonly session: string | undefined;
  /** In the newest session of the folder. */
  readonly goOn: boolean;
  /** `ask` only if there is a terminal to ask on. */
  readonly permission: PermissionPolicy;
  readonly isAttended: boolean;
  readonly trust: boolean;
  readonly format: "text" | "json";
  readonly isVerbose: boolean;
  /** The server's environment, with the limits of this run. */
  readonly env: NodeJS.ProcessEnv;
}

/** Reads the flags and stdin. Throws `UsageError` for what cannot be meant. */
export async function readOptions(call: Call): Promise<RunOptions> {
  const [agent, mode] = [call.text("agent"), call.text("mode")];
  if (agent !== undefined && mode !== undefined && agent !== mode)
    throw new UsageError(`--agent and --mode name the same thing: ${agent} and ${mode}`, "run");
  if (call.has("session") && call.has("continue"))
    throw new UsageError("--session names the session, --continue finds the newest; take one of them", "run");
  const attached = await Promise.all(call.texts("file").map(toLink));
  const cwd = await existingFolder(call.text("cwd") ?? ".");
  const prompt = await promptOf(call);
  const isAttended = canAsk(process);
  const permission = policyOf(call, isAttended);
  return {
    blocks: [{ type: "text", text: prompt }, ...attached],
    cwd,
    agent: agent ?? mode,
    model: call.text("model"),
    session: call.text("session"),
    goOn: call.has("continue"),
    permission,
    isAttended,
    trust: call.has("trust"),
    format: call.has("json") || call.text("format") === "json" ? "json" : "text",
    isVerbose: call.has("verbose"),
    env: withLimits(permission === "ask" ? process.env : withDefaults(process.env), {
      maxSteps: call.number("max-steps"),
      maxCost: call.number("max-cost"),
    }),
  };
}

async function promptOf({ operands }: Call): Promise<string> {
  const words = operands.filter((word) => word !== "-");
  const isExpected = words.length === 0 || words.length < operands.length;
  const piped = (await pipedText(process.stdin, isExpected)).trim();
  const prompt = [words.join(" "), piped].filter((part) => part !== "").join("\n\n");
  if (prompt === "") throw new UsageError('run needs to be told what to do: fairlead run "…"', "run");
  return prompt;
}

/** Whether a question can be seen and answered: both ends are terminals. */
export function canAsk({ stdin, stderr }: Record<"stdin" | "stderr", { isTTY?: boolean }>): boolean {
  return stdin.isTTY === true && stderr.isTTY === true;
}

function policyOf(call: Call, isAttended: boolean): PermissionPolicy {
  const given = call.text("permission");
  if (given === "allow" || given === "deny") return given;
  return isAttended ? "ask" : "deny";
}

/** The server reads the file, under its rules, and says what it cannot show a model. */
async function toLink(path: string): Promise<ContentBlock> {
  const absolute = resolve(path);
  const found = await stat(absolute).catch(() => undefined);
  if (found === undefined) throw new UsageError(`--file: there is no ${path}`, "run");
  return { type: "resource_link", uri: pathToFileURL(absolute).href, name: basename(absolute) };
}

/** Model calls of a run that asks nobody, unless a flag or the configuration says otherwise. */
export const unattendedSteps = 200;

/** The default limit is weaker than every configuration file. */
function withDefaults(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...env, [defaultsVariable]: JSON.stringify({ max_steps: unattendedSteps }) };
}

/** The limits travel as the configuration that stands above all but the administrator's. */
function withLimits(
  env: NodeJS.ProcessEnv,
  { maxSteps, maxCost }: Record<"maxSteps" | "maxCost", number | undefined>,
): NodeJS.ProcessEnv {
  if (maxSteps === undefined && maxCost === undefined) return env;
  const written = parseConfigFile(contentVariable, env[contentVariable] || "{}").value;
  const own = typeof written === "object" && written !== null ? written : {};
  const limits = {
    ...(maxSteps !== undefined && { max_steps: maxSteps }),
    ...(maxCost !== undefined && { max_cost: { turn: maxCost } }),
  };
  return { ...env, [contentVariable]: JSON.stringify({ ...own, ...limits }) };
}
