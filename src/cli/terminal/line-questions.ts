import { createInterface } from "node:readline";
import { type Readable, Writable } from "node:stream";
import { describeUnknownChoice, findChoice, matchesSearch } from "./choices.ts";
import { type Choice, findLineProblem, type Questions, QuestionsCancelledError } from "./questions.ts";

/** Maximum number of listed choices; the others can still be typed. */
const shownChoices = 40;

/** Line-by-line questions: for a terminal that cannot draw, and for programs that pipe the answers in. */
export function createLineQuestions(
  input: Readable & { isTTY?: boolean },
  output: { write(text: string): unknown },
): Questions {
  const lines = new Lines(input, output);
  const say = (text: string) => output.write(`${text}\n`);
  const ask = async (question: string, read: (answer: string) => string | { problem: string }) => {
    for (;;) {
      const line = await lines.ask(`${question} `);
      // The end of the input does not accept the suggestion.
      if (line === undefined) throw new QuestionsCancelledError(`no answer to: ${question}`);
      const answer = line.trim();
      const problem = findLineProblem(answer);
      const found = problem === undefined ? read(answer) : { problem };
      if (typeof found === "string") return found;
      say(`  ${found.problem}`);
    }
  };
  return {
    choose: async (question, choices, { suggestion, accepts } = {}) => {
      listChoices(choices, say);
      const shown = suggestion === undefined ? "" : ` [${suggestion}]`;
      if (accepts !== undefined)
        lines.hides = (line) => beginsLikeKey(line) || !choices.some((choice) => matchesSearch(line, choice));
      try {
        return await ask(`${question}${shown}`, (typed) => {
          const answer = typed || (suggestion ?? "");
          const choice = findChoice(answer, choices);
          if (choice !== undefined) return choice.value;
          return accepts?.(answer) === true
            ? answer
            : { problem: describeUnknownChoice(answer, choices, true) };
        });
      } finally {
        lines.hides = beginsLikeKey;
      }
    },
    text: (question, { suggestion, check } = {}) =>
      ask(`${question}${suggestion === undefined ? "" : ` [${suggestion}]`}`, (answer) => {
        const given = answer || (suggestion ?? "");
        const problem = given === "" ? "An answer is needed." : check?.(given);
        return problem === undefined ? given : { problem };
      }),
    secret: async (question, check) => {
      lines.hides = () => true;
      try {
        return await ask(question, (given) => {
          const problem = given === "" ? "An answer is needed." : check?.(given);
          return problem === undefined ? given : { problem };
        });
      } finally {
        lines.hides = beginsLikeKey;
      }
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

/** Whether a partly typed line begins like an API key. */
const beginsLikeKey = (line: string): boolean => /^(?:sk|pk|rk|gsk|csk|xai|pplx|hf|fw|nvapi)[-_]/i.test(line);

/** Reads lines, including those that arrive before their question. */
class Lines {
  /** Whether to hide a line while it is typed. */
  hides: (line: string) => boolean = beginsLikeKey;
  readonly #output: { write(text: string): unknown };
  readonly #reader: ReturnType<typeof createInterface>;
  readonly #lines: AsyncIterator<string>;

  constructor(input: Readable & { isTTY?: boolean }, output: { write(text: string): unknown }) {
    this.#output = output;
    const echo = new Writable({
      write: (chunk, _encoding, done) => {
        if (!this.hides(this.#reader.line)) output.write(String(chunk));
        done();
      },
    });
    // No history: the arrow keys must not show an API key again.
    this.#reader = createInterface({ input, output: echo, terminal: input.isTTY === true, historySize: 0 });
    this.#reader.on("SIGINT", () => this.#reader.close());
    this.#lines = this.#reader[Symbol.asyncIterator]();
  }

  /** Returns undefined at the end of the input. */
  async ask(question: string): Promise<string | undefined> {
    this.#output.write(question);
    const { value, done } = await this.#lines.next();
    if (done === true || this.hides(value)) this.#output.write("\n");
    return done === true ? undefined : value;
  }

  close(): void {
    this.#reader.close();
  }
}
