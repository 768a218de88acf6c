/** Text for the model when a command printed nothing. */
export const nothingPrinted = "(no output)";

/** Describes for the model how a command ended; undefined for a normal end. */
export function endNote(exitCode: unknown, signalName: unknown): string | undefined {
  if (typeof signalName === "string") return `[ended by signal ${signalName}]`;
  if (typeof exitCode === "number") return exitCode === 0 ? undefined : `[exit code ${exitCode}]`;
  return "[ended by signal unknown]";
}

/** Names the exit code or the signal that ended a command. */
export function describeExit(exitCode: number | null, signalName: string | null): string {
  return exitCode === null ? `signal ${signalName ?? "unknown"}` : `exit code ${exitCode}`;
}

/** Returns the output without its end note, which terminals show in another way. */
export function removeEndNote(output: string, metadata: Readonly<Record<string, unknown>> = {}): string {
  const note = endNote(metadata["exitCode"], metadata["signal"]);
  const printed =
    note !== undefined && output.endsWith(`\n\n${note}`) ? output.slice(0, -note.length - 2) : output;
  return printed === nothingPrinted ? "" : printed;
}
