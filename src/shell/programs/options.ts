import type { Program } from "./program-table.ts";
import { attachedPath } from "../syntax/paths.ts";
import type { Argument } from "../syntax/word.ts";
import { literalArgument, sliceValue } from "../syntax/word.ts";

export interface ParsedOption {
  name: string;
  value?: Argument;
  /** The value is text and never a path. */
  isText: boolean;
}

export interface ParsedOptions {
  flags: readonly ParsedOption[];
  operands: readonly Argument[];
  /** An argument whose text is unknown may be an option. */
  isUncertain: boolean;
}

/** Splits arguments into options, their values and operands, as getopt does. */
export function parseOptions(args: readonly Argument[], program: Program): ParsedOptions {
  const reading = new OptionParser(args, program);
  return reading.run();
}

class OptionParser {
  readonly #args: readonly Argument[];
  readonly #program: Program;
  readonly #valued: ReadonlySet<string>;
  readonly #texts: ReadonlySet<string>;
  readonly #found: ParsedOption[] = [];
  readonly #operands: Argument[] = [];
  #unsure = false;
  #next = 0;

  constructor(args: readonly Argument[], program: Program) {
    this.#args = args;
    this.#program = program;
    this.#texts = splitWords(program.textFlags);
    this.#valued = new Set([
      ...splitWords(program.valueFlags),
      ...this.#texts,
      ...splitWords(program.inputFileFlags),
      ...splitWords(program.fileListFlags),
      ...splitWords(program.outputFileFlags),
      ...splitWords(program.uploadFlags),
      ...splitWords(program.outputDirFlags),
    ]);
  }

  run(): ParsedOptions {
    for (let arg = this.#take(); arg; arg = this.#take()) {
      if (arg.text === "--") break;
      const isOption = arg.text.startsWith("-") && arg.text !== "-";
      if (this.#mayBeAnother(arg, isOption)) this.#unsure = true;
      if (isOption) this.#option(arg);
      else this.#operands.push(arg);
      if (!isOption && this.#program.stopsAtFirstOperand) break;
    }
    this.#operands.push(...this.#args.slice(this.#next));
    return { flags: this.#found, operands: this.#operands, isUncertain: this.#unsure };
  }

  /** Whether the word may be an option that its known text does not show. */
  #mayBeAnother({ values, known }: Argument, isOption: boolean): boolean {
    if (values) return false;
    if (!isOption) return known === "";
    if (known.includes("=")) return false;
    const isCluster = !known.startsWith("--") && this.#program.hasSingleDashNames !== true;
    if (isCluster)
      return !known
        .slice(1)
        .split("")
        .some((letter) => this.#valued.has(`-${letter}`));
    const options = [...this.#valued, ...splitWords(this.#program.dangerousFlags)];
    return options.some((option) => option.length > known.length && option.startsWith(known));
  }

  #take(): Argument | undefined {
    return this.#args[this.#next++];
  }

  #option(arg: Argument): void {
    if (arg.text.startsWith("--")) return this.#long(arg);
    if (this.#valued.has(arg.text)) return this.#named(arg.text);
    if (this.#program.hasSingleDashNames) return this.#word(arg);
    this.#cluster(arg);
  }

  /** `-o=a`, `-oa`, `-I/a`. */
  #word(arg: Argument): void {
    const equals = arg.text.indexOf("=");
    const attached = [...this.#valued].find((name) => name.length === 2 && arg.text.startsWith(name));
    if (attached !== undefined || attachedPath.test(arg.text)) {
      const name = arg.text.slice(0, 2);
      const from = arg.text[2] === "=" ? 3 : 2;
      this.#found.push({ name, value: sliceArgument(arg, from), isText: this.#texts.has(name) });
    }
    this.#found.push({ name: equals === -1 ? arg.text : arg.text.slice(0, equals), isText: false });
  }

  #long(arg: Argument): void {
    const equals = arg.text.indexOf("=");
    if (equals === -1) return this.#named(arg.text);
    const name = this.#fullName(arg.text.slice(0, equals));
    this.#found.push({ name, value: sliceArgument(arg, equals + 1), isText: this.#texts.has(name) });
  }

  #cluster(arg: Argument): void {
    const first = arg.text.slice(0, 2);
    if (!this.#valued.has(first) && attachedPath.test(arg.text)) {
      this.#found.push({ name: first, value: sliceArgument(arg, 2), isText: false });
      return;
    }
    for (let index = 1; index < arg.text.length; index++) {
      const name = `-${arg.text[index]}`;
      if (!this.#valued.has(name)) {
        this.#found.push({ name, isText: false });
        continue;
      }
      if (index + 1 === arg.text.length) return this.#named(name);
      this.#found.push({ name, value: sliceArgument(arg, index + 1), isText: this.#texts.has(name) });
      return;
    }
  }

  /** Expands the abbreviation of a long option that takes a value. */
  #fullName(name: string): string {
    if (!name.startsWith("--") || this.#valued.has(name)) return name;
    const full = [...this.#valued].filter((option) => option.startsWith(name));
    return full.length === 1 && full[0] !== undefined ? full[0] : name;
  }

  #named(name: string): void {
    const full = this.#fullName(name);
    const value = this.#valued.has(full) ? this.#take() : undefined;
    this.#found.push({ name: full, isText: this.#texts.has(full), ...(value && { value }) });
    if (value?.splits && !value.values) this.#unsure = true;
    // The abbreviation may be another option without a value; then the next word is an operand.
    if (value && full !== name && !this.#program.stopsAtFirstOperand) this.#operands.push(value);
  }
}

/** Returns the options of the list that are present, as the list spells them. */
export function findFlags(options: ParsedOptions, list: string | undefined): string[] {
  const dangers = splitWords(list);
  const hits = options.flags.flatMap(({ name }) => [...dangers].filter((danger) => isSpelling(name, danger)));
  return [...new Set(hits)];
}

export function hasFlag(options: ParsedOptions, list: string | undefined): boolean {
  return findFlags(options, list).length > 0;
}

/** Returns the options that are in none of the lists. */
export function findUnknownFlags(options: ParsedOptions, ...lists: (string | undefined)[]): string[] {
  const known = new Set(lists.flatMap((list) => [...splitWords(list)]));
  return options.flags.map(({ name }) => name).filter((name) => !known.has(name) && !/^-\d$/.test(name));
}

/** Whether `name` is the option or an abbreviation of it. */
function isSpelling(name: string, option: string): boolean {
  return (
    name === option ||
    (name.startsWith("--") && name.length > 2 && option.startsWith(name) && option.startsWith("--"))
  );
}

export function splitWords(list: string | undefined): ReadonlySet<string> {
  return new Set(list ? list.split(" ") : []);
}

function sliceArgument(arg: Argument, from: number): Argument {
  if (!arg.values) return { ...arg, text: arg.text.slice(from), known: arg.known.slice(from) };
  const [only, ...others] = arg.values;
  if (others.length === 0 && only?.text === arg.text && !only.glob)
    return literalArgument(arg.text.slice(from));
  const values = arg.values.map((value) => sliceValue(value, from));
  return { ...arg, text: arg.text.slice(from), values, known: arg.known.slice(from) };
}
