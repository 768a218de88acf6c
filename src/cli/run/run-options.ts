import { stat } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { ContentBlock } from "@agentclientprotocol/sdk";
import { parseConfigFile } from "../../config/files/config-file.ts";
import { contentVariable, defaultsVariable } from "../../config/load.ts";
import type { Call } from "../command-line/command.ts";
import { existingFolder } from "../local-app.ts";
import { readPipedText } from "../terminal/stdin.ts";
import { UsageError } from "../command-line/usage.ts";

export type PermissionPolicy = "ask" | "allow" | "deny";

/** The parsed flags and the prompt of a run. */
export interface RunOptions {
  readonly blocks: readonly ContentBlock[];
  /** Absolute. */
  readonly cwd: string;
  readonly agent: string | undefined;
  readonly model: string | undefined;
  readonly effort: string | undefined;
  readonly session: string | undefined;
  /** Whether to continue the newest session of the folder. */
  readonly continuesNewest: boolean;
  /** `ask` only with a terminal to ask on. */
  readonly permission: PermissionPolicy;
  readonly isAttended: boolean;
  readonly trust: boolean;
  readonly format: "text" | "json";
  readonly isVerbose: boolean;
  /** The server's environment, which carries the limits of this run. */
  readonly env: NodeJS.ProcessEnv;
}

/** Reads the flags and stdin. Throws {@link UsageError} for contradictory or missing input. */
export async function readOptions(call: Call): Promise<RunOptions> {
  const [agent, mode] = [call.text("agent"), call.text("mode")];
  if (agent !== undefined && mode !== undefined && agent !== mode)
    throw new UsageError(`--agent and --mode name the same thing: ${agent} and ${mode}`, "run");
  if (call.has("session") && call.has("continue"))
    throw new UsageError("--session names the session, --continue finds the newest; use one of them", "run");
  const attached = await Promise.all(call.texts("file").map(toLink));
  const cwd = await existingFolder(call.text("cwd") ?? ".");
  const prompt = await readPrompt(call);
  const isAttended = canAsk(process);
  const permission = getPermissionPolicy(call, isAttended);
  return {
    blocks: [{ type: "text", text: prompt }, ...attached],
    cwd,
    agent: agent ?? mode,
    model: call.text("model"),
    effort: call.text("effort"),
    session: call.text("session"),
    continuesNewest: call.has("continue"),
    permission,
    isAttended,
    trust: call.has("trust"),
    format: call.has("json") || call.text("format") === "json" ? "json" : "text",
    isVerbose: call.has("verbose"),
    env: addLimits(permission === "ask" ? process.env : addDefaultLimits(process.env, permission), {
      maxSteps: call.number("max-steps"),
      maxCost: call.number("max-cost"),
    }),
  };
}

async function readPrompt({ operands }: Call): Promise<string> {
  const words = operands.filter((word) => word !== "-");
  const isExpected = words.length === 0 || words.length < operands.length;
  const piped = (await readPipedText(process.stdin, isExpected)).trim();
  const prompt = [words.join(" "), piped].filter((part) => part !== "").join("\n\n");
  if (prompt === "") throw new UsageError('run needs a prompt: fairlead run "…"', "run");
  return prompt;
}

/** Whether a question can be shown and answered: stdin and stderr must be terminals. */
export function canAsk({ stdin, stderr }: Record<"stdin" | "stderr", { isTTY?: boolean }>): boolean {
  return stdin.isTTY === true && stderr.isTTY === true;
}

function getPermissionPolicy(call: Call, isAttended: boolean): PermissionPolicy {
  const given = call.text("permission");
  if (given === "allow" || given === "deny") return given;
  return isAttended ? "ask" : "deny";
}

/** Links a file. The server reads it under its permission rules and reports unsupported types. */
async function toLink(path: string): Promise<ContentBlock> {
  const absolute = resolve(path);
  const found = await stat(absolute).catch(() => undefined);
  if (found === undefined) throw new UsageError(`--file: file not found: ${path}`, "run");
  return { type: "resource_link", uri: pathToFileURL(absolute).href, name: basename(absolute) };
}

/** Default limit of model calls when no user is asked. */
export const unattendedSteps = 200;

/**
 * Adds the defaults of a run that asks nobody, below every configuration file in precedence. Without an answer to
 * its questions a model that is reminded of a check could not run it.
 */
function addDefaultLimits(env: NodeJS.ProcessEnv, permission: PermissionPolicy): NodeJS.ProcessEnv {
  const defaults = {
    max_steps: unattendedSteps,
    ...(permission === "deny" && { evidence: { reminder: false } }),
  };
  return { ...env, [defaultsVariable]: JSON.stringify(defaults) };
}

/** Adds the limits of the flags, above every configuration but the administrator's in precedence. */
function addLimits(
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
