import { findAssignmentReason, opaqueReasons } from "../opaque-reason.ts";
import type { OpaqueReason } from "../opaque-reason.ts";
import { toAssignment } from "../syntax/assignments.ts";
import type { Invocation } from "../facts.ts";
import { addVisiblePaths } from "../syntax/paths.ts";
import { describeProgram } from "./program.ts";
import { findProgram } from "./program-table.ts";
import type { Argument } from "../syntax/word.ts";

export function describeDeclaration(invocation: Invocation): OpaqueReason | undefined {
  const { scan, args, command, evalContext } = invocation;
  const assignments = args.filter((arg) => /^\w+\+?=/.test(arg.text)).map(toAssignment);
  for (const arg of args) addVisiblePaths(scan, arg, evalContext);
  const array = args.find((arg) => /=\(/.test(arg.text) && /[$`]/.test(arg.text));
  if (array) return { reason: "the shell evaluates the text of the array" };
  const evaluated = command.argv[0]?.text !== "export" && args.find((arg) => /^-\w*[in]/.test(arg.text));
  if (evaluated) return { reason: "the shell evaluates what such variables are set to" };
  return findAssignmentReason({ ...command, assignments }) ?? describeSubscripts(invocation);
}

export function describeTest(invocation: Invocation): OpaqueReason | undefined {
  return describeSubscripts(invocation) ?? describeProgram(invocation, findProgram("test"));
}

/** Describes builtins that evaluate the subscript in `name[…]`, which may run a command. */
export function describeSubscripts({ args, command: { argv } }: Invocation): OpaqueReason | undefined {
  const inner = argv[0]?.text === "[" ? args.slice(0, -1) : args;
  const names = /^(?:test|\[)$/.test(argv[0]?.text ?? "") ? findTestedNames(inner) : inner;
  const evaluates =
    inner.some((arg) => /^\w+\[/.test(arg.text) || (argv[0]?.text === "let" && /[[$`]/.test(arg.text))) ||
    names.some((arg) => !arg.values && arg.known === "");
  return evaluates ? opaqueReasons.subscript : undefined;
}

/** Returns the variable names after `-v` and `-R`; other words of a test are text. */
function findTestedNames(args: readonly Argument[]): Argument[] {
  return args.filter((_, index) => /^-[vR]$/.test(args[index - 1]?.text ?? ""));
}

export function describePrintf(invocation: Invocation): OpaqueReason | undefined {
  const [first, second] = invocation.args;
  if (first?.text === "-v") return describeSubscripts({ ...invocation, args: second ? [second] : [] });
  return first?.text.startsWith("-v") ? opaqueReasons.subscript : undefined;
}

export function describeMapfile(invocation: Invocation): OpaqueReason | undefined {
  const runs = invocation.args.some((arg) => arg.text.startsWith("-C"));
  return runs ? opaqueReasons.unseen : describeSubscripts(invocation);
}
