import type { Subject } from "../permission/rule.ts";
import type { Argument, ExpansionContext, Value } from "./syntax/word.ts";

/** Where a command line would run. */
export interface ShellContext {
  /** Absolute path of the folder that the paths of rules are relative to. */
  cwd: string;
  /** Absolute path of the folder that it starts in; `cwd` unless given. */
  start?: string;
  /** Absolute real paths; what lies under none of them is external. */
  roots: readonly string[];
  home: string;
  /** The real path of an absolute path: links resolved as far as it exists. */
  resolve(path: string): string;
  /** Names in a folder, empty where there is none. Without it a wildcard stands for every name that it may fit. */
  list?(folder: string): readonly string[];
}

/** One thing that a command line does, with the permission that it needs. */
export interface ShellPart extends Subject {
  permission: "bash" | "edit" | "read" | "external_directory";
  /** Why the part is there, for a person: "runs git", "writes out.txt". */
  reason: string;
  /** Patterns that "always" may allow from now on. */
  always: readonly string[];
}

/** A simple command: its words after expansion, without redirections and assignments. */
export interface SimpleCommand {
  readonly argv: readonly Argument[];
  /** As it is written. */
  readonly raw: string;
  readonly assignments: readonly ShellAssignment[];
}

export interface ShellAssignment {
  readonly name: string;
  readonly text: string;
  /** Undefined where it cannot be known. */
  readonly value: string | undefined;
}

/** What is collected while a command line is read. */
export interface Scan {
  readonly context: ShellContext;
  add(part: ShellPart): void;
  /** Files get other names or appear in folders: what lies there now is not what later commands find. */
  invalidateListings(): void;
  readonly areListingsStale: boolean;
  /** Adds a command that another one runs. */
  addWrapped(command: SimpleCommand, evalContext: EvalContext): void;
  /** Real path of a path below `base`, `..` taken after links as the system does it. */
  realPath(base: string, path: string): string;
}

/** What stands behind each name that one program writes for another. */
export type NameTerminator = "line" | "nul";

/** What is known of the shell at the place of a command. */
export interface EvalContext extends ExpansionContext {
  /** How many texts were parsed inside of each other. */
  readonly depth: number;
  /** The files whose names a command gets on its input; undefined where they cannot be known. */
  readonly input: (end: NameTerminator) => readonly Value[] | undefined;
  /** Wildcards may fit more than usual (`shopt -s dotglob`). */
  readonly hasWideGlobs: boolean;
  /** Reads a text that the command gives to a shell. */
  runText(text: string): void;
}

/** A command about to be described, and where what it does is added. */
export interface Invocation {
  readonly scan: Scan;
  readonly command: SimpleCommand;
  /** Its words behind the name, or those of them that are looked at. */
  readonly args: readonly Argument[];
  readonly evalContext: EvalContext;
}
