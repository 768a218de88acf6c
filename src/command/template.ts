/** A piece of a template's own text. */
export type TemplatePart =
  | { kind: "text"; text: string }
  /** Everything that was typed behind the command's name. */
  | { kind: "arguments" }
  /** One word of it, counted from 1. */
  | { kind: "argument"; number: number }
  /** A command line whose output stands here. */
  | { kind: "shell"; command: string }
  /** A file that is attached, if it is there; its path may have arguments in it. */
  | { kind: "file"; path: readonly TemplatePart[] };

/** What a template becomes: words, with places to run something or to attach a file. */
export type Filled =
  | { kind: "text"; text: string }
  | { kind: "shell"; command: string }
  | { kind: "file"; path: string };

/** Characters that one command comes to, before what it runs or attaches. */
const filledLimit = 500_000;

const special =
  /!`([^`]+)`|\$ARGUMENTS|\$([1-9]\d?)|(?<![\w`@.])@((?:\$ARGUMENTS|\$[1-9]\d?|[^\s`"'<>()[\]{},;!?*|$@])+)/g;

/**
 * Reads `$ARGUMENTS`, `$1`, `@file` and `` !`command` `` in a template. Only the template is read in this way, once:
 * what fills it is never looked at again.
 */
export function parseTemplate(template: string): TemplatePart[] {
  const pieces: TemplatePart[] = [];
  let at = 0;
  for (const match of template.matchAll(special)) {
    const [whole, shell, number, path] = match;
    pieces.push({ kind: "text", text: template.slice(at, match.index) });
    at = match.index + whole.length;
    if (shell !== undefined) pieces.push({ kind: "shell", command: shell.trim() });
    else if (number !== undefined) pieces.push({ kind: "argument", number: Number(number) });
    else if (path !== undefined) pieces.push(...filePieces(path));
    else pieces.push({ kind: "arguments" });
  }
  pieces.push({ kind: "text", text: template.slice(at) });
  return pieces.filter((piece) => piece.kind !== "text" || piece.text !== "");
}

/** The template with what was typed: the highest of `$1 …` takes the rest; without a place for it, it stands at the end. */
export function fillTemplate(template: string, typed: string): Filled[] {
  const pieces = parseTemplate(template);
  const words = splitWords(typed);
  const places = pieces.flatMap((piece) => (piece.kind === "file" ? piece.path : [piece]));
  const numbers = places.map((piece) => (piece.kind === "argument" ? piece.number : 0));
  const highest = Math.max(0, ...numbers);
  const takesArguments = highest > 0 || places.some(takesTyped);
  const valueOf = (piece: TemplatePart): string => {
    if (piece.kind === "text") return piece.text;
    if (piece.kind === "arguments") return typed;
    if (piece.kind !== "argument") return "";
    return piece.number === highest ? words.slice(highest - 1).join(" ") : (words[piece.number - 1] ?? "");
  };
  const filled = pieces.map((piece): Filled => {
    if (piece.kind === "shell") return { kind: "shell", command: withArguments(piece.command, typed, words) };
    if (piece.kind === "file") return { kind: "file", path: piece.path.map(valueOf).join("") };
    return { kind: "text", text: valueOf(piece) };
  });
  if (!takesArguments && typed !== "") filled.push({ kind: "text", text: `\n\n${typed}` });
  return limited(filled);
}

/** Whether a template would run something. */
export function hasShell(template: string): boolean {
  return parseTemplate(template).some(({ kind }) => kind === "shell");
}

/** The dot that ends a sentence is no part of a path. */
function filePieces(path: string): TemplatePart[] {
  const end = /[.:]+$/.exec(path)?.[0] ?? "";
  const rest = path.slice(0, path.length - end.length);
  if (rest === "") return [{ kind: "text", text: `@${path}` }];
  const file: TemplatePart = { kind: "file", path: parseTemplate(rest) };
  return end === "" ? [file] : [file, { kind: "text", text: end }];
}

/** Quotes hold words together. */
function splitWords(typed: string): string[] {
  const words = typed.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g);
  return [...words].map(([, double, single, plain]) => double ?? single ?? plain ?? "");
}

function takesTyped(piece: TemplatePart): boolean {
  return piece.kind === "arguments" || (piece.kind === "shell" && shellArguments.test(piece.command));
}

const shellArguments = /\$(?:\{?ARGUMENTS\b|\{?[1-9@*#])/;

/** What was typed reaches the shell as values of variables, which it does not read as commands. */
function withArguments(command: string, typed: string, words: readonly string[]): string {
  if (!shellArguments.test(command)) return command;
  return `ARGUMENTS=${quoted(typed)}; set -- ${words.map(quoted).join(" ")}; ${command}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function limited(filled: readonly Filled[]): Filled[] {
  const kept: Filled[] = [];
  let room = filledLimit;
  for (const piece of filled) {
    const length = piece.kind === "text" ? piece.text.length : 0;
    if (length > room && piece.kind === "text") {
      kept.push({
        kind: "text",
        text: `${piece.text.slice(0, room)}\n[Cut after ${filledLimit} characters.]`,
      });
      return kept;
    }
    room -= length;
    kept.push(piece);
  }
  return kept;
}
