import { parse } from "unbash";
import type { AndOr, Command, CompoundList, ParsedScript, Pipeline, Statement, SyntaxNode } from "unbash";
import { isShell } from "./wrappers/shells.ts";

/**
 * Whether the exit code of a command line shows the success of one of its commands:
 * - `shown`: it is 0 only if the command succeeded.
 * - `hidden`: it may be 0 although the command failed or did not run.
 * - `background`: the line does not wait for the command.
 */
export type ExitVisibility = "shown" | "hidden" | "background";

/** A part of a command line, in the order in which the parts run. */
export interface LineCommand {
  /** The source text, redirections included. */
  readonly text: string;
  readonly exit: ExitVisibility;
}

/** Maximum depth of nested shell texts (`bash -c`). */
const depthLimit = 4;

/** Ends the shell with a failure, so that `test || exit 1` is 0 only if the test passed. */
const failingEnd = /^(?:false|[\s\S]*\bexit\s+(?:[1-9]\d*|\$\?)[\s;)}]*)$/;

/** Splits a command line into its commands. A text that cannot be parsed is one command with a hidden exit code. */
export function splitLine(line: string): readonly LineCommand[] {
  return new Splitter(line, 0).split("shown");
}

class Splitter {
  readonly #source: string;
  readonly #depth: number;
  readonly #commands: LineCommand[] = [];
  #stopsAtFailure = false;
  #hasPipefail = false;

  constructor(source: string, depth: number) {
    this.#source = source;
    this.#depth = depth;
  }

  split(exit: ExitVisibility): readonly LineCommand[] {
    const whole: LineCommand = { text: this.#source, exit: "hidden" };
    try {
      const script: ParsedScript = parse(this.#source);
      if (script.errors && script.errors.length > 0) return [whole];
      this.#list(script, exit);
      return this.#commands;
    } catch {
      // Not shell text, or nested too deeply: then nothing is known about its parts.
      return [whole];
    }
  }

  /** The last statement decides, and each one after `set -e`. */
  #list({ commands }: ParsedScript | CompoundList, exit: ExitVisibility): void {
    for (const [index, statement] of commands.entries()) {
      const decides = index === commands.length - 1 || this.#stopsAtFailure;
      this.#statement(statement, decides ? exit : hide(exit));
    }
  }

  #statement({ command, background }: Statement, exit: ExitVisibility): void {
    this.#node(command, background === true ? "background" : exit);
  }

  #node(node: SyntaxNode, exit: ExitVisibility): void {
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the others run conditionally or repeatedly
    switch (node.type) {
      case "AndOr":
        return this.#andOr(node, exit);
      case "Pipeline":
        return this.#pipeline(node, exit);
      case "Statement":
        return this.#statement(node, exit);
      case "Subshell":
      case "BraceGroup":
        return this.#list(node.body, exit);
      case "Redirected":
        return this.#node(node.command, exit);
      case "Command":
        return this.#command(node, exit);
      default:
        this.#add(node, hide(exit));
    }
  }

  #andOr({ commands, operators }: AndOr, exit: ExitVisibility): void {
    for (const [index, command] of commands.entries()) {
      const isAlways = index === 0 || operators[index - 1] === "&&";
      const decides = operators
        .slice(index)
        .every((operator, later) => operator === "&&" || this.#failsAlways(commands[index + later + 1]));
      this.#node(command, isAlways && decides ? exit : hide(exit));
    }
  }

  #failsAlways(node: SyntaxNode | undefined): boolean {
    return node !== undefined && failingEnd.test(this.#textOf(node));
  }

  #pipeline({ commands, prefixes }: Pipeline, exit: ExitVisibility): void {
    const isNegated = prefixes.some(({ type }) => type === "Negation");
    for (const [index, command] of commands.entries()) {
      const decides = index === commands.length - 1 || this.#hasPipefail;
      this.#node(command, decides && !isNegated ? exit : hide(exit));
    }
  }

  #command(node: Command, exit: ExitVisibility): void {
    const name = node.name?.value;
    const words = node.args.flatMap((arg) => (arg.type === "Word" ? [arg.value] : []));
    if (name === "set") this.#setOptions(words);
    const [option = "", text] = words;
    const runsText = name !== undefined && isShell(name) && /^-[a-z]*c$/.test(option);
    if (runsText && text !== undefined && this.#depth < depthLimit)
      this.#commands.push(...new Splitter(text, this.#depth + 1).split(exit));
    else this.#add(node, exit);
  }

  #setOptions(words: readonly string[]): void {
    this.#stopsAtFailure ||= words.some((word) => /^-[a-z]*e/.test(word) || word === "errexit");
    this.#hasPipefail ||= words.includes("pipefail");
  }

  #add(node: SyntaxNode, exit: ExitVisibility): void {
    this.#commands.push({ text: this.#textOf(node), exit });
  }

  #textOf({ pos, end }: SyntaxNode): string {
    return this.#source.slice(pos, end).trim();
  }
}

const hide = (exit: ExitVisibility): ExitVisibility => (exit === "background" ? exit : "hidden");
