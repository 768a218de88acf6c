import type { Setting } from "../../config/edit.ts";
import type { Config } from "../../config/schema.ts";
import type { Call } from "../command-line/command.ts";
import type { Questions } from "../terminal/questions.ts";

/** What Fairlead asks for before it acts, with the rules that this needs. Without rules the built-in default applies. */
const levels = [
  {
    value: "irreversible",
    label: "What cannot be undone: push, publish, deploy, delete elsewhere",
    note: "Edits and commands that can be undone run without a question, and so do programs that Fairlead does not know. What cannot be undone asks.",
    rules: undefined,
  },
  {
    value: "all",
    label: "Every edit and command",
    note: "Every edit and command asks.",
    rules: { edit: "ask", bash: "ask" },
  },
  {
    value: "nothing",
    label: "No edit or command in the workspace",
    note: "All edits and commands in the workspace run without a question, also what cannot be undone.",
    rules: { edit: "allow", bash: "allow" },
  },
] as const;

export type PermissionLevel = (typeof levels)[number];

/**
 * Returns what to ask for: as the flag says, else as the user answers. Undefined if nothing is to be changed: the user
 * has rules already, or flags give what setup would otherwise ask last.
 */
export async function choosePermissionLevel(
  call: Call,
  config: Config,
  questions: Questions,
): Promise<PermissionLevel | undefined> {
  const given = call.text("ask-for");
  if (given === undefined && (config.permission !== undefined || call.has("editor"))) return undefined;
  const value =
    given ??
    (await questions.choose("What should Fairlead ask you for?", levels, { suggestion: "irreversible" }));
  return levels.find((level) => level.value === value);
}

/** Returns the settings of a level; undefined if they would replace rules that the user wrote. */
export function createPermissionSettings(level: PermissionLevel, config: Config): Setting[] | undefined {
  return isReplaceable(config.permission) ? [{ path: ["permission"], value: level.rules }] : undefined;
}

/** Whether there are no rules but those of another level. */
function isReplaceable(permission: Config["permission"]): boolean {
  if (permission === undefined) return true;
  return levels.some(
    ({ rules }) => rules !== undefined && JSON.stringify(rules) === JSON.stringify(permission),
  );
}
