import type { Call } from "../command-line/command.ts";
import { UsageError } from "../command-line/usage.ts";
import { readPipedText } from "../terminal/stdin.ts";

/** Creates the prompt from the words of the command line and the piped text. Throws {@link UsageError} without either. */
export async function readPromptText(
  { operands }: Call,
  input: NodeJS.ReadStream & { fd: number },
): Promise<string> {
  const words = operands.filter((word) => word !== "-");
  const isExpected = words.length === 0 || words.length < operands.length;
  const piped = await readPipedText(input, isExpected);
  const [prompt, text] = [words.join(" ").trim(), piped.text.trim()];
  const cut = piped.isCut ? "\n\n(stdin was longer; the rest was not read.)" : "";
  if (prompt === "" && text === "") throw new UsageError('run needs a prompt: fairlead run "…"', "run");
  if (text === "") return prompt;
  return prompt === "" ? text + cut : `${prompt}\n\n${markPiped(text)}${cut}`;
}

/** Encloses piped text in tags that it does not contain itself. */
function markPiped(text: string): string {
  let tag = "stdin";
  for (let number = 2; text.includes(`</${tag}>`); number++) tag = `stdin-${number}`;
  return `<${tag}>\n${text}\n</${tag}>`;
}
