/** The kind of thing that a value names; shells complete it. */
export type ValueKind =
  | "agents"
  | "choosable-agents"
  | "models"
  | "sessions"
  | "servers"
  | "providers"
  | "editors";

/** One `--name` of a command. */
export interface Flag {
  readonly name: string;
  readonly short?: string;
  /** Placeholder of its value in the help. A flag without one is a switch. */
  readonly value?: string;
  /** The allowed values. */
  readonly choices?: readonly string[];
  readonly values?: ValueKind;
  /** Marks a numeric value: a count is an integer of at least 1, an amount is more than 0. */
  readonly number?: "count" | "amount";
  /** May be given more than once. */
  readonly repeats?: boolean;
  readonly about: string;
}

/** Positional arguments of a command. */
export interface Operands {
  /** As the help shows it: `ID`, `[FILE]…`. */
  readonly text: string;
  readonly least: number;
  readonly most: number;
  readonly values?: ValueKind;
}

/** A command: the source of its parsing, help and completion. */
export interface Command {
  /** Names of one or two words; help shows the first. */
  readonly names: readonly [string, ...string[]];
  readonly about: string;
  readonly operands?: Operands;
  readonly flags: readonly Flag[];
  /** Further help: sentences and examples. */
  readonly more?: readonly string[];
  /** Loads its implementation. */
  load(): Promise<RunCommand>;
}

/** Runs a command and returns its exit code. `all` is the whole command table, for help and completion. */
export type RunCommand = (call: Call, all: readonly Command[]) => Promise<number>;

type Value = string | true | readonly string[];

/** A command with its parsed arguments. Throws when asked for a flag that the command does not define. */
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
