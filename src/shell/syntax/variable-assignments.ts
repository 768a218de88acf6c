import { forEachChild } from "unbash";
import type { Assignment, Command, SyntaxNode, Word } from "unbash";

/** Where the variables of a script are set, and whether functions may change its folder. */
export interface VariableAssignments {
  /** In how many places a variable may be set. */
  count(name: string): number;
  /** Whether a variable can only hold numbers, or comes from the environment. */
  isNumeric(name: string): boolean;
  /** Variables that are set by other means than `NAME=value`. */
  readonly indirect: readonly string[];
  /** Functions are defined, by whose names anything may be called. */
  readonly hasFunctions: boolean;
  /** Functions and `cd` stand in one script, so that any command may run in another folder than it seems. */
  readonly functionsMayChangeDirectory: boolean;
  /** Something changes what wildcards fit. */
  readonly changesGlobbing: boolean;
  /** Something changes where the text of a variable becomes several words. */
  readonly hasCustomSeparators: boolean;
}

const movingCommands = new Set(["cd", "pushd", "popd"]);
/** Commands that set the variables which their arguments name. */
const settingCommands = new Set(
  "read mapfile readarray getopts printf declare typeset local export readonly unset let wait builtin command".split(
    " ",
  ),
);
/** Commands that may set any variable. */
const unboundedCommands = new Set("eval source . trap".split(" "));

/** Variables that the shell itself sets to texts: the last word of the command before, what `read` or `=~` found, a folder's name. */
const setByShell = new Set(
  "_ REPLY OPTARG MAPFILE BASH_REMATCH BASH_COMMAND BASH_EXECUTION_STRING BASH_ARGV BASH_ARGV0 BASH_SOURCE FUNCNAME DIRSTACK PWD OLDPWD READLINE_LINE READLINE_ARGUMENT COMP_LINE COMP_WORDS COMPREPLY HOSTNAME".split(
    " ",
  ),
);

