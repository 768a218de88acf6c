import * as prompts from "@clack/prompts";
import { type Questions, Stopped } from "./questions.ts";

/** Choices that are shown at once. */
const shownChoices = 12;

/** Questions with lists that one moves in, for a terminal. */
export function drawnQuestions(): Questions {
  prompts.intro("Fairlead");
  return {
    choose: async (question, choices, first) =>
      answered(
        await prompts.autocomplete({
          message: question,
          options: choices.map(({ value, label, hint }) => ({ value, label, ...(hint && { hint }) })),
          maxItems: shownChoices,
          ...(first !== undefined && { initialValue: first }),
        }),
      ),
    text: async (question, { suggestion, check } = {}) =>
      answered(
        await prompts.text({
          message: question,
          ...(suggestion !== undefined && { placeholder: suggestion, defaultValue: suggestion }),
          validate: (answer) => {
            const given = answer?.trim() || suggestion || "";
            return given === "" ? "An answer is needed." : check?.(given);
          },
        }),
      ).trim(),
    secret: async (question) =>
      answered(
        await prompts.password({
          message: question,
          validate: (answer) => (answer?.trim() ? undefined : "An answer is needed."),
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

function answered<Value>(answer: Value | typeof prompts.CANCEL_SYMBOL): Value {
  if (prompts.isCancel(answer)) throw new Stopped("broken off");
  return answer;
}
