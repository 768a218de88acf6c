import { basename, dirname, join } from "node:path/posix";
import { describeProgram, findOpaqueReason } from "./program.ts";
import { addOperands, addOptionFiles } from "./operands.ts";
import { hasFlag, parseOptions } from "./options.ts";
import type { ParsedOptions } from "./options.ts";
import { strictestReason } from "../opaque-reason.ts";
import type { OpaqueReason } from "../opaque-reason.ts";
import type { Invocation, EvalContext, Scan } from "../facts.ts";
import { addPath } from "../syntax/paths.ts";
import { findProgram } from "./program-table.ts";
import type { Program } from "./program-table.ts";
import { knownText, literalArgument } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";

export function describeSed({ scan, args, evalContext }: Invocation): OpaqueReason | undefined {
  const program: Program = findProgram("sed") ?? {};
  const options = parseOptions(args.map(removeSuffix), program);
  const inPlace = hasFlag(options, "-i --in-place");
  addOptionFiles(scan, options, program, evalContext);
  addOperands(scan, options, inPlace ? { ...program, operands: "change" } : program, evalContext);
  for (const suffix of args.flatMap(({ text }) => inPlaceSuffix.exec(text)?.[2] ?? []))
    addBackups(scan, options.operands, suffix, evalContext);
  return strictestReason(
    describeSedScripts(scan, options, program, evalContext),
    findOpaqueReason(options, program),
  );
}

/** `-i.bak`, `--in-place=.bak`. */
const inPlaceSuffix = /^(-[nrEsuz]*i|--in-[a-z]*=)(.+)$/s;

function removeSuffix(arg: Argument): Argument {
  const option = inPlaceSuffix.exec(arg.text)?.[1];
  return option === undefined ? arg : literalArgument(option.replace("=", ""));
}

/** Adds the backups of files, named by a suffix; `*` in the suffix is replaced by the file name. */
function addBackups(scan: Scan, files: readonly Argument[], suffix: string, evalContext: EvalContext): void {
  for (const { text } of files.flatMap(({ values = [] }) => values)) {
    const name = suffix.includes("*") ? suffix.replaceAll("*", basename(text)) : basename(text) + suffix;
    addPath(
      scan,
      literalArgument(name.includes("/") ? name : join(dirname(text), name)),
      { access: "write" },
      evalContext,
    );
  }
}

function describeSedScripts(
  scan: Scan,
  options: ParsedOptions,
  program: Program,
  evalContext: EvalContext,
): OpaqueReason | undefined {
  for (const script of findSedScripts(options, program)) {
    const text = knownText(script);
    if (text === undefined) return { reason: "sed's script cannot be known before it runs" };
    const effects = parseSedScript(text);
    for (const file of effects.writes) addPath(scan, literalArgument(file), { access: "write" }, evalContext);
    for (const file of effects.reads) addPath(scan, literalArgument(file), { access: "read" }, evalContext);
    if (effects.opaque) return { reason: effects.opaque };
  }
  return undefined;
}

/** Returns the scripts. After `-i` BSD sed takes the suffix, which may be empty, as the next word. */
function findSedScripts(options: ParsedOptions, program: Program): Argument[] {
  const given = options.flags.filter(({ name }) => /^-(?:e|-expression)$/.test(name));
  if (hasFlag(options, program.patternFlags)) return given.flatMap(({ value }) => value ?? []);
  return options.operands.slice(0, options.operands[0]?.text === "" ? 2 : 1);
}

export function describeAwk(invocation: Invocation): OpaqueReason | undefined {
  const program: Program = findProgram("awk") ?? {};
  const doubt = describeProgram(invocation, program);
  const options = parseOptions(invocation.args, program);
  return hasFlag(options, program.patternFlags) ? doubt : strictestReason(findAwkReason(options), doubt);
}

function findAwkReason({ operands: [script] }: ParsedOptions): OpaqueReason | undefined {
  const text = script && knownText(script);
  const reason = text === undefined ? "awk's program cannot be known before it runs" : findAwkHazard(text);
  return reason === undefined ? undefined : { reason };
}

