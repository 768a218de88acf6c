import { quoteWord } from "../base/text/quote-word.ts";

/** A parsed part of a command template. */
export type TemplatePart =
  | { kind: "text"; text: string }
  /** All arguments, as typed. */
  | { kind: "arguments" }
  /** One argument, counted from 1. */
  | { kind: "argument"; number: number }
  /** A shell command whose output is inserted. */
  | { kind: "shell"; command: string }
  /** A file to attach if it exists; its path may contain arguments. */
  | { kind: "file"; path: readonly TemplatePart[] };

/** A part of a filled template: text, or a command or file still to insert. */
export type FilledPart =
  | { kind: "text"; text: string }
  | { kind: "shell"; command: string }
  | { kind: "file"; path: string };

/** Maximum length of a filled template, without command outputs and files. */
const filledLimit = 500_000;

const special =
  /!`([^`]+)`|\$ARGUMENTS|\$([1-9]\d?)|(?<![\w`@.])@((?:\$ARGUMENTS|\$[1-9]\d?|[^\s`"'<>()[\]{},;!?*|$@])+)/g;

/** Parses `$ARGUMENTS`, `$1`, `@file` and `` !`command` ``. Inserted text is never parsed again. */
export function parseTemplate(template: string): TemplatePart[] {
  const parts: TemplatePart[] = [];
  let at = 0;
  for (const match of template.matchAll(special)) {
    const [whole, shell, number, path] = match;
    parts.push({ kind: "text", text: template.slice(at, match.index) });
    at = match.index + whole.length;
    if (shell !== undefined) parts.push({ kind: "shell", command: shell.trim() });
    else if (number !== undefined) parts.push({ kind: "argument", number: Number(number) });
    else if (path !== undefined) parts.push(...parsePath(path));
    else parts.push({ kind: "arguments" });
  }
  parts.push({ kind: "text", text: template.slice(at) });
  return parts.filter((part) => part.kind !== "text" || part.text !== "");
}

/**
 * Fills in the arguments. The highest `$n` takes all remaining words; without any placeholder they are
 * appended.
 */
export function fillTemplate(template: string, typed: string): FilledPart[] {
  const parts = parseTemplate(template);
  const words = splitWords(typed);
  const leaves = parts.flatMap((part) => (part.kind === "file" ? part.path : [part]));
  const numbers = leaves.map((part) => (part.kind === "argument" ? part.number : 0));
  const highest = Math.max(0, ...numbers);
  const takesArguments = highest > 0 || leaves.some(usesArguments);
  const valueOf = (part: TemplatePart): string => {
    if (part.kind === "text") return part.text;
    if (part.kind === "arguments") return typed;
    if (part.kind !== "argument") return "";
    return part.number === highest ? words.slice(highest - 1).join(" ") : (words[part.number - 1] ?? "");
  };
  const filled = parts.map((part): FilledPart => {
    if (part.kind === "shell") return { kind: "shell", command: bindArguments(part.command, typed, words) };
    if (part.kind === "file") return { kind: "file", path: part.path.map(valueOf).join("") };
    return { kind: "text", text: valueOf(part) };
  });
  if (!takesArguments && typed !== "") filled.push({ kind: "text", text: `\n\n${typed}` });
  return limitLength(filled);
}

export function hasShell(template: string): boolean {
  return parseTemplate(template).some(({ kind }) => kind === "shell");
}

/** A final dot ends the sentence and is not part of the path. */
function parsePath(path: string): TemplatePart[] {
  const end = /[.:]+$/.exec(path)?.[0] ?? "";
  const rest = path.slice(0, path.length - end.length);
  if (rest === "") return [{ kind: "text", text: `@${path}` }];
  const file: TemplatePart = { kind: "file", path: parseTemplate(rest) };
  return end === "" ? [file] : [file, { kind: "text", text: end }];
}

/** Splits at whitespace; quotes group words. */
function splitWords(typed: string): string[] {
  const words = typed.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g);
  return [...words].map(([, double, single, plain]) => double ?? single ?? plain ?? "");
}

function usesArguments(part: TemplatePart): boolean {
  return part.kind === "arguments" || (part.kind === "shell" && shellArguments.test(part.command));
}

const shellArguments = /\$(?:\{?ARGUMENTS\b|\{?[1-9@*#])/;

/** Passes the arguments as shell variables, so that the shell never parses them as commands. */
function bindArguments(command: string, typed: string, words: readonly string[]): string {
  if (!shellArguments.test(command)) return command;
  return `ARGUMENTS=${quoteWord(typed)}; set -- ${words.map(quoteWord).join(" ")}; ${command}`;
}

function limitLength(filled: readonly FilledPart[]): FilledPart[] {
  const limited: FilledPart[] = [];
  let remaining = filledLimit;
  for (const part of filled) {
    const length = part.kind === "text" ? part.text.length : 0;
    if (length > remaining && part.kind === "text") {
      limited.push({
        kind: "text",
        text: `${part.text.slice(0, remaining)}\n[Cut after ${filledLimit} characters.]`,
      });
      return limited;
    }
    remaining -= length;
    limited.push(part);
  }
  return limited;
}
