import { forEachChild, parse } from "unbash";
import type {
  AndOr,
  Assignment,
  Case,
  Command,
  CommandExpansionPart,
  CompoundList,
  For,
  If,
  ParsedScript,
  Pipeline,
  Redirect,
  Statement,
  SyntaxNode,
  Word,
} from "unbash";
import { argvOf, toShellAssignment } from "./syntax/assignments.ts";
import { addCommand } from "./command.ts";
import { addArithmetic, addHazard } from "./hazards.ts";
import { Collection } from "./collection.ts";
import { movedBy, swapped, union } from "./syntax/working-dirs.ts";
import type { WorkingDirs, Outcome } from "./syntax/working-dirs.ts";
import { filesPrinted, type PipedFiles } from "./programs/piped-files.ts";
import type { NameEnd, EvalContext, ShellContext, ShellPart } from "./part.ts";
import { addPath, addVisiblePaths } from "./syntax/paths.ts";
import { assignmentSites, moves } from "./syntax/variable-assignments.ts";
import type { VariableAssignments } from "./syntax/variable-assignments.ts";
import { addVariable } from "./syntax/variables.ts";
import { quotedText, toArguments } from "./syntax/word.ts";
import type { Argument, Value } from "./syntax/word.ts";

/** A command line with texts parsed deeper inside of each other is asked for as a whole. */
const depthLimit = 12;

const fileTest = /^-[abcdefghkprsuwxGLNOS]$/;
const fileComparison = /^-(?:nt|ot|ef)$/;

/** What holds around a node. */
interface Scope {
  readonly source: string;
  readonly sites: VariableAssignments;
  /** Values of variables that are set once and for certain. */
  readonly variables: Map<string, readonly Value[]>;
  readonly depth: number;
  /** It may not run, or run again, or run in a shell of its own: what it assigns is not certain. */
  readonly uncertain: boolean;
  /** What a command gets from the one before it in a pipe, where that is known. */
  readonly input?: EvalContext["input"] | undefined;
}

/** Walks the syntax tree of a command line and collects what it does. Throws where that is more than can be read. */
export class ShellWalk {
  readonly #scan: Collection;
  readonly #context: ShellContext;
  /** What a program's name stands for may be another than usual. */
  #mayRename = false;

  constructor(context: ShellContext) {
    this.#scan = new Collection(context);
    this.#context = context;
  }

  get parts(): ShellPart[] {
    return this.#scan.parts;
  }

  /** Reads a whole text from the given folders. */
  script(script: ParsedScript, source: string, bases: WorkingDirs, depth = 0): void {
    if (depth > depthLimit) throw new Error(`shell texts are nested more than ${depthLimit} deep`);
    const sites = assignmentSites(script);
    this.#mayRename ||= sites.hasFunctions || /\balias\b/.test(source);
    const scope: Scope = { source, sites, variables: new Map(), depth, uncertain: false };
    for (const name of sites.indirect) addVariable(this.#scan, { name, text: name, value: undefined });
    this.#list(script, scope, sites.movesInFunctions ? undefined : bases);
  }

  #list(list: ParsedScript | CompoundList, scope: Scope, bases: WorkingDirs): Outcome {
    if ("errors" in list && list.errors && list.errors.length > 0)
      throw new Error(list.errors[0]?.message ?? "syntax error");
    let current = bases;
    let last: Outcome = { success: bases, failure: bases };
    for (const statement of list.commands) {
      last = this.#statement(statement, scope, current);
      current = union(last.success, last.failure);
    }
    return last;
  }

