import { createInterface } from "node:readline/promises";
import { toScreenLine } from "../live/text-lines.ts";
import { resumeInputAfterSuspend } from "../terminal/job-control.ts";
import { type Prompt, type PromptAnswer, readTyped } from "./prompt.ts";

interface LinePromptOptions {
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WritableStream;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

/** Asks with numbered lines, for a terminal that cannot draw. Asks again until there is an answer. */
export async function askByLine(prompt: Prompt, options: LinePromptOptions): Promise<PromptAnswer> {
  const { input, output, signal, say } = options;
  for (const [index, { label, hint }] of prompt.options.entries())
    say(
      `  ${index + 1}. ${toScreenLine(label)}${hint === undefined || hint === "" ? "" : ` (${toScreenLine(hint)})`}`,
    );
  const reader = createInterface({ input, output });
  const leave = resumeInputAfterSuspend(input);
  const stopped = Promise.withResolvers<PromptAnswer>();
  reader.once("close", () => {
    output.write("\n");
    stopped.resolve({ kind: "closed" });
  });
  reader.on("SIGINT", () => stopped.resolve({ kind: "interrupted" }));
  const read = async (): Promise<PromptAnswer> => {
    for (;;) {
      const answer = readTyped(await reader.question(`  ${getQuestion(prompt)}: `, { signal }), prompt);
      if (!("problem" in answer)) return { kind: "answered", ...answer };
      say(`  ${answer.problem}`);
    }
  };
  try {
    return await Promise.race([read(), stopped.promise]);
  } catch {
    // The signal is the only other reason to stop.
    return { kind: "withdrawn" };
  } finally {
    reader.removeAllListeners("close");
    reader.close();
    leave();
  }
}

function getQuestion({ options, textHint, isMultiple }: Prompt): string {
  const number = options.length === 0 ? "" : isMultiple === true ? "Numbers" : "Number";
  if (textHint === undefined) return number;
  return number === "" ? "Answer" : `${number}, or ${textHint}`;
}
