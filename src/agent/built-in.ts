import compactionPrompt from "../../prompts/agents/compaction.md";
import explorePrompt from "../../prompts/agents/explore.md";
import generalPrompt from "../../prompts/agents/general.md";
import planPrompt from "../../prompts/agents/plan.md";
import summaryPrompt from "../../prompts/agents/summary.md";
import titlePrompt from "../../prompts/agents/title.md";
import { lazy } from "../base/lazy.ts";
import { readingCommandRules } from "../permission/evaluate.ts";
import type { Action, Rule, Ruleset } from "../permission/rule.ts";
import type { Agent } from "./agent.ts";
import { PLAN_FILES } from "./plan-files.ts";

/** What an agent that changes nothing may use; other rules still count for each. */
const HARMLESS: readonly string[] = [
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

/** Defaults that an agent denying everything else still lives by. */
const KEPT_DEFAULTS: readonly string[] = ["read", "external_directory", "doom_loop"];

/** An agent that ships with the program; `rules` are its own, to be placed after the defaults. */
export type BuiltInAgent = Pick<
  Agent,
  "name" | "description" | "mode" | "hidden" | "prompt" | "temperature"
> & {
  readonly rules: readonly Rule[];
  /** For an agent that may change nothing: what it may do at most, whatever the person's rules allow to all agents. */
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
    name: "build",
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
    ...readingShell(),
  ];
  return {
    name: "plan",
    description: "Explores the project and writes a plan; changes nothing else.",
    mode: "primary",
    hidden: false,
    prompt: planPrompt,
    rules: own,
    limit: [...onlyReading(), ...own],
  };
}

/** Tools of servers and of projects may change anything: they ask. */
function onlyReading(): Rule[] {
  return [rule("*", "*", "ask"), ...HARMLESS.map((permission) => rule(permission, "*", "allow"))];
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
  const allowed = ["grep", "glob", "list", "read", "webfetch", "websearch", "codesearch"];
  const own = [
    rule("*", "*", "deny"),
    ...allowed.map((permission) => rule(permission, "*", "allow")),
    ...readingShell(),
  ];
  return {
    name: "explore",
    description:
      "Searches and reads code quickly, changes nothing. Ask it where something is, how something works, or what uses it, and say how thorough to be: quick, medium or very thorough.",
    mode: "subagent",
    hidden: false,
    prompt: explorePrompt,
    rules: [...own, ...defaults.filter(({ permission }) => KEPT_DEFAULTS.includes(permission))],
    limit: [
      ...own,
      ...["external_directory", "doom_loop"].map((permission) => rule(permission, "*", "allow")),
    ],
  };
}

function compaction(): BuiltInAgent {
  return withoutTools("compaction", "Writes the summary that replaces older history.", compactionPrompt);
}

function title(): BuiltInAgent {
  const agent = withoutTools("title", "Names a session after its first message.", titlePrompt);
  return { ...agent, temperature: TITLE_TEMPERATURE };
}

function summary(): BuiltInAgent {
  return withoutTools("summary", "Says in a few sentences what a session changed.", summaryPrompt);
}

function withoutTools(name: string, description: string, prompt: string): BuiltInAgent {
  const rules = [rule("*", "*", "deny")];
  return { name, description, mode: "primary", hidden: true, prompt, rules, limit: rules };
}

/** Commands known to read are allowed, all others ask. */
function readingShell(): Rule[] {
  return [rule("bash", "*", "ask"), ...readingCommandRules()];
}

function rule(permission: string, pattern: string, action: Action): Rule {
  return { permission, pattern, action };
}