const expansions = /\$\{[^}]*\}|\$\([^)]*\)|\$[\w@*#?!-]|`[^`]*`/g;

/** Collects the sites of a script and of all scripts inside of it. */
export function collectAssignments(script: SyntaxNode): VariableAssignments {
  const survey = new AssignmentCollector();
  survey.visit(script);
  return survey;
}

/** Whether the shell may be in another folder after the node. */
export function changesDirectory(node: SyntaxNode): boolean {
  const survey = new AssignmentCollector();
  survey.visit(node);
  return survey.moves;
}

class AssignmentCollector implements VariableAssignments {
  readonly indirect: string[] = [];
  moves = false;
  changesGlobbing = false;
  readonly #counts = new Map<string, number>();
  readonly #textual = new Set<string>();
  hasFunctions = false;
  #isUnbounded = false;
  #setsSeparators = false;
  /** Assignments that end with a command which runs nothing. */
  readonly #passing = new Set<SyntaxNode>();
  /** Something gives the script or its functions arguments. */
  #hasArguments = false;

  get functionsMayChangeDirectory(): boolean {
    return this.hasFunctions && this.moves;
  }

  /** `IFS=, read a` sets it for that command alone. */
  get hasCustomSeparators(): boolean {
    return this.#isUnbounded || this.indirect.includes("IFS") || this.#setsSeparators;
  }

  count(name: string): number {
    return this.#isUnbounded ? Number.POSITIVE_INFINITY : (this.#counts.get(name) ?? 0);
  }

  isNumeric(name: string): boolean {
    if (/^[\d@*]/.test(name)) return !this.#hasArguments;
    return !this.#isUnbounded && !this.#textual.has(name) && !setByShell.has(name);
  }

  visit(node: SyntaxNode): void {
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- most kinds only lead to their children
    switch (node.type) {
      case "Assignment":
        this.#set(node.name, isNumber(node));
        if (node.name === "IFS" && !this.#passing.has(node)) this.#setsSeparators = true;
        if (node.name === "GLOBIGNORE") this.changesGlobbing = true;
        break;
      case "For":
      case "Select":
        this.#setIndirectly(
          node.name.value,
          node.type === "For" && (node.wordlist ?? []).every(isNumberWord),
        );
        break;
      case "ArithmeticWord":
        for (const name of node.value.match(/[A-Za-z_]\w*/g) ?? []) this.#set(name, true);
        break;
      case "ParameterExpansion":
        if (node.operation?.type === "Default" && node.operation.operator.endsWith("="))
          this.#set(node.parameter, false);
        break;
      case "FileDescriptorVariable":
        this.#setIndirectly(node.name, true);
        break;
      case "Function":
        this.hasFunctions = true;
        this.#hasArguments = true;
        if (movingCommands.has(node.name.value)) this.moves = true;
        break;
      case "Coproc":
        this.#setIndirectly(node.name?.value ?? "COPROC", false);
        break;
      case "Command":
        this.#command(node);
        break;
      default:
    }
    forEachChild(node, (child) => this.visit(child));
  }

  #command(node: Command): void {
    const name = node.name?.value ?? "";
    if (/^(?:read|mapfile|readarray)$/.test(name)) for (const item of node.prefix) this.#passing.add(item);
    if (movingCommands.has(name)) this.moves = true;
    if (name === "set") this.#hasArguments = true;
    if (name === "shopt" || name === "command" || name === "builtin") this.changesGlobbing = true;
    if (unboundedCommands.has(name)) {
      this.#isUnbounded = true;
      this.moves ||=
        name !== "trap" ||
        node.args.some((arg) => arg.type !== "Word" || /\b(?:cd|pushd|popd)\b/.test(arg.value));
    }
    if (!settingCommands.has(name)) return;
    for (const [index, arg] of node.args.entries()) {
      const before = node.args[index - 1];
      if (arg.type === "Word") this.#named(arg, name, before?.type === "Word" ? before.value : undefined);
    }
  }

  #named(arg: Word, command: string, before: string | undefined): void {
    const wraps = command === "builtin" || command === "command";
    if (wraps && movingCommands.has(arg.value)) this.moves = true;
    if (/^-\w*n/.test(arg.value) && /^(?:declare|typeset|local)$/.test(command)) this.#isUnbounded = true;
    if (command === "printf" && before !== "-v") return this.#namedByOption(arg.value, /^-v(.+)$/s);
    if (arg.value.startsWith("-")) return this.#namedByOption(arg.value, /^-[A-Za-z]*[apv](.+)$/s);
    this.#setNamed(arg.value, command === "let");
  }

  /** `read -aname`, `printf -vname`. */
  #namedByOption(word: string, attached: RegExp): void {
    const name = attached.exec(word)?.[1];
    if (name !== undefined) this.#setNamed(name, false);
  }

  /** What is written before `=` or `[` must be a name as it stands for it to be known which variable is set. */
  #setNamed(word: string, isNumeric: boolean): void {
    const target = /^[^=[+]*/.exec(word)?.[0] ?? "";
    if (/[$`{]/.test(target) && /^[\w{},]*$/.test(target.replace(expansions, ""))) this.#isUnbounded = true;
    const name = /^[A-Za-z_]\w*/.exec(target)?.[0];
    if (name !== undefined) this.#setIndirectly(name, isNumeric);
  }

  #setIndirectly(name: string, isNumeric: boolean): void {
    this.indirect.push(name);
    this.#set(name, isNumeric);
  }

  #set(name: string, isNumeric: boolean): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    if (!isNumeric) this.#textual.add(name);
  }
}

function isNumber({ value }: Assignment): boolean {
  return value.type === "Word" && isNumberWord(value);
}

function isNumberWord(word: Word): boolean {
  const [part, ...others] = word.parts ?? [];
  if (part?.type === "ArithmeticExpansion" && others.length === 0) return true;
  return /^-?\d*$/.test(word.value) || /^\{\d+\.\.\d+\}$/.test(word.text);
}
