import { quoteWord } from "../base/text/quote-word.ts";

/** Replaced in the words of `sandbox.command`. */
const placeholders = { cwd: "{cwd}", command: "{command}" } as const;

/**
 * Returns the command line that runs a shell command by the configured words.
 * - `{cwd}` is the folder in which the command runs.
 * - `{command}` is the whole command as one word of a shell, for programs such as `ssh` that pass words to a shell.
 *   Without it, `bash -c COMMAND` is appended as three words.
 */
export function wrapCommand(words: readonly string[], command: string, cwd: string): string[] {
  const text = `bash -c ${quoteWord(command)}`;
  const isPassedAsText = words.some((word) => word.includes(placeholders.command));
  const wrapped = words.map((word) =>
    // A function, because `$&` in a replacement has a meaning.
    word
      .replaceAll(placeholders.cwd, () => (isPassedAsText ? quoteWord(cwd) : cwd))
      .replaceAll(placeholders.command, () => text),
  );
  return isPassedAsText ? wrapped : [...wrapped, "bash", "-c", command];
}
