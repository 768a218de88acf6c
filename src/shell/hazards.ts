import type {
  Assignment,
  Command,
  ParameterExpansionPart,
  ParsedScript,
  SyntaxNode,
  Word,
  WordPart,
} from "unbash";
import type { Scan } from "./part.ts";
import type { VariableAssignments } from "./syntax/variable-assignments.ts";

const numericTests = new Set(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"]);

/** A script as it is written, and where its variables are set. */
interface Written {
  readonly source: string;
  readonly sites: VariableAssignments;
}

/** Adds that a node (looked at alone, not below it) may evaluate a text that cannot be known, where it may. */
export function addHazard(scan: Scan, node: SyntaxNode, script: Written): void {
  const hazard = hazardOf(node, script.sites);
  if (hazard) addEvaluation(scan, node, script, hazard);
}

/** The same for each word that `let` takes as arithmetic. */
export function addArithmetic(scan: Scan, node: Command, script: Written): void {
  for (const arg of node.args) {
    const hazard = arg.type === "Word" && wordHazard(arg, script.sites);
    if (hazard) addEvaluation(scan, node, script, hazard);
  }
}

function addEvaluation(scan: Scan, { pos, end }: SyntaxNode, { source }: Written, opaque: string): void {
  const text = source.slice(pos, end);
  const reason = `evaluates ${text}, but ${opaque}`;
  scan.add({ permission: "bash", text, opaque, reason, always: [] });
}

function hazardOf(node: SyntaxNode, sites: VariableAssignments): string | undefined {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- other kinds evaluate nothing
  switch (node.type) {
    case "ParameterExpansion":
      return expansionHazard(node, sites);
    case "ArithmeticWord":
      return arithmeticHazard(node.value, node.parts, sites);
    case "ArithmeticCommandExpansion":
      return printsNumber(node.script, sites) ? undefined : printed;
    case "TestUnary":
      return /^-[vR]$/.test(node.operator) && /[[$`]/.test(node.operand.text + node.operand.value)
        ? subscript
        : undefined;
    case "TestBinary":
      if (!numericTests.has(node.operator)) return undefined;
      return wordHazard(node.left, sites) ?? wordHazard(node.right, sites);
    case "Assignment":
      return hasQuotedSubscript(node) ? subscript : node.index && wordHazard(node.index, sites);
    default:
      return undefined;
  }
}

const printed = "the shell evaluates what a command prints";
const subscript = "the shell evaluates what stands in [ ]";

function expansionHazard(part: ParameterExpansionPart, sites: VariableAssignments): string | undefined {
  const { operation, index } = part;
  const isList = index !== undefined && /^[@*]$/.test(index.value);
  if (part.prefix === "!" && operation?.type !== "Names" && !isList)
    return "the shell takes a variable's name from another variable";
  if (operation?.type === "Transform" && operation.operand.value === "P")
    return "the shell evaluates the variable as a prompt (@P)";
  if (operation?.type === "Unknown") return "the expansion is not known";
  if (operation?.type === "Slice") {
    const hazard =
      wordHazard(operation.offset, sites) ?? (operation.length && wordHazard(operation.length, sites));
    if (hazard) return hazard;
  }
  return index && !isList ? wordHazard(index, sites) : undefined;
}

function wordHazard(word: Word, sites: VariableAssignments): string | undefined {
  return arithmeticHazard(word.value, word.parts, sites);
}

/** Arithmetic evaluates the texts of its variables again, and a subscript in such a text may run a command. */
function arithmeticHazard(
  value: string,
  parts: readonly WordPart[] | undefined,
  sites: VariableAssignments,
): string | undefined {
  const literal = parts ? literalText(parts) : value;
  if (/[[$`\\]/.test(literal)) return subscript;
  if (parts?.some((part) => printsUnknown(part, sites))) return printed;
  const names = [...(literal.match(/[A-Za-z_]\w*/g) ?? []), ...(parts ? expandedNames(parts) : [])];
  const textual = names.find((name) => !sites.isNumeric(name));
  return textual && `the shell evaluates the text in ${textual}`;
}

function printsUnknown(part: WordPart, sites: VariableAssignments): boolean {
  if (part.type === "DoubleQuoted") return part.parts.some((inner) => printsUnknown(inner, sites));
  return part.type === "CommandExpansion" && !printsNumber(part.script, sites);
}

/** How commands are written that print numbers and nothing else: who prints a name or a format may print any text. */
const counting = [
  /^nproc(?: --all)?$/,
  /^id -[ugr]+$/,
  /^wc(?: -[clmwL]+| --(?:bytes|chars|lines|words))*$/,
  /^expr(?: [-+*/%<>=&|()\d]+)*$/,
  /^date(?: -u| --utc| (?:-d|--date) \S+| --date=\S+)* \+(?:%-?[sNYymdHMSjuw])+$/,
];

/** What functions stand for is not looked up. */
function printsNumber(script: ParsedScript | undefined, { hasFunctions }: VariableAssignments): boolean {
  const [only, ...others] = script?.commands ?? [];
  if (!only || others.length > 0 || hasFunctions) return false;
  const last = only.command.type === "Pipeline" ? only.command.commands.at(-1) : only.command;
  if (last?.type !== "Command" || !last.name || last.prefix.length > 0) return false;
  const written = [last.name, ...last.args].map((word) => (word.type === "Word" ? asOneWord(word) : "$"));
  return last.redirects.every(onlyReads) && counting.some((form) => form.test(written.join(" ")));
}

/** As one word, whatever is in it; `$` where that cannot be known. */
function asOneWord({ value, parts }: Word): string {
  const isKnown = !parts || parts.every(isLiteral);
  return isKnown ? value.replaceAll(/\s/g, "_") : "$";
}

function isLiteral(part: WordPart): boolean {
  return part.type === "DoubleQuoted" ? part.parts.every(isLiteral) : "value" in part;
}

/** Errors, which name files, stay out of what is printed. */
function onlyReads(redirect: Command["redirects"][number]): boolean {
  return (
    redirect.type === "Redirect" && (redirect.operator === "<" || redirect.target?.value === "/dev/null")
  );
}

/** `a['$(…)']=1`, `a=(['$(…)']=1)`: quotes do not keep the shell from evaluating a subscript. */
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
