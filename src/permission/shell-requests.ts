import { opaqueReasons } from "../shell/opaque-reason.ts";
import type { ShellEffect, ShellFacts } from "../shell/facts.ts";
import type { PermissionRequest } from "./rule.ts";

const permissions: Readonly<Record<ShellEffect["type"], string>> = {
  run: "bash",
  write: "edit",
  read: "read",
  outside: "external_directory",
};

/** Returns the permissions that a command line needs, one for each effect. */
export function toShellRequests(facts: ShellFacts): PermissionRequest[] {
  return facts.map(({ type, similar, critical, ...subject }) => ({
    permission: permissions[type],
    subjects: [{ ...subject, ...(critical !== undefined && { confirm: critical }) }],
    always: similar,
    ofCommand: true,
  }));
}

/** Whether a command runs a shell that takes its commands from the input. */
function readsCommands(facts: ShellFacts): boolean {
  return facts.some((effect) => runsInput(effect) && effect.interpreter === undefined);
}

/**
 * Returns the permissions that a text on the input of a running program needs. A shell runs it: `typed` and `before` are
 * the facts of all its input as a command line, with and without the text. Other programs may do anything with it.
 */
export function toInputRequests(
  program: { command: string; facts: ShellFacts },
  input: { text: string; typed: ShellFacts; before: ShellFacts },
): PermissionRequest[] {
  const { command, facts } = program;
  const known = new Set(input.before.map(nameEffect));
  const commands = readsCommands(facts)
    ? toShellRequests(input.typed.filter((effect) => !known.has(nameEffect(effect))))
    : [];
  const readers = [...facts, ...input.typed].filter(runsInput);
  if (commands.length > 0 && readers.every(({ interpreter }) => interpreter === undefined)) return commands;
  const interpreter = readers.find((effect) => effect.interpreter !== undefined)?.interpreter;
  const subject = {
    text: `${command} <<< ${input.text.trimEnd()}`,
    also: [command],
    reason: `writes to the input of ${command}`,
    opaque: "its effect depends on the program that reads it",
    ...(interpreter !== undefined && { interpreter }),
  };
  return [...commands, { permission: "bash", subjects: [subject], always: [] }];
}

const runsInput = ({ opaque }: ShellFacts[number]): boolean => opaque === opaqueReasons.input.reason;

const nameEffect = ({ type, text }: ShellFacts[number]): string => `${type} ${text}`;
