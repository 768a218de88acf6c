import { Transform } from "node:stream";
import * as prompts from "@clack/prompts";
import { describeUnknownChoice, matchesSearch } from "./choices.ts";
import {
  type Check,
  type Choice,
  type ChooseOptions,
  findLineProblem,
  type Questions,
  QuestionsCancelledError,
} from "./questions.ts";

/** Choices shown at once. */
const shownChoices = 12;

/** Interactive questions with selectable lists, for a terminal. */
export function createDrawnQuestions(): Questions {
  prompts.intro("Fairlead");
  return {
    choose: (question, choices, options = {}) => choose(question, choices, options),
    text: async (question, { suggestion, check } = {}) =>
      requireAnswer(
        await prompts.text({
          message: question,
          ...(suggestion !== undefined && { placeholder: suggestion, defaultValue: suggestion }),
          validate: (answer) => findAnswerProblem(answer?.trim() || suggestion || "", check),
        }),
      ).trim(),
    secret: async (question, check) =>
      requireAnswer(
        await prompts.password({
          message: question,
          validate: (answer) => findAnswerProblem(answer?.trim() ?? "", check),
        }),
      ).trim(),
    confirm: async (question, suggestion) =>
      requireAnswer(await prompts.confirm({ message: question, initialValue: suggestion })),
    say: (text) => prompts.log.info(text),
    show: (title, text) => {
      // Printed without a frame, so that it can be copied.
      prompts.log.step(title);
      process.stdout.write(`\n${text}\n\n`);
    },
    wait: (what, work) => {
      // No spinner: interrupting one would exit the program with code 0.
      prompts.log.step(`${what} …`);
      return work;
    },
    close: () => {},
  };
}

/** Shows a list that is searched by typing. A pasted text may be an answer that is not in the list. */
async function choose(
  question: string,
  choices: readonly Choice[],
  { suggestion, accepts }: ChooseOptions,
): Promise<string> {
  let search = "";
  const paste = new PastedAnswer((text) => accepts?.(text) === true);
  const typed = (): Choice[] =>
    accepts?.(search) === true ? [{ value: search, label: "Use the typed text" }] : [];
  try {
    const answer = await prompts.autocomplete({
      message: question,
      options: () =>
        [...choices, ...typed()].map(({ value, label, hint }) => ({ value, label, ...(hint && { hint }) })),
      filter: (text, { value }) => {
        search = text.trim();
        const choice = choices.find((one) => one.value === value);
        return choice === undefined || matchesSearch(search, choice);
      },
      validate: (value) => (value === undefined ? describeUnknownChoice(search, choices, false) : undefined),
      maxItems: shownChoices,
      input: paste.input,
      signal: paste.signal,
      ...(suggestion !== undefined && { initialValue: suggestion }),
    });
    return paste.text ?? requireAnswer(answer);
  } finally {
    paste.close();
  }
}

/** Intercepts a pasted answer before the list shows it as search text: it may be a key. */
class PastedAnswer {
  /** Replaces the terminal's own input. */
  readonly input = Object.assign(new Transform(), {
    isTTY: true,
    setRawMode: (isRaw: boolean) => process.stdin.setRawMode(isRaw),
  });
  text: string | undefined;
  readonly #accepted = new AbortController();

  constructor(accepts: (text: string) => boolean) {
    this.input._transform = (chunk: Buffer, _encoding, done) => {
      const text = String(chunk).trim();
      if (this.text !== undefined) return done();
      if (text.length < minPasteLength || !accepts(text)) return done(null, chunk);
      this.text = text;
      this.#accepted.abort();
      return done();
    };
    process.stdin.pipe(this.input);
  }

  /** Aborts when an answer was accepted. */
  get signal(): AbortSignal {
    return this.#accepted.signal;
  }

  close(): void {
    process.stdin.unpipe(this.input);
    process.stdin.pause();
  }
}

/** A chunk of this many characters was pasted, not typed. */
const minPasteLength = 8;

function findAnswerProblem(answer: string, check: Check | undefined): string | undefined {
  return answer === "" ? "An answer is needed." : (findLineProblem(answer) ?? check?.(answer));
}

function requireAnswer<Value>(answer: Value | typeof prompts.CANCEL_SYMBOL): Value {
  if (prompts.isCancel(answer)) throw new QuestionsCancelledError("cancelled");
  return answer;
}
