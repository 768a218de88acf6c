import { removeControls } from "../../base/text/controls.ts";
import { readOnWhenTakenUp } from "./job-control.ts";
import type { Choice, Questions } from "./questions.ts";

/** For a terminal that can draw, else line by line: a pipe, or an editor's plain terminal. */
export async function openQuestions(): Promise<Questions> {
  const questions = await questionsForTerminal();
  const leave = readOnWhenTakenUp(process.stdin);
  return {
    ...questions,
    // Servers name their models, and say what went wrong.
    say: (text) => questions.say(removeControls(text)),
    choose: (question, choices, options) => questions.choose(question, choices.map(readable), options),
    close: () => {
      questions.close();
      leave();
    },
  };
}

function readable({ value, label, hint }: Choice): Choice {
  return { value, label: removeControls(label), ...(hint !== undefined && { hint: removeControls(hint) }) };
}

async function questionsForTerminal(): Promise<Questions> {
  const canDraw = process.stdin.isTTY && process.stdout.isTTY && process.env["TERM"] !== "dumb";
  if (canDraw) return (await import("./drawn-questions.ts")).drawnQuestions();
  return (await import("./line-questions.ts")).lineQuestions(process.stdin, process.stdout);
}
