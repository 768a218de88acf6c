import { createInterface } from "node:readline";
import { type Readable, Writable } from "node:stream";
import { type Choice, type Questions, Stopped } from "./questions.ts";

/** Choices that are listed; the others can be written too. */
const shownChoices = 40;

/** Questions line by line: for a terminal that cannot draw, and for programs that write the answers into a pipe. */
export function lineQuestions(
  input: Readable & { isTTY?: boolean },
  output: { write(text: string): unknown },
): Questions {
  const lines = new Lines(input, output);
  const say = (text: string) => output.write(`${text}\n`);
  const ask = async (question: string, read: (answer: string) => string | { problem: string }) => {
    for (;;) {
      const answer = await lines.ask(`${question} `);
      // Who goes away agrees to nothing, not even to what is suggested.
      if (answer === undefined) throw new Stopped(`no answer to: ${question}`);
      const found = read(answer.trim());
      if (typeof found === "string") return found;
      say(`  ${found.problem}`);
    }
  };
  return {
    choose: (question, choices, first) => {
      listChoices(choices, say);
      const suggestion = first === undefined ? "" : ` [${first}]`;
      return ask(`${question}${suggestion}`, (answer) => readChoice(answer || (first ?? ""), choices));
    },
    text: (question, { suggestion, check } = {}) =>
      ask(`${question}${suggestion === undefined ? "" : ` [${suggestion}]`}`, (answer) => {
        const given = answer || (suggestion ?? "");
        const problem = given === "" ? "An answer is needed." : check?.(given);
        return problem === undefined ? given : { problem };
      }),
    secret: async (question) => {
      lines.isMuted = true;
      const answer = await ask(question, (given) => given || { problem: "An answer is needed." });
      lines.isMuted = false;
      return answer;
    },
    confirm: async (question, suggestion) => {
      const read = (answer: string) =>
        /^(y|yes|n|no)?$/i.test(answer)
          ? answer || (suggestion ? "y" : "n")
          : { problem: "Answer y for yes or n for no." };
      return /^y/i.test(await ask(`${question} [${suggestion ? "Y/n" : "y/N"}]`, read));
    },
    say,
    show: (title, text) => say(`\n${title}\n\n${text}\n`),
    wait: (what, work) => {
      say(`${what} …`);
      return work;
    },
    close: () => lines.close(),
  };
}

function listChoices(choices: readonly Choice[], say: (text: string) => void): void {
  for (const [at, { label, hint }] of choices.slice(0, shownChoices).entries())
    say(`  ${String(at + 1).padStart(2)}. ${label}${hint === undefined ? "" : ` (${hint})`}`);
  if (choices.length > shownChoices) say(`  and ${choices.length - shownChoices} more`);
}

/** A number of the list, or the value itself. */
function readChoice(answer: string, choices: readonly Choice[]): string | { problem: string } {
  const choice =
    choices.find(({ value }) => value === answer) ??
    (/^\d+$/.test(answer) ? choices[Number(answer) - 1] : undefined);
  return choice?.value ?? { problem: `Answer with a number from 1 to ${choices.length}.` };
}

/** Lines as they come, those too that came before they were asked for. */
class Lines {
  /** Nothing that is typed is shown. */
  isMuted = false;
  readonly #output: { write(text: string): unknown };
  readonly #reader: ReturnType<typeof createInterface>;
  readonly #lines: AsyncIterator<string>;

  constructor(input: Readable & { isTTY?: boolean }, output: { write(text: string): unknown }) {
    this.#output = output;
    const echo = new Writable({
      write: (chunk, _encoding, done) => {
        if (!this.isMuted) output.write(String(chunk));
        done();
      },
    });
    this.#reader = createInterface({ input, output: echo, terminal: input.isTTY === true });
    this.#reader.on("SIGINT", () => this.#reader.close());
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  /** Undefined where no line comes any more. */
  async ask(question: string): Promise<string | undefined> {
    this.#output.write(question);
    const { value, done } = await this.#lines.next();
    if (this.isMuted || done === true) this.#output.write("\n");
    return done === true ? undefined : value;
  }

  close(): void {
    this.#reader.close();
  }
}
