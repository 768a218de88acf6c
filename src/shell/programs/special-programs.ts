import { basename } from "node:path/posix";
import type { OpaqueReason } from "../opaque-reason.ts";
import { addFilesWithPrefix } from "./operands.ts";
import { parseOptions } from "./options.ts";
import type { ParsedOptions } from "./options.ts";
import type { Invocation } from "../facts.ts";
import { addPath } from "../syntax/paths.ts";
import { describeProgram, findOpaqueReason } from "./program.ts";
import { findProgram } from "./program-table.ts";
import type { Program } from "./program-table.ts";
import { knownText, literalArgument, sliceValue } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";

/** Reads the operands `if=a of=b`. */
export function describeDd({ scan, args, evalContext }: Invocation): undefined {
  for (const arg of args) {
    const [, key, file] = /^(if|of)=(.*)$/s.exec(arg.text) ?? [];
    if (!key || file === undefined) continue;
    const values = arg.values?.map((value) => sliceValue(value, 3));
    addPath(scan, { ...arg, text: file, values }, { access: key === "of" ? "write" : "read" }, evalContext);
  }
}

/** Handles options with two values: `--arg name text`, and `--slurpfile name file`, which is read. */
export function describeJq(invocation: Invocation): OpaqueReason | undefined {
  const { scan, args, evalContext } = invocation;
  const rest: Argument[] = [];
  for (let next = 0; next < args.length; next++) {
    const arg = args[next];
    if (!arg) break;
    const file = args[next + 2];
    if (/^--(?:slurpfile|rawfile|argfile)$/.test(arg.text) && file)
      addPath(scan, file, { access: "read" }, evalContext);
    if (/^--(?:slurpfile|rawfile|argfile|arg|argjson)$/.test(arg.text)) next += 2;
    else rest.push(arg);
  }
  const doubt = describeProgram({ ...invocation, args: rest }, findProgram("jq"));
  if (doubt || !rest.some(({ text }) => /\b(?:import|include)\s*"/.test(text))) return doubt;
  return { reason: "it reads the modules that its program names" };
}

/** Adds output files, whose names begin with the second operand or `x`. */
export function describeSplit(invocation: Invocation): OpaqueReason | undefined {
  return describeSplitFiles(invocation, "split", ({ operands }) => operands[1] ?? literalArgument("x"));
}

/** Adds output files, whose names begin with the value of `-f` or `xx`. */
export function describeCsplit(invocation: Invocation): OpaqueReason | undefined {
  return describeSplitFiles(invocation, "csplit", ({ flags: found }) => {
    const prefix = found.find(({ name }) => name === "-f" || name === "--prefix");
    return prefix?.value ?? literalArgument("xx");
  });
}

function describeSplitFiles(
  { scan, args, evalContext }: Invocation,
  name: string,
  beginning: (options: ParsedOptions) => Argument,
): OpaqueReason | undefined {
  const program = findProgram(name) ?? {};
  const options = parseOptions(args, program);
  const [whole] = options.operands;
  if (whole) addPath(scan, whole, { access: "read" }, evalContext);
  for (const pieces of [beginning(options), ...options.operands.filter(isPattern)])
    addFilesWithPrefix(scan, pieces, evalContext);
  return findOpaqueReason(options, program);
}

function isPattern({ values }: Argument): boolean {
  return values?.some(({ glob }) => glob) === true;
}

/** Removes a mode that looks like an option: `chmod -w a`. */
export function describeChmod(invocation: Invocation): OpaqueReason | undefined {
  const program = findProgram("chmod") ?? {};
  const isMode = ({ text }: Argument) => /^-[rwxXstugoa0-7]/.test(text);
  const { args } = invocation;
  if (!args.some(isMode)) return describeProgram(invocation, program);
  return describeProgram(
    { ...invocation, args: args.filter((arg) => !isMode(arg)) },
    { ...program, skippedOperands: 0 },
  );
}

/** Treats the X's of the template as a wildcard. */
export function describeMktemp(invocation: Invocation): OpaqueReason | undefined {
  const args = invocation.args.map((arg) => {
    const values = arg.values?.map((value) => {
      const text = value.text.replace(/X{3,}/g, "*");
      return { text, glob: value.glob || text !== value.text };
    });
    return { ...arg, values };
  });
  return describeProgram({ ...invocation, args }, findProgram("mktemp"));
}

/**
 * The operands after the database are SQL or shell commands, which may run programs and write files. Without them
 * they come from the input.
 */
export function describeSqlite(invocation: Invocation): OpaqueReason | undefined {
  const program = findProgram("sqlite3") ?? {};
  const doubt = describeProgram(invocation, program);
  const [, ...texts] = parseOptions(invocation.args, program).operands;
  const isRead = texts.length > 0 && texts.every((text) => isQuery(knownText(text)));
  return doubt ?? (isRead ? undefined : { reason: "its text may run programs and write files" });
}

/** Whether the text has only display commands, and no SQL that reaches beyond the database. */
function isQuery(text: string | undefined): boolean {
  if (text === undefined) return false;
  const commands = [...text.matchAll(/^\s*\.(\S*)/gm)].map(([, name = ""]) => name);
  return (
    commands.every((name) => displayCommands.has(name)) &&
    !/\b(?:edit|writefile|readfile|load_extension|fsdir|attach|vacuum)\b/i.test(text)
  );
}

/** Full names only: the abbreviation `.s` may be `.system`. */
const displayCommands = new Set(
  "databases dump exit fullschema header headers help indexes mode nullvalue print quit schema separator show tables timer width".split(
    " ",
  ),
);

/** Only `aws s3` takes files; other operands are often names with a slash. */
export function describeAws(invocation: Invocation): OpaqueReason | undefined {
  const copies = invocation.args[0]?.text === "s3";
  return describeProgram(invocation, copies ? undefined : findProgram("gcloud"));
}

/** An operand that is not a format sets the clock. */
export function describeDate(invocation: Invocation): OpaqueReason | undefined {
  const program = findProgram("date") ?? {};
  const doubt = describeProgram(invocation, program);
  const setsClock = parseOptions(invocation.args, program).operands.some(({ text }) => /^\d/.test(text));
  return doubt ?? (setsClock ? { reason: "it sets the clock" } : undefined);
}

/** `-i` rewrites the files after the script. */
export function describeInPlace(invocation: Invocation): OpaqueReason | undefined {
  const isInPlace = invocation.args.some(({ text }) => /^-[a-zA-Z0-9]*i/.test(text));
  return isInPlace ? describeEditor(invocation) : describeProgram(invocation, findOwnProgram(invocation));
}

/** Adds files that an editor reads and may write. */
export function describeEditor(invocation: Invocation): OpaqueReason | undefined {
  const { scan, args, evalContext } = invocation;
  const program = findOwnProgram(invocation);
  for (const file of parseOptions(args, program).operands)
    addPath(scan, file, { access: "write" }, evalContext);
  return describeProgram(invocation, program);
}

function findOwnProgram({ command }: Invocation): Program {
  return findProgram(basename(command.argv[0]?.text ?? "")) ?? {};
}
