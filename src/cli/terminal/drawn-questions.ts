import { Transform } from "node:stream";
import * as prompts from "@clack/prompts";
import { describeMiss, isFound } from "./choices.ts";
import {
  type Check,
  type Choice,
  type ChooseOptions,
  lineProblem,
  type Questions,
  QuestionsCancelledError,
} from "./questions.ts";

/** Choices that are shown at once. */
const shownChoices = 12;

/** Questions with lists that one moves in, for a terminal. */
export function drawnQuestions(): Questions {
  prompts.intro("Fairlead");
  return {
    choose: (question, choices, options = {}) => choose(question, choices, options),
    text: async (question, { suggestion, check } = {}) =>
      answered(
        await prompts.text({
          message: question,
          ...(suggestion !== undefined && { placeholder: suggestion, defaultValue: suggestion }),
          validate: (answer) => answerProblem(answer?.trim() || suggestion || "", check),
        }),
      ).trim(),
    secret: async (question, check) =>
      answered(
        await prompts.password({
          message: question,
          validate: (answer) => answerProblem(answer?.trim() ?? "", check),
        }),
      ).trim(),
    confirm: async (question, suggestion) =>
      answered(await prompts.confirm({ message: question, initialValue: suggestion })),
    say: (text) => prompts.log.info(text),
    show: (title, text) => {
      // Without a frame, so that it can be copied.
      prompts.log.step(title);
      process.stdout.write(`\n${text}\n\n`);
    },
    wait: (what, work) => {
      // What turns meanwhile would end the program as if all were well when the person breaks it off.
      prompts.log.step(`${what} …`);
      return work;
    },
    close: () => {},
  };
}

/** A list that is searched by typing; what is pasted may be an answer of its own. */
async function choose(
  question: string,
  choices: readonly Choice[],
  { first, accepts }: ChooseOptions,
): Promise<string> {
  let search = "";
  const paste = new PastedAnswer((text) => accepts?.(text) === true);
  const typed = (): Choice[] =>
    accepts?.(search) === true ? [{ value: search, label: "Take what is typed" }] : [];
  try {
    const answer = await prompts.autocomplete({
      message: question,
      options: () =>
        [...choices, ...typed()].map(({ value, label, hint }) => ({ value, label, ...(hint && { hint }) })),
      filter: (text, { value }) => {
        search = text.trim();
        const choice = choices.find((one) => one.value === value);
        return choice === undefined || isFound(search, choice);
      },
      validate: (value) => (value === undefined ? describeMiss(search, choices, false) : undefined),
      maxItems: shownChoices,
      input: paste.input,
      signal: paste.signal,
      ...(first !== undefined && { initialValue: first }),
    });
    return paste.text ?? answered(answer);
  } finally {
    paste.close();
  }
}

/** Takes a pasted answer from a terminal's input before a list shows it as a search. */
class PastedAnswer {
  /** Stands in for the terminal's own input. */
  readonly input = Object.assign(new Transform(), {
    isTTY: true,
    setRawMode: (isRaw: boolean) => process.stdin.setRawMode(isRaw),
  });
  text: string | undefined;
  readonly #taken = new AbortController();

  constructor(accepts: (text: string) => boolean) {
    this.input._transform = (chunk: Buffer, _encoding, done) => {
      const text = String(chunk).trim();
      if (this.text !== undefined) return done();
      if (text.length < shortestPaste || !accepts(text)) return done(null, chunk);
      this.text = text;
      this.#taken.abort();
      return done();
    };
    process.stdin.pipe(this.input);
  }

  /** Aborts when an answer was taken. */
  get signal(): AbortSignal {
    return this.#taken.signal;
  }

  close(): void {
    process.stdin.unpipe(this.input);
    process.stdin.pause();
  }
}

/** Characters in one piece that nobody types. */
const shortestPaste = 8;

function answerProblem(answer: string, check: Check | undefined): string | undefined {
  return answer === "" ? "An answer is needed." : (lineProblem(answer) ?? check?.(answer));
}

function answered<Value>(answer: Value | typeof prompts.CANCEL_SYMBOL): Value {
  if (prompts.isCancel(answer)) throw new QuestionsCancelledError("broken off");
  return answer;
}
