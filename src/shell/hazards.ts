import type {
  Assignment,
  Command,
  ParameterExpansionPart,
  ParsedScript,
  SyntaxNode,
  Word,
  WordPart,
} from "unbash";
import type { Scan } from "./facts.ts";
import type { VariableAssignments } from "./syntax/variable-assignments.ts";

const numericTests = new Set(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"]);

/** The text of a script and the variables it assigns. */
interface ScriptSource {
  readonly source: string;
  readonly assignments: VariableAssignments;
}

/** Adds an opaque effect if the node itself, not its children, may evaluate unknown text. */
export function addHazard(scan: Scan, node: SyntaxNode, script: ScriptSource): void {
  const hazard = findHazard(node, script.assignments);
  if (hazard) addEvaluation(scan, node, script, hazard);
}

/** As {@link addHazard}, for each word that `let` evaluates as arithmetic. */
export function addArithmetic(scan: Scan, node: Command, script: ScriptSource): void {
  for (const arg of node.args) {
    const hazard = arg.type === "Word" && findWordHazard(arg, script.assignments);
    if (hazard) addEvaluation(scan, node, script, hazard);
  }
}

function addEvaluation(scan: Scan, { pos, end }: SyntaxNode, { source }: ScriptSource, opaque: string): void {
  const text = source.slice(pos, end);
  const reason = `evaluates ${text}, but ${opaque}`;
  scan.add({ type: "run", text, opaque, reason, similar: [] });
}

function findHazard(node: SyntaxNode, assignments: VariableAssignments): string | undefined {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- other kinds evaluate nothing
  switch (node.type) {
    case "ParameterExpansion":
      return findExpansionHazard(node, assignments);
    case "ArithmeticWord":
      return findArithmeticHazard(node.value, node.parts, assignments);
    case "ArithmeticCommandExpansion":
      return printsNumber(node.script, assignments) ? undefined : printedTextReason;
    case "TestUnary":
      return /^-[vR]$/.test(node.operator) && /[[$`]/.test(node.operand.text + node.operand.value)
        ? subscriptReason
        : undefined;
    case "TestBinary":
      if (!numericTests.has(node.operator)) return undefined;
      return findWordHazard(node.left, assignments) ?? findWordHazard(node.right, assignments);
    case "Assignment":
      return hasQuotedSubscript(node)
        ? subscriptReason
        : node.index && findWordHazard(node.index, assignments);
    default:
      return undefined;
  }
}

const printedTextReason = "the shell evaluates what a command prints";
const subscriptReason = "the shell evaluates the text in [ ]";

function findExpansionHazard(
  part: ParameterExpansionPart,
  assignments: VariableAssignments,
): string | undefined {
  const { operation, index } = part;
  const isList = index !== undefined && /^[@*]$/.test(index.value);
  if (part.prefix === "!" && operation?.type !== "Names" && !isList)
    return "the shell takes a variable's name from another variable";
  if (operation?.type === "Transform" && operation.operand.value === "P")
    return "the shell evaluates the variable as a prompt (@P)";
  if (operation?.type === "Unknown") return "the expansion is not known";
  if (operation?.type === "Slice") {
    const hazard =
      findWordHazard(operation.offset, assignments) ??
      (operation.length && findWordHazard(operation.length, assignments));
    if (hazard) return hazard;
  }
  return index && !isList ? findWordHazard(index, assignments) : undefined;
}

function findWordHazard(word: Word, assignments: VariableAssignments): string | undefined {
  return findArithmeticHazard(word.value, word.parts, assignments);
}

/** Arithmetic evaluates the texts of its variables, and a subscript in them may run a command. */
function findArithmeticHazard(
  value: string,
  parts: readonly WordPart[] | undefined,
  assignments: VariableAssignments,
): string | undefined {
  const literal = parts ? literalText(parts) : value;
  if (/[[$`\\]/.test(literal)) return subscriptReason;
  if (parts?.some((part) => printsUnknown(part, assignments))) return printedTextReason;
  const names = [...(literal.match(/[A-Za-z_]\w*/g) ?? []), ...(parts ? expandedNames(parts) : [])];
  const textual = names.find((name) => !assignments.isNumeric(name));
  return textual && `the shell evaluates the text in ${textual}`;
}

function printsUnknown(part: WordPart, assignments: VariableAssignments): boolean {
  if (part.type === "DoubleQuoted") return part.parts.some((inner) => printsUnknown(inner, assignments));
  return part.type === "CommandExpansion" && !printsNumber(part.script, assignments);
}

/** Commands that print only numbers. A command that prints a name or a format may print any text. */
const numberCommands = [
  /^nproc(?: --all)?$/,
  /^id -[ugr]+$/,
  /^wc(?: -[clmwL]+| --(?:bytes|chars|lines|words))*$/,
  /^expr(?: [-+*/%<>=&|()\d]+)*$/,
  /^date(?: -u| --utc| (?:-d|--date) \S+| --date=\S+)* \+(?:%-?[sNYymdHMSjuw])+$/,
];

/** Whether the script prints only a number. False if the line defines functions, which are not looked up. */
function printsNumber(script: ParsedScript | undefined, { hasFunctions }: VariableAssignments): boolean {
  const [only, ...others] = script?.commands ?? [];
  if (!only || others.length > 0 || hasFunctions) return false;
  const last = only.command.type === "Pipeline" ? only.command.commands.at(-1) : only.command;
  if (last?.type !== "Command" || !last.name || last.prefix.length > 0) return false;
  const written = [last.name, ...last.args].map((word) => (word.type === "Word" ? toOneWord(word) : "$"));
  return last.redirects.every(onlyReads) && numberCommands.some((form) => form.test(written.join(" ")));
}

/** Returns the word with blanks replaced; `$` if it is unknown. */
function toOneWord({ value, parts }: Word): string {
  const isKnown = !parts || parts.every(isLiteral);
  return isKnown ? value.replaceAll(/\s/g, "_") : "$";
}

function isLiteral(part: WordPart): boolean {
  return part.type === "DoubleQuoted" ? part.parts.every(isLiteral) : "value" in part;
}

/** Whether a redirection adds nothing to the output. */
function onlyReads(redirect: Command["redirects"][number]): boolean {
  return (
    redirect.type === "Redirect" && (redirect.operator === "<" || redirect.target?.value === "/dev/null")
  );
}

/** The shell evaluates a subscript despite quotes: `a['$(…)']=1`, `a=(['$(…)']=1)`. */
function hasQuotedSubscript({ index, value, text }: Assignment): boolean {
  if (!index && value.type === "Word") return false;
  return text.includes("[") && /[$`]/.test(text) && /['\\]/.test(text);
}

function literalText(parts: readonly WordPart[]): string {
  return parts
    .map((part) =>
      "value" in part ? part.value : part.type === "DoubleQuoted" ? literalText(part.parts) : " ",
    )
    .join("");
}

function expandedNames(parts: readonly WordPart[]): string[] {
  return parts.flatMap((part) => {
    if (part.type === "SimpleExpansion") return [part.text.slice(1)];
    if (part.type === "ParameterExpansion") return part.prefix === "#" ? [] : [part.parameter];
    return part.type === "DoubleQuoted" ? expandedNames(part.parts) : [];
  });
}