/** Effects of a sed script other than printing. */
interface ScriptEffects {
  reads: readonly string[];
  writes: readonly string[];
  /** Why the effects cannot be determined. */
  opaque?: string;
}

/** Parses a sed script and finds the commands that run (`e`), write (`w`) or read (`r`). */
function parseSedScript(script: string): ScriptEffects {
  const reads: string[] = [];
  const writes: string[] = [];
  let at = 0;
  const stop = (opaque: string): ScriptEffects => ({ reads, writes, opaque });
  const lineEnd = () => {
    const end = script.indexOf("\n", at);
    return end === -1 ? script.length : end;
  };
  while (at < script.length) {
    at = skip(script, at, /[\s;{}]/);
    const address = skipAddresses(script, at);
    if (address === undefined) return stop("sed's script cannot be read");
    at = address;
    const command = script[at];
    if (command === undefined) break;
    at++;
    if (command === "{") continue;
    if ("#aic".includes(command)) {
      at = command === "#" ? lineEnd() : skipText(script, at);
    } else if (":btTvqQlL".includes(command)) {
      at = skip(script, skip(script, at, /[ \t]/), /[^\s;}]/);
    } else if ("=dDgGhHnNpPxzF".includes(command)) {
      at = skip(script, at, /[ \t]/);
    } else if ("rRwW".includes(command)) {
      (command.toLowerCase() === "r" ? reads : writes).push(script.slice(at, lineEnd()).trim());
      at = lineEnd();
    } else if (command === "s" || command === "y") {
      const end = skipParts(script, at);
      if (end === undefined) return stop("sed's script cannot be read");
      const flags = /^[0-9gpiImM]*/.exec(script.slice(end))?.[0] ?? "";
      at = end + flags.length;
      if (script[at] === "e") return stop("sed runs what it makes (e)");
      if (script[at] === "w") {
        writes.push(script.slice(at + 1, lineEnd()).trim());
        at = lineEnd();
      }
    } else return stop(command === "e" ? "sed runs a command (e)" : "sed's script cannot be read");
  }
  return writes.length > 0 ? stop("sed writes a file (w)") : { reads, writes };
}

/** Returns the position after the text of `a`, `i` or `c`. Only after `a\` is a trailing backslash sure to continue it. */
function skipText(script: string, from: number): number {
  const text = /^[ \t]*\\\n(?:[^\\\n]|\\[^])*|^[^\n]*/.exec(script.slice(from))?.[0] ?? "";
  return from + text.length;
}

function skip(text: string, from: number, these: RegExp): number {
  let at = from;
  while (at < text.length && these.test(text[at] ?? "")) at++;
  return at;
}

function skipAddresses(script: string, from: number): number | undefined {
  let at = from;
  while (at < script.length) {
    const character = script[at] ?? "";
    if (/[\d$,!~+ \t]/.test(character)) at++;
    else if (character === "/" || character === "\\") {
      const start = character === "/" ? at : at + 1;
      const end = skipDelimited(script, start + 1, script[start] ?? "");
      if (end === undefined) return undefined;
      at = skip(script, end, /[IM]/);
    } else return at;
  }
  return at;
}

/** Returns the position after the two parts of `s/a/b/`; `from` is at the first delimiter. */
function skipParts(script: string, from: number): number | undefined {
  const delimiter = script[from];
  if (delimiter === undefined || delimiter === "\n" || delimiter === "\\") return undefined;
  const middle = skipDelimited(script, from + 1, delimiter);
  return middle === undefined ? undefined : skipDelimited(script, middle, delimiter);
}

/**
 * Returns the position after the closing delimiter. Undefined if the line has none, or if it is inside brackets,
 * which programs treat differently.
 */
