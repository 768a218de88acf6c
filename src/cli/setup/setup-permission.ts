import { UserError } from "../../base/errors.ts";
import type { Setting } from "../../config/edit.ts";
import type { Config } from "../../config/schema.ts";
import type { App } from "../../app.ts";
import type { Call } from "../command-line/command.ts";
import type { Questions } from "../terminal/questions.ts";

/**
 * A level of required consent, with the rules and the approval setting for it. Without rules the built-in
 * default applies.
 */
const levels = [
  {
    value: "irreversible",
    label: "What cannot be undone: push, publish, deploy, delete elsewhere",
    note: "Edits and commands that can be undone run without a question, and so do programs that Fairlead does not know. What cannot be undone asks.",
    rules: undefined,
    approval: undefined,
  },
  {
    value: "sandboxed",
    label: "What cannot be undone, and what leaves the sandbox",
    note: "New sessions are set to Sandboxed: edits in the workspace and commands run without a question, commands in a sandbox without network. What it blocks asks, and so does what cannot be undone.",
    rules: undefined,
    approval: "sandboxed",
  },
  {
    value: "all",
    label: "Every edit and command",
    note: "Every edit and command asks.",
    rules: { edit: "ask", bash: "ask" },
    approval: undefined,
  },
  {
    value: "nothing",
    label: "No edit or command in the workspace",
    note: "All edits and commands in the workspace run without a question, also what cannot be undone.",
    rules: { edit: "allow", bash: "allow" },
    approval: undefined,
  },
] as const;

export type PermissionLevel = (typeof levels)[number];

/**
 * Returns what to ask for: as the flag says, else as the user answers. Undefined if nothing is to be changed: the user
 * has rules already, or flags give what setup would otherwise ask last.
 */
export async function choosePermissionLevel(
  { call, questions, app }: { call: Call; questions: Questions; app: Pick<App, "findSandboxProblem"> },
  config: Config,
): Promise<PermissionLevel | undefined> {
  const given = call.text("ask-for");
  const isChosen = config.permission !== undefined || config.approval !== undefined;
  if (given === undefined && (isChosen || call.has("editor"))) return undefined;
  const value = given ?? (await askForLevel(questions, await app.findSandboxProblem()));
  const level = levels.find((one) => one.value === value);
  const problem = level?.approval === "sandboxed" ? await app.findSandboxProblem() : undefined;
  if (problem !== undefined) throw new UserError(problem);
  return level;
}

/** Asks for a level; *Sandboxed* is offered where commands can run in a sandbox. */
function askForLevel(questions: Questions, problem: string | undefined): Promise<string> {
  if (problem !== undefined) questions.say(`The setting Sandboxed is not offered. ${problem}`);
  const offered = levels.filter(({ approval }) => approval === undefined || problem === undefined);
  return questions.choose("What should Fairlead ask you for?", offered, { suggestion: "irreversible" });
}

/** Returns the settings of a level; undefined if they would replace rules that the user wrote. */
export function createPermissionSettings(level: PermissionLevel, config: Config): Setting[] | undefined {
  const approval = { path: ["approval"], value: level.approval };
  if (isReplaceable(config.permission)) return [{ path: ["permission"], value: level.rules }, approval];
  return level.rules === undefined && level.approval !== undefined ? [approval] : undefined;
}

/** Whether there are no rules but those of another level. */
function isReplaceable(permission: Config["permission"]): boolean {
  if (permission === undefined) return true;
  return levels.some(
    ({ rules }) => rules !== undefined && JSON.stringify(rules) === JSON.stringify(permission),
  );
}
