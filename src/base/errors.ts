import { unnamedError } from "./unnamed-errors.ts";

/** An error whose message is shown to users. It says what happened and what to do next. */
export class UserError extends Error {
  override readonly name = "UserError";
}

/** Returns a readable message for any thrown value. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (isModuleMissing(thrown)) return importProblem(thrown);
  return unnamedError(thrown)?.message ?? (thrown.message || thrown.name);
}

/** Explains why a module of the program could not be loaded. */
export function importProblem(thrown: unknown): string {
  const code = codeOf(thrown);
  if (code === "EMFILE" || code === "ENFILE")
    return `A module of the program could not be loaded: too many files are open (${code}). Close some sessions, or raise the limit (ulimit -n) and start the agent again.`;
  const [reason = ""] = (thrown instanceof Error ? thrown.message : String(thrown)).split("\n");
  return `A module of the program could not be loaded: ${reason}. It may have been updated or removed while it ran: start the agent again. If that does not help, reinstall Fairlead.`;
}

/** Modules load on first use, so an update can remove them from a running program. */
function isModuleMissing(thrown: Error): boolean {
  const code = codeOf(thrown);
  return code === "MODULE_NOT_FOUND" || code === "ERR_MODULE_NOT_FOUND" || isModuleUnopened(thrown);
}

/** True when a module could not be opened because the process is out of file descriptors. */
function isModuleUnopened(thrown: Error): boolean {
  const isOutOfFiles = codeOf(thrown) === "EMFILE" || codeOf(thrown) === "ENFILE";
  return (
    isOutOfFiles && "path" in thrown && typeof thrown.path === "string" && /\.[cm]?js$/.test(thrown.path)
  );
}

/** Returns {@link messageOf} with a final full stop. */
export function sentenceOf(thrown: unknown): string {
  const text = messageOf(thrown).trim();
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** Returns the code of a Node system error such as `ENOENT`; undefined when there is none. */
export function codeOf(thrown: unknown): string | undefined {
  if (typeof thrown !== "object" || thrown === null || !("code" in thrown)) return undefined;
  return unnamedError(thrown)?.code ?? (typeof thrown.code === "string" ? thrown.code : undefined);
}

/** True for "no such file". ENOTDIR counts too: a parent of the path is a file. */
export function isMissing(thrown: unknown): boolean {
  const code = codeOf(thrown);
  return code === "ENOENT" || code === "ENOTDIR";
}

/** True when the error says that a signal aborted the work. */
export function isAbort(thrown: unknown): boolean {
  return thrown instanceof Error && (thrown.name === "AbortError" || codeOf(thrown) === "ABORT_ERR");
}
