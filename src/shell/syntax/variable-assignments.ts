import { forEachChild } from "unbash";
import type { Assignment, Command, SyntaxNode, Word } from "unbash";

/** The variable assignments of a script, and whether functions may change its folder. */
export interface VariableAssignments {
  /** Returns in how many places a variable may be assigned. */
  count(name: string): number;
  /** Whether a variable can only hold numbers, or comes from the environment. */
  isNumeric(name: string): boolean;
  /** Variables assigned by other means than `NAME=value`. */
  readonly indirect: readonly string[];
  /** Functions are defined, which may redefine any command. */
  readonly hasFunctions: boolean;
  /** The script has functions and `cd`, so that any command may run in another folder. */
  readonly functionsMayChangeDirectory: boolean;
  /** A command may change what wildcards match. */
  readonly changesGlobbing: boolean;
  /** `IFS` may be set, which changes where the text of a variable is split. */
  readonly hasCustomSeparators: boolean;
}

const movingCommands = new Set(["cd", "pushd", "popd"]);
/** Commands that assign the variables named in their arguments. */
const settingCommands = new Set(
  "read mapfile readarray getopts printf declare typeset local export readonly unset let wait builtin command".split(
    " ",
  ),
);
/** Commands that may assign any variable. */
const unboundedCommands = new Set("eval source . trap".split(" "));

/** Variables that the shell sets to texts: the last word, input of `read`, a match of `=~`, a folder. */
const setByShell = new Set(
  "_ REPLY OPTARG MAPFILE BASH_REMATCH BASH_COMMAND BASH_EXECUTION_STRING BASH_ARGV BASH_ARGV0 BASH_SOURCE FUNCNAME DIRSTACK PWD OLDPWD READLINE_LINE READLINE_ARGUMENT COMP_LINE COMP_WORDS COMPREPLY HOSTNAME".split(
    " ",
  ),
);

const expansions = /\$\{[^}]*\}|\$\([^)]*\)|\$[\w@*#?!-]|`[^`]*`/g;

/** Collects the assignments of a script and of all nested scripts. */
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
  /** Assignments before a builtin that runs nothing, which end with it. */
  readonly #passing = new Set<SyntaxNode>();
  /** The script or its functions may have arguments. */
  #hasArguments = false;

  get functionsMayChangeDirectory(): boolean {
    return this.hasFunctions && this.moves;
  }

  /** Ignores `IFS=, read a`, which sets it only for that command. */
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

  /** Assigns the name before `=` or `[`. An expansion there may assign any variable. */
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
