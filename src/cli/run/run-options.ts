import { stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { ContentBlock } from "@agentclientprotocol/sdk";
import { parseConfigFile } from "../../config/files/config-file.ts";
import { contentVariable, defaultsVariable } from "../../config/load.ts";
import type { Call } from "../command-line/command.ts";
import { isRecord } from "../../base/text/record.ts";
import { existingFolder } from "../local-app.ts";
import { readPromptText } from "./prompt-text.ts";
import { type AnswerSchema, readSchema } from "./answer-schema.ts";
import { parseAllowed } from "./allowed-rules.ts";
import { readTextFile } from "./text-file.ts";
import { allowedVariable } from "../../app.ts";
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
  /** The session's approval setting. */
  readonly approval: string | undefined;
  readonly session: string | undefined;
  /** Whether to continue the newest session of the folder. */
  readonly continuesNewest: boolean;
  /** `ask` only with a terminal to ask on. */
  readonly permission: PermissionPolicy;
  readonly isAttended: boolean;
  readonly trust: boolean;
  readonly format: "text" | "json";
  /** Whether stdout also gets the text before the answer. */
  readonly showsAll: boolean;
  /** Absolute path of the file for the answer. */
  readonly output: string | undefined;
  /** Schema of the answer. */
  readonly schema: AnswerSchema | undefined;
  /** Whether to continue a copy of the session. */
  readonly forks: boolean;
  readonly title: string | undefined;
  /** Absolute. */
  readonly additionalDirectories: readonly string[];
  /** Text to append to the system prompt. */
  readonly systemText: string | undefined;
  readonly isEphemeral: boolean;
  /** Minutes for which the turn continues without this terminal; undefined if it ends with it. */
  readonly detachedMinutes: number | undefined;
  /** Whether the new session works in a git worktree; undefined for the configured default. */
  readonly hasWorktree: boolean | undefined;
  readonly isVerbose: boolean;
  /** The server's environment, which carries the limits of this run. */
  readonly env: NodeJS.ProcessEnv;
}

/** Reads the flags and stdin. Throws {@link UsageError} for contradictory or missing input. */
export async function readOptions(call: Call): Promise<RunOptions> {
  checkCombinations(call);
  const attached = await Promise.all(call.texts("file").map(toLink));
  const cwd = await existingFolder(call.text("cwd") ?? ".");
  const additionalDirectories = await Promise.all(call.texts("add-dir").map(existingFolder));
  const output = await readOutputPath(call);
  const schema = await readSchema(call.text("schema"));
  const systemText = await readSystemText(call);
  const allowed = call.texts("allow").map(parseAllowed);
  const prompt = await readPromptText(call, process.stdin);
  const isAttended = canAsk(process);
  const detachedMinutes = call.has("detach") ? (call.number("minutes") ?? defaultDetachedMinutes) : undefined;
  // Questions of a detached turn wait until somebody attaches.
  const permission = detachedMinutes === undefined ? getPermissionPolicy(call, isAttended) : "ask";
  return {
    blocks: [{ type: "text", text: prompt }, ...attached],
    cwd,
    agent: call.text("agent") ?? call.text("mode"),
    model: call.text("model"),
    effort: call.text("effort"),
    approval: call.text("approval"),
    session: call.text("session"),
    continuesNewest: call.has("continue"),
    permission,
    isAttended,
    trust: call.has("trust"),
    format: call.has("json") || call.text("format") === "json" ? "json" : "text",
    showsAll: call.has("all"),
    output,
    schema,
    forks: call.has("fork"),
    title: call.text("title"),
    additionalDirectories,
    systemText,
    isEphemeral: call.has("ephemeral"),
    detachedMinutes,
    hasWorktree: call.has("worktree") ? true : undefined,
    isVerbose: call.has("verbose"),
    env: {
      ...addLimits(permission === "ask" ? process.env : addDefaultLimits(process.env, permission), {
        maxSteps: call.number("max-steps"),
        maxCost: call.number("max-cost"),
        detachedMinutes,
      }),
      ...(allowed.length > 0 && { [allowedVariable]: JSON.stringify(allowed) }),
    },
  };
}

