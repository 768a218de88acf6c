import compactionPrompt from "../../prompts/agents/compaction.md";
import explorePrompt from "../../prompts/agents/explore.md";
import generalPrompt from "../../prompts/agents/general.md";
import summaryPrompt from "../../prompts/agents/summary.md";
import titlePrompt from "../../prompts/agents/title.md";
import { lazy } from "../base/lazy.ts";
import { readingCommandRules } from "../permission/default-rules.ts";
import type { Action, Rule, Ruleset } from "../permission/rule.ts";
import type { Agent } from "./agent.ts";
import { PLAN_FILES } from "./plan-files.ts";
import { BUILD_AGENT, PLAN_AGENT } from "./plan-mode.ts";

/** Permissions of read-only agents; other rules still apply to each. */
const READ_ONLY_PERMISSIONS: readonly string[] = [
  "read",
  "glob",
  "grep",
  "list",
  "lsp",
  "webfetch",
  "websearch",
  "codesearch",
  "skill",
  "task",
  "todoread",
  "todowrite",
  "question",
  "plan_exit",
  "external_directory",
  "doom_loop",
];

const TITLE_TEMPERATURE = 0.5;

/** Defaults that still apply to an agent that denies everything else. */
const REMAINING_DEFAULTS: readonly string[] = ["read", "external_directory", "doom_loop"];

/** A bundled agent; `rules` are its own and come after the defaults. */
export type BuiltInAgent = Pick<
  Agent,
  "name" | "description" | "mode" | "hidden" | "prompt" | "temperature"
> & {
  readonly rules: readonly Rule[];
  /** Upper bound of a read-only agent's permissions, whatever the user's rules allow. */
  readonly limit?: readonly Rule[];
};

export function builtInAgents(defaults: Ruleset): BuiltInAgent[] {
  return [build(), plan(), general(), explore(defaults), compaction(), title(), summary()];
}

export const builtInNames = lazy(
  (): ReadonlySet<string> => new Set(builtInAgents([]).map(({ name }) => name)),
);

function build(): BuiltInAgent {
  return {
    name: BUILD_AGENT,
    description: "Reads, changes and runs the code of the project within the configured permissions.",
    mode: "primary",
    hidden: false,
    rules: [rule("question", "*", "allow"), rule("plan_enter", "*", "allow")],
  };
}

function plan(): BuiltInAgent {
  const own = [
    rule("question", "*", "allow"),
    rule("plan_exit", "*", "allow"),
    rule("task", "general", "deny"),
    rule("edit", "*", "deny"),
    ...PLAN_FILES.map((pattern) => rule("edit", pattern, "allow")),
    ...createReadOnlyShellRules(),
  ];
  return {
    name: PLAN_AGENT,
    description: "Explores the project and writes a plan; changes nothing else.",
    mode: "primary",
    hidden: false,
    rules: own,
    limit: [...createReadOnlyRules(), ...own],
  };
}

/** Tools of MCP servers and projects may change anything, so they ask. */
function createReadOnlyRules(): Rule[] {
  return [
    rule("*", "*", "ask"),
    ...READ_ONLY_PERMISSIONS.map((permission) => rule(permission, "*", "allow")),
  ];
}

function general(): BuiltInAgent {
  return {
    name: "general",
    description:
      "Carries out a task of several steps on its own: research that needs changes or commands, or a separate piece of work. Several can run side by side.",
    mode: "subagent",
    hidden: false,
    prompt: generalPrompt,
    rules: [rule("todowrite", "*", "deny"), rule("todoread", "*", "deny")],
  };
}

function explore(defaults: Ruleset): BuiltInAgent {
  const allowed = ["grep", "glob", "list", "read", "lsp", "webfetch", "websearch", "codesearch"];
  const own = [
    rule("*", "*", "deny"),
    ...allowed.map((permission) => rule(permission, "*", "allow")),
    ...createReadOnlyShellRules(),
  ];
  return {
    name: "explore",
    description:
      "Searches and reads code quickly, changes nothing. Ask it where something is, how something works, or what uses it, and say how thorough to be: quick, medium or very thorough.",
    mode: "subagent",
    hidden: false,
    prompt: explorePrompt,
    rules: [...own, ...defaults.filter(({ permission }) => REMAINING_DEFAULTS.includes(permission))],
    limit: [
      ...own,
      ...["external_directory", "doom_loop"].map((permission) => rule(permission, "*", "allow")),
    ],
  };
}

function compaction(): BuiltInAgent {
  return denyAllTools("compaction", "Writes the summary that replaces older history.", compactionPrompt);
}

function title(): BuiltInAgent {
  const agent = denyAllTools("title", "Names a session after its first message.", titlePrompt);
  return { ...agent, temperature: TITLE_TEMPERATURE };
}

function summary(): BuiltInAgent {
  return denyAllTools("summary", "Says in a few sentences what a session changed.", summaryPrompt);
}

function denyAllTools(name: string, description: string, prompt: string): BuiltInAgent {
  const rules = [rule("*", "*", "deny")];
  return { name, description, mode: "primary", hidden: true, prompt, rules, limit: rules };
}

/** Allows known read-only commands; all others ask. */
function createReadOnlyShellRules(): Rule[] {
  return [rule("bash", "*", "ask"), ...readingCommandRules()];
}

function rule(permission: string, pattern: string, action: Action): Rule {
  return { permission, pattern, action };
}
