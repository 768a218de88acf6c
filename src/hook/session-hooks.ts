import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { HookEvent, HookGroup } from "../config/schema.ts";
import type { ApprovalMode, Message } from "../message/message.ts";
import type { ConfineProgram } from "../sandbox/project-sandbox.ts";
import type { PipedProcesses } from "../workspace/process/piped-process.ts";
import { getTranscriptPath, writeTranscript } from "./claude-transcript.ts";
import { type HookAnswer, type HookOutput, runHook } from "./run-hook.ts";
import { type CallToDescribe, fromHookInput, type HookCall, toHookCalls } from "./tool-names.ts";

const defaultTimeoutMs = 60_000;
/** Longest time limit of a hook. */
const longestTimeoutMs = 600_000;
/** Hooks that run for one event. */
const hooksLimit = 50;

export interface SessionHooksDeps {
  /** The hooks by event. */
  readonly hooks: Readonly<Record<string, readonly HookGroup[]>>;
  readonly processes: PipedProcesses;
  /** Returns the path of the shell of the model's commands. Hooks run in it on Windows, elsewhere in `sh`. */
  readonly findShell: () => Promise<string>;
  /** Runs a hook in the sandbox, if its entry says so. */
  readonly confine: ConfineProgram;
  readonly sessionId: string;
  readonly cwd: string;
  /** The project's root, which hooks find in a variable. */
  readonly root: string;
  /** Folder for the conversation. */
  readonly folder: string;
  readonly messages: () => readonly Message[];
  readonly mode: () => { readonly agent: string; readonly approval: ApprovalMode };
  /** Shows a text to the user. */
  readonly report: (text: string) => void;
  readonly log: Log;
}

export type BeforeCallAnswer =
  | { readonly kind: "refused"; readonly reason: string; readonly endsTurn: boolean }
  | {
      readonly kind: "passed";
      /** The changed arguments. */
      readonly input?: Readonly<Record<string, unknown>>;
      /** "ask": the user must confirm; "allow": as the approval setting *auto* would. */
      readonly advice?: "allow" | "ask";
      /** For the model. */
      readonly notes: readonly string[];
    };

export interface AfterCallAnswer {
  /** For the model. */
  readonly notes: readonly string[];
  readonly endsTurn: boolean;
}

/** Runs the hooks of a session. Its methods never reject. */
export class SessionHooks {
  readonly #deps: SessionHooksDeps;
  /** Problems that were already shown to the user. */
  readonly #reported = new Set<string>();

  constructor(deps: SessionHooksDeps) {
    this.#deps = deps;
  }

