/** An error whose message is written for a person: what happened and what to do next. */
export class UserError extends Error {
  override readonly name = "UserError";
}

/** The first useful line of whatever was thrown. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  return String(thrown);
}

/** The same as a sentence that another can follow. */
export function sentenceOf(thrown: unknown): string {
  const text = messageOf(thrown).trim();
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** The code of a Node system error such as `ENOENT`, if there is one. */
export function codeOf(thrown: unknown): string | undefined {
  if (typeof thrown !== "object" || thrown === null || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}

/** Whether there is no such file; ENOTDIR: a file stands where a folder would have to be, so there is nothing under it. */
export function isMissing(thrown: unknown): boolean {
  const code = codeOf(thrown);
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Whether the error says that the work was aborted by a signal. */
export function isAbort(thrown: unknown): boolean {
  return thrown instanceof Error && (thrown.name === "AbortError" || codeOf(thrown) === "ABORT_ERR");
}