function skipDelimited(script: string, from: number, delimiter: string): number | undefined {
  for (let at = from; at < script.length && script[at] !== "\n"; at++) {
    if (script[at] === "\\") at++;
    else if (script[at] === delimiter) return endsInBrackets(script.slice(from, at)) ? undefined : at + 1;
  }
  return undefined;
}

function endsInBrackets(expression: string): boolean {
  const open = expression.replace(/\\./gs, "").replace(/\[:\w+:\]/g, "");
  return /\[\^?\]?[^\]]*$/.test(open);
}

/** Returns why an awk program is opaque: it runs, writes or reads something itself. Undefined if it does not. */
function findAwkHazard(program: string): string | undefined {
  const code = removeLiterals(program);
  if (code === undefined) return "awk's program cannot be read";
  if (/\bsystem\b/.test(code)) return "awk runs commands (system)";
  if (/\bgetline\b/.test(code)) return "awk reads other files or commands (getline)";
  if (/@/.test(code)) return "awk loads or calls something by name (@)";
  if (/\|/.test(code.replace(/\|\|/g, ""))) return "awk pipes into a command";
  if (/\bARG[VC]\b/.test(code)) return "awk names its own files (ARGV)";
  return printsToFile(code) ? "awk writes a file (print >)" : undefined;
}

/** Whether `print` has a `>` outside brackets, inside which it compares. Some line ends continue a statement. */
function printsToFile(code: string): boolean {
  const lines = code.replace(/\\\n/g, " ").replace(/(,|&&|\|\||\{|\?|:|\bdo|\belse)\s*\n/g, "$1 ");
  let depth = 0;
  let prints = false;
  for (const [token] of lines.matchAll(/\bprintf?\b|[()[\];{}>\n]/g)) {
    if (token.startsWith("print")) [prints, depth] = [true, 0];
    else if (token === "(" || token === "[") depth++;
    else if (token === ")" || token === "]") depth--;
    else if (token === ">") {
      if (prints && depth <= 0) return true;
    } else prints = false;
  }
  return false;
}

/** Replaces strings and regular expressions; undefined if a slash is ambiguous. */
function removeLiterals(program: string): string | undefined {
  let code = "";
  for (let at = 0; at < program.length; at++) {
    const character = program[at] ?? "";
    if (character === "#") {
      const end = program.indexOf("\n", at);
      at = end === -1 ? program.length : end - 1;
      continue;
    }
    const before = character === "/" ? classifySlash(code) : undefined;
    if (before === "unclear") return undefined;
    if (character === '"' || before === "expression") {
      const end = character === '"' ? findStringEnd(program, at + 1) : skipDelimited(program, at + 1, "/");
      if (end === undefined) return undefined;
      code += '""';
      at = end - 1;
    } else code += character;
  }
  return code;
}

function findStringEnd(program: string, from: number): number | undefined {
  for (let at = from; at < program.length; at++) {
    if (program[at] === "\\") at++;
    else if (program[at] === '"') return at + 1;
  }
  return undefined;
}

/** A slash is a division after a value, and opens a regular expression after an operator. */
function classifySlash(codeBefore: string): "division" | "expression" | "unclear" {
  const code = codeBefore.replace(/[ \t]+$/, "");
  if (code === "" || /[(,~!{;&|}]$/.test(code)) return "expression";
  if (code.endsWith("\n")) return code.endsWith("\\\n") ? "unclear" : "expression";
  if (closesCondition(code)) return "expression";
  return /[\w)\]]$/.test(code) && !/\b(?:print|printf|return|in|do|else|case|getline|exit|delete)$/.test(code)
    ? "division"
    : "unclear";
}

/** Whether the code ends with the brackets of `if (…)`, after which a statement begins. */
function closesCondition(code: string): boolean {
  let depth = 0;
  for (let at = code.length - 1; at >= 0; at--) {
    if (code[at] === ")") depth++;
    else if (code[at] === "(") depth--;
    if (depth === 0) return code[at] === "(" && /\b(?:if|while|for|switch)\s*$/.test(code.slice(0, at));
  }
  return false;
}
