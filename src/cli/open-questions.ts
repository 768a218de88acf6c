import { readOnWhenTakenUp } from "./put-aside.ts";
import type { Questions } from "./questions.ts";

/** For a terminal that can draw, else line by line: a pipe, or an editor's plain terminal. */
export async function openQuestions(): Promise<Questions> {
  const questions = await questionsForTerminal();
  const leave = readOnWhenTakenUp(process.stdin);
  return {
    ...questions,
    close: () => {
      questions.close();
      leave();
    },
  };
}

async function questionsForTerminal(): Promise<Questions> {
  const canDraw = process.stdin.isTTY && process.stdout.isTTY && process.env["TERM"] !== "dumb";
  if (canDraw) return (await import("./drawn-questions.ts")).drawnQuestions();
  return (await import("./line-questions.ts")).lineQuestions(process.stdin, process.stdout);
}
