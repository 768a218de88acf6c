/**
 * How a command ended, as far as its call says. `stopped`: by a signal or because its time was up. `background`: the
 * shell started it in the background, so that its end is unknown. `running`: a job that has not ended.
 */
export type CommandEnd =
  | { readonly end: "exited"; readonly exitCode: number }
  | { readonly end: "stopped" | "cancelled" | "background" | "running" };

/** A changed file, with the hashes of its content; a hash is missing if the content was not stored. */
export interface ChangedPath {
  readonly path: string;
  readonly before?: string | null;
  readonly after?: string | null;
}

/** An action of a turn that matters for its evidence. The order of a list is the order in time. */
export type Activity =
  | ({
      readonly type: "change";
      /** The file was moved to another path, whose change follows. */
      readonly isMoved?: boolean;
    } & ChangedPath)
  | ({
      readonly type: "command";
      readonly command: string;
      readonly folder?: string;
      /** The files that it changed, including those that its text does not name. */
      readonly changes?: readonly ChangedPath[];
    } & CommandEnd)
  /** A task that runs in the background and has not ended. */
  | { readonly type: "task"; readonly title: string }
  /** A call of a tool whose effect is unknown, such as one of an MCP server. */
  | { readonly type: "call"; readonly title: string }
  /** A command that was not allowed. */
  | { readonly type: "refusal" };
