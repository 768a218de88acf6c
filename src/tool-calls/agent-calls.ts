import type { Agent } from "../agent/agent.ts";
import { toSlashes } from "../base/files/paths.ts";
import type { Log } from "../base/log.ts";
import type { Emit } from "../message/event.ts";
import type { Decider } from "../permission/gate.ts";
import type { Ruleset } from "../permission/rule.ts";
import type { Plugins } from "../plugin/plugins.ts";
import type { SessionHooks } from "../hook/session-hooks.ts";
import type { ToolContext } from "../tool/tool.ts";
import type { OpenCalls } from "./open-calls.ts";
import type { Project } from "../conversation/project.ts";
import type { Transcript } from "../conversation/transcript.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { ToolRunner } from "./tool-runner.ts";

/** Session services that tool calls need. */
export interface AgentCallsDeps {
  project: Project;
  gate: Decider;
  openCalls?: OpenCalls | undefined;
  context: ToolContext;
  emit: Emit;
  /** Resolves when the client can receive more. */
  waitUntilReady: () => Promise<void>;
  log: Log;
  plugins?: Plugins | undefined;
  hooks?: SessionHooks | undefined;
}

/** Creates a runner for calls of the agent, with its rules, its limits and the secrets of its project. */
export function createToolRunner(
  deps: AgentCallsDeps,
  agent: Agent,
  transcript: Pick<Transcript, "putPart" | "settleCall" | "amendParts">,
): ToolRunner {
  const { project, gate, openCalls, context, emit, waitUntilReady, log, plugins, hooks } = deps;
  const { config, workspace, secrets, diagnose, format } = project;
  const inWorktree = (rules: Ruleset) => addWorktreeRules(rules, workspace);
  return new ToolRunner({
    transcript,
    gate,
    openCalls,
    context: { ...context, agent: agent.name },
    emit,
    waitUntilReady,
    log,
    plugins,
    hooks,
    rules: inWorktree(agent.rules),
    limitingRules: agent.limits?.map(inWorktree),
    within: agent.within?.map(inWorktree),
    secrets,
    limits: {
      maxLines: config.tool_output?.max_lines,
      maxBytes: config.tool_output?.max_bytes,
      folder: workspace.outputFolder,
    },
    diagnose,
    format,
  });
}

/** Lets rules for paths of the checkout apply to the same files of a worktree that was made from it. */
function addWorktreeRules(rules: Ruleset, { worktree, checkout }: Workspace): Ruleset {
  if (worktree === undefined || checkout === undefined) return rules;
  const [from, to] = [`${toSlashes(checkout)}/`, `${toSlashes(worktree)}/`];
  return rules.flatMap((rule) =>
    rule.pattern.startsWith(from)
      ? [rule, { ...rule, pattern: `${to}${rule.pattern.slice(from.length)}` }]
      : [rule],
  );
}
