import type { Subject } from "./rule.ts";
import type { Names } from "./shell-word.ts";

/** Where a command line would run. */
export interface ShellContext {
  /** Absolute path of the folder that it starts in. */
  cwd: string;
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

/** What is collected while a command line is read. */
export interface Scan {
  readonly context: ShellContext;
  add(part: ShellPart): void;
  /** Real path of a path below `base`, `..` taken after links as the system does it. */
  realPath(base: string, path: string): string;
}

/** What is known of the shell at the place of a command. */
export interface Place extends Names {
  /** How many texts were parsed inside of each other. */
  readonly depth: number;
  /** Wildcards may fit more than usual (`shopt -s dotglob`). */
  readonly widerGlobs: boolean;
  /** Reads a text that the command gives to a shell. */
  runText(text: string): void;
}
