import { removeControls } from "../../base/text/controls.ts";
import { resumeInputAfterSuspend } from "./job-control.ts";
import type { Choice, Questions } from "./questions.ts";

/** Opens interactive questions if the terminal can draw, else line-by-line ones: in a pipe or an editor's plain terminal. */
export async function openQuestions(): Promise<Questions> {
  const questions = await createQuestions();
  const leave = resumeInputAfterSuspend(process.stdin);
  return {
    ...questions,
    // Model names and error messages come from servers.
    say: (text) => questions.say(removeControls(text)),
    choose: (question, choices, options) => questions.choose(question, choices.map(sanitizeChoice), options),
    close: () => {
      questions.close();
      leave();
    },
  };
}

function sanitizeChoice({ value, label, hint }: Choice): Choice {
  return { value, label: removeControls(label), ...(hint !== undefined && { hint: removeControls(hint) }) };
}

async function createQuestions(): Promise<Questions> {
  const canDraw = process.stdin.isTTY && process.stdout.isTTY && process.env["TERM"] !== "dumb";
  if (canDraw) return (await import("./drawn-questions.ts")).createDrawnQuestions();
  return (await import("./line-questions.ts")).createLineQuestions(process.stdin, process.stdout);
}
