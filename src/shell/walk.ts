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
import { toArgv, toShellAssignment } from "./syntax/assignments.ts";
import { addCommand } from "./command.ts";
import { addArithmetic, addHazard } from "./hazards.ts";
import { Collection } from "./collection.ts";
import { findDirsAfter, negateOutcome, unionDirs } from "./syntax/working-dirs.ts";
import type { WorkingDirs, Outcome } from "./syntax/working-dirs.ts";
import { listPrintedFiles, type PipedFiles } from "./programs/piped-files.ts";
import { filtersLines, listShownText } from "./programs/shown-files.ts";
import type { NameTerminator, EvalContext, ShellContext, ShellEffect, ShownText } from "./facts.ts";
import { assertSameNode, assertSameText, type ShellDialect } from "./syntax/dialect.ts";
import { addPath, addVisiblePaths } from "./syntax/paths.ts";
import { collectAssignments, changesDirectory } from "./syntax/variable-assignments.ts";
import type { VariableAssignments } from "./syntax/variable-assignments.ts";
import { addVariable } from "./syntax/variables.ts";
import { knownText, quotedText, toArguments } from "./syntax/word.ts";
import type { Argument, Value } from "./syntax/word.ts";

/** Maximum depth of nested shell texts; above, the whole line is opaque. */
const depthLimit = 12;

/** Depth that a script of the project adds, so that nested scripts end soon. */
const scriptDepth = 4;

const fileTest = /^-[abcdefghkprsuwxGLNOS]$/;
const fileComparison = /^-(?:nt|ot|ef)$/;

/** The context of a node. */
interface Scope {
  readonly source: string;
  readonly assignments: VariableAssignments;
  /** Values of variables that are assigned exactly once, unconditionally. */
  readonly variables: Map<string, readonly Value[]>;
  readonly depth: number;
  readonly dialect: ShellDialect;
  /** The node may not run, may run again, or runs in a subshell: its assignments are uncertain. */
  readonly uncertain: boolean;
  /** The files that the previous command of a pipe passes on, if known. */
  readonly input?: EvalContext["input"] | undefined;
  /** The text that the pipe passes to the node, as far as the line shows it. */
  readonly inputText?: string | undefined;
  /** Which of the lines that the node prints are certainly in the output of the command line. */
  readonly shows?: "all" | "some" | undefined;
}

/** Walks the syntax tree of a command line and collects its effects. Throws if a limit is exceeded. */
export class ShellWalk {
  readonly #scan: Collection;
  readonly #context: ShellContext;
  /** Functions or aliases may redefine program names. */
  #mayRename = false;

  constructor(context: ShellContext) {
    this.#scan = new Collection(context);
    this.#context = context;
  }

  get parts(): ShellEffect[] {
    return this.#scan.parts;
  }

  /** The files whose text is printed. */
  readonly shown: ShownText[] = [];

  /** Analyzes a whole text that starts in one of the given folders. */
  script(
    script: ParsedScript,
    source: string,
    workingDirs: WorkingDirs,
    depth = 0,
    dialect = this.#context.dialect ?? "bash",
  ): void {
    if (depth > depthLimit) throw new Error(`shell texts are nested more than ${depthLimit} deep`);
    assertSameText(source, dialect);
    const assignments = collectAssignments(script);
    this.#mayRename ||= assignments.hasFunctions || /\balias\b/.test(source);
    const shows = depth === 0 && !this.#mayRename ? "all" : undefined;
    const scope: Scope = {
      source,
      assignments,
      variables: new Map(),
      depth,
      dialect,
      uncertain: false,
      shows,
    };
    for (const name of assignments.indirect) addVariable(this.#scan, { name, text: name, value: undefined });
    this.#list(script, scope, assignments.functionsMayChangeDirectory ? undefined : workingDirs);
  }

  #list(list: ParsedScript | CompoundList, scope: Scope, workingDirs: WorkingDirs): Outcome {
    if ("errors" in list && list.errors && list.errors.length > 0)
      throw new Error(list.errors[0]?.message ?? "syntax error");
    let current = workingDirs;
    let last: Outcome = { success: workingDirs, failure: workingDirs };
    for (const statement of list.commands) {
      last = this.#statement(statement, scope, current);
      current = unionDirs(last.success, last.failure);
    }
    return last;
  }

