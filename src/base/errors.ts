import { unnamedError } from "./unnamed-errors.ts";

/** An error whose message is written for a person: what happened and what to do next. */
export class UserError extends Error {
  override readonly name = "UserError";
}

/** What whoever caught it can tell of whatever was thrown. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (isMissingPart(thrown)) return partProblem(thrown);
  return unnamedError(thrown)?.message ?? (thrown.message || thrown.name);
}

/** What happened where a part of the program is missing or broken on the disk. */
export function partProblem(thrown: unknown): string {
  const code = codeOf(thrown);
  if (code === "EMFILE" || code === "ENFILE")
    return `A part of the program could not be loaded: too many files are open (${code}). Close some sessions, or raise the limit (ulimit -n) and start the agent again.`;
  const [reason = ""] = (thrown instanceof Error ? thrown.message : String(thrown)).split("\n");
  return `A part of the program could not be loaded: ${reason}. It may have been updated or removed while it ran: start the agent again, and if that stays so, install Fairlead anew.`;
}

/** Parts are loaded when they are first needed; an update takes them away under a program that runs. */
function isMissingPart(thrown: Error): boolean {
  const code = codeOf(thrown);
  return code === "MODULE_NOT_FOUND" || code === "ERR_MODULE_NOT_FOUND" || isPartUnopened(thrown);
}

/** Whether a part could not be opened for want of files. */
function isPartUnopened(thrown: Error): boolean {
  const isOutOfFiles = codeOf(thrown) === "EMFILE" || codeOf(thrown) === "ENFILE";
  return (
    isOutOfFiles && "path" in thrown && typeof thrown.path === "string" && /\.[cm]?js$/.test(thrown.path)
  );
}

/** The same as a sentence that another can follow. */
export function sentenceOf(thrown: unknown): string {
  const text = messageOf(thrown).trim();
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** The code of a Node system error such as `ENOENT`, if there is one. */
export function codeOf(thrown: unknown): string | undefined {
  if (typeof thrown !== "object" || thrown === null || !("code" in thrown)) return undefined;
  return unnamedError(thrown)?.code ?? (typeof thrown.code === "string" ? thrown.code : undefined);
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
