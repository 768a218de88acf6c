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
  const pieces: TemplatePart[] = [];
  let at = 0;
  for (const match of template.matchAll(special)) {
    const [whole, shell, number, path] = match;
    pieces.push({ kind: "text", text: template.slice(at, match.index) });
    at = match.index + whole.length;
    if (shell !== undefined) pieces.push({ kind: "shell", command: shell.trim() });
    else if (number !== undefined) pieces.push({ kind: "argument", number: Number(number) });
    else if (path !== undefined) pieces.push(...parsePath(path));
    else pieces.push({ kind: "arguments" });
  }
  pieces.push({ kind: "text", text: template.slice(at) });
  return pieces.filter((piece) => piece.kind !== "text" || piece.text !== "");
}

/**
 * Fills in the arguments. The highest `$n` takes all remaining words; without any placeholder they are
 * appended.
 */
export function fillTemplate(template: string, typed: string): FilledPart[] {
  const pieces = parseTemplate(template);
  const words = splitWords(typed);
  const places = pieces.flatMap((piece) => (piece.kind === "file" ? piece.path : [piece]));
  const numbers = places.map((piece) => (piece.kind === "argument" ? piece.number : 0));
  const highest = Math.max(0, ...numbers);
  const takesArguments = highest > 0 || places.some(usesArguments);
  const valueOf = (piece: TemplatePart): string => {
    if (piece.kind === "text") return piece.text;
    if (piece.kind === "arguments") return typed;
    if (piece.kind !== "argument") return "";
    return piece.number === highest ? words.slice(highest - 1).join(" ") : (words[piece.number - 1] ?? "");
  };
  const filled = pieces.map((piece): FilledPart => {
    if (piece.kind === "shell") return { kind: "shell", command: bindArguments(piece.command, typed, words) };
    if (piece.kind === "file") return { kind: "file", path: piece.path.map(valueOf).join("") };
    return { kind: "text", text: valueOf(piece) };
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

function usesArguments(piece: TemplatePart): boolean {
  return piece.kind === "arguments" || (piece.kind === "shell" && shellArguments.test(piece.command));
}

const shellArguments = /\$(?:\{?ARGUMENTS\b|\{?[1-9@*#])/;

/** Passes the arguments as shell variables, so that the shell never parses them as commands. */
function bindArguments(command: string, typed: string, words: readonly string[]): string {
  if (!shellArguments.test(command)) return command;
  return `ARGUMENTS=${quote(typed)}; set -- ${words.map(quote).join(" ")}; ${command}`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function limitLength(filled: readonly FilledPart[]): FilledPart[] {
  const parts: FilledPart[] = [];
  let room = filledLimit;
  for (const piece of filled) {
    const length = piece.kind === "text" ? piece.text.length : 0;
    if (length > room && piece.kind === "text") {
      parts.push({
        kind: "text",
        text: `${piece.text.slice(0, room)}\n[Cut after ${filledLimit} characters.]`,
      });
      return parts;
    }
    room -= length;
    parts.push(piece);
  }
  return parts;
}