  #statement(statement: Statement, scope: Scope, workingDirs: WorkingDirs): Outcome {
    if (!statement.background) return this.#node(statement.command, scope, workingDirs);
    this.#node(statement.command, { ...scope, uncertain: true, shows: undefined }, workingDirs);
    return { success: workingDirs, failure: workingDirs };
  }

  #node(node: SyntaxNode, scope: Scope, workingDirs: WorkingDirs): Outcome {
    assertSameNode(node, scope.dialect);
    const unsure = { ...scope, uncertain: true, shows: undefined };
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the other kinds only lead to their children
    switch (node.type) {
      case "AndOr":
        return this.#andOr(node, scope, workingDirs);
      case "Pipeline":
        return this.#pipeline(node, scope, workingDirs);
      case "Command":
        return this.#command(node, scope, workingDirs);
      case "Statement":
        return this.#statement(node, scope, workingDirs);
      case "CompoundList":
        return this.#list(node, scope, workingDirs);
      case "BraceGroup":
        return this.#list(node.body, scope, workingDirs);
      case "Script":
      case "Subshell":
        this.#list(
          node.type === "Script" ? node : node.body,
          node.type === "Script" ? enterScript(node, unsure) : unsure,
          workingDirs,
        );
        return { success: workingDirs, failure: workingDirs };
      case "For":
        return this.#for(node, unsure, workingDirs);
      case "If":
      case "Case":
        return this.#choice(node, unsure, workingDirs);
      case "While":
      case "Select":
      case "ArithmeticFor":
      case "Function":
      case "Coproc":
        return this.#branches(node, unsure, workingDirs);
      case "CommandExpansion":
        return this.#substitution(node, scope, workingDirs);
      case "Redirect":
        this.#redirect(node, scope, workingDirs);
        return this.#children(node, unsure, workingDirs);
      case "HereDoc":
        if (!node.closing) throw new Error("a here-document does not end");
        return this.#children(node, unsure, workingDirs);
      case "TestUnary":
        addHazard(this.#scan, node, scope);
        if (fileTest.test(node.operator)) this.#tested([node.operand], scope, workingDirs);
        return this.#children(node, scope, workingDirs);
      case "TestBinary":
        addHazard(this.#scan, node, scope);
        if (fileComparison.test(node.operator)) this.#tested([node.left, node.right], scope, workingDirs);
        return this.#children(node, scope, workingDirs);
      default:
        addHazard(this.#scan, node, scope);
        return this.#children(node, scope, workingDirs);
    }
  }

  /** Skips a substitution that only quotes text. */
  #substitution(node: CommandExpansionPart, scope: Scope, workingDirs: WorkingDirs): Outcome {
    const isText = node.script && quotedText(node.script) !== undefined;
    return isText ? { success: workingDirs, failure: workingDirs } : this.#children(node, scope, workingDirs);
  }

  #children(node: SyntaxNode, scope: Scope, workingDirs: WorkingDirs): Outcome {
    forEachChild(node, (child) => void this.#node(child, scope, workingDirs));
    return { success: workingDirs, failure: workingDirs };
  }

  /** Walks code that runs conditionally, later or repeatedly; the folder is unknown if it changes. */
  #branches(node: SyntaxNode, scope: Scope, workingDirs: WorkingDirs): Outcome {
    const within = changesDirectory(node) ? undefined : workingDirs;
    this.#children(node, scope, within);
    return { success: within, failure: within };
  }

  /** Each branch starts in the current folder unless the condition changes it. */
  #choice(node: If | Case, scope: Scope, workingDirs: WorkingDirs): Outcome {
    const within = branchChangesDirectory(node) ? undefined : workingDirs;
    this.#children(node, scope, within);
    const after = changesDirectory(node) ? undefined : workingDirs;
    return { success: after, failure: after };
  }

  #andOr(node: AndOr, scope: Scope, workingDirs: WorkingDirs): Outcome {
    let outcome: Outcome = { success: workingDirs, failure: workingDirs };
    const shows = node.operators.every((operator) => operator === "&&") ? scope.shows : undefined;
    for (const [index, command] of node.commands.entries()) {
      const operator = index === 0 ? undefined : node.operators[index - 1];
      const inner =
        operator === undefined
          ? { ...scope, shows }
          : { ...scope, shows, uncertain: scope.uncertain || operator === "||" || index > 0 };
      const next = this.#node(command, inner, operator === "||" ? outcome.failure : outcome.success);
      if (operator === "&&")
        outcome = { success: next.success, failure: unionDirs(outcome.failure, next.failure) };
      else if (operator === "||")
        outcome = { success: unionDirs(outcome.success, next.success), failure: next.failure };
      else outcome = next;
    }
    return outcome;
  }

  #pipeline(node: Pipeline, scope: Scope, workingDirs: WorkingDirs): Outcome {
    if (node.commands.length === 1 && node.commands[0])
      return negateOutcome(this.#node(node.commands[0], scope, workingDirs), isNegated(node));
    const { input: _, ...inPipe } = { ...scope, uncertain: true, shows: undefined };
    let { inputText } = scope;
    const isFiltered = node.commands
      .slice(1)
      .every((command) => this.#filtersLines(command, inPipe, workingDirs));
    const shows: Scope["shows"] =
      scope.shows !== undefined && isFiltered && !isNegated(node) ? "some" : undefined;
    let input: EvalContext["input"] | undefined;
    for (const [index, command] of node.commands.entries()) {
      const own = index === 0 ? { ...inPipe, shows } : inPipe;
      const piped = command.type === "Command" ? { ...own, input, inputText } : { ...own, inputText };
      this.#node(command, piped, workingDirs);
      const isPlain = node.operators[index] === "|";
      input = isPlain ? (end) => this.#printed(command, end, piped, workingDirs) : undefined;
      inputText = command.type === "Command" ? this.#printedText(command, piped, workingDirs) : undefined;
    }
    return { success: workingDirs, failure: workingDirs };
  }

  #filtersLines(node: SyntaxNode, scope: Scope, workingDirs: WorkingDirs): boolean {
    if (node.type !== "Command" || node.prefix.length > 0 || sendsOutputAway(node)) return false;
    return filtersLines(toArgv(node, scope.source, this.#evalContext(scope, workingDirs)));
  }

  /** Lists the files that a command passes through a pipe. Undefined if its output is redirected elsewhere. */
  #printed(node: SyntaxNode, end: NameTerminator, scope: Scope, workingDirs: WorkingDirs): PipedFiles {
    if (node.type !== "Command" || !node.name || node.prefix.length > 0 || this.#mayRename) return undefined;
    const goesElsewhere = node.redirects.some(
      (redirect) => redirect.type !== "Redirect" || redirect.target?.value !== "/dev/null",
    );
    if (goesElsewhere) return undefined;
    const evalContext = this.#evalContext(scope, workingDirs);
    const argv = toArgv(node, scope.source, evalContext);
    return listPrintedFiles(this.#scan, argv, evalContext, end);
  }

  /** Returns the text that a command prints; undefined if it may print another one. */
  #printedText(node: Command, scope: Scope, workingDirs: WorkingDirs): string | undefined {
    const evalContext = this.#evalContext(scope, workingDirs);
    const [, ...args] = toArgv(node, scope.source, evalContext);
    const text = (words: readonly Argument[]) => words.map((word) => knownText(word) ?? word.known).join(" ");
    switch (node.name?.value) {
      case "echo":
      case "printf":
        return text(args.filter((word, index) => index > 0 || !/^-[neE]+$/.test(word.text))).replaceAll(
          "\\n",
          "\n",
        );
      case "cat":
        return args.length === 0 ? this.#inputText(node, scope, evalContext) : undefined;
      default:
        return undefined;
    }
  }

  /** Returns the text of a here-document or here-string, else that of the pipe. */
  #inputText({ redirects }: Command, scope: Scope, evalContext: EvalContext): string | undefined {
    const redirect = redirects.findLast(({ operator }) => operator.startsWith("<"));
    if (redirect === undefined) return scope.inputText;
    if (redirect.type === "HereDoc") return redirect.body?.text;
    if (redirect.type !== "HereString" || !redirect.target) return undefined;
    return toArguments(redirect.target, evalContext)
      .map((word) => knownText(word) ?? word.known)
      .join(" ");
  }

  #for(node: For, scope: Scope, workingDirs: WorkingDirs): Outcome {
    const evalContext = this.#evalContext(scope, workingDirs);
    const words = node.wordlist?.flatMap((word) => toArguments(word, evalContext));
    const values = words && collectValues(words);
    const isOnlyAssignment = scope.assignments.count(node.name.value) === 1;
    if (values && isOnlyAssignment) scope.variables.set(node.name.value, values);
    const outcome = this.#branches(node, scope, workingDirs);
    scope.variables.delete(node.name.value);
    return outcome;
  }

  #command(node: Command, scope: Scope, workingDirs: WorkingDirs): Outcome {
    const { input, inputText, shows, ...around } = scope;
    const outer = this.#evalContext(readsPipe(node) ? { ...around, input } : around, workingDirs);
    const evalContext = { ...outer, inputText: this.#inputText(node, { ...around, inputText }, outer) };
    this.#children(node, { ...around, uncertain: true }, workingDirs);
    const assignments = node.prefix.filter((item) => item.type === "Assignment");
    if (!node.name) {
      for (const assignment of assignments) this.#assign(assignment, scope, evalContext);
      return { success: workingDirs, failure: workingDirs };
    }
    const argv = toArgv(node, scope.source, evalContext);
    if (node.name.value === "let") addArithmetic(this.#scan, node, scope);
    const raw = scope.source.slice(node.pos, node.end);
    const named = assignments.map((assignment) => toShellAssignment(assignment, evalContext));
    addCommand(this.#scan, { argv, raw, assignments: named }, evalContext);
    if (shows !== undefined && node.prefix.length === 0 && !sendsOutputAway(node))
      for (const one of listShownText(this.#scan, argv, evalContext))
        this.shown.push(shows === "some" && one.extent === "whole" ? { ...one, extent: "part" } : one);
    return findDirsAfter(argv, evalContext, scope.assignments);
  }

  #assign(assignment: Assignment, scope: Scope, evalContext: EvalContext): void {
    addVariable(this.#scan, toShellAssignment(assignment, evalContext));
    if (scope.uncertain || scope.assignments.count(assignment.name) !== 1) return;
    if (assignment.append || assignment.index || assignment.value.type !== "Word") return;
    const [only, ...others] = toArguments(assignment.value, evalContext);
    if (others.length === 0 && only?.values && !only.values.some((value) => value.glob)) {
      scope.variables.set(assignment.name, only.values);
    }
  }

  #redirect(node: Redirect, scope: Scope, workingDirs: WorkingDirs): void {
    const { operator, target } = node;
    if (!target) throw new Error("a redirection has no target");
    const duplicates = operator === "<&" || operator === ">&";
    if (duplicates && /^(?:\d+-?|-)$/.test(target.value)) return;
    const evalContext = this.#evalContext(scope, workingDirs);
    const files = toArguments(target, evalContext);
    for (const file of files) {
      if (operator !== ">" && operator !== ">>" && operator !== ">|")
        addPath(this.#scan, file, { access: "read" }, evalContext);
      if (operator !== "<" && operator !== "<&") addPath(this.#scan, file, { access: "write" }, evalContext);
    }
  }

  /** Adds the files that `[[ -f … ]]` tests. */
  #tested(words: readonly Word[], scope: Scope, workingDirs: WorkingDirs): void {
    const evalContext = this.#evalContext(scope, workingDirs);
    for (const word of words)
      for (const file of toArguments(word, evalContext)) addVisiblePaths(this.#scan, file, evalContext);
  }

  #findIrreversible(text: string, workingDirs: WorkingDirs, depth: number): string | undefined {
    try {
      const inner = new ShellWalk(this.#context);
      inner.script(parse(text), text, workingDirs, depth);
      return inner.parts.find(({ irreversible }) => irreversible !== undefined)?.irreversible;
    } catch {
      // Not shell text, or scripts that run each other: unknown.
      return undefined;
    }
  }

  #evalContext(scope: Scope, workingDirs: WorkingDirs): EvalContext {
    const { home, readPath } = this.#context;
    return {
      home,
      readPath,
      workingDirs,
      depth: scope.depth,
      input: scope.input ?? (() => undefined),
      inputText: undefined,
      hasWideGlobs: scope.assignments.changesGlobbing,
      hasCustomSeparators: scope.assignments.hasCustomSeparators,
      variable: (name) => {
        if (scope.assignments.count(name) > 0) return scope.variables.get(name);
        if (name === "HOME") return [{ text: home, glob: false }];
        return name === "PWD" ? workingDirs?.map((text) => ({ text, glob: false })) : undefined;
      },
      runText: (text, dialect = scope.dialect) =>
        this.script(parse(text), text, workingDirs, scope.depth + 1, dialect),
      findIrreversible: (text) => this.#findIrreversible(text, workingDirs, scope.depth + scriptDepth),
    };
  }
}

/** Whether a branch may start in another folder: a condition changes it, or a branch falls through. */
function branchChangesDirectory(node: If | Case): boolean {
  if (node.type === "If") return [node, ...node.elif].some(({ clause }) => changesDirectory(clause));
  const runsOn = node.items.some(({ terminator = ";;" }) => terminator !== ";;");
  return changesDirectory(node.word) || (runsOn && changesDirectory(node));
}

/** A substitution with escaped backticks has positions in its own text. */
function enterScript(script: ParsedScript, scope: Scope): Scope {
  return script.source === undefined ? scope : { ...scope, source: script.source };
}

/** Whether the command reads the pipe, not a redirection. */
function readsPipe({ redirects }: Command): boolean {
  return redirects.every(({ type, operator }) => type === "Redirect" && operator.startsWith(">"));
}

/** Whether a redirection changes the input, or where the output goes; errors may go anywhere. */
function sendsOutputAway({ redirects }: Command): boolean {
  return redirects.some((redirect) => {
    if (redirect.type !== "Redirect" || !redirect.operator.startsWith(">")) return true;
    return redirect.descriptor?.type !== "FileDescriptor" || redirect.descriptor.value !== 2;
  });
}

function isNegated({ prefixes }: Pipeline): boolean {
  return prefixes.filter((prefix) => prefix.type === "Negation").length % 2 === 1;
}

function collectValues(words: readonly Argument[]): readonly Value[] | undefined {
  const values: Value[] = [];
  for (const word of words) {
    if (!word.values) return undefined;
    values.push(...word.values);
  }
  return values;
}