  has(event: HookEvent): boolean {
    return (this.#deps.hooks[event]?.length ?? 0) > 0;
  }

  /** Runs the hooks before a call. A refusal is final; an "allow" never lifts a rule. */
  async beforeCall(
    call: CallToDescribe & { callId: string },
    signal: AbortSignal,
  ): Promise<BeforeCallAnswer> {
    const calls = this.has("PreToolUse") ? toHookCalls(call) : [];
    const answers: HookAnswer[] = [];
    for (const one of calls)
      answers.push(...(await this.#run("PreToolUse", one.tool, toCallInput(one, call.callId), signal)));
    const outputs = this.#outputsOf(answers);
    const ending = outputs.find((output) => output.continue === false);
    if (ending !== undefined)
      return { kind: "refused", reason: ending.stopReason ?? "no reason was given", endsTurn: true };
    const refusals = answers.flatMap(getRefusal);
    if (refusals.length > 0) return { kind: "refused", reason: refusals.join("\n"), endsTurn: false };
    const decisions = outputs.map(getPermissionDecision);
    const advice = (["ask", "allow"] as const).find((one) => decisions.includes(one));
    const updated = outputs.findLast((output) => output.hookSpecificOutput?.updatedInput !== undefined);
    const input = fromHookInput(call, updated?.hookSpecificOutput?.updatedInput ?? {});
    return {
      kind: "passed",
      notes: outputs.flatMap(getContext),
      ...(updated !== undefined && input !== undefined && { input }),
      ...(advice !== undefined && { advice }),
    };
  }

  /** Runs the hooks after a completed call. */
  async afterCall(
    call: CallToDescribe & { callId: string },
    output: string,
    signal: AbortSignal,
  ): Promise<AfterCallAnswer> {
    const calls = this.has("PostToolUse") ? toHookCalls(call) : [];
    const answers: HookAnswer[] = [];
    for (const one of calls) {
      const tool_response = describeResponse(one, output);
      const input = { ...toCallInput(one, call.callId), tool_response };
      answers.push(...(await this.#run("PostToolUse", one.tool, input, signal)));
    }
    const outputs = this.#outputsOf(answers);
    const ending = outputs.find((one) => one.continue === false);
    if (ending?.stopReason !== undefined) this.#deps.report(ending.stopReason);
    const objections = answers.flatMap(getObjection).map((text) => `[A hook objects: ${text}]`);
    return { notes: [...objections, ...outputs.flatMap(getContext)], endsTurn: ending !== undefined };
  }

  /**
   * Runs the hooks at the end of a turn. Returns why the model should continue; undefined to stop. `isContinued` is set
   * if a hook continued the turn before.
   */
  async stop(isContinued: boolean, lastText: string, signal: AbortSignal): Promise<string | undefined> {
    if (!this.has("Stop")) return undefined;
    const input = { stop_hook_active: isContinued, last_assistant_message: lastText };
    const answers = await this.#run("Stop", undefined, input, signal);
    const outputs = this.#outputsOf(answers);
    if (outputs.some((output) => output.continue === false)) return undefined;
    const objections = answers.flatMap(getObjection);
    return objections.length === 0 ? undefined : objections.join("\n");
  }

  /** Runs the hooks for a question that waits for the user. */
  async notify(message: string, type: string, signal: AbortSignal): Promise<void> {
    if (!this.has("Notification")) return;
    const input = { message, title: "Fairlead", notification_type: type };
    this.#outputsOf(await this.#run("Notification", type, input, signal));
  }

  /** `subject` is what matchers match; undefined for events without. */
  async #run(
    event: HookEvent,
    subject: string | undefined,
    input: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<HookAnswer[]> {
    const { cwd, root, processes, confine: confineProgram, sessionId, folder, mode } = this.#deps;
    const commands = this.#select(event, subject);
    if (commands.length === 0) return [];
    const { agent, approval } = mode();
    const path = getTranscriptPath(folder, sessionId);
    if (event === "Stop" || event === "Notification") await this.#writeTranscript(path);
    const common = {
      session_id: sessionId,
      transcript_path: path,
      cwd,
      permission_mode: agent === "plan" ? "plan" : permissionModes[approval],
      hook_event_name: event,
    };
    const shell = process.platform === "win32" ? await this.#deps.findShell() : "sh";
    const running = commands.map(async ({ command, timeoutMs, isAsync, sandbox }) => {
      const env = { CLAUDE_PROJECT_DIR: root };
      const confine = sandbox
        ? (argv: readonly string[]) => confineProgram(argv, { sandbox, start: cwd })
        : undefined;
      const hook = { command, shell, timeoutMs, cwd, env, confine, input: { ...common, ...input } };
      const run = async () => {
        const answer = await runHook(hook, processes, signal);
        if (answer.kind === "failed" && !signal.aborted) this.#reportFailure(event, command, answer.problem);
        return answer;
      };
      if (!isAsync) return [await run()];
      void run();
      return [];
    });
    return (await Promise.all(running)).flat();
  }

  #select(event: HookEvent, subject: string | undefined) {
    const groups = (this.#deps.hooks[event] ?? []).filter(({ matcher }) => this.#matches(matcher, subject));
    const commands = groups
      .flatMap(({ hooks }) => hooks)
      .flatMap(({ type, command, timeout, sandbox, async: isAsync = false }) => {
        if (type !== "command" || command === undefined) return [];
        const timeoutMs = Math.min((timeout ?? defaultTimeoutMs / 1_000) * 1_000, longestTimeoutMs);
        return [{ command, timeoutMs, isAsync, sandbox }];
      });
    const distinct = new Map(commands.map((one) => [one.command, one]));
    return [...distinct.values()].slice(0, hooksLimit);
  }

  #matches(matcher: string | undefined, subject: string | undefined): boolean {
    if (matcher === undefined || matcher === "" || matcher === "*" || subject === undefined) return true;
    try {
      return new RegExp(`^(?:${matcher})$`).test(subject);
    } catch (error) {
      this.#reportOnce(`The matcher ${JSON.stringify(matcher)} of a hook is ignored: ${messageOf(error)}`);
      return matcher === subject;
    }
  }

  /** Returns the answers in JSON, and shows their messages to the user. */
  #outputsOf(answers: readonly HookAnswer[]): HookOutput[] {
    const outputs = answers.flatMap((answer) => (answer.kind === "passed" ? [answer.output] : []));
    for (const { systemMessage } of outputs)
      if (systemMessage !== undefined && systemMessage !== "") this.#deps.report(systemMessage);
    return outputs;
  }

  async #writeTranscript(path: string): Promise<void> {
    try {
      await writeTranscript(path, this.#deps.folder, this.#deps.messages());
    } catch (error) {
      this.#deps.log.warn("transcript for hooks not written", { path, error: messageOf(error) });
    }
  }

  #reportFailure(event: HookEvent, command: string, problem: string): void {
    this.#deps.log.warn("hook failed", { event, problem });
    this.#reportOnce(`A hook for ${event} failed and decides nothing: ${command}: ${problem}`);
  }

  #reportOnce(text: string): void {
    if (this.#reported.has(text)) return;
    this.#reported.add(text);
    this.#deps.report(text);
  }
}

const permissionModes: Readonly<Record<ApprovalMode, string>> = {
  ask: "default",
  "accept-edits": "acceptEdits",
  sandboxed: "acceptEdits",
  auto: "bypassPermissions",
};

function toCallInput({ tool, input }: HookCall, callId: string): Record<string, unknown> {
  return { tool_name: tool, tool_input: input, tool_use_id: callId };
}

function describeResponse({ tool, input }: HookCall, output: string): Record<string, unknown> {
  if (tool === "Bash") return { stdout: output, stderr: "", interrupted: false };
  const path = input["file_path"];
  return { success: true, output, ...(path !== undefined && { filePath: path }) };
}

/** Returns the reason of a hook that refuses a call. */
function getRefusal(answer: HookAnswer): string[] {
  if (answer.kind === "blocked") return [answer.text];
  if (answer.kind === "failed" || getPermissionDecision(answer.output) !== "deny") return [];
  const { hookSpecificOutput: specific, reason } = answer.output;
  return [specific?.permissionDecisionReason ?? reason ?? "no reason was given"];
}

/** Older hooks use the field `decision`. */
function getPermissionDecision({ hookSpecificOutput: specific, decision }: HookOutput) {
  const given = specific?.permissionDecision ?? decision;
  if (given === "block" || given === "deny") return "deny";
  if (given === "approve" || given === "allow") return "allow";
  return given === "ask" ? "ask" : undefined;
}

/** Returns the reason of a hook that objects to a result or to the end of a turn. */
function getObjection(answer: HookAnswer): string[] {
  if (answer.kind === "blocked") return [answer.text];
  if (answer.kind === "failed" || answer.output.decision !== "block") return [];
  return [answer.output.reason ?? "no reason was given"];
}

const getContext = ({ hookSpecificOutput: specific }: HookOutput): string[] =>
  specific?.additionalContext === undefined ? [] : [specific.additionalContext];
