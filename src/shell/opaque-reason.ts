import type { SimpleCommand } from "./part.ts";
import { isDangerousVariable } from "./syntax/variables.ts";

/** What makes a command opaque. `unseen`: it runs shell text that cannot be read, which may touch any folder. */
export interface OpaqueReason {
  reason: string;
  options?: readonly string[];
  runsUnknownText?: boolean;
  /** The interpreter whose own code it is. */
  interpreter?: string;
}

export const opaqueReasons = {
  option: (options: readonly string[]): OpaqueReason => ({
    reason: `${options.join(" ")} may make it run or write something else`,
    options,
  }),
  unsure: { reason: "an argument that cannot be known before it runs may be an option" },
  unseen: { reason: "it runs shell text that cannot be known before it runs", runsUnknownText: true },
  subscript: { reason: "the shell evaluates what stands in [ ]" },
  gitConfig: { reason: "git's configuration can name programs that later commands run" },
  input: { reason: "it runs what it gets from its input", runsUnknownText: true },
} as const;

/** Of several the one that the fewest rules can lift: one that no option explains, else all options together. */
export function strictestReason(...found: readonly (OpaqueReason | undefined)[]): OpaqueReason | undefined {
  const given = found.filter((doubt) => doubt !== undefined);
  const unexplained = given.filter(({ options }) => options === undefined);
  if (unexplained.length > 0)
    return unexplained.find(({ runsUnknownText: unseen }) => unseen) ?? unexplained[0];
  return given.length > 1 ? opaqueReasons.option(given.flatMap(({ options = [] }) => options)) : given[0];
}

/** `IFS` before `read` only says how it splits its line. */
export function findAssignmentReason({ argv, assignments }: SimpleCommand): OpaqueReason | undefined {
  const reads = argv[0]?.text === "read";
  const variable = assignments.find(
    ({ name, value }) => !(reads && name === "IFS") && isDangerousVariable(name, value),
  );
  return variable && { reason: `the variable ${variable.name} may make it do something else` };
}
