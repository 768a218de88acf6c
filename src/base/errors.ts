/** An error whose message is written for a person: what happened and what to do next. */
export class UserError extends Error {
  override readonly name = "UserError";
}

/** The first useful line of whatever was thrown. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  return String(thrown);
}

/** The code of a Node system error such as `ENOENT`, if there is one. */
export function codeOf(thrown: unknown): string | undefined {
  if (typeof thrown !== "object" || thrown === null || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}

/** Whether the error says that the work was aborted by a signal. */
export function isAbort(thrown: unknown): boolean {
  return thrown instanceof Error && (thrown.name === "AbortError" || codeOf(thrown) === "ABORT_ERR");
}
