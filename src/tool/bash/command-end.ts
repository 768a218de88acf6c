/** What the model reads of a command that printed nothing. */
export const nothingPrinted = "(no output)";

/** How a command ended, for the model; undefined where there is nothing to say of it. */
export function endNote(exitCode: unknown, signalName: unknown): string | undefined {
  if (typeof signalName === "string") return `[ended by signal ${signalName}]`;
  if (typeof exitCode === "number") return exitCode === 0 ? undefined : `[exit code ${exitCode}]`;
  return "[ended by signal unknown]";
}

/** What a command printed, of what the model reads of it: without the end, which terminals tell in a way of their own. */
export function removeEndNote(output: string, metadata: Readonly<Record<string, unknown>> = {}): string {
  const note = endNote(metadata["exitCode"], metadata["signal"]);
  const printed =
    note !== undefined && output.endsWith(`\n\n${note}`) ? output.slice(0, -note.length - 2) : output;
  return printed === nothingPrinted ? "" : printed;
}
