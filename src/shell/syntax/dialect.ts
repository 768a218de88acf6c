import type { SyntaxNode } from "unbash";

/** Which syntax a shell has: that of bash, that of POSIX only, or neither (`cmd`, `fish`, PowerShell). */
export type ShellDialect = "bash" | "sh" | "other";

const shellsLikeBash = /^(?:bash|rbash|zsh|ksh|mksh)$/;
const posixShells = /^(?:sh|dash|ash)$/;

/** Returns the dialect of a shell by its name or path. */
export function dialectOf(shell: string): ShellDialect {
  const name = shell.replace(/^.*[/\\]/, "").replace(/\.exe$/i, "");
  if (shellsLikeBash.test(name)) return "bash";
  return posixShells.test(name) ? "sh" : "other";
}

/** Text that all shells read in the same way: plain words, which may be quoted. */
const plainText = /^(?:[\w ./:+-]|"[\w ./:+-]*")*$/;

/** `$'` and a quote after a backslash: the quoted text ends there if the shell does not know `$'...'`. */
const escapedQuote = /\$'[^']*\\'/;

/** Throws if the shell may run other commands than those that bash runs. */
export function assertSameText(text: string, dialect: ShellDialect): void {
  if (dialect === "other" && !plainText.test(text))
    throw new Error("its shell does not have the syntax of bash");
  if (dialect === "sh" && escapedQuote.test(text))
    throw new Error("a shell without the syntax of bash ends $'...' at the first quote");
}

/** As {@link assertSameText}, for a node of the syntax tree. */
export function assertSameNode({ type }: SyntaxNode, dialect: ShellDialect): void {
  if (dialect !== "sh") return;
  if (type === "TestCommand") throw new Error("a shell without the syntax of bash runs [[ as a command");
  if (type === "ArithmeticCommand")
    throw new Error("a shell without the syntax of bash runs the words in (( )) as commands");
}
