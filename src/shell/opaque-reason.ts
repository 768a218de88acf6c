import type { SimpleCommand } from "./facts.ts";
import { isDangerousVariable } from "./syntax/variables.ts";

/** Why the effects of a command cannot be determined. */
export interface OpaqueReason {
  reason: string;
  /** The options that cause it; a rule that spells all of them out may allow the command. */
  options?: readonly string[];
  /** It runs unknown shell text, which may use any folder. */
  runsUnknownText?: boolean;
  /** The interpreter that runs the code. */
  interpreter?: string;
}

export const opaqueReasons = {
  option: (options: readonly string[]): OpaqueReason => ({
    reason: `${options.join(" ")} may make it run or write something else`,
    options,
  }),
  unsure: { reason: "an argument that cannot be known before it runs may be an option" },
  unseen: { reason: "it runs shell text that cannot be known before it runs", runsUnknownText: true },
  subscript: { reason: "the shell evaluates the text in [ ]" },
  gitConfig: { reason: "git's configuration can name programs that later commands run" },
  input: { reason: "it runs what it gets from its input", runsUnknownText: true },
} as const;

/** Returns the reason that the fewest rules can lift: one without options, else all options together. */
export function strictestReason(...found: readonly (OpaqueReason | undefined)[]): OpaqueReason | undefined {
  const given = found.filter((doubt) => doubt !== undefined);
  const unexplained = given.filter(({ options }) => options === undefined);
  if (unexplained.length > 0)
    return unexplained.find(({ runsUnknownText }) => runsUnknownText) ?? unexplained[0];
  return given.length > 1 ? opaqueReasons.option(given.flatMap(({ options = [] }) => options)) : given[0];
}

/** Returns the reason for a dangerous assignment before a command. `IFS=, read` only sets how the line is split. */
export function findAssignmentReason({ argv, assignments }: SimpleCommand): OpaqueReason | undefined {
  const reads = argv[0]?.text === "read";
  const variable = assignments.find(
    ({ name, value }) => !(reads && name === "IFS") && isDangerousVariable(name, value),
  );
  return variable && { reason: `the variable ${variable.name} may make it do something else` };
}