  #statement(statement: Statement, scope: Scope, bases: WorkingDirs): Outcome {
    if (!statement.background) return this.#node(statement.command, scope, bases);
    this.#node(statement.command, { ...scope, uncertain: true }, bases);
    return { success: bases, failure: bases };
  }

  #node(node: SyntaxNode, scope: Scope, bases: WorkingDirs): Outcome {
    const unsure = { ...scope, uncertain: true };
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the other kinds only lead to their children
    switch (node.type) {
      case "AndOr":
        return this.#andOr(node, scope, bases);
      case "Pipeline":
        return this.#pipeline(node, scope, bases);
      case "Command":
        return this.#command(node, scope, bases);
      case "Statement":
        return this.#statement(node, scope, bases);
      case "CompoundList":
        return this.#list(node, scope, bases);
      case "BraceGroup":
        return this.#list(node.body, scope, bases);
      case "Script":
      case "Subshell":
        this.#list(
          node.type === "Script" ? node : node.body,
          node.type === "Script" ? inScript(node, unsure) : unsure,
          bases,
        );
        return { success: bases, failure: bases };
      case "For":
        return this.#for(node, unsure, bases);
      case "If":
      case "Case":
        return this.#choice(node, unsure, bases);
      case "While":
      case "Select":
      case "ArithmeticFor":
      case "Function":
      case "Coproc":
        return this.#branches(node, unsure, bases);
      case "CommandExpansion":
        return this.#substitution(node, scope, bases);
      case "Redirect":
        this.#redirect(node, scope, bases);
        return this.#children(node, unsure, bases);
      case "HereDoc":
        if (!node.closing) throw new Error("a here-document does not end");
        return this.#children(node, unsure, bases);
      case "TestUnary":
        addHazard(this.#scan, node, scope);
        if (fileTest.test(node.operator)) this.#tested([node.operand], scope, bases);
        return this.#children(node, scope, bases);
      case "TestBinary":
        addHazard(this.#scan, node, scope);
        if (fileComparison.test(node.operator)) this.#tested([node.left, node.right], scope, bases);
        return this.#children(node, scope, bases);
      default:
        addHazard(this.#scan, node, scope);
        return this.#children(node, scope, bases);
    }
  }

  /** A text that is only quoted runs nothing that could do harm. */
  #substitution(node: CommandExpansionPart, scope: Scope, bases: WorkingDirs): Outcome {
    const isText = node.script && quotedText(node.script) !== undefined;
    return isText ? { success: bases, failure: bases } : this.#children(node, scope, bases);
  }

  #children(node: SyntaxNode, scope: Scope, bases: WorkingDirs): Outcome {
    forEachChild(node, (child) => void this.#node(child, scope, bases));
    return { success: bases, failure: bases };
  }

  /** What runs on a condition, later or again: where it leads is known only if it does not move. */
  #branches(node: SyntaxNode, scope: Scope, bases: WorkingDirs): Outcome {
    const within = moves(node) ? undefined : bases;
    this.#children(node, scope, within);
    return { success: within, failure: within };
  }

  /** Each branch begins where the shell is, unless what decides moves it. */
  #choice(node: If | Case, scope: Scope, bases: WorkingDirs): Outcome {
    const within = movesBetween(node) ? undefined : bases;
    this.#children(node, scope, within);
    const after = moves(node) ? undefined : bases;
    return { success: after, failure: after };
  }

  #andOr(node: AndOr, scope: Scope, bases: WorkingDirs): Outcome {
    let outcome: Outcome = { success: bases, failure: bases };
    for (const [index, command] of node.commands.entries()) {
      const operator = index === 0 ? undefined : node.operators[index - 1];
      const inner =
        operator === undefined
          ? scope
          : { ...scope, uncertain: scope.uncertain || operator === "||" || index > 0 };
      const next = this.#node(command, inner, operator === "||" ? outcome.failure : outcome.success);
      if (operator === "&&")
        outcome = { success: next.success, failure: union(outcome.failure, next.failure) };
      else if (operator === "||")
        outcome = { success: union(outcome.success, next.success), failure: next.failure };
      else outcome = next;
    }
    return outcome;
  }

  #pipeline(node: Pipeline, scope: Scope, bases: WorkingDirs): Outcome {
    if (node.commands.length === 1 && node.commands[0])
      return swapped(this.#node(node.commands[0], scope, bases), isNegated(node));
    const { input: _, ...inPipe } = { ...scope, uncertain: true };
    let input: EvalContext["input"] | undefined;
    for (const [index, command] of node.commands.entries()) {
      const piped = command.type === "Command" ? { ...inPipe, input } : inPipe;
      this.#node(command, piped, bases);
      const isPlain = node.operators[index] === "|";
      input = isPlain ? (end) => this.#printed(command, end, piped, bases) : undefined;
    }
    return { success: bases, failure: bases };
  }

  /** Names that a command of a pipe hands to the next. Its errors may go nowhere, its output only there. */
  #printed(node: SyntaxNode, end: NameEnd, scope: Scope, bases: WorkingDirs): PipedFiles {
    if (node.type !== "Command" || !node.name || node.prefix.length > 0 || this.#mayRename) return undefined;
    const goesElsewhere = node.redirects.some(
      (redirect) => redirect.type !== "Redirect" || redirect.target?.value !== "/dev/null",
    );
    if (goesElsewhere) return undefined;
    const place = this.#place(scope, bases);
    const argv = argvOf(node, scope.source, place);
    return filesPrinted(this.#scan, argv, place, end);
  }

  #for(node: For, scope: Scope, bases: WorkingDirs): Outcome {
    const place = this.#place(scope, bases);
    const words = node.wordlist?.flatMap((word) => toArguments(word, place));
    const values = words && wordsValues(words);
    const isOnlySite = scope.sites.count(node.name.value) === 1;
    if (values && isOnlySite) scope.variables.set(node.name.value, values);
    const outcome = this.#branches(node, scope, bases);
    scope.variables.delete(node.name.value);
    return outcome;
  }

  #command(node: Command, scope: Scope, bases: WorkingDirs): Outcome {
    const { input, ...around } = scope;
    const place = this.#place(readsPipe(node) ? { ...around, input } : around, bases);
    this.#children(node, { ...around, uncertain: true }, bases);
    const assignments = node.prefix.filter((item) => item.type === "Assignment");
    if (!node.name) {
      for (const assignment of assignments) this.#assign(assignment, scope, place);
      return { success: bases, failure: bases };
    }
    const argv = argvOf(node, scope.source, place);
    if (node.name.value === "let") addArithmetic(this.#scan, node, scope);
    const raw = scope.source.slice(node.pos, node.end);
    const named = assignments.map((assignment) => toShellAssignment(assignment, place));
    addCommand(this.#scan, { argv, raw, assignments: named }, place);
    return movedBy(argv, place, scope.sites);
  }

  #assign(assignment: Assignment, scope: Scope, place: EvalContext): void {
    addVariable(this.#scan, toShellAssignment(assignment, place));
    if (scope.uncertain || scope.sites.count(assignment.name) !== 1) return;
    if (assignment.append || assignment.index || assignment.value.type !== "Word") return;
    const [only, ...others] = toArguments(assignment.value, place);
    if (others.length === 0 && only?.values && !only.values.some((value) => value.glob)) {
      scope.variables.set(assignment.name, only.values);
    }
  }

  #redirect(node: Redirect, scope: Scope, bases: WorkingDirs): void {
    const { operator, target } = node;
    if (!target) throw new Error("a redirection has no target");
    const duplicates = operator === "<&" || operator === ">&";
    if (duplicates && /^(?:\d+-?|-)$/.test(target.value)) return;
    const place = this.#place(scope, bases);
    const files = toArguments(target, place);
    for (const file of files) {
      if (operator !== ">" && operator !== ">>" && operator !== ">|")
        addPath(this.#scan, file, { access: "read" }, place);
      if (operator !== "<" && operator !== "<&") addPath(this.#scan, file, { access: "edit" }, place);
    }
  }

  /** Files that `[[ -f … ]]` asks for, as `[ -f … ]` does. */
  #tested(words: readonly Word[], scope: Scope, bases: WorkingDirs): void {
    const place = this.#place(scope, bases);
    for (const word of words)
      for (const file of toArguments(word, place)) addVisiblePaths(this.#scan, file, place);
  }

  #place(scope: Scope, bases: WorkingDirs): EvalContext {
    const { home } = this.#context;
    return {
      home,
      bases,
      depth: scope.depth,
      input: scope.input ?? (() => undefined),
      widerGlobs: scope.sites.widensGlobs,
      splitsOddly: scope.sites.splitsOddly,
      variable: (name) => {
        if (scope.sites.count(name) > 0) return scope.variables.get(name);
        if (name === "HOME") return [{ text: home, glob: false }];
        return name === "PWD" ? bases?.map((text) => ({ text, glob: false })) : undefined;
      },
      runText: (text) => this.script(parse(text), text, bases, scope.depth + 1),
    };
  }
}

/** Whether a branch may begin elsewhere than the whole does: a condition moves, or one branch runs on into the next. */
function movesBetween(node: If | Case): boolean {
  if (node.type === "If") return [node, ...node.elif].some(({ clause }) => moves(clause));
  const runsOn = node.items.some(({ terminator = ";;" }) => terminator !== ";;");
  return moves(node.word) || (runsOn && moves(node));
}

/** Positions in a substitution with escaped backticks count in its own text. */
function inScript(script: ParsedScript, scope: Scope): Scope {
  return script.source === undefined ? scope : { ...scope, source: script.source };
}

/** No redirection takes the place of what comes through a pipe. */
function readsPipe({ redirects }: Command): boolean {
  return redirects.every(({ type, operator }) => type === "Redirect" && operator.startsWith(">"));
}

function isNegated({ prefixes }: Pipeline): boolean {
  return prefixes.filter((prefix) => prefix.type === "Negation").length % 2 === 1;
}

function wordsValues(words: readonly Argument[]): readonly Value[] | undefined {
  const values: Value[] = [];
  for (const word of words) {
    if (!word.values) return undefined;
    values.push(...word.values);
  }
  return values;
}
