import type { ShellDialect } from "./syntax/dialect.ts";
import type { Argument, ExpansionContext, Value } from "./syntax/word.ts";

/** Where a command line would run. */
export interface ShellContext {
  /** The folder to which the paths in rules are relative; absolute. */
  cwd: string;
  /** The folder in which the line starts; absolute, `cwd` by default. */
  start?: string;
  /** Workspace folders as absolute real paths; every other path is external. */
  roots: readonly string[];
  home: string;
  /** The dialect of the shell that runs the line, bash by default. */
  dialect?: ShellDialect;
  /** Converts a path as a command names it to one with `/` that begins with `/`, if it is absolute: `C:\a` to `/c/a`. */
  readPath?: ((text: string) => string) | undefined;
  /** Converts an absolute path to the form in which rules and users write it: `/c/a` to `C:/a`. */
  showPath?(path: string): string;
  /** Returns the real path of an absolute path: links are resolved as far as it exists. */
  resolve(path: string): string;
  /** Returns why a change of an absolute path, or with `below` of everything below it, is critical. */
  findCriticalReason(path: string, below: boolean): string | undefined;
  /** Returns the names in a folder, none if it does not exist. Without it a wildcard counts as every matching name. */
  list?(folder: string): readonly string[];
  /** Returns the text of a file of the project; undefined if there is none. Without it scripts are judged by name. */
  readText?(path: string): string | undefined;
}

/** One effect of a command line. */
export interface ShellEffect {
  /** `run`: a simple command; `write`, `read`: a file or folder; `outside`: a folder outside the workspace. */
  type: "run" | "write" | "read" | "outside";
  /** The command or path in its canonical spelling. */
  text: string;
  /** Other spellings: the source text, the name without its folder. */
  also?: readonly string[];
  /** The effect, phrased for the user: "runs git", "writes out.txt". */
  reason: string;
  /** Wildcard patterns of similar effects (`git checkout *`); empty if no pattern is safe. */
  similar: readonly string[];
  /** Why the effect cannot be determined. */
  opaque?: string;
  /** The options that make it opaque. */
  options?: readonly string[];
  /** The interpreter that makes it opaque. */
  interpreter?: string;
  /** `text` and `also` are wildcard patterns. */
  glob?: boolean;
  /** The paths that match the pattern, if known. */
  names?: readonly string[];
  /** A wildcard pattern of the commands that `text` may become by expansion. */
  becomes?: string;
  /** Everything below the folder `text` is changed. */
  below?: boolean;
  /** Everything below the folder `text` is read. */
  within?: boolean;
  /** The command only changes where other commands run. */
  changesDirectory?: boolean;
  /** The line has this effect only if it is read in an unusual way. */
  isAlternativeReading?: boolean;
  /** Why the command cannot be undone: "publishes a package". */
  irreversible?: string;
  /** Whether the command can be undone is unknown: its words do not show what it does. */
  hasUnknownEffects?: boolean;
  /** Why the change is critical: it removes the workspace, or the context says so. */
  critical?: string;
}

/** The effects of a command line, in the order in which they were found. */
export type ShellFacts = readonly ShellEffect[];

/** A file or folder whose text a command line prints without changing it. */
export interface ShownText {
  /** Absolute real path. */
  readonly path: string;
  /** `matches`: matching lines of the file or of files below the folder, each after its name. */
  readonly extent: "whole" | "part" | "matches";
  /** The folder to which names in the output are relative. */
  readonly base: string;
  /** Nothing else is searched: the lines of a file come without its name. */
  readonly isAlone?: boolean;
}

/** A simple command: its words after expansion, without redirections and assignments. */
export interface SimpleCommand {
  readonly argv: readonly Argument[];
  /** The source text. */
  readonly raw: string;
  readonly assignments: readonly ShellAssignment[];
}

export interface ShellAssignment {
  readonly name: string;
  readonly text: string;
  /** Undefined if unknown. */
  readonly value: string | undefined;
}

/** Collects the effects of a command line. */
export interface Scan {
  readonly context: ShellContext;
  add(part: ShellEffect): void;
  /** Marks folder listings as stale: a command renames or creates files that later commands may find. */
  invalidateListings(): void;
  readonly areListingsStale: boolean;
  /** Adds a command that another command runs. */
  addWrapped(command: SimpleCommand, evalContext: EvalContext): void;
  /** Returns the real path of a path relative to `base`. Resolves links before `..`, as the system does. */
  realPath(base: string, path: string): string;
}

/** The character after each file name that a program passes through a pipe. */
export type NameTerminator = "line" | "nul";

/** The state of the shell where a command runs. */
export interface EvalContext extends ExpansionContext {
  /** Nesting depth of shell texts and wrappers. */
  readonly depth: number;
  /** Returns the files whose names the command receives on its input; undefined if unknown. */
  readonly input: (end: NameTerminator) => readonly Value[] | undefined;
  /** The text that the command reads from its input, as far as the line shows it. */
  readonly inputText: string | undefined;
  /** Wildcards may match more than by default (`shopt -s dotglob`). */
  readonly hasWideGlobs: boolean;
  /** Analyzes a text that the command passes to a shell, by default in the dialect of the line. */
  runText(text: string, dialect?: ShellDialect): void;
  /** Returns why a text that the command runs cannot be undone. */
  findIrreversible(text: string): string | undefined;
}

/** A command to describe, and the collector of its effects. */
export interface Invocation {
  readonly scan: Scan;
  readonly command: SimpleCommand;
  /** The words after the name, or those that remain to be described. */
  readonly args: readonly Argument[];
  readonly evalContext: EvalContext;
}
