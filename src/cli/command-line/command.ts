/** One `--name` of a command. */
export interface Flag {
  readonly name: string;
  readonly short?: string;
  /** What its value is called in the help; without one it is a switch. */
  readonly value?: string;
  /** The only values there are. */
  readonly choices?: readonly string[];
  /** A value that is a number: a count is whole and at least 1, an amount more than 0. */
  readonly number?: "count" | "amount";
  /** May be given more than once. */
  readonly repeats?: boolean;
  readonly about: string;
}

/** What a command takes beside flags. */
export interface Operands {
  /** As the help shows it: `ID`, `[FILE]…`. */
  readonly text: string;
  readonly least: number;
  readonly most: number;
}

/** A command of the command line: all that parsing, help and completion know of it. */
export interface Command {
  /** One or two words; the first name is the one that is shown. */
  readonly names: readonly [string, ...string[]];
  readonly about: string;
  readonly operands?: Operands;
  readonly flags: readonly Flag[];
  /** Further sentences and examples of its help. */
  readonly more?: readonly string[];
  /** Loads what runs it. */
  load(): Promise<RunCommand>;
}

/** Answers the exit code. `all` is every command, for those that speak of them. */
export type RunCommand = (call: Call, all: readonly Command[]) => Promise<number>;

type Value = string | true | readonly string[];

/** A command as it was called. Asking for a flag that the command does not have is a bug, and throws. */
export class Call {
  readonly operands: readonly string[];
  readonly #command: Command;
  readonly #values: ReadonlyMap<string, Value>;

  constructor(command: Command, values: ReadonlyMap<string, Value>, operands: readonly string[]) {
    this.#command = command;
    this.#values = values;
    this.operands = operands;
  }

  get name(): string {
    return this.#command.names[0];
  }

  has(flag: string): boolean {
    return this.#value(flag) !== undefined;
  }

  text(flag: string): string | undefined {
    const value = this.#value(flag);
    return typeof value === "string" ? value : undefined;
  }

  texts(flag: string): readonly string[] {
    const value = this.#value(flag);
    return Array.isArray(value) ? value : [];
  }

  number(flag: string): number | undefined {
    const text = this.text(flag);
    return text === undefined ? undefined : Number(text);
  }

  #value(flag: string): Value | undefined {
    if (!this.#command.flags.some(({ name }) => name === flag))
      throw new Error(`${this.name} has no flag ${flag}`);
    return this.#values.get(flag);
  }
}
