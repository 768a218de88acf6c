import { messageOf } from "./errors.ts";
import type { LogFields } from "./log.ts";

/** Maximum depth of nested causes in a log line. */
const causeLimit = 5;

/** Returns log fields for a thrown value: its message, and its stack with the stacks of its causes. */
export function errorFields(thrown: unknown): LogFields {
  return { error: messageOf(thrown), stack: stackOf(thrown) };
}

function stackOf(thrown: unknown): string | undefined {
  const stacks: string[] = [];
  let current = thrown;
  while (current instanceof Error && stacks.length <= causeLimit) {
    stacks.push(current.stack ?? `${current.name}: ${current.message}`);
    current = current.cause;
  }
  if (current !== undefined && !(current instanceof Error) && stacks.length > 0)
    stacks.push(messageOf(current));
  return stacks.length === 0 ? undefined : stacks.join("\nCaused by: ");
}