function checkCombinations(call: Call): void {
  const wrong = (message: string) => new UsageError(message, "run");
  const [agent, mode] = [call.text("agent"), call.text("mode")];
  if (agent !== undefined && mode !== undefined && agent !== mode)
    throw wrong(`--agent and --mode name the same thing: ${agent} and ${mode}`);
  if (call.has("session") && call.has("continue"))
    throw wrong("--session names the session, --continue finds the newest; use one of them");
  const continues = call.has("session") || call.has("continue");
  if (call.has("fork") && !continues)
    throw wrong("--fork copies a session; name it with --session ID, or use --continue");
  if (call.has("ephemeral") && continues)
    throw wrong("--ephemeral starts a new session; use it without --session and --continue");
  if (call.has("detach")) checkDetached(call, wrong);
  else if (call.has("minutes")) throw wrong("--minutes limits a turn that --detach starts");
  if (call.has("worktree") && (continues || call.has("ephemeral")))
    throw wrong(
      "--worktree starts a new session that is kept; use it without --session, --continue and --ephemeral",
    );
  if (call.text("title")?.trim() === "") throw wrong("--title needs at least one character");
  if (call.has("all") && call.has("schema"))
    throw wrong("--schema prints the JSON value alone; use it without --all");
}

/** Flags that need this program until the turn ends. */
const attachedFlags = ["ephemeral", "permission", "all", "output", "schema", "format", "json"] as const;
/** Time limit of a detached turn. */
const defaultDetachedMinutes = 60;
const mostDetachedMinutes = 24 * 60;

function checkDetached(call: Call, wrong: (message: string) => UsageError): void {
  const flag = attachedFlags.find((name) => call.has(name));
  if (flag !== undefined)
    throw wrong(`--${flag} needs this program until the turn ends; use it without --detach`);
  if ((call.number("minutes") ?? 0) > mostDetachedMinutes)
    throw wrong(`--minutes may be at most ${mostDetachedMinutes}`);
}

/** Reads the path of --output, whose folder must exist, so that no answer is lost for a typing error. */
async function readOutputPath(call: Call): Promise<string | undefined> {
  const written = call.text("output");
  if (written === undefined) return undefined;
  const path = resolve(written);
  const problem = (message: string) => new UsageError(`--output: ${message}: ${written}`, "run");
  if ((await stat(path).catch(() => undefined))?.isDirectory()) throw problem("this is a folder");
  const folder = await stat(dirname(path)).catch(() => undefined);
  if (folder?.isDirectory() !== true) throw problem("the folder of this file does not exist");
  return path;
}

/** Reads --append-system: a text, or with @ the name of a file. */
async function readSystemText(call: Call): Promise<string | undefined> {
  const given = call.text("append-system");
  if (given === undefined) return undefined;
  const text = given.startsWith("@") ? await readTextFile("append-system", given.slice(1)) : given;
  if (text.trim() === "") throw new UsageError("--append-system: the text is empty", "run");
  return text;
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
  {
    maxSteps,
    maxCost,
    detachedMinutes,
  }: Record<"maxSteps" | "maxCost" | "detachedMinutes", number | undefined>,
): NodeJS.ProcessEnv {
  if (maxSteps === undefined && maxCost === undefined && detachedMinutes === undefined) return env;
  const written = parseConfigFile(contentVariable, env[contentVariable] || "{}").value;
  const own = isRecord(written) ? written : {};
  const sessions = isRecord(own["sessions"]) ? own["sessions"] : {};
  const limits = {
    ...(maxSteps !== undefined && { max_steps: maxSteps }),
    ...(maxCost !== undefined && { max_cost: { turn: maxCost } }),
    ...(detachedMinutes !== undefined && {
      sessions: { ...sessions, keep_running_minutes: detachedMinutes },
    }),
  };
  return { ...env, [contentVariable]: JSON.stringify({ ...own, ...limits }) };
}
